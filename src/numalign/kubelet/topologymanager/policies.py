"""The policies of the Topology Manager: `none`, `best_effort`, `restricted`, `single_numa_node`.

Each has one function, as the kubelet has one file for each (policy_none.go, policy_best_effort.go,
policy_restricted.go, policy_single_numa_node.go). `admission` calls `merge` for every container, or once for a pod
under pod scope. The policies never look at the resources behind the hints, and allocate nothing (kubelet spec 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct

from numalign.kubelet.settings import TopologyPolicy
from numalign.kubelet.topologymanager.hints import Hint, HintList
from numalign.kubelet.topologymanager.merge import HintMap, Hints, Merge, Rules, gathered

ANY_ZONE: Final = Hint(None, False)


class PolicyResult(Struct, frozen=True, dict=True):
    merge: Merge
    """The merge of the hints that the policy considers."""
    admitted: Hint | None
    """The hint that the kubelet stores and allocates by; None where the policy rejects the container."""

    @cached_property
    def best(self) -> Hint:
        """The best hint, even where the policy rejects it."""
        if self.admitted is not None:
            return self.admitted
        return ANY_ZONE if self.merge.rules.policy == "single-numa-node" else self.merge.not_preferred

    @property
    def permutations(self) -> int:
        """How many combinations of hints the kubelet walks."""
        return 0 if self.merge.rules.policy == "none" else self.merge.permutations


def merge(providers: Iterable[HintMap | None], rules: Rules) -> PolicyResult:
    """The result of the node's policy for the hints of all providers."""
    return POLICIES[rules.policy](gathered(providers, rules))


def none(merge: Merge) -> PolicyResult:
    """Admits every container, aligned to any zone."""
    return PolicyResult(merge, ANY_ZONE)


def best_effort(merge: Merge) -> PolicyResult:
    """Admits every container, aligned to the best hint, preferred or not."""
    return PolicyResult(merge, merge.preferred or merge.not_preferred)


def restricted(merge: Merge) -> PolicyResult:
    """Admits a container only with a hint that every resource prefers."""
    return PolicyResult(merge, merge.preferred)


def single_numa_node(merge: Merge) -> PolicyResult:
    """Admits a container only with a single zone that every resource prefers.

    A zone that is the whole machine is stored as any zone."""
    single = Merge(tuple(map(_preferred_single_zones, merge.lists)), merge.rules)
    best = single.preferred
    is_machine = best is not None and best.mask == merge.rules.machine
    return PolicyResult(single, Hint(None, True) if is_machine else best)


POLICIES: Final[Mapping[TopologyPolicy, Callable[[Merge], PolicyResult]]] = {
    "none": none,
    "best-effort": best_effort,
    "restricted": restricted,
    "single-numa-node": single_numa_node,
}


def _preferred_single_zones(hints: Hints) -> HintList:
    """The hints that single-numa-node considers."""
    if isinstance(hints, HintList):
        singles = [mask for mask in hints.masks if mask.bit_count() == 1 and mask in hints.preferred]
        return HintList(tuple(singles), frozenset(singles), hints.nil & {True})
    singles = [1 << zone for zone in hints.room.zones if hints.prefers(1 << zone)]
    return HintList(tuple(singles), frozenset(singles))
