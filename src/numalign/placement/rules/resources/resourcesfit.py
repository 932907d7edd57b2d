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
from numalign.placement.rules import nodeamounts, totals
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodeamounts import FULL, TOO_LARGE, AmountTerms, Asked
from numalign.placement.rules.resources import strategies
from numalign.placement.rules.rule import Codes, Refusal, Rows, Scores
from numalign.placement.rules.totals import ByAmounts, Charge, Totals

TOO_MANY_PODS: Final = "Too many pods"
DEFAULTS: Final = NodeResourcesFitArgs()


class ResourceRequest(Struct, frozen=True):
    column: int
    amount: int
    name: str


class Shortfalls(Struct, frozen=True):
    """What codes mean: see `nodeamounts.shortfalls`."""

    wants: tuple[ResourceRequest, ...]

    def __getitem__(self, code: int) -> Refusal:
        short = (want for place, want in enumerate(self.wants) if code & nodeamounts.bit(place))
        reasons = ((TOO_MANY_PODS,) if code & FULL else ()) + tuple(f"Insufficient {want.name}" for want in short)
        return Refusal(reasons, unresolvable=bool(code & TOO_LARGE))


class ResourceRequests(Struct, frozen=True):
    """What the pod asks for, in the order of the reasons, amounts of nothing left out."""

    refusals: Shortfalls
    codes: ByAmounts
    """By row."""
    world: ClusterState
    only: frozenset[str] | None = None


def with_others(
    wants: Sequence[ResourceRequest], amounts: Totals, row: int, going: Sequence[Charge], coming: Sequence[Charge]
) -> int:
    """The row's code with some pods gone and others there."""
    used = [
        amounts.requested.item(want.column, row)
        + sum(each.of(want.column) for each in coming)
        - sum(each.of(want.column) for each in going)
        for want in wants
    ]
    return nodeamounts.fit_code(
        [want.amount for want in wants],
        [amounts.allocatable.item(want.column, row) for want in wants],
        used,
        amounts.pods.item(row) - len(going) + len(coming),
        amounts.most_pods.item(row),
    )


class NodeResourcesFit:
    name: Final = "NodeResourcesFit"

    def __init__(self, args: NodeResourcesFitArgs = DEFAULTS) -> None:
        self._args = args
        self._what, self._line = strategies.of(args.scoring_strategy)

    def prepare(self, pod: Pod, world: ClusterState) -> ResourceRequests:
        amounts = world.totals
        wants, terms = amounts.once((ResourceRequest, self._args), pod, lambda: self._requests(pod, world))
        return ResourceRequests(refusals=Shortfalls(wants), codes=ByAmounts(terms, amounts), world=world)

    def filter(self, prepared: ResourceRequests) -> Codes:
        return prepared.world.totals.table(prepared.codes)

    def filter_amounts(self, prepared: ResourceRequests) -> ByAmounts:
        return prepared.codes

    def filter_row(self, prepared: ResourceRequests, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        amounts, there = prepared.world.totals, prepared.world.on_row[row]
        going = [there[uid].charge for uid in removed if uid in there]
        coming = list(map(amounts.charge_of, added))
        return with_others(prepared.refusals.wants, amounts, row, going, coming)

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> ByAmounts:
        terms = world.totals.once((AmountTerms, self._args), pod, lambda: self._scored(pod, world.totals))
        return ByAmounts(terms, world.totals)

    def score(self, prepared: ByAmounts, rows: Rows) -> Scores:
        return prepared.rows(rows).astype(np.int64)

    def normalized(self, prepared: ByAmounts, raw: Scores) -> Scores:
        return raw

    def score_amounts(self, prepared: ByAmounts) -> ByAmounts:
        return prepared

    def _requests(self, pod: Pod, world: ClusterState) -> tuple[tuple[ResourceRequest, ...], AmountTerms]:
        wants = tuple(self._wants(pod, world))
        asked = tuple([Asked(want.column, want.amount) for want in wants])
        return wants, AmountTerms(nodeamounts.FIT, asked)

    def _wants(self, pod: Pod, world: ClusterState) -> Iterator[ResourceRequest]:
        asked, known = world.totals.asked(pod), world.totals.known
        names = [name for name in totals.FIRST if name in asked]
        names += sorted([name for name in asked if name not in totals.FIRST and not self._is_ignored(name)])
        for name in names:
            if asked[name] > 0:
                yield ResourceRequest(known(name), asked[name], name)

    def _scored(self, pod: Pod, amounts: Totals) -> AmountTerms:
        is_complete = totals.is_complete(pod)
        asked = amounts.asked(pod) if is_complete else totals.counted_amounts(requests.unplaced(pod, requests.LEAST))
        added = strategies.read(self._args.scoring_strategy.resources, asked, amounts, as_scored=True)
        return AmountTerms(self._what, added, self._line)

    def _is_ignored(self, name: str) -> bool:
        resources, groups = self._args.ignored_resources, self._args.ignored_resource_groups
        if not (resources or groups) or not resourcenames.is_extended(name):
            return False
        return name in resources or name.partition("/")[0] in groups


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
        return with_others(self.wants, self.world.totals, row, going, ()) if going else NO_VICTIMS


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
