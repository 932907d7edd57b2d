"""Serves an ASGI application with the HTTP server of this project, within its limits.

`answering` makes the response to one request; `AsgiServer` is a whole application of `process.http`, and
`process.serve.Pages` has others below a path. Requests arrive whole, and responses leave whole: the applications here
answer with pages, not with streams. Only the headers in `HEADERS` reach the
application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from numalign.process.http.connection import Pending
from numalign.process.http.limits import Limits
from numalign.process.http.messages import TEXT, Request, Response
from numalign.process.http.pending import PendingResponse

HEADERS: Final = (
    "accept",
    "accept-encoding",
    "authorization",
    "content-type",
    "cookie",
    "host",
    "hx-request",
    "origin",
    "sec-fetch-site",
)
LIMITS: Final = Limits(connections=64, head_seconds=5.0, body_bytes=1 << 16)
"""For applications that only browsers use."""
ASGI: Final = {"version": "3.0", "spec_version": "2.4"}
OWN: Final = frozenset({b"content-type", b"content-length", b"connection", b"transfer-encoding"})
"""Headers that the server writes itself."""
Message = MutableMapping[str, Any]
AsgiApplication = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


class AsgiServer:
    """Answers all requests with one application; `process.http` calls it."""

    headers: tuple[str, ...] = HEADERS
    added: tuple[tuple[str, str], ...] = ()

    def __init__(self, application: AsgiApplication, *, secure: bool) -> None:
        """`secure`: it is served with TLS."""
        self._application, self._secure = application, secure

    def answer(self, request: Request) -> Pending:
        return answering(self._application, request, secure=self._secure)

    def refusal(self, code: int, why: str) -> Response:
        return Response(code, f"{why}\n".encode(), TEXT)


def answering(application: AsgiApplication, request: Request, root: str = "", *, secure: bool) -> Pending:
    """`root`: the path below which the application is."""
    return PendingResponse(request, lambda: answered(application, request, root, secure=secure))


async def answered(application: AsgiApplication, request: Request, root: str = "", *, secure: bool) -> Response:
    """The response of the application; whatever it raises is raised."""
    exchange = _Exchange(request.body)
    await application(_scope(request, root, secure=secure), exchange.receive, exchange.send)
    return exchange.response()


def _scope(request: Request, root: str, *, secure: bool) -> Message:
    return {
        "type": "http",
        "asgi": ASGI,
        "http_version": "1.1",
        "method": request.method,
        "scheme": "https" if secure else "http",
        "path": request.path,
        "root_path": root,
        "query_string": request.raw_query.encode("latin-1"),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in request.headers.items()],
        "client": None,
        "server": None,
    }


class _Exchange:
    """The two channels of ASGI for one request."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._status = 500
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []

    async def receive(self) -> Message:
        body, self._body = self._body, None
        if body is None:
            # The client sends no more; its end cancels the task.
            await asyncio.get_running_loop().create_future()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._pieces.append(bytes(message.get("body", b"")))

    def response(self) -> Response:
        content_type = next((value for name, value in self._headers if name.lower() == b"content-type"), TEXT.encode())
        headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in self._headers
            if name.lower() not in OWN
        )
        return Response(self._status, b"".join(self._pieces), content_type.decode("latin-1"), headers)
