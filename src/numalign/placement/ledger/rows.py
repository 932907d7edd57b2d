"""Converts the ledger's row into the forms in which rows are evaluated: the row model's, and numbers for arrays.

`sync` and `commit` call these functions whenever a node changed. A row is loose if kernels cannot decide it from
numbers: charges known as intervals, devices of several zones, sizes or memory groups that the report leaves open
(engine spec 9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from msgspec import structs

from numalign.api.objects import resourcenames
from numalign.placement.columns.columns import NONE_PENDING, NOT_EXACT, SEVERAL_SHAPES, FreeRow
from numalign.placement.columns.holdings import Holding, Source
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.noderules import FULL_CORES
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.ledger.nodeledger import Row
from numalign.placement.rowmodel import state as rowstate
from numalign.placement.rowmodel.state import Amounts, RowState

MOST_KNOWN: Final = 8192


def charged(row: Row, resources: Resources) -> RowState:
    """The row with every known pod charged."""
    state = rowstate.of(row.facts, resources, base=_by_column(row.free, row.width), entries=row.entries)
    return structs.replace(state, groups=row.groups, homeless=_present(row.homeless))


def settled(row: Row, resources: Resources) -> RowState:
    """The row without pending pods."""
    base = _by_column(row.settled, row.width)
    state = rowstate.of(row.facts, resources, base=base, entries=row.settled_entries)
    return structs.replace(state, groups=row.settled_groups, homeless=_present(row.settled_homeless))


def with_pending(row: Row, holding: Holding, revised: Iterable[Holding], resources: Resources) -> Row:
    """The row with one more pending pod, and with the changed holdings of others."""
    changed = {each.uid: each for each in revised}
    pending = (*[changed.get(each.uid, each) for each in row.pending], holding)
    state = settled(row, resources) if changed else charged(row, resources)
    for each in pending if changed else (holding,):
        state = rowstate.charged(state, each.entries)
    return structs.replace(
        row,
        free=_table(row, row.free, state),
        homeless=_homeless(row, state),
        entries=state.entries,
        groups=state.groups,
        pending=pending,
    )


def with_settled(row: Row, holding: Holding, resources: Resources) -> Row:
    """The row with one more pod that has been admitted and stays where it is."""
    free, left = rowstate.charged(charged(row, resources), holding.entries), settled(row, resources)
    left = rowstate.charged(left, holding.entries)
    return structs.replace(
        row,
        free=_table(row, row.free, free),
        homeless=_homeless(row, free),
        entries=free.entries,
        groups=free.groups,
        settled=_table(row, row.settled, left),
        settled_homeless=_homeless(row, left),
        settled_entries=left.entries,
        settled_groups=left.groups,
    )


def free_state(row: Row) -> FreeRow:
    """The row as numbers for the columns, made directly because most rows need no row state."""
    facts = row.facts
    reported = facts.supplies.free_of(resourcenames.CPU)
    cpus = tuple(row.free[CPU :: row.width]) if reported else ()
    untouched = cpus == reported
    return FreeRow(
        free=row.free,
        settled=row.settled,
        homeless=row.homeless,
        groups=row.groups,
        full_core_cpus=_on_full_cores(facts, None if untouched else (reported, cpus)),
        split_known=_split_known(facts, untouched=untouched),
        loose=is_loose(row),
        pending_shape=pending_shape(row.pending),
    )


def pending_shape(pending: Sequence[Holding]) -> int:
    """The shape of the pending pods. Pods that get the same zones in any order, and equal pods, are exact."""
    if not pending:
        return NONE_PENDING
    if any(not entry.is_exact for each in pending for entry in each.entries) or any(
        each.unsteady or each.source is not Source.PREDICTED for each in pending
    ):
        return NOT_EXACT
    shapes = {each.shape for each in pending}
    if len(shapes) == 1:
        return pending[0].shape
    groups = {each.shape for each in pending if each.interchangeable}
    return SEVERAL_SHAPES if len(groups) <= 1 else NOT_EXACT


def is_loose(row: Row) -> bool:
    facts, rules = row.facts, row.facts.rules
    if row.entries or facts.classes or not rules.fits_arrays or rowstate.broken(facts):
        return True
    if rules.policy == "single-numa-node":
        return False
    sizes_open = bool(facts.unknown_size) and rules.policy != "none"
    return sizes_open or (rules.static_memory and row.groups is None)


def _on_full_cores(facts: RowFacts, moved: tuple[Amounts, Amounts] | None) -> int:
    """Free CPUs on full cores; -1: not known. `moved`: reported and current free CPUs by position, if they differ."""
    full = facts.free_full_core_cpus
    if full is None or moved is None:
        return -1 if full is None else full
    least, most = rowstate.on_full_cores((full, full), *moved) or (-1, -1)
    return least if least == most else -1


def _split_known(facts: RowFacts, *, untouched: bool) -> bool:
    """Whether no core is partly free. With full-pcpus-only that remains true while pods start and end."""
    if facts.rules.threads_per_core == 1:
        return True
    known = facts.cores if untouched or FULL_CORES in facts.rules.cpu_options else None
    return known is not None and _are_whole(known)


@lru_cache(maxsize=MOST_KNOWN)
def _are_whole(cores: tuple[tuple[int, ...], ...]) -> bool:
    """By position: cores with t free threads, t from 1. Cached: nodes of one hardware type have few such counts."""
    return not any(any(zone[:-1]) for zone in cores)


def _by_column(table: Sequence[int], width: int) -> dict[int, Amounts]:
    return {column: tuple(table[column::width]) for column in range(width)} if table else {}


def _table(row: Row, before: Sequence[int], state: RowState) -> list[int]:
    found = list(before)
    for column, amounts in state.base.items():
        if column < row.width:
            found[column :: row.width] = amounts
    return found


def _homeless(row: Row, state: RowState) -> list[int]:
    return [state.homeless.get(column, 0) for column in range(row.width)]


def _present(amounts: Sequence[int]) -> dict[int, int]:
    return {column: amount for column, amount in enumerate(amounts) if amount}
