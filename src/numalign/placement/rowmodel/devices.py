"""One device resource of one row while a pod is evaluated on it: what the device manager would offer and take.

Devices count by class, that is by the exact set of zones they are attached to; those without a zone are a class of
their own. Which device of several classes is taken is the kubelet's or the plugin's choice (engine spec 5): such a
choice stays open. Devices of plain init containers are reused before any others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_

from msgspec import Struct

from numalign.kubelet.demand import Role
from numalign.placement.columns.holdings import Entry
from numalign.placement.rowmodel.causes import Cause, Refuses, Unsure, Want
from numalign.placement.rowmodel.merge import Alignment, Listing
from numalign.placement.rowmodel.state import RowState, by_zone, inside, smallest, touching

HOMELESS = -1
"""The class of devices without a zone."""
HINTS_OVER_DEVICE_ZONES = (1, 36)
"""Before this minor, device hints range over all zones of the machine (kubelet spec 7.2)."""


class DeviceShare(Struct, frozen=True):
    """A number of devices, each in one of these classes."""

    count: int
    classes: frozenset[int]


class DevicePool:
    """Devices of one resource that a pod can have, from its first container to its last."""

    def __init__(self, row: RowState, column: int) -> None:
        self.row = row
        self.rules = row.rules
        self.column = column
        self.size = dict(by_zone(row.size[column]))
        self.free = {1 << position: max(0, free) for position, free in enumerate(row.base[column])}
        for each in row.classes:
            if each.column == column:
                self.size[each.zones] = self.size.get(each.zones, 0) + each.size
                self.free[each.zones] = self.free.get(each.zones, 0) + each.free
        homeless = row.homeless.get(column, 0)
        # Devices of zones that the machine does not have are charged as homeless ones.
        self.free = {zones: free if zones else max(0, free + min(0, homeless)) for zones, free in self.free.items()}
        self.had = dict(self.free)
        self.homeless = self.had_homeless = max(0, homeless)
        self.open = [entry for entry in row.entries if entry.column == column]
        """Taken in classes that are not known, by others and then by the pod's own containers."""
        self.others = len(self.open)
        self.left: list[DeviceShare] = []
        """What the pod's init containers hold and its next container takes over."""

    @property
    def has_topology(self) -> bool:
        return bool(self.size)

    @property
    def has_choice(self) -> bool:
        """Whether free devices differ in where they lie."""
        return len(self._free_classes(-1)) > 1

    # What is free

    def lo(self, mask: int) -> int:
        return self._known(mask) - (touching(self.open, mask) if self.open else 0)

    def hi(self, mask: int) -> int:
        return self._known(mask) - (inside(self.open, mask) if self.open else 0)

    def _known(self, mask: int) -> int:
        return sum([free for zones, free in self.free.items() if zones & mask])

    @property
    def total_lo(self) -> int:
        return self.homeless + sum(self.free.values()) - sum(entry.amount for entry in self.open)

    @property
    def total_hi(self) -> int:
        return self.homeless + sum(self.free.values()) - sum(entry.amount for entry in self.open if entry.certain)

    @property
    def held(self) -> int:
        return sum(share.count for share in self.left)

    # Offering

    def listing(self, need: int) -> Listing | None:
        """The hints for the request; None: the device manager has no preference."""
        if not self.has_topology:
            return None
        must_lo, held_lo = self._surely_left()
        must_hi, held_hi = self._maybe_left()

        def certain(mask: int) -> bool:
            touched = all(zones & mask for zones in must_lo)
            return touched and self.lo(mask) + held_lo >= need and self.total_lo + self.held >= need

        def possible(mask: int) -> bool:
            touched = all(any(zones & mask for zones in classes) for classes in must_hi)
            return touched and self.hi(mask) + held_hi >= need and self.total_hi + self.held >= need

        domain = self._domain()
        zones = self._smallest(domain, need)
        known = not self.open and all(len(share.classes) == 1 for share in self.left)
        return Listing(
            wants=lambda: (self.want(need, zones),),
            domain=domain,
            smallest=zones,
            certain=certain,
            possible=certain if known else possible,
            size_unknown=self._size_unknown(domain, need, zones),
        )

    def want(self, need: int, zones: int = 0) -> Want:
        positions = range(len(self.rules.zones))
        return Want(self.column, need, zones, tuple(max(0, self.lo(1 << position)) for position in positions))

    def _size_unknown(self, domain: int, need: int, zones: int) -> bool:
        more = self.row.unknown_size.get(self.column, 0)
        return more > 0 and zones > 1 and self._smallest(domain, need - more) < zones

    def _smallest(self, domain: int, need: int) -> int:
        return smallest(domain, (tuple(self.size.items()),), (need,))

    def _domain(self) -> int:
        hosting = reduce(or_, self.size, 0)
        return hosting if hosting and self.rules.minor >= HINTS_OVER_DEVICE_ZONES else self.rules.every_zone

    def _surely_left(self) -> tuple[list[int], int]:
        """Classes that a mask has to touch wherever the left devices are, and how many of them count at least."""
        must = [zones for share in self.left for zones in share.classes if zones != HOMELESS]
        return must, sum(share.count for share in self.left if HOMELESS not in share.classes)

    def _maybe_left(self) -> tuple[list[frozenset[int]], int]:
        """Of each of these a mask has to touch a class; and how many left devices count at most."""
        placed = [share for share in self.left if share.classes != {HOMELESS}]
        return [each.classes for each in placed if HOMELESS not in each.classes], sum(each.count for each in placed)

    # Taking

    def take(self, count: int, alignment: Alignment, role: Role) -> None:
        """Give a container its devices, as the device manager would (kubelet spec 7.3)."""
        if self.column in self.row.broken:
            raise Refuses(Cause.NO_HEALTHY_DEVICE, (self.want(count),))
        again = min(count, self.held)
        fresh = self._taken(count - again, alignment) if count > again else []
        if role is Role.INIT:
            self.left += fresh
        elif again:
            self._take_over(again)

    def promise(self, count: int) -> None:
        """Charges devices that the kubelet allocates when a container starts, from any zone."""
        zones = reduce(or_, self.size, 0)
        if count:
            self.open.append(Entry(self.column, count, zones, certain=not self.homeless))

    def _take_over(self, again: int) -> None:
        if again == self.held:
            self.left = []
            return
        classes = frozenset().union(*(share.classes for share in self.left))
        self.left = [DeviceShare(self.held - again, classes)]

    def _taken(self, need: int, alignment: Alignment) -> list[DeviceShare]:
        trusted = alignment.trusted and self.has_topology
        if not trusted and self.total_hi < need:
            raise Refuses(Cause.TOO_FEW_DEVICES, (self.want(need),))
        if not trusted and self.total_lo < need:
            raise Unsure(Cause.UNSETTLED_PODS, (self.want(need),))
        shares = list(self._shares(need, alignment, trusted=trusted))
        for share in shares:
            self._charge(share)
        return shares

    def _shares(self, need: int, alignment: Alignment, *, trusted: bool) -> Iterator[DeviceShare]:
        """Aligned devices before all others; inside each of the two any choice is possible."""
        exact = not self.open and len(alignment.masks) < 2 and alignment.known
        aligned = self._free_classes(alignment.union if alignment.masks and self.has_topology else 0)
        every = self._free_classes(-1)
        if not exact:
            yield from self._chosen(need, aligned if trusted and aligned else every)
            return
        first = min(need, sum(map(self._count, aligned)))
        yield from self._chosen(first, aligned)
        yield from self._chosen(need - first, every - aligned)

    def _free_classes(self, mask: int) -> frozenset[int]:
        """Classes with a free device that touch the mask; -1: all there are."""
        found = {zones for zones, free in self.free.items() if free and (zones & mask or mask == -1)}
        return frozenset(found | {HOMELESS} if mask == -1 and self.homeless else found)

    def _count(self, each: int) -> int:
        return self.homeless if each == HOMELESS else self.free[each]

    def _chosen(self, count: int, classes: frozenset[int]) -> Iterable[DeviceShare]:
        if not count:
            return ()
        if not self.open and count == sum(map(self._count, classes)):
            return [DeviceShare(self._count(each), frozenset({each})) for each in sorted(classes)]
        return [DeviceShare(count, classes)]

    def _charge(self, share: DeviceShare) -> None:
        (one, *more) = share.classes
        if more:
            zones = reduce(or_, (each for each in share.classes if each != HOMELESS), 0)
            self.open.append(Entry(self.column, share.count, zones, certain=HOMELESS not in share.classes))
        elif one == HOMELESS:
            self.homeless -= share.count
        else:
            self.free[one] -= share.count

    # What is left

    def charges(self) -> Iterator[Entry]:
        """What the pod holds when it has been admitted; init containers keep theirs as long as the pod lives."""
        for zones, free in self.free.items():
            if free < self.had[zones]:
                yield Entry(self.column, self.had[zones] - free, zones)
        if self.homeless < self.had_homeless:
            yield Entry(self.column, self.had_homeless - self.homeless, 0)
        yield from self.open[self.others :]

    def chosen_blindly(self) -> bool:
        return len(self.open) > self.others
