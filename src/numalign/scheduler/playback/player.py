"""Plays a segment of a recording: the scheduler's view of the cluster at each moment, and each decision once more.

`numalign record` calls it. The player restores the state at the beginning of the segment and applies each entry as the
scheduler did. At an attempt it chooses a node again, with the same random numbers, and compares the result with the
recorded one. The view then follows what happened, whatever the repeated choice was. So with another configuration the
player says, decision by decision, what that configuration would have done in the same situation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Raw, Struct

from numalign.api.decode import decode
from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.kube.watch.store import Change
from numalign.placement import facts
from numalign.placement.decisions import Decision
from numalign.placement.rules.volumes import volumeactions
from numalign.placement.rules.volumes.volumeactions import VolumePlan
from numalign.scheduler.bind.binder import volume_plan
from numalign.scheduler.choose import filtering
from numalign.scheduler.choose.decisionlog import DecisionRecord
from numalign.scheduler.choose.stormguard import Replicas
from numalign.scheduler.explain import replay
from numalign.scheduler.explain.replay import ReplayResult
from numalign.scheduler.intake import watching
from numalign.scheduler.record import entries, segments
from numalign.scheduler.record.segments import SegmentHead
from numalign.scheduler.snapshot import files, restore
from numalign.scheduler.snapshot.restore import Restored
from numalign.scheduler.snapshot.snapshot import RESOURCES, Snapshot

BY_PLURAL: Final = {resource.plural: resource for resource in RESOURCES}


class Played(NamedTuple):
    """One attempt of the recording, and its repetition."""

    record: DecisionRecord
    pod: Pod | None
    """None: the segment does not have the pod, so the attempt was not repeated."""
    again: ReplayResult | None
    """None: the attempt was not repeated."""


class Segment(Struct, frozen=True):
    """A segment that is open for reading."""

    path: Path
    head: SegmentHead
    written: bytes
    """The state of the scheduler at the beginning, as a dump."""
    lines: Iterator[bytes]

    def state(self, config: Configuration | None = None) -> Snapshot:
        """`config` replaces the recorded one."""
        return files.read(self.written, str(self.path), config)

    def changes(self) -> Iterator[entries.Change]:
        """The entries; each can be read once."""
        for line in self.lines:
            try:
                entry = entries.read(line)
            except decode.UNREADABLE as problem:
                why = f"has a line that is not an entry: {decode.shortened(problem)}"
                raise BadObject("File", str(self.path), "", why) from None
            yield entry


def opened(path: Path) -> Iterator[Segment]:
    """The segments in a file, each to be read before the next. BadObject if it is no recording; OSError."""
    lines = segments.lines(path)
    line = next(lines, b"")
    while True:
        head, following = segments.head(line, path), list[bytes]()
        state = next(lines, b"")
        segment = Segment(path, head, state, _until_head(lines, following))
        yield segment
        # Whatever the caller left unread.
        for _ in segment.lines:
            pass
        if not following:
            return
        line = following[0]


def _until_head(lines: Iterator[bytes], following: list[bytes]) -> Iterator[bytes]:
    """The lines of one segment; the head of the next one goes to `following`."""
    for line in lines:
        if segments.is_head(line):
            following.append(line)
            return
        yield line


def moment(entry: entries.Change, last: float) -> float:
    """When the entry was written, on the scheduler's clock. `last`: the time of the entry before."""
    if isinstance(entry, entries.Attempted):
        return entry.decision.at
    found: float = getattr(entry, "now", last)
    return found


class Player:
    def __init__(
        self,
        segment: Segment,
        config: Configuration | None = None,
        node: str = "",
        in_full: tuple[str, int] | None = None,
    ) -> None:
        """`config` replaces the recorded one. `node`: repeated decisions have details of it, as it was before.
        `in_full`: the pod, by uid, and the attempt that is repeated with what all nodes say."""
        self.segment = segment
        self.made: Restored = restore.restored(segment.state(config))
        self.now = segment.head.now
        self.waiting: dict[str, Pod] = {
            pod.metadata.uid: pod for pod in self.made.pods.values() if not pod.spec.node_name
        }
        """Pods without a node by uid, of this scheduler and of others."""
        self._node, self._in_full = node, in_full
        self._apply = watching.appliers(self.made.stock)
        self._chosen: dict[str, Decision] = {}
        """By uid, decisions that are charged and not yet assumed."""
        self._plans: dict[str, VolumePlan] = {}
        self._left = segment.changes()

    def play(self, until: float = float("inf")) -> Iterator[Played]:
        """Applies all entries up to that time of the scheduler's clock. Yields the attempts among them, each before the
        view follows it. A later call goes on where this one ends."""
        for entry in self._left:
            at = moment(entry, self.now)
            if at > until:
                self._left = itertools.chain((entry,), self._left)
                return
            self.now = max(self.now, at)
            if isinstance(entry, entries.Attempted):
                yield self._attempted(entry.decision)
                continue
            try:
                self._applied(entry)
            except BadObject:
                # The scheduler skipped the object, too, after what it had read of it.
                continue

    def _applied(self, entry: entries.Change) -> None:
        for part in (self._nodes, self._pods, self._bindings, self._nominations, self._others):
            part(entry)

    def _nodes(self, entry: entries.Change) -> None:
        cluster = self.made.cluster
        match entry:
            case entries.NodeSeen(now, raw):
                cluster.node(NODES.read(bytes(raw)), now)
            case entries.NodeGone(name):
                cluster.node_gone(name)
            case entries.ReportSeen(now, raw):
                cluster.report(TOPOLOGIES.read(bytes(raw)), now)
            case entries.ReportGone(now, node):
                cluster.report_gone(node, now)
            case entries.Ticked(now):
                cluster.tick(now)
                cluster.graces_ended(now)

    def _pods(self, entry: entries.Change) -> None:
        match entry:
            case entries.PodWaits(_, raw):
                pod = _pod(raw)
                self.waiting[pod.metadata.uid] = pod
            case entries.PodSeen(now, raw):
                pod = _pod(raw)
                self.waiting.pop(pod.metadata.uid, None)
                self.made.cluster.pod(pod, now)
            case entries.PodGone(now, raw):
                pod = _pod(raw)
                self.waiting.pop(pod.metadata.uid, None)
                self.made.cluster.pod_gone(pod, now)

    def _bindings(self, entry: entries.Change) -> None:
        cluster = self.made.cluster
        match entry:
            case entries.Assumed(uid):
                self._assume(uid)
            case entries.BindingSent(uid):
                cluster.sends(uid)
            case entries.BindingAccepted(uid):
                cluster.bound(uid)
            case entries.BindingFailed(uid):
                if (plan := self._plans.pop(uid, None)) is not None:
                    volumeactions.take_back(plan, self.made.stock.volumes)
                cluster.forget(uid)

    def _nominations(self, entry: entries.Change) -> None:
        nominations = self.made.nominations
        match entry:
            case entries.Nominated(node, raw):
                nominations.put(_pod(raw), node)
            case entries.VictimsExpected(uid, victims):
                nominations.expect(uid, victims)
            case entries.NominationEnded(uid):
                nominations.remove(uid)

    def _others(self, entry: entries.Change) -> None:
        rejections = self.made.rejections
        match entry:
            case entries.ObjectSeen(_, resource, raw):
                self._object(resource, raw, lambda thing: Change(None, thing))
            case entries.ObjectGone(_, resource, raw):
                self._object(resource, raw, lambda thing: Change(thing, None))
            case entries.Rejected(now, node, reason, raw, owner):
                shape = self.made.engine.shape(_pod(raw)).number
                rejections.rejected(Replicas(owner, shape) if owner else shape, node, reason, now)
            case entries.GuardedNodeChanged(node):
                rejections.changed(node)
            case entries.GuardedNodeGone(node):
                rejections.gone(node)

    def _object(self, resource: str, raw: Raw, change: Callable[[Any], Change[Any]]) -> None:
        if resource in self._apply:
            self._apply[resource](change(BY_PLURAL[resource].read(bytes(raw))))

    def _attempted(self, record: DecisionRecord) -> Played:
        """Repeats the attempt, and charges what was recorded."""
        made, pod = self.made, self.waiting.get(record.uid)
        if pod is None or record.is_held or pod.spec.scheduler_name not in made.profiles:
            return Played(record, pod, None)
        is_wanted = (record.uid, record.attempt) == self._in_full
        found = replay.attempted(made, pod, record, self._node, every=is_wanted)
        decision = found.decision
        if decision is not None and found.result.agrees is False:
            made.engine.apply(facts.BindFailed(record.uid))
            decision = None
        if decision is None and record.node:
            decision = self._placed(pod, record)
        if decision is not None:
            self._chosen[record.uid] = decision
        return Played(record, pod, found.result)

    def _placed(self, pod: Pod, record: DecisionRecord) -> Decision | None:
        """The pod on the recorded node, charged."""
        engine, profile = self.made.engine, self.made.profiles[pod.spec.scheduler_name]
        row = engine.row(record.node)
        if row is None:
            return None
        shape = filtering.shape(profile, engine, pod)
        return filtering.place(profile, engine, pod, shape, row, record.at) or engine.assign(pod, row, record.at)

    def _assume(self, uid: str) -> None:
        made, pod, decision = self.made, self.waiting.get(uid), self._chosen.pop(uid, None)
        if pod is None or decision is None:
            return
        plan = volume_plan(pod, made.profiles[pod.spec.scheduler_name], made.world, decision.node)
        if plan is not None:
            self._plans[uid] = plan
            volumeactions.assume(plan, made.stock.volumes)
        made.cluster.assume(pod, decision)


def _pod(raw: Raw) -> Pod:
    return PODS.read(bytes(raw))
