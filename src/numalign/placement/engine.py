"""The interface of placement: facts go in by `apply`, `survey` says which nodes take a pod, `place` puts it on one.

The scheduler owns one engine and calls it from one task. Everything the engine knows arrives as a fact. No fact makes
it raise: what cannot be used is left out and counted in `problems` by name. The flavour (exact or reference) decides;
the engine accounts node totals for both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from numalign.api.attributes import repairs
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects import resourcenames
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.kubelet import demand as demands
from numalign.placement import settings as modes
from numalign.placement import view
from numalign.placement.columns import nodetotals
from numalign.placement.columns.changelog import ChangeLog
from numalign.placement.columns.columns import Columns
from numalign.placement.columns.nodetotals import NodeTotals
from numalign.placement.columns.shapes import Shape, Shapes
from numalign.placement.decisions import HIGHEST, SCORES, Codes, Decision, Statistics, Wake
from numalign.placement.exact import ExactFlavour
from numalign.placement.facts import (
    BindFailed,
    Fact,
    NodeGone,
    NodeSeen,
    PodAssumed,
    PodBound,
    PodGone,
    PodSeen,
    ReportGone,
    ReportSeen,
    Tick,
)
from numalign.placement.flavour import Flavour
from numalign.placement.kernels.block import Kernel
from numalign.placement.reference.flavour import ReferenceFlavour
from numalign.placement.settings import Settings
from numalign.placement.verdicts.verdicts import VerdictTable
from numalign.placement.view import FreeDevices, NodeView, Taken

PODS: Final = "pods"
MOST_PODS: Final = 1 << 30
MANY_SHAPES: Final = 4096
"""At which it is looked which of them are needed."""


class Engine:
    """The whole cluster, as far as placing pods goes."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        modes.cache_mode(self.settings)
        modes.check_strategy(self.settings)
        self.columns = Columns()
        self.shapes = Shapes(koordinator=self.settings.koordinator_annotations)
        self.problems: Counter[str] = Counter()
        """What was left out or put right, by name."""
        self.node_totals = NodeTotals(self.columns)
        self._nodes: set[str] = set()
        self._reports: set[str] = set()
        self._gone: set[str] = set()
        self._many_shapes = MANY_SHAPES
        self.flavour: Flavour = (
            ExactFlavour(self.settings, self.columns, self.shapes, self.node_totals)
            if self.settings.flavour == "exact"
            else ReferenceFlavour(self.settings, self.columns, self.node_totals)
        )
        self._certainties = [
            np.array([self.flavour.certainty(score, aligned=aligned) for score in SCORES.tolist()], np.int64)
            for aligned in (False, True)
        ]

    def apply(self, fact: Fact) -> list[Wake]:
        """Take a fact in; the nodes for which pods that did not fit may be tried again."""
        # Most facts are these two.
        if isinstance(fact, PodSeen):
            if fact.pod.spec.node_name:
                self._pod(fact.pod)
            return self.flavour.apply(fact)
        return self.flavour.apply(fact) if isinstance(fact, PodBound) else self._apply_rarer(fact)

    def _apply_rarer(self, fact: Fact) -> list[Wake]:
        match fact:
            case NodeSeen(node=node):
                self._node(node)
            case ReportSeen(topology=topology):
                self._report(topology)
            case PodAssumed(pod=pod) if pod.spec.node_name:
                self._pod(pod)
            case BindFailed(uid=uid):
                self.node_totals.drop(uid)
        wakes = self.flavour.apply(fact)
        match fact:
            case NodeGone(name=name):
                self._nodes.discard(name)
                self._drop_row(name)
            case ReportGone(node=name):
                self._reports.discard(name)
                self._drop_row(name)
            case PodGone(pod=pod):
                self._gone.add(demands.identity(pod))
                self._end_gone((demands.identity(pod),))
            case Tick():
                self._end_gone(tuple(self._gone))
                self._forget_shapes()
        return wakes

    def warm(self) -> bool:
        """Compile, or load what an earlier process compiled; False where numba is missing or of no use.

        Takes a second, or a minute the first time ever. Plain Python serves until then; a thread may call this."""
        return self.flavour.warm()

    @property
    def kernel(self) -> Kernel | None:
        """What evaluates rows: plain Python until `warm` has loaded machine code. None: the flavour uses none."""
        return self.flavour.kernel

    def shape(self, pod: Pod) -> Shape:
        """The pod's shape, or BadObject if its annotations make no sense; callers keep it with the pod."""
        return self.shapes.intern(pod)

    def survey(self, shape: Shape, rows: NDArray[np.intp] | None = None) -> Codes:
        """By row: a score of 0 or more, or one of `decisions.Code`. The scheduler adds its other rules.

        `rows`: those that count; others may be left out. The answer is not to be written to, and true until the next
        fact; a row that `place` turned down reads differently at once."""
        return self.flavour.survey(shape, rows)

    def follow(self, shape: Shape) -> VerdictTable | None:
        """The same for callers that follow a shape from pod to pod; None: the flavour keeps no tables."""
        return self.flavour.follow(shape)

    def certainties(self, *, aligned: bool) -> NDArray[np.int64]:
        """By score, how certain it is that a row with this score admits the pod; `aligned`: kubelets pin something of
        it. Not to be written to."""
        return self._certainties[aligned]

    def zone_scores(self, weight: int, *, aligned: bool) -> NDArray[np.int64]:
        """By score of a row, what zones add to its total. Among nodes that are equal otherwise, a pod of which kubelets
        pin nothing goes to one without a report, and leaves the zones of the others to pods that need them."""
        scores = weight * SCORES
        if not aligned and self.flavour.unreported is not None:
            scores[self.flavour.unreported] = weight * HIGHEST + 1
        return scores

    @property
    def vacant_rows(self) -> tuple[int, ...]:
        """Rows of no node; the last is used next."""
        return self.columns.vacant

    @property
    def reports(self) -> frozenset[str]:
        """Nodes that have a report object, whether it is in force or not."""
        return frozenset(self._reports)

    def lacks_report(self, node: str) -> bool:
        """Whether nothing is known about the node's zones, neither by a report nor by one that was deleted."""
        return self.flavour.lacks_report(node)

    def kubelet_is_away(self, node: str) -> bool:
        """Whether the node's report says that its kubelet does not answer."""
        return self.flavour.kubelet_is_away(node)

    def waits_for_report(self, code: int) -> bool:
        """Whether a node that refuses a pod by this code may accept it after its next report."""
        return self.flavour.waits_for_report(code)

    def charges(self, uid: str) -> bool:
        """Whether a pod that is gone may still run."""
        return self.flavour.charges(uid)

    def counts(self, uid: str) -> bool:
        """Whether the pod counts for the totals of some node."""
        return uid in self.node_totals

    def refuses(self, shape: Shape, node: str) -> bool:
        """Whether a pod of this shape need not be tried on the node as it is now."""
        row = self.columns.rows.get(node)
        return row is None or bool(self.survey(shape, np.array((row,), np.intp))[row] < 0)

    def place(self, pod: Pod, shape: Shape, row: int, now: float) -> Decision | None:
        """The pod on this row, charged at once; None: it is not certain to be admitted there, or only as a last
        resort, which the survey then says."""
        return self.flavour.place(pod, shape, row)

    def assign(self, pod: Pod, row: int, now: float) -> Decision:
        """The pod on this row, for a profile that does not look at zones: its totals are charged at once, and its zones
        like those of a pod that another scheduler bound."""
        uid, node = demands.identity(pod), self.columns.names[row]
        if uid in self.node_totals:
            self.apply(BindFailed(uid))
        self.apply(PodAssumed(structs.replace(pod, spec=structs.replace(pod.spec, node_name=node)), now))
        return Decision(uid=uid, node=node, pod=pod)

    # What other packages may read

    def row(self, node: str) -> int | None:
        """The row of the node; None: there is neither a Node nor a report of that name."""
        return self.columns.rows.get(node)

    @property
    def rows(self) -> Mapping[str, int]:
        """By node."""
        return self.columns.rows

    @property
    def names(self) -> Sequence[str]:
        """Node names by row."""
        return self.columns.names

    @property
    def height(self) -> int:
        """How many rows there are, in use or vacant."""
        return self.columns.height

    @property
    def changes(self) -> ChangeLog:
        """Which rows changed, for callers that follow them."""
        return self.columns.log

    @property
    def known_shapes(self) -> Mapping[int, Shape]:
        """By number."""
        return self.shapes.all

    def view(self, node: str) -> NodeView | None:
        """The node as it is now, as plain data; None: there is no such node."""
        self.flavour.refresh()
        return view.of(self.columns, node) if node in self.columns.rows else None

    def taken(self, decision: Decision) -> tuple[Taken, ...]:
        """What kubelets pin for the pod of a decision of this engine, by zone."""
        return view.taken(self.columns, decision.node, decision.entries)

    def free_devices(self) -> dict[str, FreeDevices]:
        """By extended resource, how its free devices lie in the zones of all nodes."""
        self.flavour.refresh()
        return view.free_devices(self.columns)

    def statistics(self) -> Statistics:
        """What the flavour counts, with the problems of the engine."""
        found = self.flavour.statistics()
        return structs.replace(found, problems=self.problems + Counter(found.problems))

    def _node(self, node: Node) -> None:
        name = node.metadata.name
        self._nodes.add(name)
        amounts = {
            resource: amount.milli if resource == resourcenames.CPU else amount.value
            for resource, amount in node.allocatable.items()
        }
        pods = amounts.pop(PODS, 0)
        self.columns.set_totals(self._row(name), amounts, max(0, min(pods, MOST_PODS)))

    def _report(self, topology: NodeTopology) -> None:
        self._reports.add(topology.node)
        self._row(topology.node)
        for guess in topology.guesses:
            if guess.code not in repairs.ORDINARY:
                self.problems[guess.code] += 1

    def _row(self, name: str) -> int:
        is_new = name not in self.columns.rows
        row = self.columns.row(name)
        if is_new:
            self.node_totals.arrived(name)
        return row

    def _drop_row(self, name: str) -> None:
        """A node without Node object takes no pods; its row stays as long as there are reports about it."""
        row = self.columns.rows.get(name)
        if row is None:
            return
        if name not in self._nodes and name not in self._reports:
            self.columns.drop(name)
            self.node_totals.left(name)
        elif name not in self._nodes:
            self.columns.set_totals(row, {}, 0)

    def _pod(self, pod: Pod) -> None:
        uid = demands.identity(pod)
        if pod.status.is_finished:
            self.node_totals.drop(uid)
        elif uid not in self._gone:
            shape = self.shapes.intern_any(pod, self.problems)
            self.node_totals.put(uid, pod.spec.node_name, nodetotals.totals(shape, self.columns).pairs)

    def _forget_shapes(self) -> None:
        """Now and then: of the shapes met so far most may be those of pods that are long gone."""
        if len(self.shapes.all) > self._many_shapes:
            used = self.flavour.shapes_in_use()
            self.shapes.retain(used)
            self.flavour.retain_shapes(used)
            self._many_shapes = max(MANY_SHAPES, 2 * len(self.shapes.all))

    def _end_gone(self, uids: Iterable[str]) -> None:
        """Deleted pods count for their node as long as their containers may still run there."""
        for uid in [uid for uid in uids if not self.flavour.charges(uid)]:
            self._gone.discard(uid)
            self.node_totals.drop(uid)
