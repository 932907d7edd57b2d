"""Binds pods and their volumes, and updates queue, cluster state and Events with the result.

`cycle` calls `Binder.start`, which never waits; `run` is a task with the workers. A pod is bound at most once: the
binder repeats the same Binding, and gives up on it only after the API server has said that the Binding does not
exist. It checks the lease and the node right before each call. Volumes come first: `VolumeBinder` writes the plan
that `cycle` made for the chosen node, waits for the volume controllers, and reverts the plan after a failure
(kube-scheduler spec 1.17). A decision that changes what earlier pods on their way to the node may get (`in_turn`) is
sent once the API server has answered for these: a kubelet admits pods in the order of their Bindings, and the earlier
pods get the zones that they were promised. A bound pod stays assumed until the watch shows it. A pod that was not bound
is forgotten and returns to the queue, and the pods that wait for its resources are woken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Protocol

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import PersistentVolume, PersistentVolumeClaim
from numalign.kube import binding, errors, resources
from numalign.kube.backoff import Exponential
from numalign.kube.binding import BindingResult, Outcome
from numalign.kube.client import Client
from numalign.kube.clock import Clock
from numalign.kube.resources import PODS
from numalign.placement.columns.holdings import Aligned
from numalign.placement.decisions import Decision
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.rule import Refusal
from numalign.placement.rules.volumes import volumeactions
from numalign.placement.rules.volumes.volumeactions import VolumeFailure, VolumePlan, VolumeProgress
from numalign.placement.rules.volumes.volumestock import VolumeStock
from numalign.process.log import about
from numalign.scheduler import metrics, placementannotation
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.events import podhistory
from numalign.scheduler.events.podhistory import SILENT, PodHistories
from numalign.scheduler.events.publish import SCHEDULER_ERROR, PendingReason, Publisher
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.profiles import Profile
from numalign.scheduler.queue import clusterevents
from numalign.scheduler.queue.clusterevents import ObjectChange
from numalign.scheduler.queue.queue import SchedulingQueue
from numalign.scheduler.queue.queued import QueuedPod

LOOK: Final = 0.5
"""Seconds between two checks of what the volume controllers have done."""
NOTHING: Final = ""

VOLUMES: Final = resources.of("v1", "persistentvolumes", "PersistentVolume", PersistentVolume)
CLAIMS: Final = resources.of("v1", "persistentvolumeclaims", "PersistentVolumeClaim", PersistentVolumeClaim)


def volume_plan(pod: Pod, profile: Profile, world: ClusterState, node: str) -> VolumePlan | None:
    """The writes that the pod's claims need on that node; None: no claim needs one."""
    if profile.volumes is None or not pod.spec.volumes:
        return None
    prepared = profile.volumes.prepare(pod, world)
    if prepared is None or isinstance(prepared, Refusal):
        return None
    plan = profile.volumes.plan(prepared, world.rows[node], node)
    return None if plan.is_empty else plan


class VolumeBinder:
    def __init__(self, client: Client, stock: VolumeStock, world: ClusterState) -> None:
        self._client = client
        self._stock = stock
        self._world = world

    def assume(self, plan: VolumePlan) -> None:
        volumeactions.assume(plan, self._stock)

    def take_back(self, plan: VolumePlan) -> None:
        volumeactions.take_back(plan, self._stock)

    async def carried_out(self, plan: VolumePlan, seconds: float) -> str:
        """Why the plan was not carried out; `NOTHING` if all volumes are bound."""
        try:
            await self._write(plan)
        except errors.KubeError as problem:
            return str(problem)
        clock = self._client.sender.clock
        until = clock.now() + seconds
        while True:
            match volumeactions.of(plan, self._stock, self._world):
                case VolumeProgress.DONE:
                    return NOTHING
                case VolumeFailure(why):
                    return why
            if clock.now() >= until:
                return "timed out waiting for volumes"
            await clock.sleep(LOOK)

    async def _write(self, plan: VolumePlan) -> None:
        for bind in plan.binds:
            if bind.bound != bind.volume:
                await self._client.patch(VOLUMES.at(bind.volume.metadata.name), "merge", bind.patch)
        for selection in plan.selections:
            if selection.selected != selection.claim:
                meta = selection.claim.metadata
                await self._client.patch(CLAIMS.at(meta.name, meta.namespace), "merge", selection.patch)


LOG: Final = logging.getLogger(__name__)
BACKOFF: Final = Exponential(first=0.5, longest=30.0)
TRIES: Final = 4
"""Seconds between tries of a binding that the API server refuses or does not answer."""
NODE_GONE: Final = "the node is gone"


class PendingBinding(Struct, frozen=True, eq=False):
    queued: QueuedPod
    pod: Pod
    """The pod as the decision found it, with the chosen node."""
    decision: Decision
    begun: float
    """When the attempt began."""
    plan: VolumePlan | None = None
    """Writes for the pod's claims, which come before the binding."""
    volume_seconds: float = 600.0
    note: str = ""
    """What the Event says beside the node."""

    @property
    def node(self) -> str:
        return self.decision.node


class BindingRecords(Protocol):
    """Where the binder reads and records the state of bindings."""

    def is_open(self, bind: PendingBinding) -> bool:
        """Whether the pod is still to be bound: it was neither deleted nor bound meanwhile."""

    def has_node(self, name: str) -> bool: ...

    def sends(self, bind: PendingBinding) -> None:
        """The Binding is about to be sent. It may take effect even if no answer comes."""

    def bound(self, bind: PendingBinding) -> None: ...

    def failed(self, bind: PendingBinding, why: str) -> None:
        """The pod was not bound, and this binding will not be tried again."""

    def over(self, bind: PendingBinding) -> None:
        """The pod was deleted, or bound by another scheduler."""


class Binder:
    def __init__(
        self,
        client: Client,
        records: BindingRecords,
        volumes: VolumeBinder,
        *,
        leads: Callable[[], bool],
        workers: int,
        koordinator: bool = False,
    ) -> None:
        """`koordinator`: whether decisions are written in Koordinator's annotation, too."""
        self._client = client
        self._volumes = volumes
        self._records = records
        self._leads = leads
        self._workers = workers
        self._koordinator = koordinator
        self._waiting: asyncio.Queue[PendingBinding] = asyncio.Queue()
        self._unanswered: dict[str, set[PendingBinding]] = {}
        """By node: bindings whose first call has no answer yet."""
        self._ahead: dict[PendingBinding, set[PendingBinding]] = {}
        """The bindings that each held binding waits for."""

    def start(self, bind: PendingBinding) -> None:
        if bind.plan is not None:
            # Its volumes may take minutes, and no other pod waits for them.
            return self._waiting.put_nowait(bind)
        others = self._unanswered.setdefault(bind.node, set())
        if bind.decision.in_turn and others:
            self._ahead[bind] = set(others)
        else:
            self._waiting.put_nowait(bind)
        others.add(bind)

    def _answered(self, bind: PendingBinding) -> None:
        """Its first call has an answer, or none is made. A call that failed holds up no other pod."""
        others = self._unanswered.get(bind.node)
        if others is None or bind not in others:
            return
        others.discard(bind)
        if not others:
            del self._unanswered[bind.node]
        for other in [each for each in others if each in self._ahead]:
            self._ahead[other].discard(bind)
            if not self._ahead[other]:
                del self._ahead[other]
                self._waiting.put_nowait(other)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"binding-{number}")

    async def _work(self) -> None:
        await self._client.sender.prepare()
        while True:
            await self._carry_out(await self._waiting.get())

    async def _carry_out(self, bind: PendingBinding) -> None:
        try:
            await self._bind(bind)
        finally:
            self._answered(bind)

    async def _bind(self, bind: PendingBinding) -> None:
        why = await self._prepared(bind)
        answer = BindingResult(Outcome.REFUSED, why) if why else await self._answer(bind)
        if answer is None:
            return
        match answer.outcome:
            case Outcome.DONE:
                self._records.bound(bind)
            case Outcome.GONE | Outcome.ELSEWHERE:
                self._records.over(bind)
            case _:
                self._records.failed(bind, answer.why)

    async def _prepared(self, bind: PendingBinding) -> str:
        """Why the pod's volumes cannot be bound; empty if they are bound."""
        if bind.plan is None or not self._leads():
            return ""
        return await self._volumes.carried_out(bind.plan, bind.volume_seconds)

    async def _answer(self, bind: PendingBinding) -> BindingResult | None:
        """The final result of the binding; None: this process does not lead any more, so it must not find out."""
        tries, in_doubt = 0, False
        while self._leads():
            if not self._records.is_open(bind) or not self._records.has_node(bind.node):
                return await self._looked_up(bind, NODE_GONE) if tries else _not_sent(self._records.is_open(bind))
            answer = await self._sent(bind)
            self._answered(bind)
            tries += 1
            refused = answer.outcome is Outcome.REFUSED
            if answer.outcome is not Outcome.UNKNOWN and not (refused and tries < TRIES):
                # A refusal of this try says nothing about an earlier try that got no answer.
                return await self._looked_up(bind, answer.why) if refused and in_doubt else answer
            in_doubt = in_doubt or not refused
            # Sending the same Binding again cannot bind the pod twice. A Binding without an answer may still take
            # effect later, so its resources stay reserved.
            LOG.warning("Failed to bind pod, retrying: %s", answer.why, extra=_about(bind))
            await self._pause(tries)
        return None

    async def _sent(self, bind: PendingBinding) -> BindingResult:
        said = placementannotation.annotations(bind.decision, bind.pod.metadata, koordinator=self._koordinator)
        self._records.sends(bind)
        return await binding.bind(self._client, bind.pod.metadata, bind.node, said, wanted=lambda: self._may_go(bind))

    def _may_go(self, bind: PendingBinding) -> bool:
        """Checked right before each call is sent, because a call may wait for a connection or be repeated."""
        return self._leads() and self._records.is_open(bind) and self._records.has_node(bind.node)

    async def _looked_up(self, bind: PendingBinding, why: str) -> BindingResult | None:
        """Reads the pod to learn the result of a Binding that must not be sent again. `why`: why it failed, if so."""
        meta, tries = bind.pod.metadata, 1
        while self._leads():
            try:
                pod = await self._client.get(PODS.at(meta.name, meta.namespace))
            except errors.NotFound:
                return BindingResult(Outcome.GONE)
            except errors.KubeError as problem:
                LOG.warning(
                    "Failed to read pod after an unanswered bind call, retrying: %s", problem, extra=_about(bind)
                )
                await self._pause(tries)
                tries += 1
                continue
            return _result_of(pod, bind, why)
        return None

    async def _pause(self, tries: int) -> None:
        clock = self._client.sender.clock
        await clock.sleep(BACKOFF.pause(tries) * (0.5 + clock.chance() / 2))


def _about(bind: PendingBinding) -> dict[str, Any]:
    return about(pod=bind.pod.metadata.full_name, uid=bind.pod.metadata.uid, node=bind.node)


def _not_sent(is_open: bool) -> BindingResult:
    return BindingResult(Outcome.REFUSED, NODE_GONE) if is_open else BindingResult(Outcome.GONE)


def _result_of(pod: Pod, bind: PendingBinding, why: str) -> BindingResult:
    if pod.metadata.uid != bind.pod.metadata.uid:
        return BindingResult(Outcome.GONE)
    if not pod.spec.node_name:
        return BindingResult(Outcome.REFUSED, why)
    return BindingResult(Outcome.DONE if pod.spec.node_name == bind.node else Outcome.ELSEWHERE)


DONE, GONE, REFUSED = "done", "gone", "refused"
MOST_PLACEMENTS: Final = 1024
ALIGNMENTS: Final = {0: "none", 1: "one-zone"}


class BindResults:
    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        volumes: VolumeBinder,
        *,
        publisher: Publisher,
        counts: Metrics,
        clock: Clock,
        histories: PodHistories = SILENT,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._volumes = volumes
        self._publisher = publisher
        self._metrics = counts
        self._clock = clock
        self._histories = histories

    def is_open(self, bind: PendingBinding) -> bool:
        assumed = self._cluster.assumed.get(bind.decision.uid)
        return assumed is not None and assumed.decision is bind.decision

    def has_node(self, name: str) -> bool:
        return self._cluster.has_node(name)

    def sends(self, bind: PendingBinding) -> None:
        self._cluster.sends(bind.decision.uid)

    def bound(self, bind: PendingBinding) -> None:
        uid, now = bind.decision.uid, self._clock.now()
        wakes = self._cluster.bound(uid)
        if wakes:
            self._queue.wake(wakes, now)
        self._queue.done(uid, bound=True)
        self._publisher.scheduled(bind.pod.metadata, bind.node, bind.note)
        ready = bind.queued.ready if bind.queued.ready is not None else bind.queued.added
        self._metrics.bound(bind.queued.attempts, now - ready)
        self._metrics.placed.add(_alignment(bind.decision.placement))
        self._count(bind, DONE, metrics.SCHEDULED)
        self._histories.record(bind.pod.metadata, podhistory.BOUND, node=bind.node)

    def over(self, bind: PendingBinding) -> None:
        """Releases the reservation. The watch wakes waiting pods when it shows where the pod is."""
        uid = bind.decision.uid
        self._give_up(bind)
        self._queue.done(uid)
        self._publisher.forget(uid)
        self._histories.record(bind.pod.metadata, podhistory.DROPPED, node=bind.node)
        self._count(bind, GONE, metrics.ERROR)

    def failed(self, bind: PendingBinding, why: str) -> None:
        uid, now = bind.decision.uid, self._clock.now()
        self._histories.warn(bind.pod.metadata, podhistory.FAILED, node=bind.node, why=why)
        self._give_up(bind)
        queued = self._queue.fail(uid, now)
        if queued is not None:
            self._publisher.refused(queued.pod, PendingReason(SCHEDULER_ERROR, f"binding rejected: {why}"))
        self._count(bind, REFUSED, metrics.ERROR)

    def _give_up(self, bind: PendingBinding) -> None:
        """Releases only the reservation of this decision: the pod may have a newer decision, or be bound."""
        if bind.plan is not None:
            self._volumes.take_back(bind.plan)
        if not self.is_open(bind):
            return
        now = self._clock.now()
        wakes = self._cluster.forget(bind.decision.uid)
        self._queue.wake(wakes, now)
        self._queue.move(ObjectChange(clusterevents.ASSIGNED_POD_DELETED, old=bind.pod), now)

    def _count(self, bind: PendingBinding, outcome: str, result: str) -> None:
        seconds = self._clock.now() - bind.begun
        self._metrics.binding_seconds.observe(outcome, number=seconds)
        self._metrics.attempt_seconds.observe(result, bind.queued.profile, number=seconds)


@lru_cache(maxsize=MOST_PLACEMENTS)
def _alignment(placement: tuple[Aligned, ...]) -> str:
    """The metric label for the largest number of zones that a container of the pod may use."""
    widest = 0
    for each in placement:
        for zones in each.zones:
            widest = max(widest, len(zones))
    return ALIGNMENTS.get(widest, "several-zones")
