"""A small HTTP server for probes, metrics and debug pages, and the health checks that it serves.

Components pass `Pages` by path; with a guard, every request to a path that is not open is authorized first. `Health`
makes the pages /healthz, /livez and /readyz of named checks, and exports their results under /metrics/slis
(kube-scheduler spec 6.5). It serves GET and PUT with short responses, one request per connection. A client can neither
crash the process nor hold a request longer than `PATIENCE`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from numalign.process.metrics import Registry

LOG: Final = logging.getLogger(__name__)
PATIENCE: Final = 30.0
SLOWEST: Final = 1 << 20
"""Bytes per second that a client must read of a long response."""
LONGEST_HEAD: Final = 16 << 10
LONGEST_BODY: Final = 1 << 20
TEXT: Final = "text/plain; charset=utf-8"


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


class BadRequest(Exception):
    """The client sent something that is not a supported HTTP request."""


class Pages:
    """Pages by path; a path that ends in a slash matches everything under it."""

    def __init__(self, pages: Mapping[str, Page], guard: Guard | None = None) -> None:
        self._pages = pages
        self._guard = guard

    async def answer(self, asked: PageRequest) -> PageResponse:
        # Unauthorized clients must not learn which paths exist.
        refused = await self._guard(asked) if self._guard is not None else None
        if refused is not None:
            return refused
        page = self._page(asked.path)
        if page is None:
            return PageResponse("404 page not found\n", 404)
        if asked.method not in ("GET", "HEAD", "PUT"):
            return PageResponse("method not allowed\n", 405)
        found = page(asked)
        return found if isinstance(found, PageResponse) else await found

    def _page(self, path: str) -> Page | None:
        if path in self._pages:
            return self._pages[path]
        under = [place for place in self._pages if place.endswith("/") and path.startswith(place)]
        return self._pages[max(under, key=len)] if under else None


@contextlib.asynccontextmanager
async def serving(pages: Pages, address: tuple[str, int], tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serves until the block is left; yields the port, also where 0 was asked for. OSError where the port is taken."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                written = await _exchange(pages, reader)
            writer.write(written)
            async with asyncio.timeout(PATIENCE + len(written) / SLOWEST):
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as problem:
            LOG.debug("Client disconnected: %s", problem)
        finally:
            writer.close()

    shaking = PATIENCE if tls is not None else None
    host, port = address
    server = await asyncio.start_server(
        connected, host, port, ssl=tls, limit=LONGEST_HEAD, ssl_handshake_timeout=shaking
    )
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()


async def _exchange(pages: Pages, reader: asyncio.StreamReader) -> bytes:
    try:
        asked = await _read(reader)
    except asyncio.LimitOverrunError:
        return _written(PageResponse("request header fields too large\n", 431), with_body=True)
    except (BadRequest, ValueError):
        return _written(PageResponse("bad request\n", 400), with_body=True)
    try:
        answer = await pages.answer(asked)
    except Exception:
        LOG.exception("Failed to serve %s %s", asked.method, asked.path)
        answer = PageResponse("internal error\n", 500)
    return _written(answer, with_body=asked.method != "HEAD")


async def _read(reader: asyncio.StreamReader) -> PageRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *rest = head.rstrip().split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest
    pairs = (line.partition(":") for line in rest)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= LONGEST_BODY:
        raise BadRequest
    split = urlsplit(parts[1])
    given = parse_qs(split.query, keep_blank_values=True)
    return PageRequest(
        method=parts[0],
        path=split.path,
        query={name: values[-1] for name, values in given.items()},
        repeated={name: tuple(values) for name, values in given.items() if len(values) > 1},
        headers=headers,
        body=await reader.readexactly(length),
    )


def _written(answer: PageResponse, *, with_body: bool) -> bytes:
    body = answer.body if isinstance(answer.body, bytes) else answer.body.encode("utf-8", "replace")
    head = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nContent-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(body)}\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")


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
            name = asked.path.removeprefix(path).strip("/")
            if name not in checks:
                return PageResponse(f"404 check {name} is not known\n", 404)
            return (
                PageResponse("ok") if checks[name]() else PageResponse(f"internal server error: {name} failed\n", 500)
            )

        return {path: every, f"{path}/": single}

    def _count(self, kind: str, results: Mapping[str, bool]) -> None:
        for name, ok in results.items():
            self._last.set(name, kind, to=int(ok))
            self._total.add(name, kind, "success" if ok else "error")


def _line(name: str, ok: bool | None) -> str:
    """`ok` is None for a check that the request excludes."""
    if ok is None:
        return f"[+]{name} excluded: ok"
    return f"[+]{name} ok" if ok else f"[-]{name} failed: reason withheld"
