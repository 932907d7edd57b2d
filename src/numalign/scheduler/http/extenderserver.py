"""Serves the scheduler extender protocol over HTTP: POST /filter, /prioritize and /bind.

`numalign extender run` listens with it. Clients show a certificate that the TLS layer has verified, or every request
passes a guard. kube-scheduler keeps its connections open and waits for each answer, so `filter` and `prioritize` are
answered at once and never ask the API server. `bind` goes on when its client disconnects, because a Binding that was
sent may take effect. A body that cannot be read gets 400 and says why; kube-scheduler reports the code in the pod's
Event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, Final

import msgspec

from numalign.api.decode import decode
from numalign.api.decode.structs import ENCODER
from numalign.api.errors import BadObject
from numalign.kube.clock import Clock
from numalign.process.http.connection import Connection, Pending
from numalign.process.http.limits import Limits
from numalign.process.http.messages import TEXT, Request, Response
from numalign.process.serve import Guard, PageRequest
from numalign.scheduler.extender.extender import Extender
from numalign.scheduler.extender.protocol import BindingArgs, ExtenderArgs
from numalign.scheduler.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
LIMITS: Final = Limits(connections=64, body_bytes=64 << 20, head_seconds=5.0, idle_seconds=120.0)
"""Go's clients close connections that were idle for 90 seconds; a server that closes first makes a request fail. Whole
nodes have 5 to 15 kB each."""
FILTER, PRIORITIZE, BIND = "/filter", "/prioritize", "/bind"
PATHS: Final = (FILTER, PRIORITIZE, BIND)
NOT_SYNCED: Final = "the caches of the extender are not synced yet"


class ExtenderServer:
    """Answers requests; `process.http` calls it."""

    headers: tuple[str, ...] = ("authorization",)
    added: tuple[tuple[str, str], ...] = (("X-Content-Type-Options", "nosniff"),)

    def __init__(
        self,
        extender: Extender,
        counts: Metrics,
        clock: Clock,
        *,
        is_synced: Callable[[], bool],
        guard: Guard | None = None,
    ) -> None:
        """`guard`: None where TLS has authenticated the clients."""
        self._extender, self._counts, self._clock = extender, counts, clock
        self._is_synced, self._guard = is_synced, guard
        self._binds: set[asyncio.Task[None]] = set()
        """Keeps tasks that no client waits for."""

    def answer(self, request: Request) -> Response | Pending:
        if request.path not in PATHS:
            return self.refusal(HTTPStatus.NOT_FOUND, f"no such path; the verbs are {', '.join(PATHS)}")
        if request.method != "POST":
            return self.refusal(HTTPStatus.METHOD_NOT_ALLOWED, "send a POST request")
        if self._guard is None and request.path != BIND:
            return self._now(request)
        return Later(self._guarded(request), self._binds)

    def refusal(self, code: int, why: str) -> Response:
        return Response(code, f"{why}\n".encode(), TEXT)

    async def _guarded(self, request: Request) -> Response:
        if self._guard is not None:
            asked = PageRequest(method=request.method, path=request.path, headers=request.headers)
            refused = await self._guard(asked)
            if refused is not None:
                body = refused.body if isinstance(refused.body, bytes) else refused.body.encode()
                return Response(refused.status, body, refused.content_type)
        return self._now(request) if request.path != BIND else await self._bound(request)

    def _now(self, request: Request) -> Response:
        begun = self._clock.now()
        answer = self._answered(request)
        self._counts.extender_seconds.observe(request.path[1:], str(answer.code), number=self._clock.now() - begun)
        return answer

    def _answered(self, request: Request) -> Response:
        if not self._is_synced():
            return self.refusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_SYNCED)
        try:
            asked = decode.decode(ExtenderArgs, request.body)
            found: Any = self._extender.filter(asked) if request.path == FILTER else self._extender.prioritize(asked)
        except BadObject as problem:
            return self.refusal(HTTPStatus.BAD_REQUEST, str(problem))
        except Exception:
            LOG.exception("Failed to answer %s", request.path)
            return self.refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the log of the extender")
        return _json(found)

    async def _bound(self, request: Request) -> Response:
        begun = self._clock.now()
        if not self._is_synced():
            return self.refusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_SYNCED)
        try:
            answer = _json(await self._extender.bind(decode.decode(BindingArgs, request.body)))
        except BadObject as problem:
            answer = self.refusal(HTTPStatus.BAD_REQUEST, str(problem))
        self._counts.extender_seconds.observe("bind", str(answer.code), number=self._clock.now() - begun)
        return answer


class Later:
    """An answer that is being made in a task, which ends also where the client is gone."""

    def __init__(self, work: Coroutine[Any, Any, Response], tasks: set[asyncio.Task[None]]) -> None:
        self._work, self._tasks = work, tasks
        self._connection: Connection | None = None

    def open(self, connection: Connection) -> None:
        self._connection = connection
        task = asyncio.get_running_loop().create_task(self._answer())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def end(self) -> None:
        """The client sees the end of the connection."""

    def close(self) -> None:
        self._connection = None

    async def _answer(self) -> None:
        try:
            answer = await self._work
        except Exception:
            LOG.exception("Failed to answer a request")
            answer = Response(HTTPStatus.INTERNAL_SERVER_ERROR, b"internal error\n", TEXT)
        if self._connection is not None:
            self._connection.finish(answer)


def _json(thing: msgspec.Struct | list[Any]) -> Response:
    return Response(HTTPStatus.OK, ENCODER.encode(thing))
