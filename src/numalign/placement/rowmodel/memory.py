"""The memory of one row while a pod is evaluated on it: what the memory manager would offer, and what it would bind.

Amounts of all types are looked at together, with the groups that blocks of memory bind zones into (engine spec 3 and
5). What plain init containers leave is known exactly, mask by mask. Where blocks lie somewhere in several zones, a mask
counts for certain only if it has room and is permitted wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator

from numalign.kubelet.demand import Role
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.requests import Amounts as Request
from numalign.placement.columns.resources import MEMORY
from numalign.placement.rowmodel import merge, state
from numalign.placement.rowmodel.causes import Cause, Refuses, Unsure, Want
from numalign.placement.rowmodel.merge import Alignment, Listing
from numalign.placement.rowmodel.state import RowState, by_zone, inside, smallest, total, touching


class MemoryBlock:
    """Memory of one type that a container holds in one of several masks; what init containers hold may shrink."""

    def __init__(self, column: int, masks: tuple[int, ...], size: int, *, initial: bool) -> None:
        self.column = column
        self.masks = masks
        self.size = size
        self.initial = initial

    def entry(self) -> Entry:
        union = 0
        for mask in self.masks:
            union |= mask
        sizes = {mask.bit_count() for mask in self.masks}
        return Entry(self.column, self.size, union, span=sizes.pop() if len(sizes) == 1 else 0)


class MemoryPool:
    """Memory that a pod can have, from its first container to its last."""

    def __init__(self, row: RowState) -> None:
        self.row = row
        self.rules = row.rules
        self.free = {column: [max(0, free) for free in row.base[column]] for column in row.memory}
        self.groups = row.groups or state.grouped(len(row.rules.zones), ())
        self.open = [entry for entry in row.entries if entry.column in row.memory]
        """What lies in zones that are not known, of others and then of the pod's own containers."""
        self.others = len(self.open)
        self.unknown_groups = self._unknown_groups()
        self.reusable: dict[tuple[int, int], int] = {}
        """By mask and column what the pod's init containers leave."""
        self.lent_somewhere = False
        """Whether init containers leave memory in a mask that is not known."""
        self.blocks: list[MemoryBlock] = []

    def _unknown_groups(self) -> int:
        """Zones that may be in a group: where the groups are not known, all as soon as memory is in use, or may be.
        Blocks are taken from their first zone on, so that the others may look untouched (engine spec R8 says less)."""
        if self.row.groups is not None or self.rules.policy == "single-numa-node":
            return 0
        tables = ((self.row.size[column], free) for column, free in self.free.items())
        in_use = any(left < size for sizes, free in tables for size, left in zip(sizes, free, strict=True))
        return self.rules.every_zone if in_use or self.open else 0

    # What is free and permitted

    def lo(self, column: int, mask: int) -> int:
        taken = touching(self._open(column), mask) if self.open else 0
        return total(self.free[column], mask) - taken

    def hi(self, column: int, mask: int) -> int:
        taken = inside(self._open(column), mask) if self.open else 0
        return total(self.free[column], mask) - taken

    def _open(self, column: int) -> Iterator[Entry]:
        return (entry for entry in self.open if entry.column == column)

    def has_room(self, request: Request, mask: int) -> bool:
        """Room by amounts, whatever is unknown, without what init containers leave."""
        return all(self.lo(column, mask) >= need for column, need in request)

    def permits(self, mask: int) -> bool:
        """Whether groups allow a block here, as far as they are known."""
        if mask & (mask - 1) == 0:
            return self.groups.cells[mask.bit_length() - 1] == mask
        return self.coherent(mask)

    def coherent(self, mask: int) -> bool:
        busy = mask & self.groups.busy
        return not busy or all(cell == mask for position, cell in enumerate(self.groups.cells) if busy >> position & 1)

    def surely_permits(self, mask: int) -> bool:
        """Whether groups allow a block here, wherever blocks lie that are not known exactly."""
        if self.rules.policy == "single-numa-node":
            return self.permits(mask)
        single = mask & (mask - 1) == 0
        doubtful = any(entry.zones & mask and not (single and entry.span == 1) for entry in self.open)
        return not doubtful and not mask & self.unknown_groups and self.permits(mask)

    @property
    def _has_groups(self) -> bool:
        """Whether memory in use keeps the Memory Manager from combining or separating some zones."""
        return bool(self.groups.busy)

    @property
    def is_known(self) -> bool:
        return not self.open and not self.unknown_groups

    # Offering

    def listing(self, request: Request) -> Listing:
        self._require_known(request)
        zones = self._smallest(request)

        def certain(mask: int) -> bool:
            return self._suits(request, mask)

        def possible(mask: int) -> bool:
            return self._may_suit(request, mask)

        def without_groups(mask: int) -> bool:
            return self._has_amounts(request, mask)

        return Listing(
            wants=lambda: self.wants(request, zones),
            domain=self.rules.every_zone,
            smallest=zones,
            certain=certain,
            possible=certain if self.is_known else possible,
            lists=len(request),
            drops_out=True,
            without_groups=without_groups if self._has_groups else None,
        )

    def wants(self, request: Request, zones: int = 0) -> tuple[Want, ...]:
        positions = range(len(self.rules.zones))
        return tuple(
            Want(column, need, zones, tuple(max(0, self.lo(column, 1 << position)) for position in positions))
            for column, need in request
        )

    def _smallest(self, request: Request) -> int:
        sizes = tuple(by_zone(self.row.size[column]) for column, _ in request)
        return smallest(self.rules.every_zone, sizes, tuple(need for _, need in request))

    def _suits(self, request: Request, mask: int) -> bool:
        return self._has_amounts(request, mask) and self.surely_permits(mask)

    def _has_amounts(self, request: Request, mask: int) -> bool:
        """Whether amounts suffice for certain, no matter what memory groups permit."""
        return all(self.lo(column, mask) >= self._lacking(column, mask, need) for column, need in request)

    def _may_suit(self, request: Request, mask: int) -> bool:
        return all(self.hi(column, mask) >= self._lacking(column, mask, need) for column, need in request) and (
            self.permits(mask)
        )

    def _lacking(self, column: int, mask: int, need: int) -> int:
        """What has to be free besides what init containers leave; more than there is where the zones are too small."""
        left = self.reusable.get((mask, column), 0)
        return need - left if not left or total(self.row.size[column], mask) >= need else need

    def _require_known(self, request: Request) -> None:
        """A type that the node does not report crashes the kubelet (kubelet spec 6.1)."""
        if any(column not in self.free for column, _ in request):
            raise Unsure(Cause.MEMORY_TYPE_UNKNOWN)
        if self.lent_somewhere:
            raise Unsure(Cause.UNSETTLED_PODS)

    # Binding

    def take(self, request: Request, alignment: Alignment, role: Role) -> None:
        """Give a container its memory, as the memory manager would (kubelet spec 6.4)."""
        self._require_known(request)
        if self.is_known and alignment.known and len(alignment.masks) < 2:
            masks: tuple[int, ...] = (self._placed(request, alignment),)
        else:
            masks = self._possible_places(request, alignment)
        for column, need in request:
            self._bind(MemoryBlock(column, masks, need, initial=role is Role.INIT))

    def take_nothing(self, alignment: Alignment) -> None:
        """Before 1.37 a container that asks for no memory goes through the same checks (kubelet spec 6.2)."""
        if not alignment.masks:
            raise Refuses(Cause.TOO_LITTLE_MEMORY)
        if not alignment.known or not all(self._surely_coherent(mask) for mask in alignment.masks):
            raise (Refuses if self.is_known and alignment.known else Unsure)(Cause.MEMORY_GROUP)

    def _placed(self, request: Request, alignment: Alignment) -> int:
        """The zones that will hold the memory, found from the one mask of the alignment."""
        preferred = alignment.preferred
        if alignment.masks:
            mask = alignment.masks[0]
        else:
            mask = self._narrowest(request, 0, preferred=preferred)
            preferred = mask.bit_count() == self._smallest(request)
        if not self.has_room(request, mask):
            mask = self._narrowest(request, mask, preferred=preferred)
        if mask & (mask - 1) and not self.coherent(mask):
            raise Refuses(Cause.MEMORY_GROUP, self.wants(request), mask)
        return mask

    def _narrowest(self, request: Request, including: int, *, preferred: bool) -> int:
        if all(column != MEMORY for column, _ in request):
            raise Unsure(Cause.MEMORY_TYPE_UNKNOWN)
        wider = (mask for mask in merge.by_width(self.rules) if mask & including == including)
        found = next((mask for mask in wider if self._suits(request, mask)), None)
        if found is None or (preferred and found.bit_count() != self._smallest(request)):
            raise Refuses(self._shortage(request, including, found), self.wants(request), including)
        return found

    def _shortage(self, request: Request, including: int, found: int | None) -> Cause:
        """The cause where the Memory Manager uses no mask: groups, if one would do by its amounts alone.

        `found`: a mask that has room, but is wider than the alignment permits. The policies that accept only preferred
        hints accept no mask wider than the smallest either."""
        narrow = found is not None or self.rules.policy in ("restricted", "single-numa-node")
        size = self._smallest(request)
        masks = (mask for mask in merge.by_width(self.rules) if mask & including == including)
        allowed = (mask for mask in masks if not narrow or mask.bit_count() == size)
        grouped = self._has_groups and any(self._has_amounts(request, mask) for mask in allowed)
        return Cause.MEMORY_GROUP if grouped else Cause.TOO_LITTLE_MEMORY

    def _possible_places(self, request: Request, alignment: Alignment) -> tuple[int, ...]:
        """Every mask that may hold the memory, where not everything is known."""
        if not alignment.known:
            raise Unsure(Cause.UNSETTLED_PODS, self.wants(request))
        masks = alignment.masks or self._narrowest_possible(request, preferred=alignment.preferred)
        if alignment.holds_memory and not self.reusable:
            return masks
        if all(self.has_room(request, mask) and self._surely_coherent(mask) for mask in masks):
            return masks
        raise Unsure(Cause.UNSETTLED_PODS, self.wants(request))

    def _narrowest_possible(self, request: Request, *, preferred: bool) -> tuple[int, ...]:
        before: list[int] = []
        for mask in merge.by_width(self.rules):
            if self._suits(request, mask):
                if preferred and mask.bit_count() != self._smallest(request):
                    break
                return *before, mask
            if self._may_suit(request, mask):
                before.append(mask)
        raise (Unsure(Cause.UNSETTLED_PODS, self.wants(request)) if before else Refuses(Cause.TOO_LITTLE_MEMORY))

    def _surely_coherent(self, mask: int) -> bool:
        return mask & (mask - 1) == 0 or self.surely_permits(mask)

    def _bind(self, block: MemoryBlock) -> None:
        if len(block.masks) > 1:
            self.open.append(block.entry())
            self.lent_somewhere = self.lent_somewhere or block.initial
        else:
            key = block.masks[0], block.column
            left = self.reusable.get(key, 0)
            state.drain(self.free[block.column], key[0], max(0, block.size - left))
            self.groups = state.bound(self.groups, key[0])
            self._write_off(block)
            if block.initial or left:
                self.reusable[key] = max(left, block.size) if block.initial else max(0, left - block.size)
        self.blocks.append(block)

    def _write_off(self, block: MemoryBlock) -> None:
        """Subtracts what a container reuses from the blocks of earlier init containers (kubelet spec 6.5)."""
        unclaimed = block.size
        for earlier in self.blocks:
            if earlier.initial and earlier.column == block.column and earlier.masks == block.masks:
                claimed = min(earlier.size, unclaimed)
                earlier.size -= claimed
                unclaimed -= claimed

    # What is left

    def charges(self, *, initial: bool) -> Iterator[Entry]:
        """What the pod holds: its init containers until a later one starts, or the others for good."""
        return (block.entry() for block in self.blocks if block.size and block.initial is initial)
