"""Turns watch events into facts for engine and cluster state, and into events for the queue.

`watching` makes one informer per resource with a handler of this. Each change is applied completely before the next
one. An object that cannot be read is skipped, counted and logged. A pod of one of our profiles without a node is
queued; every pod with a node counts, no matter which scheduler bound it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from numalign.api.errors import BadObject
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.koordinatordevice import DeviceObject
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.kube.clock import Clock
from numalign.kube.resources import Named
from numalign.kube.watch.store import Change
from numalign.kubelet import refusals
from numalign.placement.decisions import Wake, WakeCause
from numalign.placement.explain import wording
from numalign.process.log import about
from numalign.scheduler import metrics, placementannotation
from numalign.scheduler.choose import stormguard
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.stormguard import StormGuard
from numalign.scheduler.events import podhistory
from numalign.scheduler.events.podhistory import SILENT, PodHistories
from numalign.scheduler.events.publish import Publisher
from numalign.scheduler.intake.devicereports import DeviceReports
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.profiles import Profile
from numalign.scheduler.queue import clusterevents
from numalign.scheduler.queue.clusterevents import Action, ClusterEvent, ObjectChange, Resource
from numalign.scheduler.queue.heldrooms import HeldRooms
from numalign.scheduler.queue.queue import SchedulingQueue

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T", bound=Named)
V = TypeVar("V", bound=Named)

POD_ASSIGNED: Final = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
NODE_ADDED: Final = ClusterEvent(Resource.NODE, Action.ADD)
NODE_DELETED: Final = ClusterEvent(Resource.NODE, Action.DELETE)
REJECTED: Final = "PodRejected"
RUNNING: Final = "Running"


class Intake:
    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        profiles: Mapping[str, Profile],
        *,
        publisher: Publisher,
        rejections: StormGuard,
        counts: Metrics,
        clock: Clock,
        wake: Callable[[], None],
        clears_rejected: bool = False,
        improved: Callable[[list[Wake]], None] = lambda _: None,
        answers: bool = False,
        histories: PodHistories = SILENT,
        tap: Callable[[str, Change[Any], float], None] = lambda resource, change, now: None,
    ) -> None:
        """`clears_rejected`: delete pods of ours that their kubelet rejected. `improved`: called like the queue with
        nodes on which a waiting pod may fit now. `answers`: an extender answers about pods of other schedulers, so room
        is kept for those that are nominated, too. `tap` sees each change before it is applied, with its resource."""
        self._cluster, self._queue, self._profiles = cluster, queue, profiles
        self._publisher, self._rejections, self._metrics = publisher, rejections, counts
        self._clock, self._wake, self._clears_rejected = clock, wake, clears_rejected
        self._histories, self._improved = histories, improved
        self._answers, self._tap = answers, tap
        self._devices = DeviceReports()
        self._rooms = HeldRooms(queue, clock)

    def guarded(self, resource: str, handler: Callable[[Change[T]], None]) -> Callable[[Change[T]], None]:
        """A handler that skips and counts an object that it cannot process, instead of ending the watch."""

        def handle(change: Change[T]) -> None:
            try:
                self._tap(resource, change, self._clock.now())
                handler(change)
            except BadObject as problem:
                LOG.warning("Skipped unreadable object: %s", problem, extra=_about(resource, change))
                self._metrics.skipped.add(resource)
            except Exception:
                LOG.exception("Skipped object after an error", extra=_about(resource, change))
                self._metrics.skipped.add(resource)
            self._wake()

        return handle

    # Nodes and their reports

    def node(self, change: Change[Node]) -> None:
        old, new, now = change.old, change.new, self._clock.now()
        if new is None:
            return self._node_gone(old) if old is not None else None
        events = (NODE_ADDED,) if old is None else clusterevents.node_changes(old, new)
        wakes = self._cluster.node(new, now)
        for event in events:
            self._queue.move(ObjectChange(event, old, new), now)
        # Heartbeats make no pod schedulable.
        if events:
            self.woken(wakes)
        self._rooms.node(new)

    def _node_gone(self, node: Node) -> None:
        name = node.metadata.name
        self._rooms.node_gone(name)
        self._rejections.gone(name)
        wakes = self._cluster.node_gone(name)
        self._queue.move(ObjectChange(NODE_DELETED, node), self._clock.now())
        self.woken(wakes)

    def topology(self, change: Change[NodeResourceTopology]) -> None:
        if change.new is not None:
            self.woken(self._cluster.report(self._devices.report(change.new), self._clock.now()))
        elif change.old is not None:
            self._devices.report_gone(change.old.metadata.name)
            self.woken(self._cluster.report_gone(change.old.metadata.name, self._clock.now()))

    def device(self, change: Change[DeviceObject]) -> None:
        """Koordinator's object about the devices of a node."""
        report = None
        if change.new is not None:
            report = self._devices.device(change.new, self._cluster.report_of(change.new.metadata.name))
        elif change.old is not None:
            report = self._devices.device_gone(change.old.metadata.name)
        if report is not None:
            self.woken(self._cluster.report(report, self._clock.now()))

    def waking(self, apply: Callable[[Change[V]], None], resource: Resource) -> Callable[[Change[V]], None]:
        """A handler for objects that plugins read and whose changes may make pods schedulable."""

        def handle(change: Change[V]) -> None:
            if change.new is None and change.old is None:
                return
            apply(change)
            action = Action.DELETE if change.new is None else Action.UPDATE if change.old is not None else Action.ADD
            self._queue.move(ObjectChange(ClusterEvent(resource, action), change.old, change.new), self._clock.now())

        return handle

    # Pods

    def pod(self, change: Change[Pod]) -> None:
        old, new = change.old, change.new
        if new is None:
            if old is not None:
                self._pod_gone(change.final or old)
        elif new.spec.node_name:
            self._pod_assigned(old, new)
        else:
            self._pod_waiting(new, is_new=old is None)

    def _pod_waiting(self, pod: Pod, *, is_new: bool) -> None:
        uid, now = pod.metadata.uid, self._clock.now()
        room = self._rooms.awaited(pod) if is_new else ""
        if pod.spec.scheduler_name not in self._profiles:
            if self._answers:
                self._queue.follow(pod, now)
            return self._cluster.waits_elsewhere(pod)
        if pod.status.is_finished:
            self._queue.delete(uid, now)
            self._publisher.forget(uid)
        elif uid not in self._cluster.assumed or self._queue.flights.get(uid) is not None:
            # A pod that was bound before the watch showed it must not be scheduled again.
            self._queue.add(pod, now)
            if room and not pod.status.nominated_node_name:
                self._queue.nominations.put(pod, room)
            if is_new:
                self._histories.record(pod.metadata, podhistory.QUEUED, priority=pod.spec.priority)

    def _pod_assigned(self, old: Pod | None, pod: Pod) -> None:
        uid, now = pod.metadata.uid, self._clock.now()
        is_new = old is None or not old.spec.node_name
        was_over = old is not None and old.status.is_finished
        self._queue.assigned(uid)
        self._publisher.forget(uid)
        wakes = self._cluster.pod(pod, now)
        if refusals.is_rejection(pod):
            # The kubelet rejected the pod, so its end frees nothing on the node.
            self._queue.wake(wakes, now)
        else:
            self.woken(wakes)
        if pod.status.is_finished:
            if not was_over:
                self._ended(pod, is_first_look=old is None)
        elif is_new:
            self._queue.move(ObjectChange(POD_ASSIGNED, None, pod), now)
            self._record(pod, podhistory.CONFIRMED, node=pod.spec.node_name)
        elif old is not None:
            if pod.status.phase == RUNNING and old.status.phase != RUNNING:
                self._record(pod, podhistory.STARTED, node=pod.spec.node_name)
            for event in clusterevents.pod_changes(old, pod, Resource.ASSIGNED_POD):
                self._queue.move(ObjectChange(event, old, pod), now)

    def _ended(self, pod: Pod, *, is_first_look: bool) -> None:
        """Releases what the pod held. If the kubelet rejected it, pods of its shape avoid the node for a while."""
        now = self._clock.now()
        self._queue.move(ObjectChange(clusterevents.ASSIGNED_POD_DELETED, pod), now)
        if is_first_look or not refusals.is_rejection(pod):
            return
        profile = self._profiles.get(pod.spec.scheduler_name)
        is_ours = profile is not None or self._is_of_extender(pod)
        self._metrics.rejections.add(pod.status.reason, metrics.OURS if is_ours else metrics.OTHERS)
        if self._clears_rejected and profile is not None:
            self._publisher.cleared(pod.metadata)
        shape = self._cluster.engine.shape(pod).number
        replicas = stormguard.replicas(pod, shape)
        # A profile that does not look at zones expects rejections, and its pods have no storm guard.
        if profile is not None and profile.zones:
            self._turned_away(pod, shape)
        else:
            self._record(pod, podhistory.REJECTED, node=pod.spec.node_name, why=pod.status.reason)
            like = shape if is_ours and profile is None else replicas
            if like is not None:
                self._rejections.rejected(like, pod.spec.node_name, pod.status.reason, now)

    def _is_of_extender(self, pod: Pod) -> bool:
        """Whether our extender bound the pod for kube-scheduler."""
        return self._answers and placementannotation.NAME in pod.metadata.annotations

    def _turned_away(self, pod: Pod, shape: int) -> None:
        node, reason = pod.spec.node_name, pod.status.reason
        pause = self._rejections.rejected(shape, node, reason, self._clock.now())
        self._publisher.warned(
            pod.metadata, REJECTED, "Scheduling", wording.rejected(node, reason, pause, pod.metadata.controller)
        )
        self._histories.warn(pod.metadata, podhistory.REJECTED, node=node, why=reason)

    def _pod_gone(self, pod: Pod) -> None:
        uid, now = pod.metadata.uid, self._clock.now()
        counted = uid in self._cluster.assumed or bool(pod.spec.node_name)
        self._queue.delete(uid, now)
        if not counted:
            self._rooms.waits_no_more(uid)
        self._publisher.forget(uid)
        self._record(pod, podhistory.DELETED, node=pod.spec.node_name)
        wakes = self._cluster.pod_gone(pod, now)
        if counted and not pod.status.is_finished:
            self._queue.move(ObjectChange(clusterevents.ASSIGNED_POD_DELETED, pod), now)
        self.woken(wakes)

    def _record(self, pod: Pod, what: str, **fields: object) -> None:
        """Pods of our profiles have a history, and those of kube-scheduler that the extender was asked about."""
        if pod.spec.scheduler_name in self._profiles or pod.metadata.uid in self._histories:
            self._histories.record(pod.metadata, what, **fields)

    # Time

    def tick(self) -> None:
        """Called at intervals: ends grace periods of deleted pods and pauses of the storm guard."""
        now = self._clock.now()
        self.woken(self._cluster.tick(now))
        self._rooms.tick()
        self._queue.wake(self._cluster.graces_ended(now), now)
        # The end of a pause is no change of the node, so other pods still avoid the node.
        self._queue.wake([Wake(node, WakeCause.FREED) for node in self._rejections.ended(now)], now)
        self._wake()

    def woken(self, wakes: list[Wake]) -> None:
        """Nodes on which a waiting pod may fit now."""
        if wakes:
            for wake in wakes:
                self._rejections.changed(wake.node)
            self._queue.wake(wakes, self._clock.now())
            self._improved(wakes)


def _about(resource: str, change: Change[Any]) -> dict[str, Any]:
    thing = change.new or change.old
    if thing is None:
        return about(resource=resource)
    key = "pod" if isinstance(thing, Pod) else "name"
    return about(resource=resource, **{key: thing.metadata.full_name}, uid=thing.metadata.uid)
