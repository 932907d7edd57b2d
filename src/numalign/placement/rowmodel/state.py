"""One row as plain numbers: what a node's zones have and have free, as far as it is known.

`ledger.rows` makes one from a report and the ledger's charges, `evaluate` evaluates programs on it and `commit` charges
pods to it. Exact charges are inside `base`. What may lie in several zones, or may not be there at all, stays beside it
as entries; what is free is then known between `lo` and `hi` only (engine spec 9). Zones are positions, zone sets masks.
The functions below bound sums over zones and say how many zones a request takes by size; all pools share them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct, field, structs

from numalign.api.objects import resourcenames
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import Room, Supply
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.nodefacts import Groups, RowFacts
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.resources import CPU, Resources

Amounts = tuple[int, ...]
Bounds = tuple[int, int]
NOTHING: Amounts = ()


class RowClass(Struct, frozen=True):
    """Devices attached to several zones at once. Zones 0: to zones that the machine does not have."""

    column: int
    zones: int
    size: int
    free: int


class RowState(Struct, frozen=True, kw_only=True):
    """A row. Amounts are by column and then by zone position; a column that is not in `size` does not exist here."""

    rules: NodeRules
    size: Mapping[int, Amounts] = field(default_factory=dict)
    base: Mapping[int, Amounts] = field(default_factory=dict)
    homeless: Mapping[int, int] = field(default_factory=dict)
    """Free devices that lie in no zone."""
    classes: tuple[RowClass, ...] = ()
    entries: tuple[Entry, ...] = ()
    """Charges that are not in `base`, because they are not exact."""
    full_core_cpus: Bounds | None = None
    """At least and at most: free CPUs on cores without a reserved one; negative where too much is charged. None: not
    known."""
    cores: tuple[Amounts, ...] | None = None
    """By position: cores with t free threads, t from 1. None: not known any more."""
    groups: Groups | None = None
    """None: not known."""
    memory: frozenset[int] = frozenset()
    """Columns of memory types."""
    unknown_size: Mapping[int, int] = field(default_factory=dict)
    broken: frozenset[int] = frozenset()
    """Devices of which none is healthy."""

    def lo(self, column: int, mask: int) -> int:
        """What is free in these zones at least."""
        touching = sum(e.amount for e in self.entries if e.column == column and e.zones & mask)
        return max(0, self._known(column, mask) - touching)

    def hi(self, column: int, mask: int) -> int:
        """What is free in these zones at most."""
        inside = sum(
            e.amount for e in self.entries if e.column == column and e.certain and e.zones and not e.zones & ~mask
        )
        return max(0, self._known(column, mask) - inside)

    def _known(self, column: int, mask: int) -> int:
        single = sum(max(0, free) for position, free in enumerate(self.base.get(column, ())) if mask >> position & 1)
        return single + sum(each.free for each in self.classes if each.column == column and each.zones & mask)


def of(
    facts: RowFacts,
    resources: Resources,
    *,
    base: Mapping[int, Sequence[int]] | None = None,
    entries: Iterable[Entry] = (),
    groups: Groups | None = None,
) -> RowState:
    """The row of a report. `base`, `entries` and `groups` replace what it says with what the ledger knows since."""
    supplies = {resources.column(name): supply for name, supply in facts.supplies.items()}
    reported = {column: supply.free for column, supply in supplies.items()}
    row = RowState(
        rules=facts.rules,
        size={column: supply.size for column, supply in supplies.items()},
        base=reported,
        homeless={column: supply.homeless for column, supply in supplies.items() if supply.homeless},
        classes=tuple(
            RowClass(resources.column(each.resource), each.zones, each.size, each.free) for each in facts.classes
        ),
        full_core_cpus=None if facts.free_full_core_cpus is None else (facts.free_full_core_cpus,) * 2,
        cores=facts.cores,
        groups=groups or facts.groups,
        memory=frozenset(resources.column(name) for name in facts.supplies if _is_memory(name)),
        unknown_size={resources.column(name): amount for name, amount in facts.unknown_size.items()},
        broken=frozenset(map(resources.column, broken(facts))),
    )
    if base is not None:
        row = _moved(row, {column: tuple(base.get(column, free)) for column, free in reported.items()})
    return structs.replace(row, entries=tuple(entries))


def empty(facts: RowFacts, resources: Resources) -> RowState:
    """The row if there were no pod on its node. How cores lie is left open."""
    row = of(facts, resources)
    supplies = {resources.column(name): supply for name, supply in facts.supplies.items()}
    return structs.replace(
        row,
        base={column: supply.allocatable for column, supply in supplies.items()},
        homeless={column: supply.homeless_size for column, supply in supplies.items() if supply.homeless_size},
        classes=tuple(structs.replace(each, free=each.size) for each in row.classes),
        full_core_cpus=None,
        cores=None,
        groups=None if row.groups is None else grouped(len(facts.rules.zones), ()),
    )


def broken(facts: RowFacts) -> list[str]:
    """Devices of which none is healthy."""
    unhealthy = facts.supplies.stock.unhealthy
    wide = {each.resource for each in facts.classes} if unhealthy else ()
    return [name for name in unhealthy if name not in wide]


def charged(row: RowState, entries: Iterable[Entry], cores: tuple[Amounts, ...] | None = None) -> RowState:
    """The row with a pod more on it. `cores`: what the pod leaves of them, where that is known."""
    taken = list(entries)
    base = {column: list(amounts) for column, amounts in row.base.items()}
    homeless = dict(row.homeless)
    groups, beside = row.groups, list(row.entries)
    for entry in taken:
        if entry.column in row.memory and groups is not None and _is_block(entry):
            groups = bound(groups, entry.zones)
            drain(base[entry.column], entry.zones, entry.amount)
        elif not entry.is_exact:
            beside.append(entry)
        elif entry.zones:
            # A resource that the report does not list any more has nothing left that could be taken.
            if entry.column in base:
                base[entry.column][entry.zones.bit_length() - 1] -= entry.amount
        else:
            homeless[entry.column] = homeless.get(entry.column, 0) - entry.amount
    after = _moved(row, {column: tuple(amounts) for column, amounts in base.items()})
    if cores is not None:
        after = structs.replace(after, cores=cores)
    return structs.replace(after, homeless=homeless, groups=groups, entries=tuple(beside))


def grouped(zones: int, blocks: Iterable[int]) -> Groups:
    """Groups as they follow from the zone sets of all memory blocks on a node of so many zones (engine spec R5)."""
    groups = Groups(tuple(1 << position for position in range(zones)))
    for block in blocks:
        groups = bound(groups, block)
    return groups


def bound(groups: Groups, zones: int) -> Groups:
    """A block of memory binds its zones together."""
    cells = tuple(zones if zones >> position & 1 else cell for position, cell in enumerate(groups.cells))
    return Groups(cells, groups.busy | zones)


def _is_block(entry: Entry) -> bool:
    return entry.certain and (entry.is_exact or entry.span == entry.zones.bit_count())


def drain(free: list[int], zones: int, amount: int) -> None:
    """The kubelet takes a group's memory from its lowest zone first; only the sum means anything (engine spec R5)."""
    positions = [position for position in range(len(free)) if zones >> position & 1]
    for position in positions:
        part = amount if position == positions[-1] else min(amount, max(0, free[position]))
        free[position] -= part
        amount -= part


def _moved(row: RowState, base: Mapping[int, Amounts]) -> RowState:
    """The row with other free amounts; core counts are adjusted as far as possible."""
    before, after = row.base.get(CPU, NOTHING), base.get(CPU, NOTHING)
    cores = row.cores if before == after else None
    return structs.replace(row, base=base, cores=cores, full_core_cpus=on_full_cores(row.full_core_cpus, before, after))


def on_full_cores(full: Bounds | None, before: Amounts, after: Amounts) -> Bounds | None:
    """Bounds of the free CPUs on full cores after the free CPUs changed."""
    taken = sum(before) - sum(after)
    if full is None or not taken:
        return full
    # CPUs beside a reserved one are free without being on a full core; they may be the ones taken or returned.
    beside = max(0, sum(before) - full[0])
    least, most = (taken - min(taken, beside), taken) if taken > 0 else (taken, 0)
    return full[0] - most, full[1] - least


def _is_memory(name: str) -> bool:
    return name == resourcenames.MEMORY or resourcenames.is_hugepages(name)


Sizes = tuple[tuple[int, int], ...]
"""(zone set, amount) pairs, as the kubelet's rooms want them."""


def by_zone(amounts: Sequence[int]) -> Sizes:
    return tuple((1 << position, amount) for position, amount in enumerate(amounts) if amount)


@lru_cache(maxsize=1 << 14)
def smallest(domain: int, sizes: tuple[Sizes, ...], needs: tuple[int, ...]) -> int:
    """Zones that requests take together, whatever is free: what makes a mask preferred (engine spec 3)."""
    supplies = tuple(Supply(need, dict(size), {}) for size, need in zip(sizes, needs, strict=True))
    return Room(masks.members(domain), supplies).smallest


def total(amounts: Sequence[int], mask: int) -> int:
    found = 0
    while mask:
        low = mask & -mask
        found += amounts[low.bit_length() - 1]
        mask ^= low
    return found


def touching(entries: Iterable[Entry], mask: int) -> int:
    """The largest amount that entries may have in these zones."""
    return sum([entry.amount for entry in entries if entry.zones & mask])


def inside(entries: Iterable[Entry], mask: int) -> int:
    """The amount that entries certainly have in these zones."""
    return sum([entry.amount for entry in entries if entry.certain and entry.zones and not entry.zones & ~mask])


def zones_with(amounts: Sequence[int], among: int = -1) -> int:
    """The positions that have anything, among those inside."""
    return sum([1 << position for position, amount in enumerate(amounts) if amount > 0 and among >> position & 1])
