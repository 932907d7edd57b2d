"""Decisions carried out: a few bindings at a time, each to its end, whatever happens to the answers.

`cycle` calls `start`, which never waits; `run` is a task with the workers. A pod is bound once: the same binding may be
sent again, another one only after the server said that the first did not happen. Right before it is sent, the lease has
to be ours and the node has to be there. What became of it goes to the bookkeeper, never back into the decision."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from numalign.api.pod import Pod
from numalign.kube import binding, errors
from numalign.kube.binding import Answer, Outcome
from numalign.kube.client import Client
from numalign.kube.resources import PODS
from numalign.placement.decisions import Decision
from numalign.placement.rules.volumeactions import VolumePlan
from numalign.scheduler import forecasts
from numalign.scheduler.queued import Queued
from numalign.scheduler.volumes import Volumes

LOG: Final = logging.getLogger(__name__)
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
TRIES: Final = 4
"""Of a binding that the server does not take, or does not answer."""
NODE_GONE: Final = "the node is gone"


class Bind(Struct, frozen=True, eq=False):
    queued: Queued
    pod: Pod
    """As it was when it was decided, with its node."""
    decision: Decision
    begun: float
    """When the attempt began."""
    plan: VolumePlan | None = None
    """What has to be written for the pod's claims first."""
    volume_seconds: float = 600.0

    @property
    def node(self) -> str:
        return self.decision.node or ""


class Bookkeeper(Protocol):
    """Whoever keeps the books of decisions."""

    def is_open(self, bind: Bind) -> bool:
        """Whether it is still to be carried out: nobody bound or deleted the pod meanwhile."""

    def has_node(self, name: str) -> bool: ...

    def bound(self, bind: Bind) -> None: ...

    def failed(self, bind: Bind, why: str) -> None:
        """It did not happen, and will not."""

    def over(self, bind: Bind) -> None:
        """The pod is gone, or bound by somebody else."""


class Binder:
    def __init__(
        self, client: Client, books: Bookkeeper, volumes: Volumes, *, leads: Callable[[], bool], workers: int
    ) -> None:
        self._client = client
        self._volumes = volumes
        self._books = books
        self._leads = leads
        self._workers = workers
        self._waiting: asyncio.Queue[Bind] = asyncio.Queue()

    def start(self, bind: Bind) -> None:
        self._waiting.put_nowait(bind)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"binding-{number}")

    async def _work(self) -> None:
        while True:
            await self._carry_out(await self._waiting.get())

    async def _carry_out(self, bind: Bind) -> None:
        why = await self._prepared(bind)
        answer = Answer(Outcome.REFUSED, why) if why else await self._answer(bind)
        if answer is None:
            return
        match answer.outcome:
            case Outcome.DONE:
                self._books.bound(bind)
            case Outcome.GONE | Outcome.ELSEWHERE:
                self._books.over(bind)
            case _:
                self._books.failed(bind, answer.why)

    async def _prepared(self, bind: Bind) -> str:
        """Why the pod's volumes are not ready, and will not be."""
        if bind.plan is None or not self._leads():
            return ""
        return await self._volumes.carried_out(bind.plan, bind.volume_seconds)

    async def _answer(self, bind: Bind) -> Answer | None:
        """What became of it, for certain; None: it is not ours to find out any more."""
        tries = 0
        while self._leads():
            if not self._books.is_open(bind) or not self._books.has_node(bind.node):
                return await self._looked_up(bind) if tries else _not_sent(self._books.is_open(bind))
            answer = await self._sent(bind)
            tries += 1
            refused = answer.outcome is Outcome.REFUSED
            if answer.outcome is not Outcome.UNKNOWN and not (refused and tries < TRIES):
                return answer
            # The same binding once more cannot bind twice. And one whose answer did not come may still arrive, however
            # late: its place is kept for it as long as there is hope.
            LOG.warning("%s is not bound yet: %s", bind.pod.metadata.full_name, answer.why)
            await self._pause(tries)
        return None

    async def _sent(self, bind: Bind) -> Answer:
        possible = {each.container: each.zones for each in bind.decision.placement if each.zones}
        said = {forecasts.NAME: forecasts.encode(possible)} if possible else {}
        return await binding.bind(self._client, bind.pod.metadata, bind.node, said)

    async def _looked_up(self, bind: Bind) -> Answer | None:
        """A binding was sent that must not be sent again: only the pod can tell."""
        meta, tries = bind.pod.metadata, 1
        while self._leads():
            try:
                pod = await self._client.get(PODS.at(meta.name, meta.namespace))
            except errors.NotFound:
                return Answer(Outcome.GONE)
            except errors.KubeError as problem:
                LOG.warning("%s", problem)
                await self._pause(tries)
                tries += 1
                continue
            return _told(pod, bind)
        return None

    async def _pause(self, tries: int) -> None:
        clock = self._client.sender.clock
        await clock.sleep(min(FIRST_PAUSE * 2.0 ** min(tries - 1, 10), LONGEST_PAUSE) * (0.5 + clock.chance() / 2))


def _not_sent(is_open: bool) -> Answer:
    return Answer(Outcome.REFUSED, NODE_GONE) if is_open else Answer(Outcome.GONE)


def _told(pod: Pod, bind: Bind) -> Answer:
    if pod.metadata.uid != bind.pod.metadata.uid:
        return Answer(Outcome.GONE)
    if not pod.spec.node_name:
        return Answer(Outcome.REFUSED, NODE_GONE)
    return Answer(Outcome.DONE if pod.spec.node_name == bind.node else Outcome.ELSEWHERE)
