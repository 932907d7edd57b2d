"""The reference flavour: decides as NodeResourceTopologyMatch does, over all nodes.

`engine` hands facts and pods over. The plugin's cache says what is known of a node, its filter which nodes take a pod,
its scoring which is best. Reserve, Unreserve and PostBind of the plugin are a placement, a failed and a successful
binding here. It predicts no zones, and it does not check node totals, which other rules of the scheduler do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from numalign.api.nrt import normalise
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.kubelet.demand import identity
from numalign.placement import referenceargs
from numalign.placement.columns import nodetotals
from numalign.placement.columns.columns import Columns
from numalign.placement.columns.nodetotals import NodeTotals
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import NO_STATISTICS, Certainty, Code, Codes, Decision, Statistics, Wake, WakeCause
from numalign.placement.facts import (
    BindFailed,
    Fact,
    NodeGone,
    NodeSeen,
    PodBound,
    PodGone,
    PodSeen,
    ReportGone,
    ReportRepeated,
    ReportSeen,
    Tick,
)
from numalign.placement.reference import classes, demand, filter, numanodes, scoring
from numalign.placement.reference.caches import selection
from numalign.placement.reference.caches.cache import Cache
from numalign.placement.reference.demand import PodDemand
from numalign.placement.reference.filter import Preemption, Seen
from numalign.placement.reference.numanodes import Reading
from numalign.placement.reference.scoring import ReferenceScoring
from numalign.placement.reference.status import Status
from numalign.placement.referenceargs import NodeResourceTopologyMatchArgs, PreemptionMode
from numalign.placement.settings import Settings, cache_mode

T = TypeVar("T")
RESYNC_PERIOD: Final = 5
"""Seconds between rounds of the over-reserve cache where nothing else is configured."""


class Reserved(Struct, frozen=True):
    node: str
    pod: Pod


class ReferenceFlavour:
    """The plugin with its cache, which learns of the cluster fact by fact."""

    kernel: None = None
    """None: this flavour evaluates node by node."""

    def __init__(self, settings: Settings, columns: Columns, node_totals: NodeTotals) -> None:
        self._columns = columns
        self._node_totals = node_totals
        self._cache: Cache = selection.build(_arguments(settings), settings.profiles)
        self._preempts = referenceargs.preemption_mode(settings.reference) is PreemptionMode.ENABLED
        # The plugin reads no weight below one (scheduler plugin spec 8.3).
        self._scoring = ReferenceScoring(
            settings.strategy, {name: max(1, weight) for name, weight in settings.weights.items()}
        )
        self._present: dict[str, frozenset[str]] = {}
        self._reports: dict[str, NodeResourceTopology] = {}
        self._readings: dict[str, Reading] = {}
        self._pods: dict[str, Pod] = {}
        self._reserved: dict[str, Reserved] = {}

    def apply(self, fact: Fact) -> list[Wake]:
        match fact:
            case NodeSeen(node=node):
                return self._node(node)
            case NodeGone(name=name):
                self._present.pop(name, None)
            case ReportSeen() | ReportRepeated():
                return self._report(fact)
            case ReportGone(node=name):
                self._reports.pop(name, None)
                self._cache.nrt_gone(name)
                # A node without a report accepts every pod.
                return [Wake(name, WakeCause.REPORT)]
            case PodSeen(pod=pod):
                return self._pod(pod)
            case PodBound(uid=uid):
                return self._bound(uid)
            case PodGone(pod=pod):
                return self._ended(pod)
            case BindFailed(uid=uid):
                return self._bind_failed(uid)
            case Tick(now=now):
                return self._resync(now)
        return []

    def charges(self, uid: str) -> bool:
        """The plugin forgets a pod with its object."""
        return False

    def shapes_in_use(self) -> set[int]:
        """Shapes are not remembered here."""
        return set()

    def retain_shapes(self, used: Container[int]) -> None:
        """There is nothing to forget."""

    def survey(self, shape: Shape, rows: NDArray[np.intp] | None = None) -> Codes:
        """Scores or codes of these rows, or of all; a node that is rejected is noted for the
        cache's next round, as after every filter."""
        codes = np.full(self._columns.height, Code.VACANT, np.int32)
        wanted = demand.of(shape.pod)
        for row in self._columns.rows.values() if rows is None else rows.tolist():
            codes[row] = self._code(wanted, self._columns.names[row])
        return codes

    def warm(self) -> bool:
        return False

    def follow(self, shape: Shape) -> None:
        """The plugin is evaluated anew for every pod."""

    def certainty(self, code: int, *, aligned: bool) -> int:
        """The plugin's scores say nothing about certainty."""
        return Certainty.BY_SCORE

    @property
    def unreported(self) -> None:
        """Such nodes score as others do."""
        return None

    def lacks_report(self, node: str) -> bool:
        """The plugin allows every pod on a node without a report."""
        return False

    def kubelet_is_away(self, node: str) -> bool:
        """The plugin does not know the attribute."""
        return False

    def waits_for_report(self, code: int) -> bool:
        """The plugin's cache has the old report or the new one."""
        return code < 0

    def statistics(self) -> Statistics:
        return NO_STATISTICS

    def refresh(self) -> None:
        """The columns have node totals only, which the engine keeps."""

    def either(self, exact: Callable[[Any], T], reference: Callable[[ReferenceFlavour], T]) -> T:
        return reference(self)

    def place(self, pod: Pod, shape: Shape, row: int) -> Decision | None:
        """Places the pod on the chosen row."""
        score = self._code(demand.of(pod), self._columns.names[row])
        if score < 0:
            return None
        totals = nodetotals.totals(shape, self._columns)
        uid, node = identity(pod), self._columns.names[row]
        # The pod is placed again, so its former decision was not carried out.
        self._bind_failed(uid)
        self._cache.reserve(node, pod)
        self._reserved[uid] = Reserved(node, pod)
        self._node_totals.put(uid, node, totals.pairs)
        return Decision(uid, node, score)

    def status(self, wanted: PodDemand, node: str) -> Status:
        """The status of the plugin's filter for a node, without an effect on the cache."""
        return filter.decide(wanted, self._present.get(node), self._seen(node)).status

    def status_without(self, wanted: PodDemand, row: int, uids: Collection[str]) -> Status:
        """The status without these pods, if the plugin is configured for preemption (scheduler plugin spec 16)."""
        node, victims = self._columns.names[row], tuple(pod for uid in uids if (pod := self._pods.get(uid)))
        gone = Preemption(victims, self._cache.placement(node)) if self._preempts else filter.NO_PREEMPTION
        return filter.decide(wanted, self._present.get(node), self._seen(node), gone).status

    def pods_on(self, row: int) -> list[str]:
        """The pods on a row by uid."""
        node = self._columns.names[row]
        return [uid for uid, pod in self._pods.items() if pod.spec.node_name == node]

    def _code(self, wanted: PodDemand, node: str) -> int:
        seen = self._seen(node)
        verdict = filter.decide(wanted, self._present.get(node), seen)
        if verdict.rejects_node:
            self._cache.rejected(node)
        if not verdict.status.is_success:
            return Code.NOT_CERTAIN if not seen.fresh else Code.DOES_NOT_FIT
        return scoring.score(wanted, seen, self._scoring)

    def _seen(self, node: str) -> Seen:
        known = self._cache.look_up(node)
        if known.nrt is None:
            return Seen(known.fresh)
        reading = self._readings.get(node)
        if reading is None or reading.report is not known.nrt:
            reading = self._readings[node] = numanodes.read(known.nrt)
        return Seen(known.fresh, reading)

    def _node(self, node: Node) -> list[Wake]:
        self._present[node.metadata.name] = classes.present_on(node)
        return [Wake(node.metadata.name, WakeCause.NODE)]

    def _report(self, fact: ReportSeen | ReportRepeated) -> list[Wake]:
        """Passes a report on, also an unchanged one, because the cache compares its metadata."""
        if isinstance(fact, ReportRepeated):
            name, written = fact.node, fact.written
        else:
            name, written = fact.topology.node, fact.written or normalise.encode(fact.topology)
        (self._cache.nrt_changed if name in self._reports else self._cache.nrt_added)(written)
        self._reports[name] = written
        return [Wake(name, WakeCause.REPORT)]

    def _pod(self, pod: Pod) -> list[Wake]:
        self._pods[identity(pod)] = pod
        wakes = self._bound(identity(pod))
        self._cache.pod_seen(pod)
        return wakes

    def _bound(self, uid: str) -> list[Wake]:
        reserved = self._reserved.pop(uid, None)
        if reserved is None:
            return []
        node, was_closed = reserved.node, not self._cache.look_up(reserved.node).fresh
        self._cache.post_bind(node, reserved.pod)
        return [Wake(node, WakeCause.FREED)] if was_closed and self._cache.look_up(node).fresh else []

    def _ended(self, pod: Pod) -> list[Wake]:
        self._pods.pop(identity(pod), None)
        # No result of its binding follows, so what it holds is given back here.
        wakes = self._bind_failed(identity(pod))
        self._cache.pod_gone(pod)
        return wakes or [Wake(pod.spec.node_name, WakeCause.FREED)]

    def _bind_failed(self, uid: str) -> list[Wake]:
        reserved = self._reserved.pop(uid, None)
        if reserved is None:
            return []
        self._cache.unreserve(reserved.node, reserved.pod)
        return [Wake(reserved.node, WakeCause.FREED)]

    def _resync(self, now: float) -> list[Wake]:
        due = self._cache.due()
        if due is None or now < due:
            return []
        refreshed = self._cache.resync(self._reports, self._pods.values(), now)
        return [Wake(node, WakeCause.REPORT) for node in refreshed]


def _arguments(settings: Settings) -> NodeResourceTopologyMatchArgs:
    """The plugin's own arguments for the cache that the mode names (scheduler plugin spec 10)."""
    mode = cache_mode(settings)
    period = settings.reference.cache_resync_period_seconds or RESYNC_PERIOD
    return structs.replace(
        settings.reference,
        discard_reserved_nodes=mode == "discardReserved",
        cache_resync_period_seconds=period if mode == "overReserve" else 0,
    )
