"""The spreading constraints that count for a pod: its own, else those of the profile, ready to be held against nodes.

Both halves of PodTopologySpread ask here, for constraints that must or that should hold. Defaults apply only to pods
without any constraint of their own, and only if something says which pods belong with them (kube-scheduler spec
1.12)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.affinity import TopologySpreadConstraint
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.podruleargs import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.nodes import nodeselectors, tolerations
from numalign.placement.rules.pods.matchers import Matcher
from numalign.placement.rules.pods.owners import Owners
from numalign.placement.rules.pods.podcounts import Counts, PodCounts, PodQuery, PodScope
from numalign.placement.rules.rowclasses import ABSENT

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
        """Raised whenever a pod may get other constraints than before."""
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
    """Not to be written to."""
    keys = tuple(sorted({constraint.key for constraint in constraints}))

    def make() -> Flags:
        return reduce(np.logical_and, (np.not_equal(world.labels.column(key).ids, ABSENT) for key in keys))

    return world.mask(("all keys", keys), make)


def included(world: ClusterState, pod: Pod, constraint: SpreadConstraint) -> Flags | None:
    """Rows that the constraint's policies let count; None: all."""
    rows = nodeselectors.required(world, pod) if constraint.honors_affinity else None
    if constraint.honors_taints:
        welcome = np.equal(tolerations.kept_away(world, pod.spec.tolerations), 0)
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
