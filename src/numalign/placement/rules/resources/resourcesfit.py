"""NodeResourcesFit: what a pod asks for must be free on the node, and there must be room for one pod more.

All that is short is told, and whether the node as a whole is too small for the pod, so that nobody is evicted in vain
(kube-scheduler spec 1.8). Scores by one of three strategies. Extended resources that a DeviceClass backs are not
looked at here: pods that ask for them are left alone before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects import noderequests, requests, resourcenames
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.ruleargs import NodeResourcesFitArgs
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.resources import allocation, strategies, totals
from numalign.placement.rules.resources.allocation import Addition
from numalign.placement.rules.resources.strategies import Strategy
from numalign.placement.rules.resources.totals import Charge, Totals
from numalign.placement.rules.rowtables import Follows
from numalign.placement.rules.rule import FITS, Codes, Refusal, Rows, Scores

TOO_MANY_PODS: Final = "Too many pods"
FULL: Final = 1
LAST_BIT: Final = 28
TOO_LARGE: Final = 1 << 30
DEFAULTS: Final = NodeResourcesFitArgs()


class Want(Struct, frozen=True):
    column: int
    amount: int
    name: str


class Shortfalls(Struct, frozen=True):
    """A code has a bit per reason: too many pods, each of the wants, and one of these beyond the node as a whole."""

    wants: tuple[Want, ...]

    def __getitem__(self, code: int) -> Refusal:
        short = (want for place, want in enumerate(self.wants) if code & _bit(place))
        reasons = ((TOO_MANY_PODS,) if code & FULL else ()) + tuple(f"Insufficient {want.name}" for want in short)
        return Refusal(reasons, unresolvable=bool(code & TOO_LARGE))


class Wants(Struct, frozen=True):
    """What the pod asks for, in the order of the reasons, amounts of nothing left out."""

    refusals: Shortfalls
    world: World
    only: frozenset[str] | None = None


class Codings(Struct, frozen=True):
    """Codes by row."""

    wants: tuple[Want, ...]
    amounts: Totals

    def rows(self, rows: Rows) -> Codes:
        amounts, where = self.amounts, totals.selected(rows)
        codes = np.where(amounts.pods[where] >= amounts.most_pods[where], np.int32(FULL), np.int32(FITS))
        for place, want in enumerate(self.wants):
            offered = amounts.allocatable[want.column][where]
            lacking = want.amount > offered - amounts.requested[want.column][where]
            if not lacking.any():
                continue
            short = np.flatnonzero(lacking)
            codes[short] |= _bit(place)
            codes[short[want.amount > offered[short]]] |= TOO_LARGE
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

    strategy: Strategy
    additions: tuple[Addition, ...]
    amounts: Totals

    def rows(self, rows: Rows) -> Scores:
        return self.strategy.rows(allocation.usages(self.additions, self.amounts, rows, as_scored=True), len(rows))

    def row(self, row: int) -> int:
        return self.strategy.row(allocation.usages_of(self.additions, self.amounts, row, as_scored=True))


class NodeResourcesFit:
    name: Final = "NodeResourcesFit"

    def __init__(self, args: NodeResourcesFitArgs = DEFAULTS) -> None:
        self._args = args
        self._strategy = strategies.of(args.scoring_strategy)

    def prepare(self, pod: Pod, world: World) -> Wants:
        wants = world.totals.once((Want, self._args), pod, lambda: tuple(self._wants(pod, world)))
        return Wants(refusals=Shortfalls(wants), world=world)

    def filter(self, prepared: Wants) -> Codes:
        amounts = prepared.world.totals
        return amounts.table(Codings(prepared.refusals.wants, amounts))

    def filter_alone(self, prepared: Wants) -> Follows:
        return Codings(prepared.refusals.wants, prepared.world.totals)

    def filter_row(self, prepared: Wants, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        amounts, there = prepared.world.totals, prepared.world.on_row[row]
        going = [there[uid].charge for uid in removed if uid in there]
        coming = list(map(amounts.charge_of, added))
        return Codings(prepared.refusals.wants, amounts).with_others(row, going, coming)

    def prepare_score(self, pod: Pod, world: World, rows: Rows) -> ScoredPod:
        additions = world.totals.once((Addition, self._args), pod, lambda: self._additions(pod, world.totals))
        return ScoredPod(strategy=self._strategy, additions=additions, amounts=world.totals)

    def score(self, prepared: ScoredPod, rows: Rows) -> Scores:
        return prepared.amounts.table(prepared)[rows].astype(np.int64)

    def normalized(self, prepared: ScoredPod, raw: Scores) -> Scores:
        return raw

    def score_alone(self, prepared: ScoredPod) -> Follows:
        return prepared

    def _wants(self, pod: Pod, world: World) -> Iterator[Want]:
        asked = requests.effective(pod)
        names = [name for name in totals.FIRST if name in asked]
        names += sorted(name for name in asked if totals.is_scalar(name) and not self._is_ignored(name))
        for name in names:
            amount = totals.counted(name, asked[name])
            if amount > 0:
                yield Want(column=world.totals.known(name), amount=amount, name=name)

    def _additions(self, pod: Pod, amounts: Totals) -> tuple[Addition, ...]:
        asked = noderequests.unplaced(pod, noderequests.LEAST)
        return allocation.read(self._args.scoring_strategy.resources, asked, amounts)

    def _is_ignored(self, name: str) -> bool:
        if not resourcenames.is_extended(name):
            return False
        group = name.partition("/")[0]
        return name in self._args.ignored_resources or group in self._args.ignored_resource_groups


def _bit(place: int) -> int:
    # Nobody asks for more kinds than there are bits; if somebody does, the last ones are told together.
    return 2 << min(place, LAST_BIT)
