"""The parts of the scheduler that hold its view of the cluster, with a tape beside them.

`main` builds these instead of their base classes if a recorder is given. Each method writes what it was called with,
and then does what its base does. The player applies the entries in order to the base classes, and gets the same view.
Calls that change nothing that a decision reads are not written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.kube.watch.store import Change
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Decision, Wake
from numalign.placement.engine import Engine
from numalign.placement.rules.clusterstate import ClusterState
from numalign.scheduler.choose import decisionlog
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.decisionlog import DecisionLog, LoggedAttempt
from numalign.scheduler.choose.stormguard import Like, Replicas, StormGuard
from numalign.scheduler.queue.nominations import Nominations
from numalign.scheduler.record import entries
from numalign.scheduler.record.entries import Entry, discreet

MOST_WAITING: Final = 64 << 20
"""Bytes of entries that wait for the disk."""
BATCH: Final = 64
"""Entries that are encoded at once: those of about ten pods, in less than a tenth of a millisecond."""
COUNTED_BY_CLUSTER: Final = frozenset((NODES.plural, TOPOLOGIES.plural, "devices"))
"""Koordinator's devices are part of the reports that the cluster is given."""


class Tape:
    """Collects entries until the recorder takes them as lines. It is off until the recorder has begun a segment.

    Objects do not change, so entries can wait until there are enough of them to encode at once, which takes a quarter
    less time. Batches are small, because the scheduler waits for them, and because `most` does not count the last."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self.is_on = False
        self.lost = 0
        """Entries that were given up."""
        self.problem = ""
        """Why."""
        self._most, self._size, self._count = most, 0, 0
        self._batch: list[Entry] = []
        self._lines: list[bytes] = []

    def write(self, entry: Entry) -> None:
        self._batch.append(entry)
        if len(self._batch) >= BATCH:
            self._encode()

    def take(self) -> bytes:
        """The lines that were written since."""
        if self._batch:
            self._encode()
        lines, self._lines, self._size, self._count = self._lines, [], 0, 0
        return b"".join(lines)

    def _encode(self) -> None:
        batch, self._batch = self._batch, []
        self._count += len(batch)
        try:
            text = entries.lines(batch)
        except RecursionError:
            # An object at the limit of the decoder: more calls are under way here than when it was read.
            self._give_up("an object is nested too deeply")
            return
        self._lines.append(text)
        self._size += len(text)
        if self._size > self._most:
            self._give_up("the disk takes entries too slowly")

    def _give_up(self, problem: str) -> None:
        """A recording with a gap would tell something that did not happen, so the segment ends here."""
        self.is_on, self.problem = False, problem
        self.lost += self._count
        self._lines, self._size, self._count = [], 0, 0


class RecordedCluster(Cluster):
    def __init__(self, engine: Engine, world: ClusterState, tape: Tape) -> None:
        super().__init__(engine, world)
        self._tape = tape

    def node(self, node: Node, now: float = 0.0) -> list[Wake]:
        if self._tape.is_on:
            self._tape.write(entries.NodeSeen(now, discreet(node)))
        return super().node(node, now)

    def node_gone(self, name: str) -> list[Wake]:
        if self._tape.is_on:
            self._tape.write(entries.NodeGone(name))
        return super().node_gone(name)

    def report(self, written: NodeResourceTopology, now: float) -> list[Wake]:
        if self._tape.is_on:
            self._tape.write(entries.ReportSeen(now, discreet(written)))
        return super().report(written, now)

    def report_gone(self, node: str, now: float) -> list[Wake]:
        if self._tape.is_on:
            self._tape.write(entries.ReportGone(now, node))
        return super().report_gone(node, now)

    def pod(self, pod: Pod, now: float) -> list[Wake]:
        if self._tape.is_on:
            self._tape.write(entries.PodSeen(now, discreet(pod)))
        return super().pod(pod, now)

    def pod_gone(self, pod: Pod, now: float) -> list[Wake]:
        if self._tape.is_on:
            self._tape.write(entries.PodGone(now, discreet(pod)))
        return super().pod_gone(pod, now)

    def tick(self, now: float) -> list[Wake]:
        if self._tape.is_on:
            self._tape.write(entries.Ticked(now))
        return super().tick(now)

    def assume(self, pod: Pod, decision: Decision) -> Pod:
        if self._tape.is_on:
            self._tape.write(entries.Assumed(pod.metadata.uid))
        return super().assume(pod, decision)

    def sends(self, uid: str) -> None:
        if self._tape.is_on:
            self._tape.write(entries.BindingSent(uid))
        super().sends(uid)

    def bound(self, uid: str) -> list[Wake]:
        if self._tape.is_on:
            self._tape.write(entries.BindingAccepted(uid))
        return super().bound(uid)

    def forget(self, uid: str) -> list[Wake]:
        if self._tape.is_on and uid in self.assumed:
            self._tape.write(entries.BindingFailed(uid))
        return super().forget(uid)


class RecordedNominations(Nominations):
    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape = tape
        self._is_put = False
        """Whether `put` is under way, which removes the nomination before."""

    def put(self, pod: Pod, node: str) -> None:
        if self._tape.is_on and (node or self.node_of(pod.metadata.uid)):
            self._tape.write(entries.Nominated(node, discreet(pod)))
        self._is_put = True
        super().put(pod, node)
        self._is_put = False

    def expect(self, uid: str, victims: Iterable[str]) -> None:
        names = tuple(victims)
        if self._tape.is_on and not self._is_put and self.node_of(uid):
            self._tape.write(entries.VictimsExpected(uid, names))
        super().expect(uid, names)

    def remove(self, uid: str) -> None:
        if self._tape.is_on and not self._is_put and self.node_of(uid):
            self._tape.write(entries.NominationEnded(uid))
        super().remove(uid)


class RecordedStormGuard(StormGuard):
    def __init__(self, tape: Tape, shapes: Callable[[], Mapping[int, Shape]]) -> None:
        """`shapes`: those that the engine knows, by number."""
        super().__init__()
        self._tape, self._shapes = tape, shapes

    def rejected(self, like: Like, node: str, reason: str, now: float) -> float:
        owner, number = like if isinstance(like, Replicas) else ("", like)
        if self._tape.is_on:
            self._tape.write(entries.Rejected(now, node, reason, discreet(self._shapes()[number].pod), owner))
        return super().rejected(like, node, reason, now)

    def changed(self, node: str) -> None:
        if self._tape.is_on and self.has(node):
            self._tape.write(entries.GuardedNodeChanged(node))
        super().changed(node)

    def gone(self, node: str) -> None:
        if self._tape.is_on and self.has(node):
            self._tape.write(entries.GuardedNodeGone(node))
        super().gone(node)


class RecordedDecisions(DecisionLog):
    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape = tape

    def note(self, turn: LoggedAttempt) -> None:
        if self._tape.is_on:
            self._tape.write(entries.Attempted(decisionlog.record_of(turn)))
        super().note(turn)


def changed(tape: Tape, resource: str, change: Change[Any], now: float) -> None:
    """Writes a change that the cluster is not asked to count: a pod without a node, or an object that plugins read."""
    if not tape.is_on or resource in COUNTED_BY_CLUSTER:
        return
    if resource == PODS.plural:
        if change.new is not None and not change.new.spec.node_name:
            tape.write(entries.PodWaits(now, discreet(change.new)))
    elif change.new is not None:
        tape.write(entries.ObjectSeen(now, resource, discreet(change.new)))
    elif change.old is not None:
        tape.write(entries.ObjectGone(now, resource, discreet(change.old)))
