"""Merges the managers' hints into the zones that a container is aligned to, on one row.

A pool (`cpus`, `memory`, `devices`) describes what it can offer as a `Listing`; `merged` finds the mask that the
Topology Manager chooses (engine spec 4). Where amounts are known between bounds only, it finds every mask that the
Topology Manager may choose (rule R1), or says that the answer depends on what is unknown. Masks are over positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import comb
from typing import NoReturn

from msgspec import Struct

from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import HintList
from numalign.kubelet.topologymanager.merge import Rules
from numalign.kubelet.topologymanager.policies import merge
from numalign.placement.columns.noderules import MOST_ZONES, NodeRules
from numalign.placement.rowmodel.causes import Cause, Refuses, Unsure, Want

Suits = Callable[[int], bool]
SEARCHABLE = 50_000
"""The most masks of one size that are searched on a machine too large for arrays."""


class Listing(Struct, frozen=True, kw_only=True):
    """What one resource, or all memory together, contributes to a merge."""

    wants: Callable[[], tuple[Want, ...]]
    domain: int
    smallest: int
    """How many zones it takes by size, whatever is free."""
    certain: Suits
    """Whether a mask has room, whatever is unknown."""
    possible: Suits
    """Whether a mask may have room. The same function as `certain` where nothing is unknown."""
    also_prefers: Suits | None = None
    """Masks that are preferred besides those of the smallest size."""
    lists: int = 1
    """Identical lists that it stands for: one per memory type."""
    drops_out: bool = False
    """Whether it takes no part in the merge where no mask has room, as memory does."""
    size_unknown: bool = False
    without_groups: Suits | None = None
    """Whether a mask has room for memory if no memory group existed. None: no group limits the request."""

    @property
    def is_known(self) -> bool:
        return self.certain is self.possible

    def prefers(self, mask: int) -> bool:
        return mask.bit_count() == self.smallest or (self.also_prefers is not None and self.also_prefers(mask))


class Alignment(Struct, frozen=True):
    """What a container is aligned to: one of these masks. None at all: any zone."""

    masks: tuple[int, ...] = ()
    preferred: bool = False
    trusted: bool = False
    """Whether the mask, whichever it is, has room for everything that was listed."""
    holds_memory: bool = False
    """Whether memory was among the lists."""
    listed: bool = False
    """Whether any list was merged; if not, the container is aligned to nothing in particular."""
    known: bool = True
    """False: it may be any mask inside."""

    @property
    def union(self) -> int:
        together = 0
        for mask in self.masks:
            together |= mask
        return together


ANYWHERE = Alignment()


def merged(listings: Sequence[Listing], rules: NodeRules) -> Alignment:
    """The zones that the node's policy chooses; `Refuses` or `Unsure` where it does not or may not choose any."""
    match rules.policy:
        case "single-numa-node":
            return single_numa_node(listings, rules)
        case "restricted":
            return restricted(listings, rules)
        case _:
            return best_effort(listings, rules)


def single_numa_node(listings: Sequence[Listing], rules: NodeRules) -> Alignment:
    """The first zone that all managers prefer; without one the pod is rejected."""
    if not listings:
        return Alignment((), preferred=True)
    found, before = _first_preferred(listings, rules)
    if found is None:
        return _rejected_unless_fewer(listings, rules, before)
    # On a machine of one zone the Topology Manager stores "any zone" (kubelet spec 3.5).
    return _preferred(listings, () if found == rules.every_zone else (*before, found))


def restricted(listings: Sequence[Listing], rules: NodeRules) -> Alignment:
    """The first set of zones that all managers prefer; without one the pod is rejected."""
    if not listings:
        return Alignment((rules.every_zone,), preferred=True)
    _need_sizes(listings)
    found, before = _first_preferred(listings, rules)
    if found is None:
        return _rejected_unless_fewer(listings, rules, before)
    return _preferred(listings, (*before, found))


def best_effort(listings: Sequence[Listing], rules: NodeRules) -> Alignment:
    """The first set of zones that all managers prefer; without one, whatever the hints merge to."""
    if not listings:
        return Alignment((rules.every_zone,), preferred=True)
    _need_sizes(listings)
    found, before = _first_preferred(listings, rules)
    if found is not None:
        return _preferred(listings, (*before, found))
    kept = _taking_part(listings, rules)
    return best_effort(kept, rules) if len(kept) < len(listings) else _without_preference(listings, rules)


def _preferred(listings: Sequence[Listing], chosen: tuple[int, ...]) -> Alignment:
    memory = any(each.drops_out for each in listings)
    return Alignment(chosen, preferred=True, trusted=True, holds_memory=memory, listed=True)


def _need_sizes(listings: Sequence[Listing]) -> None:
    """Which masks are preferred depends on how many zones a request takes by size."""
    if any(each.size_unknown for each in listings):
        raise Unsure(Cause.SIZE_UNKNOWN, _wants(listings))


def _rejected_unless_fewer(listings: Sequence[Listing], rules: NodeRules, before: Sequence[int]) -> Alignment:
    """No mask is preferred for certain: the pod is rejected, unless a manager drops out of the merge."""
    if not _others_agree(listings, rules):
        _refuse(listings, rules)
    kept = _taking_part(listings, rules)
    if len(kept) < len(listings):
        return merged(kept, rules)
    if before or _may_drop_out(listings, rules):
        raise Unsure(Cause.UNSETTLED_PODS, _wants(listings), _closest(listings, rules))
    _refuse(listings, rules)


def _taking_part(listings: Sequence[Listing], rules: NodeRules) -> list[Listing]:
    return [each for each in listings if not each.drops_out or _any(each.possible, each, rules)]


def _refuse(listings: Sequence[Listing], rules: NodeRules) -> NoReturn:
    counts = {each.smallest for each in listings if each.also_prefers is None}
    cause = Cause.DIFFERENT_ZONE_COUNTS if len(counts) > 1 else Cause.NO_COMMON_ZONES
    if _only_groups_refuse(listings, rules):
        cause = Cause.MEMORY_GROUP
    raise Refuses(cause, _wants(listings), _closest(listings, rules))


def _only_groups_refuse(listings: Sequence[Listing], rules: NodeRules) -> bool:
    """Whether a mask that all managers prefer has everything, and only memory groups forbid it."""
    if all(each.without_groups is None for each in listings):
        return False
    suits = [each.without_groups or each.certain for each in listings]
    return any(all(has_room(mask) for has_room in suits) for mask in _candidates(listings, rules))


def _others_agree(listings: Sequence[Listing], rules: NodeRules) -> bool:
    """Whether the managers that always take part may agree; if not, the others need not be asked."""
    others = [each for each in listings if not each.drops_out]
    if not others:
        return True
    found, before = _first_preferred(others, rules)
    return found is not None or bool(before)


def by_rank(rules: NodeRules, size: int) -> Sequence[int]:
    """Masks of one size in the kubelet's order of preference."""
    zones = len(rules.zones)
    if zones > MOST_ZONES and comb(zones, size) > SEARCHABLE:
        raise Unsure(Cause.MANY_ZONES)
    distances = None if rules.policy == "single-numa-node" else rules.distances
    return _ranked(zones, size, distances)


def by_width(rules: NodeRules) -> Iterator[int]:
    """All masks, narrow ones first, then by value: the order in which memory looks at them."""
    zones = len(rules.zones)
    for size in range(1, zones + 1):
        if zones > MOST_ZONES and comb(zones, size) > SEARCHABLE:
            raise Unsure(Cause.MANY_ZONES)
        yield from _ranked(zones, size, None)


@lru_cache(maxsize=1024)
def _ranked(zones: int, size: int, distances: tuple[tuple[int, ...], ...] | None) -> tuple[int, ...]:
    rules = _kubelet_rules(zones, distances)
    return tuple(sorted(masks.of_size(rules.zones, size), key=rules.rank))


@lru_cache(maxsize=256)
def _kubelet_rules(zones: int, distances: tuple[tuple[int, ...], ...] | None) -> Rules:
    return Rules("best-effort", tuple(range(zones)), None if distances is None else dict(enumerate(distances)))


def _first_preferred(listings: Sequence[Listing], rules: NodeRules) -> tuple[int | None, list[int]]:
    """The first mask that all managers prefer for certain, and those before it that may turn out to be preferred."""
    before: list[int] = []
    known = all(each.is_known for each in listings)
    for mask in _candidates(listings, rules):
        if all(each.certain(mask) for each in listings):
            return mask, before
        if not known and all(each.possible(mask) for each in listings):
            before.append(mask)
    return None, before


def _candidates(listings: Sequence[Listing], rules: NodeRules) -> Iterator[int]:
    """Masks that all managers would prefer if there were room, in rank order."""
    outside = 0
    for each in listings:
        outside |= ~each.domain
    for size in _sizes(listings, rules):
        for mask in by_rank(rules, size):
            if not mask & outside and all(each.prefers(mask) for each in listings):
                yield mask


def _sizes(listings: Sequence[Listing], rules: NodeRules) -> Iterable[int]:
    wanted = {each.smallest for each in listings if each.also_prefers is None}
    if rules.policy == "single-numa-node":
        return (1,) if wanted == {1} else ()
    if not wanted:
        return range(1, len(rules.zones) + 1)
    return wanted if len(wanted) == 1 else ()


def _without_preference(listings: Sequence[Listing], rules: NodeRules) -> Alignment:
    """The exact mask where everything is known (the kubelet's own merge finds it), else any (engine spec R7)."""
    if not all(each.is_known for each in listings):
        return Alignment((rules.every_zone,), known=False, listed=True)
    if not rules.fits_arrays:
        raise Unsure(Cause.MANY_ZONES, _wants(listings))
    offered = [{f"{number}/{copy}": _hints(each) for copy in range(each.lists)} for number, each in enumerate(listings)]
    best = merge(offered, _kubelet_rules(len(rules.zones), rules.distances)).best
    return Alignment((best.mask or rules.every_zone,), listed=True)


def _hints(listing: Listing) -> HintList:
    return HintList(tuple(mask for mask, _ in masks.enumerated(masks.members(listing.domain)) if listing.certain(mask)))


def _any(suits: Suits, listing: Listing, rules: NodeRules) -> bool:
    return any(not mask & ~listing.domain and suits(mask) for mask in by_width(rules))


def _may_drop_out(listings: Sequence[Listing], rules: NodeRules) -> bool:
    """Whether a manager that blocks the merge may drop out of it."""
    doubtful = (each for each in listings if each.drops_out and not each.is_known)
    return any(not _any(each.certain, each, rules) for each in doubtful)


def _wants(listings: Sequence[Listing]) -> tuple[Want, ...]:
    return tuple(want for each in listings for want in each.wants())


def _closest(listings: Sequence[Listing], rules: NodeRules) -> int:
    """The mask with room for the most resources; among such the first that the kubelet would take."""
    if not rules.fits_arrays:
        return 0
    sizes = sorted({each.smallest for each in listings})
    every = [mask for size in sizes for mask in by_rank(rules, size)]
    return max(
        every, key=lambda mask: sum(not mask & ~each.domain and each.certain(mask) for each in listings), default=0
    )
