"""One client connection: bytes to requests, responses to bytes, in order.

`server` makes one for each connection. httptools parses the bytes; the router answers a request as soon as it is
complete, because no verb waits. A watch occupies its connection until it ends; requests that arrive meanwhile are
answered after it."""

import asyncio
import gzip
import hmac
from collections import deque
from http import HTTPStatus
from typing import Final, cast

import httptools

from numalign.simulator.apiserver.http import bodies, requests
from numalign.simulator.apiserver.http.requests import Request, Response
from numalign.simulator.apiserver.http.routes import Router
from numalign.simulator.apiserver.http.watchstream import WatchStream
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError

READ_HEADERS: Final = {
    name.encode(): name
    for name in (
        "accept",
        "accept-encoding",
        "authorization",
        "content-type",
        "expect",
        "if-none-match",
        "user-agent",
    )
}
MIN_COMPRESSED: Final = 128 * 1024
MAX_WAITING: Final = 1000
"""The number of requests that may wait behind a watch."""
PUBLIC_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
UNAUTHORIZED: Final = StatusError(401, "Unauthorized", "Unauthorized")
REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


class Connection(asyncio.Protocol):
    def __init__(self, router: Router, connections: set["Connection"], token: str) -> None:
        self._router = router
        self._connections = connections
        self._authorization = f"Bearer {token}" if token else ""
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[Request | Response] = deque()
        self._out: list[bytes] = []
        self._stream: WatchStream | None = None
        self._closes = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self)

    def connection_lost(self, problem: Exception | None) -> None:
        self._connections.discard(self)
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The client asked for another protocol: its request was answered, and the rest is not HTTP.
            self._closes = True
        except httptools.HttpParserError:
            self._refuse(errors.bad_request("the request is not HTTP/1.1"))
        self._send()

    def stop(self) -> None:
        """Ends a watch in order and closes the connection."""
        if self._stream is not None:
            self._stream.end()
        self._transport.close()

    # Callbacks of httptools.

    def on_message_begin(self) -> None:
        self._target = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        known = READ_HEADERS.get(name.lower())
        if known is not None:
            self._headers[known] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size <= bodies.MAX_BODY:
            self._body.append(body)

    def on_message_complete(self) -> None:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._closes = self._closes or not self._parser.should_keep_alive()
        request = Request(self._parser.get_method().decode(), self._target, self._headers, body)
        if self._size > bodies.MAX_BODY:
            self._refuse(errors.too_large(f"Request entity too large: limit is {bodies.MAX_BODY}"))
        elif self._stream is None:
            self._perform(request)
        elif len(self._waiting) < MAX_WAITING:
            self._waiting.append(request)
        else:
            self._transport.abort()

    def _perform(self, request: Request) -> None:
        if self._authorization and request.path not in PUBLIC_PATHS and not self._is_authorized(request):
            return self._write(request, requests.error_response(UNAUTHORIZED))
        found = self._router.answer(request)
        if isinstance(found, Response):
            return self._write(request, found)
        self._send()
        try:
            self._stream = WatchStream(self._router.state, found, self._transport, self._after_stream)
            self._stream.open()
        except StatusError as problem:
            self._stream = None
            self._write(request, requests.error_response(problem))

    def _is_authorized(self, request: Request) -> bool:
        return hmac.compare_digest(request.headers.get("authorization", "").encode(), self._authorization.encode())

    def _after_stream(self) -> None:
        self._stream = None
        while self._waiting and self._stream is None:
            self._perform(cast(Request, self._waiting.popleft()))
        self._send()

    def _refuse(self, problem: StatusError) -> None:
        """Responds with an error and closes the connection, because the following bytes may not be a request."""
        if self._stream is not None:
            # The response of a watch contains events only.
            return self._transport.abort()
        self._closes = True
        self._write(None, requests.error_response(problem))

    def _write(self, request: Request | None, answer: Response) -> None:
        body, headers = answer.body, answer.headers
        if len(body) > MIN_COMPRESSED and request is not None and "gzip" in request.headers.get("accept-encoding", ""):
            body, headers = (
                gzip.compress(body, 1),
                (*headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")),
            )
        self._out.append(_head(answer, headers, len(body)))
        if request is None or request.method != "HEAD":
            self._out.append(body)

    def _send(self) -> None:
        if self._out:
            self._transport.write(b"".join(self._out))
            self._out.clear()
        if self._closes and self._stream is None and not self._waiting:
            self._transport.close()


def _head(answer: Response, headers: tuple[tuple[str, str], ...], size: int) -> bytes:
    more = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return (
        f"HTTP/1.1 {answer.code} {REASONS.get(answer.code, '')}\r\nContent-Type: {answer.content_type}\r\n"
        f"Cache-Control: no-cache, private\r\nContent-Length: {size}\r\n{more}\r\n"
    ).encode()
