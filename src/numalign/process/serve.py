"""Pages over HTTP for probes, metrics and debugging, and the health checks among them.

Components pass `Pages` by path; with a guard, every request to a path that is not open is authorized first. `Health`
makes the pages /healthz, /livez and /readyz of named checks, and exports their results under /metrics/slis
(kube-scheduler spec 6.5). It serves GET and PUT, and POST where a page asks for it, one request per connection,
within `LIMITS`."""

from __future__ import annotations

import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import parse_qs

from msgspec import Struct

from numalign.process import asgi
from numalign.process.asgi import AsgiApplication
from numalign.process.http import listen, origins
from numalign.process.http.connection import Pending, Served
from numalign.process.http.limits import Limits
from numalign.process.http.messages import TEXT, Request, Response
from numalign.process.http.pending import PendingResponse
from numalign.process.metrics import Registry

LOG: Final = logging.getLogger(__name__)
LIMITS: Final = Limits(connections=64, head_seconds=5.0, body_bytes=1 << 20, idle_seconds=0)
METHODS: Final = ("GET", "HEAD", "PUT")


class PageRequest(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    query: Mapping[str, str] = {}
    """The last value of each query parameter."""
    repeated: Mapping[str, tuple[str, ...]] = {}
    """All values of parameters that occur more than once."""
    headers: Mapping[str, str] = {}
    """By lower-case name."""
    body: bytes = b""

    def every(self, name: str) -> tuple[str, ...]:
        """All values of a query parameter."""
        return self.repeated.get(name) or ((self.query[name],) if name in self.query else ())


class PageResponse(Struct, frozen=True):
    body: str | bytes
    status: int = 200
    content_type: str = TEXT


Page = Callable[[PageRequest], PageResponse | Awaitable[PageResponse]]
Guard = Callable[[PageRequest], Awaitable[PageResponse | None]]
"""None: serve the page. A response: send it instead."""


class Mounted(Struct, frozen=True):
    """An application that answers everything below a path."""

    application: AsgiApplication
    secure: bool
    """Whether it is served with TLS."""


class Pages:
    """Pages by path."""

    def __init__(
        self,
        pages: Mapping[str, Page],
        guard: Guard | None = None,
        posts: Mapping[str, Page] = {},
        mounted: Mapping[str, Mounted] = {},
    ) -> None:
        """`posts`: pages that answer POST requests and no others. `mounted`: applications by the path they are below;
        they do what the guard does for pages."""
        self.mounted = mounted
        self._pages = pages
        self._posts = posts
        self._guard = guard

    @property
    def is_guarded(self) -> bool:
        return self._guard is not None

    async def answer(self, asked: PageRequest) -> PageResponse:
        # The guard is asked about few paths and methods only, because it asks the API server about each.
        page = self._pages.get(asked.path) or self._posts.get(asked.path)
        if page is None:
            return PageResponse("404 page not found\n", 404)
        if asked.method not in (("POST",) if asked.path in self._posts else METHODS):
            return PageResponse("method not allowed\n", 405)
        refused = await self._guard(asked) if self._guard is not None else None
        if refused is not None:
            return refused
        found = page(asked)
        return found if isinstance(found, PageResponse) else await found


@contextlib.asynccontextmanager
async def serving(
    pages: Pages, address: tuple[str, int], tls: ssl.SSLContext | None = None, limits: Limits = LIMITS
) -> AsyncIterator[int]:
    """Serves until the block is left; yields the port, also where 0 was asked for. OSError where the port is taken."""
    # Guarded pages are safe from browsers: these do not send a token unless a page of ours does.
    hosts = None if pages.is_guarded else origins.of_machine(address[0])
    if not pages.is_guarded and not listen.is_loopback(address[0]):
        LOG.warning("Serving pages to every client that reaches %s, without authentication", address[0])
    async with listen.listening(Served(PagesServer(pages), limits, hosts), address, tls) as port:
        yield port


class PagesServer:
    """Answers requests with pages; `process.http` calls it."""

    headers: tuple[str, ...] = ("authorization",)
    added: tuple[tuple[str, str], ...] = (("X-Content-Type-Options", "nosniff"),)

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        if pages.mounted:
            self.headers = tuple(dict.fromkeys((*self.headers, *asgi.HEADERS)))

    def answer(self, request: Request) -> Pending:
        for path, each in self._pages.mounted.items():
            if request.path == path or request.path.startswith(f"{path}/"):
                return asgi.answering(each.application, request, path, secure=each.secure)
        return PendingResponse(request, lambda: self._answered(request))

    async def _answered(self, request: Request) -> Response:
        found = await self._pages.answer(_asked(request))
        body = found.body if isinstance(found.body, bytes) else found.body.encode("utf-8", "replace")
        return Response(found.status, body, found.content_type)

    def refusal(self, code: int, why: str) -> Response:
        return Response(code, f"{why}\n".encode(), TEXT)


def _asked(request: Request) -> PageRequest:
    given = parse_qs(request.raw_query, keep_blank_values=True)
    return PageRequest(
        method=request.method,
        path=request.path,
        query={name: values[-1] for name, values in given.items()},
        repeated={name: tuple(values) for name, values in given.items() if len(values) > 1},
        headers=request.headers,
        body=request.body,
    )


Check = Callable[[], bool]


class Health:
    def __init__(self) -> None:
        self.registry = Registry()
        self._last = self.registry.gauge(
            "kubernetes_healthcheck", "1 if the check passed the last time it ran, otherwise 0.", ("name", "type")
        )
        self._total = self.registry.counter(
            "kubernetes_healthchecks_total",
            "Number of times the check ran, by outcome.",
            ("name", "type", "status"),
        )

    def pages(self, path: str, checks: Mapping[str, Check]) -> dict[str, Page]:
        """A page that runs all checks, and one for each check alone."""

        def every(asked: PageRequest) -> PageResponse:
            left_out = asked.every("exclude")
            results = {name: check() for name, check in checks.items() if name not in left_out}
            self._count(path[1:], results)
            lines = [_line(name, results.get(name)) for name in checks]
            if not all(results.values()):
                return PageResponse("\n".join([*lines, f"{path[1:]} check failed", ""]), 500)
            return PageResponse(
                "\n".join([*lines, f"{path[1:]} check passed", ""]) if "verbose" in asked.query else "ok"
            )

        def single(asked: PageRequest) -> PageResponse:
            name = asked.path.removeprefix(f"{path}/")
            return (
                PageResponse("ok") if checks[name]() else PageResponse(f"internal server error: {name} failed\n", 500)
            )

        return {path: every, **{f"{path}/{name}": single for name in checks}}

    def _count(self, kind: str, results: Mapping[str, bool]) -> None:
        for name, ok in results.items():
            self._last.set(name, kind, to=int(ok))
            self._total.add(name, kind, "success" if ok else "error")


def _line(name: str, ok: bool | None) -> str:
    """`ok` is None for a check that the request excludes."""
    if ok is None:
        return f"[+]{name} excluded: ok"
    return f"[+]{name} ok" if ok else f"[-]{name} failed: reason withheld"
