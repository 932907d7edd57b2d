"""PodTopologySpread: spreads matching pods evenly over topology domains, as a filter and as a score.

The filter rejects a node if its domain would exceed the emptiest domain by more than maxSkew matching pods. The
score prefers domains with fewer matching pods; labels with few values weigh less, and the host name is counted per
node. A pod without constraints of its own gets the profile's defaults, if Services or a controller select it
(kube-scheduler spec 1.12)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.objects.pod import Pod, TopologySpreadConstraint
from numalign.api.schedulerconfig.pluginargs import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.nodes import nodeaffinity, nodespec
from numalign.placement.rules.pods import podcounts
from numalign.placement.rules.pods.matchers import Matcher
from numalign.placement.rules.pods.owners import Owners
from numalign.placement.rules.pods.podcounts import Counts, Domains, PodCounts, PodQuery, PodScope
from numalign.placement.rules.rowclasses import ABSENT, Ids, RowClasses
from numalign.placement.rules.rule import FITS, MAX_SCORE, Codes, Refusal, Refusals, Rows, Scores

MUST: Final = "DoNotSchedule"
SHOULD: Final = "ScheduleAnyway"
HONOR: Final = "Honor"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SHOULD),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SHOULD),
)


class SpreadConstraint(Struct, frozen=True):
    key: str
    max_skew: int
    min_domains: int
    selector: Matcher
    honors_affinity: bool
    honors_taints: bool


class SpreadSource:
    """Where constraints come from, and what is counted for them."""

    def __init__(self, counts: PodCounts, owners: Owners, args: PodTopologySpreadArgs) -> None:
        self._counts, self._owners = counts, owners
        self._is_system = args.defaulting_type == SYSTEM_DEFAULTING
        self._defaults = SYSTEM_DEFAULTS if self._is_system else args.default_constraints

    def constraints(self, pod: Pod, action: str) -> list[SpreadConstraint]:
        own = pod.spec.topology_spread_constraints
        if own:
            return [_own(each, pod) for each in own if each.when_unsatisfiable == action]
        defaults = [each for each in self._defaults if each.when_unsatisfiable == action]
        selector = self._owners.selector(pod) if defaults else None
        return [_with(each, selector) for each in defaults] if selector and not selector.is_empty else []

    def has_any(self, pod: Pod) -> bool:
        """Whether the pod has constraints, or may get those of the profile."""
        return bool(pod.spec.topology_spread_constraints) or (
            bool(self._defaults) and not self._owners.selector(pod).is_empty
        )

    @property
    def generation(self) -> int:
        """Raised whenever the constraints of a pod may have changed."""
        return self._owners.generation

    def needs_all_keys(self, pod: Pod) -> bool:
        """Whether nodes that lack one of the labels are left out of scoring; not for the system's own defaults."""
        return bool(pod.spec.topology_spread_constraints) or not self._is_system

    def matching(self, pod: Pod, constraint: SpreadConstraint) -> Counts:
        """Pods by row that count for the constraint."""
        # An empty selector selects every pod, but none is counted for it.
        selector = Matcher(None) if constraint.selector.is_empty else constraint.selector
        scope = PodScope(namespaces=frozenset((pod.metadata.namespace,)), selector=selector)
        return self._counts.by_row(PodQuery(scopes=(scope,), staying=True))


def with_all_keys(world: ClusterState, constraints: Iterable[SpreadConstraint]) -> Flags:
    """Rows whose nodes have all topology keys; a read-only array."""
    keys = tuple(sorted({constraint.key for constraint in constraints}))

    def make() -> Flags:
        return reduce(np.logical_and, (np.not_equal(world.labels.column(key).ids, ABSENT) for key in keys))

    return world.mask(("all keys", keys), make)


def included(world: ClusterState, pod: Pod, constraint: SpreadConstraint) -> Flags | None:
    """Rows that the constraint's policies let count; None: all."""
    rows = nodeaffinity.required(world, pod) if constraint.honors_affinity else None
    if constraint.honors_taints:
        welcome = np.equal(nodespec.kept_away(world, pod.spec.tolerations), 0)
        return welcome if rows is None else rows & welcome
    return rows


def _own(written: TopologySpreadConstraint, pod: Pod) -> SpreadConstraint:
    labels = pod.metadata.labels
    values = {key: labels[key] for key in written.match_label_keys if key in labels}
    return _with(written, Matcher(written.label_selector).and_pairs(values))


def _with(written: TopologySpreadConstraint, selector: Matcher) -> SpreadConstraint:
    return SpreadConstraint(
        key=written.topology_key,
        max_skew=written.max_skew,
        min_domains=1 if written.min_domains is None else written.min_domains,
        selector=selector,
        honors_affinity=written.node_affinity_policy in (None, HONOR),
        honors_taints=written.node_taints_policy == HONOR,
    )


NO_VALUE: Final = ""


class SpreadScores(Struct, frozen=True):
    """Raw scores of all rows, before rounding, and the rows that are not scored at all."""

    points: NDArray[np.float64]
    ignored: Flags
    rows: Rows


class SpreadScore:
    def __init__(self, source: SpreadSource) -> None:
        self._source = source

    def concerns(self, pod: Pod) -> bool:
        """Whether there is a constraint of either kind; quick."""
        return self._source.has_any(pod)

    @property
    def surroundings(self) -> int:
        return self._source.generation

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> SpreadScores | None:
        constraints = self._source.constraints(pod, SHOULD)
        if not constraints:
            return None
        eligible = np.ones(world.capacity, np.bool_)
        if self._source.needs_all_keys(pod):
            eligible = with_all_keys(world, constraints)
        scored = rows[eligible[rows]]
        points = np.zeros(world.capacity)
        for each in constraints:
            points += self._points(pod, world, each, eligible & world.present, scored)
        return SpreadScores(points=points, ignored=~eligible, rows=rows)

    def score(self, prepared: SpreadScores, rows: Rows) -> Scores:
        # Rounded to the nearest, halves away from zero; there is nothing below zero.
        raw = np.floor(prepared.points[rows] + 0.5).astype(np.int64)
        return np.where(prepared.ignored[rows], 0, raw)

    def normalized(self, prepared: SpreadScores, raw: Scores) -> Scores:
        ignored = prepared.ignored[prepared.rows]
        kept = raw[~ignored]
        highest, lowest = int(kept.max(initial=0)), int(kept.min()) if len(kept) else 0
        even = np.full(len(raw), MAX_SCORE, np.int64)
        normal = MAX_SCORE * (highest + lowest - raw) // highest if highest else even
        return np.where(ignored, 0, normal)

    def _points(
        self, pod: Pod, world: ClusterState, constraint: SpreadConstraint, eligible: Flags, scored: Rows
    ) -> NDArray[np.float64]:
        column = world.labels.column(constraint.key)
        by_row = self._source.matching(pod, constraint)
        if constraint.key == HOSTNAME:
            counts, size = by_row, len(scored)
        else:
            policies = included(world, pod, constraint)
            among = eligible if policies is None else eligible & policies
            of_row = _with_unlabelled(column)
            sums = podcounts.by_class(of_row, by_row, among, len(column.values))
            counts, size = podcounts.gathered(sums, of_row), len(np.unique(of_row[scored]))
        points = counts * math.log(size + 2) + (constraint.max_skew - 1)
        return np.where(column.ids != ABSENT, points, 0.0)


def _with_unlabelled(column: RowClasses[str]) -> Ids:
    """Domains in which rows without the label count as having an empty one, as in kube-scheduler's scoring."""
    empty = column.number(NO_VALUE)
    return column.ids if empty is None else np.where(column.ids == ABSENT, empty, column.ids)


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
        constraints = self._source.constraints(pod, MUST)
        if not constraints:
            return None
        judged = [self._judged(pod, world, each, constraints) for each in constraints]
        return PreparedSpread(pod=pod, world=world, judged=judged, refusals=Refusals(TOO_MANY, MISSING_LABEL))

    def filter(self, prepared: PreparedSpread) -> Codes:
        first, *others = [podcounts.gathered(_by_domain(each), each.domains.of_row) for each in prepared.judged]
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
        labelled = with_all_keys(world, among)
        policies = included(world, pod, constraint)
        counted = labelled if policies is None else labelled & policies
        column = world.labels.column(constraint.key)
        # Rows without the label are in no domain, so that one constraint without policies needs no mask.
        masked = None if policies is None and len(among) == 1 else counted
        summed = podcounts.summed(column, self._source.matching(pod, constraint), masked)
        if policies is None:
            question = ("domains", column, tuple(each.key for each in among))
            present = world.mask(question, lambda: podcounts.present(column, labelled))
        else:
            present = podcounts.present(column, counted)
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
