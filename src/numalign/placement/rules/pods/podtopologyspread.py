"""PodTopologySpread: like pods spread evenly over topology domains, as a condition and as a preference.

Here is the condition; the preference is `spreadscore`. A node is refused when its domain would have too many matching
pods more than the emptiest domain. Counts, policies and quirks: kube-scheduler spec 1.12."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.podruleargs import PodTopologySpreadArgs
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.pods import domains, spreadconstraints
from numalign.placement.rules.pods.domains import Domains
from numalign.placement.rules.pods.owners import Owners
from numalign.placement.rules.pods.podcounts import PodCounts
from numalign.placement.rules.pods.spreadconstraints import SpreadConstraint, SpreadSource
from numalign.placement.rules.pods.spreadscore import SpreadScore
from numalign.placement.rules.rowclasses import ABSENT
from numalign.placement.rules.rule import FITS, Codes, Refusal, Refusals

REASON: Final = "node(s) didn't match pod topology spread constraints"
TOO_MANY: Final = Refusal((REASON,))
MISSING_LABEL: Final = Refusal((f"{REASON} (missing required label)",), unresolvable=True)
TOO_MANY_CODE, MISSING_LABEL_CODE = 1, 2
DEFAULTS: Final = PodTopologySpreadArgs()
NO_DOMAIN: Final = 2**31 - 1


class LowestCounts(Struct, frozen=True):
    """The smallest count, where it is, and the smallest anywhere else."""

    domain: int
    count: int
    elsewhere: int
    domains: int


class CountedConstraint(Struct, frozen=True):
    """One constraint, with what the domains have now."""

    constraint: SpreadConstraint
    domains: Domains
    counted: Flags
    lowest: LowestCounts
    is_own: bool
    """The pod itself is one of those that are counted."""

    def is_over(self, count: int, lowest: int) -> bool:
        base = 0 if self.lowest.domains < self.constraint.min_domains else lowest
        return count + self.is_own - base > self.constraint.max_skew


class PreparedSpread(Struct, frozen=True):
    pod: Pod
    world: ClusterState
    judged: list[CountedConstraint]
    refusals: Refusals
    only: None = None


class PodTopologySpread(SpreadScore):
    name: Final = "PodTopologySpread"

    def __init__(self, counts: PodCounts, owners: Owners, args: PodTopologySpreadArgs = DEFAULTS) -> None:
        super().__init__(SpreadSource(counts, owners, args))

    def prepare(self, pod: Pod, world: ClusterState) -> PreparedSpread | None:
        constraints = self._source.constraints(pod, spreadconstraints.MUST)
        if not constraints:
            return None
        judged = [self._judged(pod, world, each, constraints) for each in constraints]
        return PreparedSpread(pod=pod, world=world, judged=judged, refusals=Refusals(TOO_MANY, MISSING_LABEL))

    def filter(self, prepared: PreparedSpread) -> Codes:
        first, *others = [domains.gathered(_by_domain(each), each.domains.of_row) for each in prepared.judged]
        for codes in others:
            # The first constraint that is not met gives the reason.
            first = np.where(first == FITS, codes, first)
        return first

    def filter_row(self, prepared: PreparedSpread, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        gone = [prepared.world.on_row[row][uid].pod for uid in removed]
        for each in prepared.judged:
            if not each.domains.has(row):
                return MISSING_LABEL_CODE
            change = _matching(each, prepared.pod, added) - _matching(each, prepared.pod, gone)
            if _is_over_with(each, row, change if each.counted[row] else 0):
                return TOO_MANY_CODE
        return FITS

    def _judged(
        self, pod: Pod, world: ClusterState, constraint: SpreadConstraint, among: Sequence[SpreadConstraint]
    ) -> CountedConstraint:
        labelled = spreadconstraints.with_all_keys(world, among)
        policies = spreadconstraints.included(world, pod, constraint)
        counted = labelled if policies is None else labelled & policies
        column = world.labels.column(constraint.key)
        # Rows without the label are in no domain, so that one constraint without policies needs no mask.
        masked = None if policies is None and len(among) == 1 else counted
        summed = domains.summed(column, self._source.matching(pod, constraint), masked)
        if policies is None:
            question = ("domains", column, tuple(each.key for each in among))
            present = world.mask(question, lambda: domains.present(column, labelled))
        else:
            present = domains.present(column, counted)
        return CountedConstraint(
            constraint=constraint,
            domains=summed,
            counted=counted,
            lowest=_lowest(summed, present),
            is_own=constraint.selector.matches(pod.metadata.labels),
        )


def _by_domain(judged: CountedConstraint) -> Codes:
    base = 0 if judged.lowest.domains < judged.constraint.min_domains else judged.lowest.count
    skews = judged.domains.sums + judged.is_own - base
    codes = np.where(skews > judged.constraint.max_skew, TOO_MANY_CODE, FITS).astype(np.int32)
    codes[ABSENT] = MISSING_LABEL_CODE
    return codes


def _is_over_with(judged: CountedConstraint, row: int, change: int) -> bool:
    count = judged.domains.at(row) + change
    lowest = judged.lowest
    if not judged.counted[row]:
        return judged.is_over(count, lowest.count)
    others = lowest.elsewhere if judged.domains.of_row[row] == lowest.domain else lowest.count
    return judged.is_over(count, min(count, others))


def _lowest(summed: Domains, present: Flags) -> LowestCounts:
    counts = np.where(present, summed.sums, NO_DOMAIN)
    domain = int(counts.argmin())
    count, counts[domain] = int(counts[domain]), NO_DOMAIN
    return LowestCounts(domain=domain, count=count, elsewhere=int(counts.min()), domains=int(np.count_nonzero(present)))


def _matching(judged: CountedConstraint, pod: Pod, others: Iterable[Pod]) -> int:
    # Unlike counting, what-if looks at pods that are being deleted, and at an empty selector, as at any other.
    selector, namespace = judged.constraint.selector, pod.metadata.namespace
    return sum(each.metadata.namespace == namespace and selector.matches(each.metadata.labels) for each in others)
