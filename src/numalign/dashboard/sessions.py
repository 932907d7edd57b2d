"""Signing in with a token, and the sessions of browsers that did.

A browser cannot send a bearer token by itself, so the sign-in page takes it once. The session is a random number in a
cookie that no script and no other site can use; the token stays in this process. The token is verified again with every
request, so that one that was withdrawn ends the session. Clients that send the token as a header need no session.

`app` puts `Door` before all pages. `cli` says how a token is verified: by the API server in a scheduler's process, by
comparison where `numalign dashboard` made the token itself."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qs, quote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from numalign.dashboard import rendering
from numalign.process.http import origins

Verify = Callable[[str], Awaitable[int]]
"""The HTTP status for a token; 200: it may read the dashboard."""
LASTS: Final = 8 * 3600.0
IDLE: Final = 3600.0
MOST: Final = 256
LONGEST_TOKEN: Final = 16 << 10
OPEN: Final = ("/sign-in", "/static/")
OK: Final = 200
REFUSALS: Final = {
    401: "The token is not known, or it has expired.",
    403: "The token may not read the dashboard.",
    429: "Too many tokens were tried. Try again in a moment.",
}


class _Session(Struct):
    token: str
    begun: float
    used: float


class Sessions:
    def __init__(self, verify: Verify, name: str, *, secure: bool, now: Callable[[], float] = time.monotonic) -> None:
        """`name`: of the cookie, different for each server of a machine. `secure`: the pages are served with TLS."""
        self.cookie = f"__Host-{name}" if secure else name
        self.secure = secure
        self._verify = verify
        self._now = now
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    async def begin(self, token: str) -> tuple[int, str]:
        """The status, and the session's number where the token is good."""
        status = await self._verify(token)
        if status != OK:
            return status, ""
        key, now = secrets.token_urlsafe(32), self._now()
        self._sessions[key] = _Session(token, now, now)
        if len(self._sessions) > MOST:
            self._sessions.popitem(last=False)
        return status, key

    def end(self, key: str) -> None:
        self._sessions.pop(key, None)

    async def status(self, request: Request) -> int:
        """Whether the client may read this path: 200, 401 if it has to sign in, else why not."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        token = given.strip() if scheme.lower() == "bearer" else self._token(request.cookies.get(self.cookie, ""))
        return await self._verify(token) if token else 401

    def _token(self, key: str) -> str:
        session, now = self._sessions.get(key), self._now()
        if session is None:
            return ""
        if now - session.begun > LASTS or now - session.used > IDLE:
            self.end(key)
            return ""
        session.used = now
        self._sessions.move_to_end(key)
        return session.token


class Door:
    """Lets requests pass that a session or a token allows. A browser without either gets the sign-in page."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app, self._sessions = app, sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        request = Request(scope)
        headers = request.headers
        strange = origins.foreign(headers.get("host", ""), headers.get("origin"), headers.get("sec-fetch-site", ""))
        if strange is not None:
            return await PlainTextResponse(f"{strange[1]}\n", strange[0])(scope, receive, send)
        if path.startswith(OPEN):
            return await self._app(scope, receive, send)
        status = await self._sessions.status(request)
        if status == OK:
            return await self._app(scope, receive, send)
        await _turned_away(request, path, status)(scope, receive, send)


def _turned_away(request: Request, path: str, status: int) -> Response:
    if status != 401:
        return PlainTextResponse(f"you may not read {request.scope['path']}\n", status)
    if "text/html" not in request.headers.get("accept", "") or "hx-request" in request.headers:
        return PlainTextResponse("Unauthorized\n", status)
    wanted = f"{path}?{request.url.query}" if request.url.query else path
    return RedirectResponse(f"{rendering.root(request)}/sign-in?next={quote(wanted, safe='')}", 303)


async def _form(request: Request) -> Response:
    """The form. A link of `numalign dashboard` has the token already."""
    given = request.query_params.get("token", "")
    if given:
        return await _begin(request, given, request.query_params.get("next", ""))
    return rendering.sign_in(request, _inside(request.query_params.get("next", "")))


async def _submitted(request: Request) -> Response:
    fields = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=8)
    token = fields.get("token", [""])[-1].strip()
    return await _begin(request, token, fields.get("next", [""])[-1])


async def _begin(request: Request, token: str, then: str) -> Response:
    sessions: Sessions = request.app.state.sessions
    then = _inside(then)
    # What a bearer token may have (RFC 6750) is ASCII without blanks.
    if not token or len(token) > LONGEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        return rendering.sign_in(request, then, "This is no token: it is empty, too long, or has blanks.", 400)
    status, key = await sessions.begin(token)
    if status != OK:
        return rendering.sign_in(request, then, REFUSALS.get(status, "Tokens cannot be verified now."), status)
    answer = RedirectResponse(f"{rendering.root(request)}{then}", 303)
    answer.set_cookie(
        sessions.cookie, key, max_age=int(LASTS), path="/", secure=sessions.secure, httponly=True, samesite="strict"
    )
    return answer


async def _sign_out(request: Request) -> Response:
    sessions: Sessions = request.app.state.sessions
    sessions.end(request.cookies.get(sessions.cookie, ""))
    answer = RedirectResponse(f"{rendering.root(request)}/sign-in", 303)
    answer.delete_cookie(sessions.cookie, path="/", secure=sessions.secure, httponly=True, samesite="strict")
    return answer


def _inside(path: str) -> str:
    """The path, if it is one of the dashboard: a link must not lead to another site."""
    is_path = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_path and not path.startswith(OPEN) else "/fleet"


ROUTES: Final = [
    Route("/sign-in", _form, methods=["GET"]),
    Route("/sign-in", _submitted, methods=["POST"]),
    Route("/sign-out", _sign_out, methods=["POST"]),
]
