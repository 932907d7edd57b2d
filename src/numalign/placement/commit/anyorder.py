"""Finds places for several pods that hold in every order of their admission (engine spec R2).

`place` calls this module when order matters. A few pods are tried in all their orders. With more of them, every pod is
evaluated with all the others as charges that may be there or not, wherever they may be. The result widens those
charges, until nothing changes any more. Either way each pod is admitted within its masks in any order. One pod that is
not certain makes the whole set uncertain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, structs

from numalign.placement.columns.holdings import ContainerZones, Entry, Holding
from numalign.placement.columns.requests import Program
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.evaluate import RowVerdict
from numalign.placement.rowmodel.state import RowState

FEW = 4
"""Pods up to which all orders are tried: that is exact, and for four pods 64 evaluations."""
ROUNDS = 12
"""Rounds of widening. Masks only grow, so the search ends; sets that need more rounds count as not certain."""

Masks = tuple[tuple[int, ...], ...]


class PendingPod(Struct):
    """A pod of the search, with the places found for it so far. Without a program its places do not change."""

    program: Program | None
    entries: tuple[Entry, ...] = ()
    possible: Masks = ()
    is_anywhere: bool = False
    """Whether the pod may be in any zone already. It must be admitted, but its places do not grow."""


class AnyOrderPlacement(Struct, frozen=True):
    """The new pod's verdict, and pending pods that may be in more places than predicted."""

    verdict: RowVerdict
    revised: tuple[Holding, ...]


def place(
    settled: RowState, pending: Sequence[Holding], program: Program, program_of: Callable[[int], Program | None]
) -> AnyOrderPlacement | None:
    """Places for the new pod that hold in every order; None: some order may leave none."""
    members = [PendingPod(program_of(each.shape), *_held(each), each.promised) for each in pending]
    members.append(PendingPod(program))
    if len(members) <= FEW and all(member.program is not None and not member.is_anywhere for member in members):
        members = [PendingPod(member.program) for member in members]
        holds = _in_all_orders(settled, members, members)
    else:
        holds = _whatever_comes_first(settled, members)
    return _found(members, pending) if holds else None


def _held(holding: Holding) -> tuple[tuple[Entry, ...], Masks]:
    return holding.entries, tuple(own.possible for own in holding.containers)


def _in_all_orders(row: RowState, members: Sequence[PendingPod], left: Sequence[PendingPod]) -> bool:
    """Tries the remaining pods in every order. Equal pods are interchangeable, so one of each kind goes first."""
    for first in {id(member.program): member for member in left}.values():
        verdict = evaluate.evaluate(row, first.program) if first.program else None
        if verdict is None or not verdict.fits:
            return False
        for member in members:
            if member.program is first.program:
                _widen(member, verdict)
        if not _in_all_orders(verdict.after(row), members, [member for member in left if member is not first]):
            return False
    return True


def _whatever_comes_first(settled: RowState, members: Sequence[PendingPod]) -> bool:
    for _ in range(ROUNDS):
        changed = False
        for member in reversed(members):
            verdict = _among(settled, members, member)
            if verdict is None:
                return False
            changed = (not member.is_anywhere and _widen(member, verdict)) or changed
        if not changed:
            return True
    return False


def _among(settled: RowState, members: Iterable[PendingPod], member: PendingPod) -> RowVerdict | None:
    """The pod's verdict with all others as charges that may be there or not; None unless it fits."""
    if member.program is None:
        return RowVerdict(code=evaluate.Verdict.FITS, possible=member.possible, entries=member.entries)
    others = (entry for other in members if other is not member for entry in other.entries)
    maybes = tuple(structs.replace(entry, certain=False) for entry in others)
    row = structs.replace(settled, entries=settled.entries + maybes, cores=None)
    verdict = evaluate.evaluate(row, member.program)
    return verdict if verdict.fits else None


def _widen(member: PendingPod, verdict: RowVerdict) -> bool:
    """Adds the places of the verdict to the places of the pod."""
    if not member.possible and not member.entries:
        entries, possible = verdict.everything, verdict.possible
    else:
        entries = _either(member.entries, verdict.everything)
        possible = tuple(
            tuple(sorted({*before, *now})) for before, now in zip(member.possible, verdict.possible, strict=True)
        )
    changed = entries != member.entries or possible != member.possible
    member.entries, member.possible = entries, possible
    return changed


def _either(before: tuple[Entry, ...], now: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Entries that cover both. Columns that did not change stay as they are."""
    found: list[Entry] = []
    for column in sorted({entry.column for entry in before + now}):
        old = [entry for entry in before if entry.column == column]
        new = [entry for entry in now if entry.column == column]
        found += old if set(new) <= set(old) else _joined(old, new)
    return tuple(found)


def _joined(old: Sequence[Entry], new: Sequence[Entry]) -> list[Entry]:
    zones, amounts = 0, []
    for entries in filter(None, (old, new)):
        amounts.append(sum(entry.amount for entry in entries))
        for entry in entries:
            zones |= entry.zones
    spans = {entry.span for entry in (*old, *new)}
    # An amount that may also lie in no zone is not certain to lie in any.
    certain = all(entry.certain and entry.zones for entry in (*old, *new)) and len(set(amounts)) == 1
    certain = certain and bool(old and new)
    span = spans.pop() if len(spans) == 1 else 0
    joined = Entry((*old, *new)[0].column, max(amounts), zones, certain, span)
    return list(old) if [joined] == list(old) else [joined]


def _found(members: Sequence[PendingPod], pending: Sequence[Holding]) -> AnyOrderPlacement:
    *others, newcomer = members
    verdict = RowVerdict(code=evaluate.Verdict.FITS, possible=newcomer.possible, entries=newcomer.entries)
    known = (_revised(holding, member) for holding, member in zip(pending, others, strict=True))
    revised = tuple(now for now, before in zip(known, pending, strict=True) if now != before)
    return AnyOrderPlacement(verdict, revised)


def _revised(holding: Holding, member: PendingPod) -> Holding:
    containers = tuple(
        ContainerZones(each.container, masks) for each, masks in zip(holding.containers, member.possible, strict=True)
    )
    return structs.replace(holding, entries=member.entries, containers=containers)
