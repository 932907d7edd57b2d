"""The dashboard as an ASGI application: pages, static files, headers against foreign pages, and the sign-in.

`cli` serves it alone with `process.asgi`, or mounts it into the pages of a scheduler. It answers GET, and POST for the
sign-in. No page loads anything from another host, and none has inline scripts or styles."""

from __future__ import annotations

from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from numalign.dashboard import rendering, sessions, statics
from numalign.dashboard.pages import decision, fleet, health, node, waiting
from numalign.dashboard.past import Past, PastPages
from numalign.dashboard.rendering import Links
from numalign.dashboard.sessions import Sessions
from numalign.dashboard.source import Source, SourceFailed

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    # Not no-referrer: with that, browsers name no origin where they send the form of the sign-in, and are turned away.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
PRIVATE: Final = "no-store"
"""Cache-Control of pages: they show the cluster, and are old at once."""
PAGES: Final = (fleet, node, waiting, decision, health)
"""Modules of pages; each has ROUTES."""


def application(
    source: Source, signing_in: Sessions | None = None, links: Links | None = None, past: Past | None = None
) -> Starlette:
    """`signing_in`: None where no client can be a stranger. `links`: the addresses where the pages become files.
    `past`: answers what asks for a time; None: the source does."""
    routes = [
        Route("/", _start),
        *(route for page in PAGES for route in page.ROUTES),
        Route("/static/{name}", statics.answer, name="static"),
    ]
    middleware = [Middleware(_Headers)]
    if signing_in is not None:
        routes += sessions.ROUTES
        middleware.append(Middleware(sessions.Door, sessions=signing_in))
    if past is not None:
        middleware.append(Middleware(PastPages, past=past))
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={SourceFailed: _source_failed, HTTPException: _refused},
    )
    app.state.source = source
    app.state.sessions = signing_in
    app.state.links = links
    return app


async def _start(request: Request) -> Response:
    return RedirectResponse(f"{rendering.root(request)}/fleet", 302)


async def _source_failed(request: Request, problem: Exception) -> Response:
    return rendering.notice(request, 503, "The cluster cannot be read", str(problem))


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    return rendering.notice(request, problem.status_code, problem.detail, "")


class _Headers:
    """Adds the headers of every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", PRIVATE)
            await send(message)

        await self._app(scope, receive, with_headers)
