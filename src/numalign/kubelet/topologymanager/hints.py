"""Topology hints: which masks satisfy a request, and which of them are preferred.

A manager describes a resource as a `Room`: the size of each zone and what of it is free. `Room.hints` makes the hints
that `merge` takes. Up to `LISTABLE` zones that is a `HintList` of all masks in the kubelet's order. On larger machines
the kubelet would enumerate 2^zones masks; there `UnlistedHints` answers questions about single masks, and raises
`Undecided` beyond a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache, reduce
from itertools import combinations
from math import comb
from operator import or_
from typing import NamedTuple

from msgspec import Struct, field

from numalign.kubelet.refusals import Undecided
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.mask import Mask

LISTABLE = 16
"""Zones up to which all masks are listed: 65,535 of them take milliseconds."""

BUDGET = 50_000
"""Masks examined one by one before a larger machine is given up as undecided."""


class Hint(NamedTuple):
    """A set of zones that a container may be aligned to. Mask None: any zone."""

    mask: Mask | None
    preferred: bool


class HintList(Struct, frozen=True, dict=True):
    """One resource's hints. `nil` holds the preferred flags of hints without a mask; recorded cases contain such."""

    masks: tuple[Mask, ...] = ()
    preferred: frozenset[Mask] = frozenset()
    nil: frozenset[bool] = frozenset()

    @classmethod
    def of(cls, hints: Iterable[Hint]) -> HintList:
        listed = tuple(hints)
        return cls(
            masks=tuple(dict.fromkeys(hint.mask for hint in listed if hint.mask is not None)),
            preferred=frozenset(hint.mask for hint in listed if hint.mask is not None and hint.preferred),
            nil=frozenset(hint.preferred for hint in listed if hint.mask is None),
        )

    def __iter__(self) -> Iterator[Hint]:
        yield from (Hint(mask, mask in self.preferred) for mask in self.masks)
        yield from (Hint(None, preferred) for preferred in sorted(self.nil))

    def prefers(self, mask: Mask) -> bool:
        return mask in self.preferred

    @cached_property
    def narrowest(self) -> int | None:
        """The size of the smallest mask, None when no hint has one."""
        return min((mask.bit_count() for mask in self.masks), default=None)

    @property
    def count(self) -> int:
        return len(self.masks) + len(self.nil)

    @property
    def is_empty(self) -> bool:
        return not self.count


DONT_CARE = HintList(nil=frozenset({True}))
UNSATISFIABLE = HintList(nil=frozenset({False}))


class Supply(Struct, frozen=True):
    """One resource by zone set: `size` is what preference counts, `free` what can still be had (engine spec 2).

    Keys are masks: one bit for CPUs and memory, several for a device that is attached to several zones."""

    need: int
    size: Mapping[Mask, int]
    free: Mapping[Mask, int]
    held: int = 0
    """Free in addition wherever the mask is: CPUs or devices of the pod's own init containers."""
    reusable: Mapping[Mask, int] = field(default_factory=dict)
    """Free in addition under exactly this mask: memory of the pod's own init containers."""

    def sized(self, mask: Mask) -> int:
        return sum(amount for zones, amount in self.size.items() if zones & mask)

    def available(self, mask: Mask) -> int:
        free = sum(amount for zones, amount in self.free.items() if zones & mask)
        return free + self.held + self.reusable.get(mask, 0)


class Groups(Struct, frozen=True):
    """Memory groups: which zones carry assignments, and which zones each one is bound to (kubelet spec 6.7)."""

    busy: Mask
    cells: Mapping[int, Mask]

    def permit(self, mask: Mask) -> bool:
        """A single zone must not be in a group; of several zones, each busy one must be in exactly this group."""
        if mask & (mask - 1) == 0:
            return self.cells[mask.bit_length() - 1] == mask
        return not mask & self.busy or self.coherent(mask)

    def coherent(self, mask: Mask) -> bool:
        return all(self.cells[zone] == mask for zone in masks.members(mask & self.busy))


class SocketAlignment(Struct, frozen=True):
    """`align-by-socket`: a mask within as few sockets as the smallest one needs is preferred too (kubelet spec 5.5)."""

    sockets: Mapping[int, int]
    """Zone id to the mask of its sockets."""
    zones_per_socket: int

    def prefers(self, mask: Mask, smallest: int) -> bool:
        spanned = 0
        for zone in masks.members(mask):
            spanned |= self.sockets[zone]
        return spanned.bit_count() == -(-smallest // self.zones_per_socket)


class Room(Struct, frozen=True, dict=True):
    """Where a request may go: the zones that count, what they hold, and the rules on top of the amounts."""

    zones: tuple[int, ...]
    supplies: tuple[Supply, ...]
    must_include: Mask = 0
    """Zones that hold something the container has to reuse."""
    must_touch: tuple[Mask, ...] = ()
    """Zone sets of reusable devices, each of which the mask has to touch; 0 can never be touched."""
    groups: Groups | None = None
    alignment: SocketAlignment | None = None

    def hints(self) -> HintList | UnlistedHints:
        return self._listed() if len(self.zones) <= LISTABLE else UnlistedHints(self)

    @cached_property
    def domain(self) -> Mask:
        return masks.of(self.zones)

    @cached_property
    def smallest(self) -> int:
        """The number of zones the request needs by hardware size, whatever is free: what makes a hint preferred."""
        if len(self.supplies) == 1:
            supply = self.supplies[0]
            return _smallest(self.zones, tuple(supply.size.items()), supply.need)
        if len(self.zones) <= LISTABLE:
            return min((mask.bit_count() for mask in self._capable_listed()), default=len(self.zones))
        return _first_size(self._sized_zones, self._sized, otherwise=len(self.zones))

    @property
    def _sized_zones(self) -> tuple[int, ...]:
        sized = reduce(or_, (mask for supply in self.supplies for mask, size in supply.size.items() if size), 0)
        return masks.members(sized & self.domain)

    def suits(self, mask: Mask) -> bool:
        """Whether the kubelet would emit a hint for this mask."""
        return self._sized(mask) and self._permitted(mask) and all(s.available(mask) >= s.need for s in self.supplies)

    def prefers(self, mask: Mask) -> bool:
        aligned = self.alignment is not None and self.alignment.prefers(mask, self.smallest)
        return aligned or mask.bit_count() == self.smallest

    def _sized(self, mask: Mask) -> bool:
        # Only memory hints are left out where even empty zones would be too small (kubelet spec 6.3); for CPUs
        # and devices what is free is part of the size, so the test changes nothing.
        return all(supply.sized(mask) >= supply.need for supply in self.supplies)

    @cached_property
    def _restricted(self) -> bool:
        return bool(self.must_include or self.must_touch or (self.groups and self.groups.busy))

    def _permitted(self, mask: Mask) -> bool:
        if mask & self.must_include != self.must_include or not all(zones & mask for zones in self.must_touch):
            return False
        return self.groups is None or self.groups.permit(mask)

    def _capable_listed(self) -> list[Mask]:
        sizes = [_sums(self.zones, tuple(supply.size.items())) for supply in self.supplies]
        return [m for m, i in masks.enumerated(self.zones) if _reaches(sizes, self.supplies, i)]

    def _listed(self) -> HintList:
        suiting = self._suiting_alone() if len(self.supplies) == 1 else self._suiting_jointly()
        if self._restricted:
            suiting = [mask for mask in suiting if self._permitted(mask)]
        if self.alignment is not None:
            preferred = frozenset(mask for mask in suiting if self.prefers(mask))
        else:
            smallest = self.smallest
            preferred = frozenset([mask for mask in suiting if mask.bit_count() == smallest])
        return HintList(masks=tuple(suiting), preferred=preferred)

    def _suiting_alone(self) -> list[Mask]:
        (supply,) = self.supplies
        free = _sums(self.zones, tuple(supply.free.items()))
        lacking = supply.need - supply.held
        if supply.reusable:
            sizes = _sums(self.zones, tuple(supply.size.items()))
            bonus = supply.reusable.get
            return [
                m
                for m, i in masks.enumerated(self.zones)
                if sizes[i] >= supply.need and free[i] + bonus(m, 0) >= lacking
            ]
        return [mask for mask, index in masks.enumerated(self.zones) if free[index] >= lacking]

    def _suiting_jointly(self) -> list[Mask]:
        alone = (Room(self.zones, (supply,))._suiting_alone() for supply in self.supplies)
        first, *others = alone
        common = set(first).intersection(*others)
        return [mask for mask in first if mask in common]


class UnlistedHints(Struct, frozen=True, dict=True):
    """The hints of a room with too many zones to list; same questions as `HintList`, answered mask by mask.

    Two facts keep that short. More zones never hold less, so whatever suits is found with all idle zones or with
    only those that hold something. And a busy zone comes as its whole group or not at all."""

    room: Room

    def prefers(self, mask: Mask) -> bool:
        return mask & ~self.room.domain == 0 and self.room.suits(mask) and self.room.prefers(mask)

    @property
    def count(self) -> int:
        """Upper bound: what the kubelet would enumerate."""
        return int((1 << len(self.room.zones)) - 1)

    @cached_property
    def is_empty(self) -> bool:
        """No mask suits: exactly, without finding one."""
        return not self.cut_to(0)

    @cached_property
    def narrowest(self) -> int | None:
        mask = self.first()
        return None if mask is None else mask.bit_count()

    def first(self, including: Mask = 0) -> Mask | None:
        """The narrowest suiting mask that includes a given one; gives up when the budget is spent."""
        including |= self.room.must_include
        best = min(self._peculiar(including), key=masks.width, default=None)
        if best is None and not self.room.suits(including | self._idle):
            return None
        for size in range(0 if including else 1, len(self._holding) + 1):
            if best is not None and best.bit_count() < size + including.bit_count():
                break
            others = tuple(zone for zone in self._holding if not including >> zone & 1)
            _afford(comb(len(others), size), self.count)
            found = (mask | including for mask in masks.of_size(others, size) if self.room.suits(mask | including))
            best = min(filter(None, (best, next(found, None))), key=masks.width, default=None)
        return best

    def cut_to(self, common: Mask) -> frozenset[Mask]:
        """What is left of the suiting masks inside `common`: {mask AND common}, exactly, without listing the masks."""
        inside = tuple(zone for zone in self.room.zones if common >> zone & 1)
        _afford(1 << len(inside), self.count)
        outside = self._idle & ~common
        wide = (part | outside for part in (0, *(mask for mask, _ in masks.enumerated(inside))))
        found = {mask & common for mask in wide if mask and self.room.suits(mask)}
        return frozenset(found.union(mask & common for mask in self._peculiar()))

    @cached_property
    def _idle(self) -> Mask:
        return self.room.domain & ~(self.room.groups.busy if self.room.groups else 0)

    @cached_property
    def _holding(self) -> tuple[int, ...]:
        """Idle zones without which some mask would hold less: the others are in no narrowest mask."""
        useful = 0
        for supply in self.room.supplies:
            useful |= reduce(or_, (zones for zones, amount in supply.free.items() if amount), 0)
        useful |= reduce(or_, self.room.must_touch, 0)
        return masks.members(useful & self._idle)

    def _peculiar(self, including: Mask = 0) -> list[Mask]:
        """Suiting masks that must be checked one by one: single zones, groups, and masks of reusable memory."""
        room = self.room
        candidates = {1 << zone for zone in room.zones}
        candidates.update(room.groups.cells.values() if room.groups else ())
        candidates.update(mask for supply in room.supplies for mask in supply.reusable)
        return [mask for mask in candidates if mask & including == including and room.suits(mask)]


def best_for_memory(hints: HintList | UnlistedHints, including: Mask = 0) -> Hint | None:
    """Preferred before not, then the narrowest: how the memory manager picks among its own hints (spec 6.4)."""
    if isinstance(hints, HintList):
        wider = (Hint(m, hints.prefers(m)) for m in hints.masks if m & including == including)
        return min(wider, key=lambda hint: (not hint.preferred, masks.width(hint.mask or 0)), default=None)
    # A preferred mask is one of the smallest capable size, so the narrowest suiting mask is preferred if any is.
    mask = hints.first(including)
    return None if mask is None else Hint(mask, hints.prefers(mask))


def _afford(count: int, enumerated: int) -> None:
    if count > BUDGET:
        raise Undecided("the kubelet would enumerate every set of zones", enumerated)


def _reaches(sums: list[list[int]], supplies: tuple[Supply, ...], index: int) -> bool:
    return all(column[index] >= supply.need for column, supply in zip(sums, supplies, strict=True))


def _sums(zones: tuple[int, ...], amounts: tuple[tuple[Mask, int], ...]) -> list[int]:
    """For every dense index over `zones`, the amount that touches it."""
    single = {zone_set: amount for zone_set, amount in amounts if zone_set & (zone_set - 1) == 0}
    sums = [0]
    for zone in zones:
        amount = single.get(1 << zone, 0)
        sums += [total + amount for total in sums] if amount else sums
    for zone_set, amount in amounts:
        if zone_set & (zone_set - 1):
            touched = masks.of(i for i, zone in enumerate(zones) if zone_set >> zone & 1)
            sums = [total + amount if index & touched else total for index, total in enumerate(sums)]
    return sums


@lru_cache(maxsize=4096)
def _smallest(zones: tuple[int, ...], sizes: tuple[tuple[Mask, int], ...], need: int) -> int:
    if all(zone_set & (zone_set - 1) == 0 for zone_set, _ in sizes):
        return _fewest(sorted((amount for _, amount in sizes), reverse=True), need, len(zones))
    if len(zones) <= LISTABLE:
        sums = _sums(zones, sizes)
        return min((m.bit_count() for m, i in masks.enumerated(zones) if sums[i] >= need), default=len(zones))
    return _first_size(
        zones, lambda m: sum(amount for zone_set, amount in sizes if zone_set & m) >= need, otherwise=len(zones)
    )


def _fewest(descending: list[int], need: int, most: int) -> int:
    if need <= 0:
        return min(1, most)
    total = 0
    for count, amount in enumerate(descending, start=1):
        total += amount
        if total >= need:
            return min(count, most)
    return most


def _first_size(zones: tuple[int, ...], capable: Callable[[Mask], bool], *, otherwise: int) -> int:
    for size in range(1, len(zones) + 1):
        _afford(comb(len(zones), size), 1 << len(zones))
        if any(capable(masks.of(places)) for places in combinations(zones, size)):
            return size
    return otherwise
