"""Pages of a recording beside pages of a cluster that goes on: what asks for a time is answered by somewhere else.

`app.application` puts `PastPages` behind the sign-in where a scheduler records. Requests without a time get the pages
of the present. The `Past` makes the others away from the scheduler's event loop, because reading a recording takes
seconds; this module only passes them on."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from numalign.dashboard import rendering, sessions
from numalign.dashboard.source import SourceFailed

PASSED: Final = ("accept", "hx-request")
"""Headers that change a page. Tokens and cookies stay here."""


class AskedPage(Struct, frozen=True):
    """A GET request for a page."""

    path: str
    """With the path of the dashboard, which `root` is."""
    query: str
    root: str
    at: float
    headers: dict[str, str]


class PastPage(Struct, frozen=True):
    status: int
    body: bytes
    content_type: str
    location: str = ""


class Past(Protocol):
    async def page(self, asked: AskedPage) -> PastPage:
        """SourceFailed if it cannot be made now."""


class PastPages:
    def __init__(self, app: ASGIApp, past: Past) -> None:
        self._app, self._past = app, past

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = _asked(scope)
        if asked is None:
            return await self._app(scope, receive, send)
        try:
            found = await self._past.page(asked)
        except SourceFailed as problem:
            answer: Response = rendering.notice(Request(scope), 503, "The past cannot be shown", str(problem))
        else:
            answer = Response(found.body, found.status, media_type=None)
            answer.headers["content-type"] = found.content_type
            if found.location:
                answer.headers["location"] = found.location
        await answer(scope, receive, send)


def _asked(scope: Scope) -> AskedPage | None:
    """None: not a page of the past."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return None
    request = Request(scope)
    at, root = rendering.asked_time(request), rendering.root(request)
    if at is None or scope["path"].removeprefix(root).startswith(sessions.OPEN):
        return None
    headers = {name: request.headers[name] for name in PASSED if name in request.headers}
    return AskedPage(scope["path"], scope["query_string"].decode("latin-1"), root, at, headers)
