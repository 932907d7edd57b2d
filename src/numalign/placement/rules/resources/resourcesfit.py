"""NodeResourcesFit: the node must have the requested resources free, and room for one more pod.

All insufficient resources are reported, and whether the node is too small even without its pods, so that preemption
skips it (kube-scheduler spec 1.8). Scores use one of three strategies. Extended resources backed by a DeviceClass
are not checked here: DynamicResources rejects such pods. For preemption, `FreedRows` answers for all nodes without
their pods of lower priority, and `FreedRow` for one node without some of its pods."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects import requests, resourcenames
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.pluginargs import NodeResourcesFitArgs
from numalign.placement.rules import totals
from numalign.placement.rules.alike import SomeAmounts
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.resources import strategies
from numalign.placement.rules.resources.strategies import Addition, AllocationScore
from numalign.placement.rules.rowclasses import Follows, Small
from numalign.placement.rules.rule import FITS, Codes, Refusal, Rows, Scores, span
from numalign.placement.rules.totals import Charge, Totals

TOO_MANY_PODS: Final = "Too many pods"
FULL: Final = 1
LAST_BIT: Final = 28
TOO_LARGE: Final = 1 << 30
DEFAULTS: Final = NodeResourcesFitArgs()


class ResourceRequest(Struct, frozen=True):
    column: int
    amount: int
    name: str


class Shortfalls(Struct, frozen=True):
    """A code has a bit per reason: too many pods, each of the wants, and one of these beyond the node as a whole."""

    wants: tuple[ResourceRequest, ...]

    def __getitem__(self, code: int) -> Refusal:
        short = (want for place, want in enumerate(self.wants) if code & _bit(place))
        reasons = ((TOO_MANY_PODS,) if code & FULL else ()) + tuple(f"Insufficient {want.name}" for want in short)
        return Refusal(reasons, unresolvable=bool(code & TOO_LARGE))


class ResourceRequests(Struct, frozen=True):
    """What the pod asks for, in the order of the reasons, amounts of nothing left out."""

    refusals: Shortfalls
    world: ClusterState
    only: frozenset[str] | None = None


class FitCodes(Struct, frozen=True):
    """Codes by row."""

    wants: tuple[ResourceRequest, ...]
    amounts: Totals

    def rows(self, rows: Rows) -> Codes:
        return self.amounts.evaluated(self, rows)

    def of(self, amounts: SomeAmounts) -> Codes:
        fits = amounts.pods < amounts.most_pods
        for want in self.wants:
            fits &= amounts.offered(want.column) - amounts.requested(want.column) >= want.amount
        codes = np.zeros(amounts.count, np.int32)
        if not fits.all():
            # Why not is only of interest where it is so.
            refused = np.flatnonzero(~fits)
            codes[refused] = self._refusals(amounts.some(refused))
        return codes

    def _refusals(self, amounts: SomeAmounts) -> Codes:
        codes = FULL * (amounts.pods >= amounts.most_pods).astype(np.int32)
        for place, want in enumerate(self.wants):
            offered = amounts.offered(want.column)
            lacking = want.amount > offered - amounts.requested(want.column)
            codes |= lacking * np.int32(_bit(place))
            codes |= (lacking & (want.amount > offered)) * np.int32(TOO_LARGE)
        return codes

    def row(self, row: int) -> int:
        """As `with_others` without any, and quicker where all is well."""
        amounts = self.amounts
        if amounts.pods.item(row) < amounts.most_pods.item(row):
            for want in self.wants:
                column = want.column
                if want.amount > amounts.allocatable.item(column, row) - amounts.requested.item(column, row):
                    break
            else:
                return FITS
        return self.with_others(row, (), ())

    def with_others(self, row: int, going: Sequence[Charge], coming: Sequence[Charge]) -> int:
        """The row's code with some pods gone and others there."""
        amounts = self.amounts
        pods = amounts.pods.item(row) - len(going) + len(coming)
        code = FULL if pods >= amounts.most_pods.item(row) else FITS
        for place, want in enumerate(self.wants):
            offered, used = amounts.allocatable.item(want.column, row), amounts.requested.item(want.column, row)
            used += sum(each.of(want.column) for each in coming) - sum(each.of(want.column) for each in going)
            if want.amount > offered - used:
                code |= _bit(place) | (TOO_LARGE if want.amount > offered else FITS)
        return code


class ScoredPod(Struct, frozen=True):
    """Scores by row."""

    strategy: AllocationScore
    additions: tuple[Addition, ...]
    amounts: Totals

    def rows(self, rows: Rows) -> Small:
        return self.amounts.evaluated(self, rows)

    def of(self, amounts: SomeAmounts) -> Scores:
        return self.strategy.rows(strategies.usages(self.additions, amounts, as_scored=True), amounts.count)

    def row(self, row: int) -> int:
        return self.strategy.row(strategies.usages_of(self.additions, self.amounts, row, as_scored=True))


class NodeResourcesFit:
    name: Final = "NodeResourcesFit"

    def __init__(self, args: NodeResourcesFitArgs = DEFAULTS) -> None:
        self._args = args
        self._strategy = strategies.of(args.scoring_strategy)

    def prepare(self, pod: Pod, world: ClusterState) -> ResourceRequests:
        wants = world.totals.once((ResourceRequest, self._args), pod, lambda: tuple(self._wants(pod, world)))
        return ResourceRequests(refusals=Shortfalls(wants), world=world)

    def filter(self, prepared: ResourceRequests) -> Codes:
        amounts = prepared.world.totals
        return amounts.table(FitCodes(prepared.refusals.wants, amounts))

    def filter_alone(self, prepared: ResourceRequests) -> Follows:
        return FitCodes(prepared.refusals.wants, prepared.world.totals)

    def filter_row(self, prepared: ResourceRequests, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        amounts, there = prepared.world.totals, prepared.world.on_row[row]
        going = [there[uid].charge for uid in removed if uid in there]
        coming = list(map(amounts.charge_of, added))
        return FitCodes(prepared.refusals.wants, amounts).with_others(row, going, coming)

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> ScoredPod:
        additions = world.totals.once((Addition, self._args), pod, lambda: self._additions(pod, world.totals))
        return ScoredPod(strategy=self._strategy, additions=additions, amounts=world.totals)

    def score(self, prepared: ScoredPod, rows: Rows) -> Scores:
        return prepared.amounts.table(prepared)[span(rows)].astype(np.int64)

    def normalized(self, prepared: ScoredPod, raw: Scores) -> Scores:
        return raw

    def score_alone(self, prepared: ScoredPod) -> Follows:
        return prepared

    def _wants(self, pod: Pod, world: ClusterState) -> Iterator[ResourceRequest]:
        asked, known = world.totals.asked(pod), world.totals.known
        names = [name for name in totals.FIRST if name in asked]
        names += sorted([name for name in asked if name not in totals.FIRST and not self._is_ignored(name)])
        for name in names:
            if asked[name] > 0:
                yield ResourceRequest(known(name), asked[name], name)

    def _additions(self, pod: Pod, amounts: Totals) -> tuple[Addition, ...]:
        is_complete = totals.is_complete(pod)
        asked = amounts.asked(pod) if is_complete else totals.counted_amounts(requests.unplaced(pod, requests.LEAST))
        return strategies.read(self._args.scoring_strategy.resources, asked, amounts)

    def _is_ignored(self, name: str) -> bool:
        resources, groups = self._args.ignored_resources, self._args.ignored_resource_groups
        if not (resources or groups) or not resourcenames.is_extended(name):
            return False
        return name in resources or name.partition("/")[0] in groups


def _bit(place: int) -> int:
    # A code has one bit per resource; beyond that the last resources are reported together.
    return 2 << min(place, LAST_BIT)


NO_VICTIMS: Final = -1
"""Instead of a code: there is no pod of a lower priority."""


class FreedRows(Struct, frozen=True):
    wants: tuple[ResourceRequest, ...]
    priority: int
    world: ClusterState

    def codes(self) -> Codes:
        """By row. Not to be written to, nor kept."""
        return self.world.totals.table(self)

    def rows(self, rows: Rows) -> Codes:
        return np.array([self.row(row) for row in rows.tolist()], np.int32)

    def row(self, row: int) -> int:
        there = self.world.on_row[row].values()
        going = [each.charge for each in there if each.pod.spec.priority < self.priority]
        return FitCodes(self.wants, self.world.totals).with_others(row, going, ()) if going else NO_VICTIMS


class FreedRow:
    """One row from which some pods may go, and to which others may come."""

    def __init__(self, asked: FreedRows, row: int, coming: Iterable[Charge] = ()) -> None:
        amounts, wants = asked.world.totals, asked.wants
        there = asked.world.on_row[row].items()
        lower = {uid: each.charge for uid, each in there if each.pod.spec.priority < asked.priority}
        others = list(coming)
        self._parts = {uid: [charge.of(want.column) for want in wants] for uid, charge in lower.items()}
        """By uid of pods that may go, what they give back of each of the wants."""
        self._kept = [
            amounts.allocatable.item(want.column, row)
            - amounts.requested.item(want.column, row)
            - want.amount
            - sum(charge.of(want.column) for charge in others)
            for want in wants
        ]
        """For each request, what is left on the node as it is; negative: what is missing."""
        self._places = amounts.most_pods.item(row) - amounts.pods.item(row) - len(others) - 1

    def fits(self, removed: Collection[str]) -> bool:
        gone = [part for uid, part in self._parts.items() if uid in removed]
        if self._places + len(gone) < 0:
            return False
        return all(left + sum(part[place] for part in gone) >= 0 for place, left in enumerate(self._kept))
