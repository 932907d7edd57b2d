"""Merges the hints of all providers: finds the best hint in the cartesian product of their lists.

`policies` decides which result is admitted. The kubelet walks the product, up to 255^resources permutations at 8 zones.
The answer is the minimum of a total order over the masks that those permutations produce (kubelet spec 3.3). This
module computes that set without walking the product: preferred results are the masks that every list prefers, the
others are the intersections that the lists can reach, folded list by list. It also counts the permutations that the
kubelet would walk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from functools import cached_property, reduce
from itertools import chain
from math import comb, prod
from operator import and_, or_
from typing import TYPE_CHECKING

from msgspec import Struct

from numalign.kubelet.refusals import Undecided
from numalign.kubelet.settings import TopologyPolicy
from numalign.kubelet.topologymanager import hints
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import DONT_CARE, UNSATISFIABLE, Hint, HintList, UnlistedHints
from numalign.kubelet.topologymanager.mask import Mask

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Hints = HintList | UnlistedHints
HintMap = Mapping[str, Hints | None]
"""A provider's answer by resource. None for a resource: no preference; an empty list: it cannot be satisfied."""

PAIRWISE = 1_000
"""Intersections up to which a list is folded pair by pair; beyond that superset sums are cheaper."""


class Rules(Struct, frozen=True, dict=True):
    """What a merge depends on besides the hints. Distances, by zone id, only where closest zones are preferred."""

    policy: TopologyPolicy
    zones: tuple[int, ...]
    distances: Mapping[int, Sequence[int]] | None = None

    @cached_property
    def machine(self) -> Mask:
        return masks.of(self.zones)

    def rank(self, mask: Mask) -> tuple[int, ...]:
        """Fewer zones first, then closer ones if the node asks for it, then the lower mask."""
        if self.distances is None or self.policy == "single-numa-node":
            return mask.bit_count(), mask
        return mask.bit_count(), _total_distance(mask, self.distances), mask


class Merge(Struct, frozen=True, dict=True):
    """The lists of all providers under a node's rules, and the best hints that their product contains."""

    lists: tuple[Hints, ...]
    rules: Rules

    @cached_property
    def preferred(self) -> Hint | None:
        """The best hint that every list prefers; None where there is none."""
        mask = min(_preferred_by_all(self.lists, self.rules), key=self.rules.rank, default=None)
        return None if mask is None else Hint(mask, True)

    @cached_property
    def not_preferred(self) -> Hint:
        """The best of the other hints: as close as possible to the widest of the narrowest hints."""
        sizes = [each.narrowest for each in self.lists]
        wanted = max((size for size in sizes if size is not None), default=0)

        def closeness(mask: Mask) -> tuple[int, ...]:
            size = mask.bit_count()
            if size > wanted:
                return 2, size, *self.rules.rank(mask)
            return int(size < wanted), wanted - size, *self.rules.rank(mask)

        candidates = reachable(self.lists, self.rules.zones) - {0}
        return Hint(min(candidates, key=closeness, default=self.rules.machine), False)

    @property
    def permutations(self) -> int:
        """How many combinations of hints the kubelet walks for this merge."""
        return prod(each.count for each in self.lists)


def gathered(providers: Iterable[HintMap | None], rules: Rules) -> Merge:
    """The merge of the hints of all providers, in any order."""
    return Merge(tuple(chain.from_iterable(normalised(provider) for provider in providers)), rules)


def normalised(provider: HintMap | None) -> list[Hints]:
    """One list per resource; don't-care where the provider gives no hints (kubelet spec 3.1)."""
    if not provider:
        return [DONT_CARE]
    return [DONT_CARE if each is None else UNSATISFIABLE if each.is_empty else each for each in provider.values()]


def reachable(lists: Iterable[Hints], zones: tuple[int, ...]) -> Set[Mask]:
    """Every mask that is the intersection of one hint from each list."""
    every = list(lists)
    machine = masks.of(zones)
    listed: list[Set[Mask]] = [_options(each, machine) for each in every if isinstance(each, HintList)]
    common = reduce(and_, (reduce(or_, options, 0) for options in listed), machine)
    # Zones outside `common` are in no intersection, so lists too large to list are only needed inside it.
    listed += [each.cut_to(common) for each in every if isinstance(each, UnlistedHints)]
    return _folded([{mask & common for mask in options} for options in listed], masks.members(common))


def _options(hint_list: HintList, machine: Mask) -> set[Mask]:
    options = {mask & machine for mask in hint_list.masks}
    return options | {machine} if hint_list.nil else options


def _folded(lists: list[Set[Mask]], zones: tuple[int, ...]) -> Set[Mask]:
    reached: Set[Mask] = {masks.of(zones)}
    for position, options in enumerate(ordered := sorted(lists, key=len)):
        if len(reached) * len(options) > PAIRWISE:
            return _folded_by_sums([reached, *ordered[position:]], zones)
        reached = {have & option for have in reached for option in options}
    return reached


def _folded_by_sums(lists: list[Set[Mask]], zones: tuple[int, ...]) -> Set[Mask]:
    """The same by superset sums: counts of supersets multiply, and their differences count intersections."""
    place = {zone: index for index, zone in enumerate(zones)}
    dense = zones == tuple(range(len(zones)))
    together = max(2, 63 // max(1, len(zones)))  # counts of at most 2^zones each stay exact in 64 bits
    # Imported here, because it takes 14 MB, which agents that never merge should not use.
    import numpy as np

    reached, rest = lists[0], lists[1:]
    while rest:
        batch, rest = [reached, *rest[: together - 1]], rest[together - 1 :]
        table = np.zeros((len(batch), 1 << len(zones)), dtype=np.int64)
        for row, options in enumerate(batch):
            table[row, list(options) if dense else [_dense(mask, place) for mask in options]] = 1
        _superset_sums(table, +1)
        counts = table.prod(axis=0, keepdims=True)
        _superset_sums(counts, -1)
        indexes = np.flatnonzero(counts[0]).tolist()
        reached = set(indexes) if dense else {_sparse(index, zones) for index in indexes}
    return reached


def _superset_sums(table: npt.NDArray[np.int64], sign: int) -> None:
    rows, width = table.shape
    for bit in range(width.bit_length() - 1):
        halves = table.reshape(rows, -1, 2, 1 << bit)
        halves[:, :, 0, :] += sign * halves[:, :, 1, :]


def _dense(mask: Mask, place: Mapping[int, int]) -> int:
    return masks.of(place[zone] for zone in masks.members(mask))


def _sparse(index: int, zones: tuple[int, ...]) -> Mask:
    return masks.of(zones[place] for place in masks.members(index))


def _preferred_by_all(lists: Sequence[Hints], rules: Rules) -> Collection[Mask]:
    """The masks that every list prefers; a list that also prefers any zone goes along with the others."""
    unlisted = [each for each in lists if isinstance(each, UnlistedHints)]
    listed = [each for each in lists if isinstance(each, HintList)]
    strict = [each.preferred for each in listed if True not in each.nil]
    if strict:
        candidates: Iterable[Mask] = frozenset.intersection(*strict)
    elif unlisted:
        candidates = _of_preferred_size(unlisted)
    else:
        candidates = frozenset({rules.machine}).union(*(each.preferred for each in listed))
    agreed = (mask for mask in candidates if all(each.prefers(mask) for each in unlisted))
    return {mask & rules.machine for mask in agreed} - {0}


def _of_preferred_size(unlisted: Sequence[UnlistedHints]) -> Iterable[Mask]:
    common = masks.members(reduce(and_, (each.room.domain for each in unlisted)))
    sizes = {each.room.smallest for each in unlisted if each.room.alignment is None}
    if len(sizes) > 1:
        return ()
    size = sizes.pop() if sizes else None
    if size is None or comb(len(common), size) > hints.BUDGET:
        raise Undecided("the kubelet would merge every set of zones", prod(each.count for each in unlisted))
    return masks.of_size(common, size)


def _total_distance(mask: Mask, distances: Mapping[int, Sequence[int]]) -> int:
    # The kubelet compares averages over all ordered pairs; inside one mask size the sums order the same way.
    zones = masks.members(mask)
    try:
        return sum(distances[a][b] for a in zones for b in zones)
    except (IndexError, KeyError):
        raise Undecided("the kubelet indexes its distance table by zone id and crashes on ids with gaps") from None
