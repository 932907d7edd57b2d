"""Serves the scheduler extender protocol over HTTP: POST /choose, /filter, /prioritize, /preempt and /bind.

Beside them are the questions that promise nothing: /simulate/filter and /simulate/prioritize about whole nodes, and
/v1/capacity.

`http.serving` listens with it. Clients show a certificate that the TLS layer has verified, or every request passes a
guard. kube-scheduler keeps its connections open and waits for each answer, so all verbs but `bind` are answered at once
and never ask the API server. `bind` goes on when its client disconnects, because a Binding that was sent may take
effect. A body that cannot be read gets 400 and says why; kube-scheduler reports the code in the pod's Event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from numalign.api.decode import decode
from numalign.api.decode.structs import ENCODER
from numalign.api.errors import BadObject
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube.clock import Clock
from numalign.process.http.connection import Connection, Pending
from numalign.process.http.limits import Limits
from numalign.process.http.messages import TEXT, Request, Response
from numalign.process.serve import Guard, PageRequest
from numalign.scheduler.capacity.service import SERVED, CapacityService
from numalign.scheduler.capacity.simulate import Simulation
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.extender.extender import Extender
from numalign.scheduler.extender.protocol import BindingArgs, ExtenderArgs, PreemptionArgs
from numalign.scheduler.http import capacitypage
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.profiles import Profile

LOG: Final = logging.getLogger(__name__)
LIMITS: Final = Limits(connections=512, body_bytes=64 << 20, head_seconds=5.0, idle_seconds=120.0)
"""kube-scheduler uses a connection for each Binding that waits for the API server, and these are hundreds where it is
slow. A connection that is closed to make room for another makes a request fail. Go's clients close connections that
were idle for 90 seconds, so that the server must not be first. Whole nodes have 5 to 15 kB each."""
MOST_NODES: Final = 100_000
"""Names, whole nodes or candidates of one request."""
MOST_VALUES: Final = 4_000_000
"""JSON values of one request. 5,000 whole nodes have about two million. Decoded, a value takes some hundred bytes of
memory, however short it is."""
CHOOSE, FILTER, PRIORITIZE, PREEMPT, BIND = "/choose", "/filter", "/prioritize", "/preempt", "/bind"
SIMULATED: Final = "/simulate"
VERBS: Final = (CHOOSE, FILTER, PRIORITIZE, PREEMPT, BIND)
PATHS: Final = (*VERBS, SIMULATED + FILTER, SIMULATED + PRIORITIZE, capacitypage.PATH)
WAITED_FOR: Final = frozenset({BIND, capacitypage.PATH})
"""Answers that take their time."""
NOT_SYNCED: Final = "the caches of the extender are not synced yet"


class Questions(msgspec.Struct, frozen=True):
    """What is answered without a promise."""

    capacity: CapacityService
    simulation: Simulation


def questions(cluster: Cluster, profiles: Mapping[str, Profile], config: Configuration) -> Questions:
    """About this cluster. `profiles`: by scheduler name; pods of other names are counted by the first one."""
    return Questions(CapacityService(cluster, profiles, config, SERVED), Simulation(cluster, profiles, config))


class ExtenderServer:
    """Answers requests; `process.http` calls it."""

    headers: tuple[str, ...] = ("authorization",)
    added: tuple[tuple[str, str], ...] = (("X-Content-Type-Options", "nosniff"),)

    def __init__(
        self,
        extender: Extender,
        counts: Metrics,
        clock: Clock,
        questions: Questions,
        *,
        is_synced: Callable[[], bool],
        guard: Guard | None = None,
    ) -> None:
        """`guard`: None where TLS has authenticated the clients."""
        self._extender, self._counts, self._clock, self._questions = extender, counts, clock, questions
        self._is_synced, self._guard = is_synced, guard
        self._binds: set[asyncio.Task[None]] = set()
        """Keeps tasks that no client waits for."""

    def answer(self, request: Request) -> Response | Pending:
        if request.path not in PATHS:
            return self.refusal(HTTPStatus.NOT_FOUND, f"no such path; the paths are {', '.join(PATHS)}")
        if request.method != "POST":
            return self.refusal(HTTPStatus.METHOD_NOT_ALLOWED, "send a POST request")
        if len(request.body) > MOST_VALUES and _values(request.body) > MOST_VALUES:
            why = f"the body has more than {MOST_VALUES:,} values; ask about fewer nodes at a time"
            return self.refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
        if self._guard is None and request.path not in WAITED_FOR:
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
        return await self._later(request) if request.path in WAITED_FOR else self._now(request)

    def _now(self, request: Request) -> Response:
        begun = self._clock.now()
        answer = self._answered(request)
        self._counts.extender_seconds.observe(request.path[1:], str(answer.code), number=self._clock.now() - begun)
        return answer

    def _answered(self, request: Request) -> Response:
        if not self._is_synced():
            return self.refusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_SYNCED)
        try:
            found = self._found(request)
        except BadObject as problem:
            return self.refusal(HTTPStatus.BAD_REQUEST, str(problem))
        except Exception:
            LOG.exception("Failed to answer %s", request.path)
            return self.refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the log of the extender")
        return _json(found)

    def _found(self, request: Request) -> msgspec.Struct | list[Any]:
        if request.path == PREEMPT:
            preempting = decode.decode(PreemptionArgs, request.body)
            _limited("NodeNameToMetaVictims", preempting.nodes)
            return self._extender.preempt(preempting)
        asked = decode.decode(ExtenderArgs, request.body)
        _limited("NodeNames" if asked.node_names is not None else "Nodes", len(asked.names))
        if request.path == CHOOSE:
            return self._extender.choose(asked)
        asker = self._questions.simulation if request.path.startswith(SIMULATED) else self._extender
        return asker.filter(asked) if request.path.endswith(FILTER) else asker.prioritize(asked)

    async def _later(self, request: Request) -> Response:
        begun = self._clock.now()
        if not self._is_synced():
            return self.refusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_SYNCED)
        if request.path == BIND:
            answer = await self._bound(request)
        else:
            found = await capacitypage.answered(self._questions.capacity, request.body)
            body = found.body if isinstance(found.body, bytes) else found.body.encode()
            answer = Response(found.status, body, found.content_type)
        self._counts.extender_seconds.observe(request.path[1:], str(answer.code), number=self._clock.now() - begun)
        return answer

    async def _bound(self, request: Request) -> Response:
        try:
            return _json(await self._extender.bind(decode.decode(BindingArgs, request.body)))
        except BadObject as problem:
            return self.refusal(HTTPStatus.BAD_REQUEST, str(problem))


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


def _values(body: bytes) -> int:
    """At least as many as the JSON values of a body; also signs inside strings count."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _limited(field: str, nodes: int) -> None:
    if nodes > MOST_NODES:
        why = f"names {nodes:,} nodes; ask about {MOST_NODES:,} at most"
        raise BadObject("extender request", "", field, why)


def _json(thing: msgspec.Struct | list[Any]) -> Response:
    return Response(HTTPStatus.OK, ENCODER.encode(thing))
