"""A replica of the scheduler as a process that can die: started again whenever it ends, as a Deployment would do it.

Stories run several. A killed one says and does nothing more, not even goodbye to its lease. What each one sends is
looked at in the very moment in which the bytes leave it: a binding by somebody who does not lead, or to a node that it
was told is gone, is a breach, whatever becomes of it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from numalign.kube.client import Client
from numalign.kube.leader import leading
from numalign.kube.leader.lease import Terms
from numalign.kube.transport.connection import Connection, IncomingResponse
from numalign.kube.transport.dial import CannotConnect, Server
from numalign.scheduler.bind.binder import PendingBinding
from numalign.scheduler.main import Scheduler, Setup
from numalign.simulator.cluster import HERE, Cluster
from tests.embedded.faultproxy import Proxy, Weather

TERMS = Terms(lease=15, renew=10, retry=2)
NAME = "numalign"
RESTART = 1.0
"""Seconds from the end of a process to the start of the next."""


class Line:
    """What one client of one process has to the server; cut, nothing comes or goes."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._open: list[Connection] = []
        self.is_cut = False

    async def dial(self, server: Server, context: ssl.SSLContext | None, seconds: float) -> Connection:
        if self.is_cut:
            raise CannotConnect("the line is cut")
        connection = await self._replica.proxy.dial(server, context, seconds)
        connection.send = partial(self._send, connection.send)  # type: ignore[method-assign]
        self._open = [each for each in self._open if each.usable] + [connection]
        return connection

    def deafen(self) -> None:
        """Streams that are open bring nothing any more, and nobody notices."""
        for connection in self._open:
            if connection._answer is not None:
                connection.hold()

    def cut(self) -> None:
        self.is_cut = True
        for connection in self._open:
            connection.close()

    def _send(self, send: object, raw: bytes) -> IncomingResponse:
        self._replica.sends(raw)
        assert callable(send)
        answer = send(raw)
        assert isinstance(answer, IncomingResponse)
        return answer


class Replica:
    def __init__(self, name: str, embedded: Cluster, draw: random.Random, weather: Weather) -> None:
        self.name, self._embedded, self._clock, self._draw = name, embedded, embedded.clock, draw
        upstream = embedded.access().dial
        assert upstream is not None
        self.proxy = Proxy(HERE, upstream, draw, weather)
        self.now: Scheduler | None = None
        self.starts = self.sent = 0
        self.breaches: list[str] = []
        self._done: set[str] = set()
        self._binds = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._line, self._leash = Line(self), Line(self)

    async def run(self) -> None:
        while True:
            self.starts += 1
            self._line, self._leash = Line(self), Line(self)
            self._task = asyncio.ensure_future(self._life(f"{self.name}-{self.starts}"))
            with contextlib.suppress(asyncio.CancelledError, leading.LeadershipLost):
                await self._ended(self._task)
            await self._clock.sleep(RESTART)

    async def _ended(self, task: asyncio.Task[None]) -> None:
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            raise Over from None
        await task

    async def _life(self, identity: str) -> None:
        async with self._client(self._line) as client, self._client(self._leash) as elector:
            election = leading.election(NAME, "kube-system", TERMS, identity)
            setup = Setup(instance=identity, rng=random.Random(self._draw.random()))
            self.now, self._election = Scheduler(setup, client, election), election
            self._overhear(self.now)
            await self.now.run(elector)

    def _overhear(self, scheduler: Scheduler) -> None:
        """Which pods it was told to be bound."""
        books, self._done = scheduler.binder._records, set[str]()
        tell = books.bound

        def bound(bind: PendingBinding) -> None:
            self._done.add(bind.decision.uid)
            tell(bind)

        books.bound = bound  # type: ignore[method-assign]

    def _client(self, line: Line) -> Client:
        return Client(replace(self._embedded.access(), dial=line.dial), clock=self._clock)

    # What befalls it

    def stop(self) -> None:
        """As a signal would: it may put its things in order."""
        if self._task is not None:
            self._task.cancel()

    def kill(self) -> None:
        """At whatever it waits for right now; it gets no further."""
        self._line.cut()
        self._leash.cut()
        self.stop()

    async def lose_lease(self, seconds: float) -> None:
        """For so long it cannot renew, while everything else works."""
        leash = self._leash
        leash.cut()
        await self._clock.sleep(seconds)
        if leash is self._leash and not self._line.is_cut:
            leash.is_cut = False

    def deafen(self) -> None:
        """What it watches falls silent."""
        self._line.deafen()

    async def deny(self, seconds: float) -> None:
        """For so long the server wants none of its bindings."""
        self.proxy.denies = True
        await self._clock.sleep(seconds)
        self.proxy.denies = False

    async def cut_off(self, seconds: float) -> None:
        """From the server; what was under way is torn."""
        self.proxy.is_out = True
        for front in list(self.proxy.fronts):
            front.reset()
        await self._clock.sleep(seconds)
        self.proxy.is_out = False

    # What it does and believes

    @property
    def leads(self) -> bool:
        """By the fence's own law, said once more: ten seconds from when the last good renewal was sent."""
        return not self._line.is_cut and self._is_within_the_fence()

    def _is_within_the_fence(self) -> bool:
        return self.now is not None and self._election._renewed_at + TERMS.renew > self._clock.now()

    def holds(self, uid: str, node: str) -> bool:
        """Whether it leads and keeps this place for the pod."""
        assumed = self.now.cluster.assumed.get(uid) if self.now is not None and self.leads else None
        return assumed is not None and assumed.decision.node == node

    def places(self) -> list[str]:
        """Nodes that pods are on their way to."""
        assumed = self.now.cluster.assumed.values() if self.now is not None else ()
        return sorted({each.decision.node or "" for each in assumed if not each.is_bound})

    async def binding(self) -> None:
        """Until it sends one."""
        self._binds.clear()
        await self._binds.wait()

    def sends(self, raw: bytes) -> None:
        head, _, body = raw.partition(b"\r\n\r\n")
        if self.now is None or not head.split(b" ", 2)[1].endswith(b"/binding"):
            return
        self.sent += 1
        self._binds.set()
        binding = msgspec.json.decode(body)
        uid, pod, node = binding["metadata"]["uid"], binding["metadata"]["name"], binding["target"]["name"]
        wrongs = {
            "after it was killed": self._line.is_cut,
            "without leading": not self._is_within_the_fence(),
            "which it knew to be gone": self.now.watched.informers["nodes"].store.get(node) is None,
            "and kept no place for it there": not self.holds(uid, node),
            "and knew that it is bound": uid in self._done,
        }
        moment = f"at {self._clock.now():g} s {self.name}-{self.starts}"
        self.breaches += [f"{moment} sends {pod} to {node}, {wrong}" for wrong, is_so in wrongs.items() if is_so]

    def books(self) -> Books:
        assert self.now is not None
        return Books(self.now.cluster.pods, len(self.now.cluster.assumed), len(self.now.queue.flights))


class Over(Exception):
    """The story is."""


@dataclass(frozen=True)
class Books:
    """What a replica believes when all is quiet."""

    pods: int
    assumed: int = 0
    in_flight: int = 0
