"""The memory manager's groups after pods came and went since the report.

`nodeledger` asks for every row. Under single-numa-node no group can arise, and the report's groups stand. Under other
policies, pods that the report does not cover bind zones on top of it, in the order of their binding. Once a covered pod
has ended, groups follow from the blocks that remain (engine spec R5). The same goes for a node that reports no groups,
if its amounts are those of the pods on it. Blocks whose zones are not certain are entries of the row, and the row model
takes the doubt from there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from numalign.placement.columns import zonesets
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.nodefacts import Groups, RowFacts
from numalign.placement.columns.resources import Resources
from numalign.placement.ledger import charges
from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.ledger.podrecord import PodRecord
from numalign.placement.reports import supplies
from numalign.placement.rowmodel import state


def groups(
    facts: RowFacts,
    records: Iterable[PodRecord],
    resources: Resources,
    *,
    perhaps_free: Iterable[Entry] = (),
    pending: bool = True,
) -> Groups | None:
    """The memory groups, with pending pods or without. None: not known, or the Memory Manager is off.

    `perhaps_free`: amounts that the report has of pods that may have ended, and their groups with them."""
    found = facts.groups
    if facts.rules.policy == "single-numa-node" or not facts.rules.static_memory:
        return found
    if any(_is_memory(entry, resources) for entry in perhaps_free):
        return None
    shown, ended, later = _sorted(records)
    if found is None:
        lingering = [record for record in records if record.life is PodLife.LINGERING]
        found = _from_pods(facts, shown, [*ended, *later, *lingering], resources)
    elif any(_memory(record, resources) for record in ended):
        found = _remaining(len(facts.rules.zones), shown, resources)
    for record in later:
        for entry in _memory(record, resources) if found and (pending or not record.is_pending) else ():
            found = state.bound(found, entry.zones) if found and _is_block(entry) else found
    return found


def _sorted(records: Iterable[PodRecord]) -> tuple[list[PodRecord], list[PodRecord], list[PodRecord]]:
    """Pods whose blocks the report's groups contain, ended pods, and pods that the report does not cover."""
    shown: list[PodRecord] = []
    ended: list[PodRecord] = []
    later: list[PodRecord] = []
    for record in records:
        if record.life is PodLife.LIVE and not record.absent:
            (shown if record.cover is Cover.YES else later).append(record)
        elif record.cover is Cover.YES and record.life is not PodLife.LINGERING:
            ended.append(record)
    later.sort(key=lambda record: record.order)
    return shown, ended, later


def _from_pods(
    facts: RowFacts, shown: Sequence[PodRecord], others: Sequence[PodRecord], resources: Resources
) -> Groups | None:
    """Groups of a node that reports none (engine spec R8): those of its pods, if these explain what is in use.

    `others`: pods that the report may also cover, or may not cover any more."""
    found = _remaining(len(facts.rules.zones), shown, resources)
    if found is None:
        return None
    stock = facts.supplies.stock
    for place, name in enumerate(stock.names):
        if not supplies.is_memory(name):
            continue
        column = resources.column(name)
        offered, left = stock.of(place, stock.allocatable), stock.of(place, facts.supplies.free)
        for cell in {*found.cells}:
            used = sum(offered[at] - left[at] for at in zonesets.positions(cell))
            least = _held(shown, column, cell, resources)
            if not least <= used <= least + _held(others, column, cell, resources):
                return None
    return found


def _held(records: Iterable[PodRecord], column: int, zones: int, resources: Resources) -> int:
    entries = (entry for record in records for entry in _memory(record, resources))
    return sum(entry.amount for entry in entries if entry.column == column and entry.zones & zones)


def _remaining(zones: int, shown: Sequence[PodRecord], resources: Resources) -> Groups | None:
    held: set[int] = set()
    for record in shown:
        entries = _memory(record, resources)
        if record.holding is None or not all(map(_is_block, entries)):
            return None
        held.update(entry.zones for entry in entries)
    # The later of two overlapping blocks decides, and their order is not known.
    if any(one != other and one & other for one in held for other in held):
        return None
    return state.grouped(zones, held)


def _memory(record: PodRecord, resources: Resources) -> list[Entry]:
    entries = record.holding.entries if record.holding else ()
    return [entry for entry in entries if entry.zones and _is_memory(entry, resources)]


def _is_memory(entry: Entry, resources: Resources) -> bool:
    return supplies.is_memory(resources.names[entry.column])


def _is_block(entry: Entry) -> bool:
    return entry.is_exact or charges.is_block(entry)
