"""Places a pod on the chosen row such that its kubelet admits it in whatever order pods arrive there.

`committer` calls `place`. Pods that were bound and not yet reported are pending: the kubelet may admit them in any
order, and the new pod before, between or after them (engine spec R2). Mostly order does not matter, which shows when
the pod is tried first and last; else `anyorder` looks for places that hold in every order. Where ids decide, the
kubelet model is asked (R9). Nothing is written here: the ledger takes the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from msgspec import Struct, structs

from numalign.placement.columns.holdings import Entry, Holding
from numalign.placement.columns.noderules import FULL_CORES
from numalign.placement.columns.requests import Program
from numalign.placement.commit import anyorder
from numalign.placement.rowmodel import evaluate, state
from numalign.placement.rowmodel.causes import Cause, Shortfall
from numalign.placement.rowmodel.evaluate import RowVerdict, Verdict
from numalign.placement.rowmodel.state import RowState

ProgramOf = Callable[[int], Program | None]
"""Shape number to program; None for a shape that is not known."""


Spots = frozenset[tuple[tuple[int, int, bool], int]]


class Path(StrEnum):
    """How a placement was found; the engine counts placements by path."""

    ALONE = "alone"
    SAME_SHAPE = "same-shape"
    """Equal pods may get each other's zones; their sum is the same."""
    EITHER_WAY = "either-way"
    """The pod gets the same zones as the first and as the last."""
    ANY_ORDER = "any-order"
    BIND_ORDER = "bind-order"
    KUBELET_MODEL = "kubelet-model"


class Placement(Struct, frozen=True, kw_only=True):
    """The verdict, and the changes that it implies for pending pods."""

    verdict: RowVerdict
    path: Path
    interchangeable: bool = False
    """Whether the pod may get the zones of pending pods of its shape."""
    revised: tuple[Holding, ...] = ()
    """Pending pods whose holdings change."""


class Newcomer(Struct, frozen=True):
    """The pod to place: its shape, and the kubelet model's answer for where amounts do not decide, if there is one.

    The model has all pending pods admitted, in the order of their binding."""

    shape: int
    ask: Callable[[], RowVerdict] | None = None


def place(
    settled: RowState,
    pending: Sequence[Holding],
    newcomer: Newcomer,
    program_of: ProgramOf,
    *,
    trust_bind_order: bool = False,
) -> Placement:
    """Places a pod on a row. `settled`: the row without pending pods; `pending`: those in order of their binding."""
    program = program_of(newcomer.shape)
    assert program is not None, "the engine made this shape's program to get here"
    alike = _are_alike(pending, newcomer.shape)
    if alike or trust_bind_order:
        return _in_bind_order(settled, pending, newcomer, program)
    first = evaluate.evaluate(settled, program)
    if not first.fits:
        return Placement(verdict=first, path=Path.ANY_ORDER)
    fixed = _either_way(settled, pending, newcomer.shape, program_of)
    if fixed is not None:
        return _among_equals(fixed, Path.EITHER_WAY, pending, newcomer.shape)
    found = anyorder.place(settled, pending, program, program_of)
    if found is None:
        doubt = Shortfall(cause=Cause.UNSETTLED_PODS)
        return Placement(verdict=RowVerdict(code=Verdict.NOT_CERTAIN, shortfall=doubt), path=Path.ANY_ORDER)
    return Placement(verdict=found.verdict, path=Path.ANY_ORDER, revised=found.revised)


def _in_bind_order(settled: RowState, pending: Sequence[Holding], newcomer: Newcomer, program: Program) -> Placement:
    alike = _are_alike(pending, newcomer.shape)
    path = (Path.SAME_SHAPE if alike else Path.BIND_ORDER) if pending else Path.ALONE
    verdict = evaluate.evaluate(_everybody(settled, pending), program)
    if verdict.code is Verdict.NOT_DECIDED and newcomer.ask is not None and not settled.entries:
        verdict, path = newcomer.ask(), Path.KUBELET_MODEL
    if not alike:
        return Placement(verdict=verdict, path=path)
    return _among_equals(verdict, path, pending, newcomer.shape)


def _are_alike(pending: Iterable[Holding], shape: int) -> bool:
    """Whether all pods have this shape and their sum is known."""
    return all(each.shape == shape and not each.promised for each in pending)


def _among_equals(verdict: RowVerdict, path: Path, pending: Sequence[Holding], shape: int) -> Placement:
    """Marks pods of one shape that got different zones only because of their order."""
    alike = [each for each in pending if each.shape == shape]
    mixed = verdict.fits and any(not _is_same(each, verdict) for each in alike)
    revised = [structs.replace(each, interchangeable=True) for each in alike if mixed and not each.interchangeable]
    interchangeable = mixed or any(each.interchangeable for each in alike)
    return Placement(verdict=verdict, path=path, interchangeable=interchangeable, revised=tuple(revised))


def _is_same(holding: Holding, verdict: RowVerdict) -> bool:
    aligned = tuple(each.possible for each in holding.containers)
    return aligned == verdict.possible and _spots(holding.entries) == _spots(verdict.everything)


def _everybody(settled: RowState, pending: Iterable[Holding]) -> RowState:
    row = settled
    for each in pending:
        row = state.charged(row, each.entries)
    return row


def _either_way(settled: RowState, pending: Sequence[Holding], shape: int, program_of: ProgramOf) -> RowVerdict | None:
    """The new pod's verdict, if no order changes it or the verdicts of pending pods.

    The less is free, the fewer masks have room, so a pod that gets the same mask with none and with all of the others
    on the row gets it always. Pods of one shape form a chain: the one that comes first takes the first place. A
    chain that is the same on the row alone as it is now stays so while there is room for all of them at once."""
    by_shape: dict[int, list[Holding]] = {shape: []}
    for each in pending:
        by_shape.setdefault(each.shape, []).append(each)
    ends = {number: _chain(settled, alike, program_of(number)) for number, alike in by_shape.items()}
    own, program = ends[shape], program_of(shape)
    if own is None or program is None or any(end is None for end in ends.values()):
        return None
    first, last = evaluate.evaluate(own, program), evaluate.evaluate(_everybody(settled, pending), program)
    if not (first.fits and last.fits and last.steady) or first.possible != last.possible:
        return None
    if first.everything != last.everything or not _has_room(_everybody(settled, pending), last):
        return None
    return last


def _chain(settled: RowState, alike: Sequence[Holding], program: Program | None) -> RowState | None:
    """The row with these pods only, if they get there what they are charged with now and amounts do not matter."""
    row, places = settled, []
    for _ in alike:
        verdict = None if program is None else evaluate.evaluate(row, program)
        if verdict is None or not verdict.fits or not verdict.steady:
            return None
        places.append(_spots(verdict.everything))
        row = state.charged(row, verdict.everything)
    same = Counter(places) == Counter(_spots(each.entries) for each in alike)
    return row if same else None


def _spots(entries: Sequence[Entry]) -> Spots:
    """The amounts by column and zones, however they are divided into entries."""
    amounts: Counter[tuple[int, int, bool]] = Counter()
    for entry in entries:
        amounts[entry.column, entry.zones, entry.certain] += entry.amount
    return frozenset(amounts.items())


def _has_room(row: RowState, verdict: RowVerdict) -> bool:
    """Whether all pods fit at once, wherever entries lie that are not known exactly."""
    after = verdict.after(row)
    full = after.full_core_cpus
    cores_fit = FULL_CORES not in row.rules.cpu_options or (full is not None and full[0] >= 0)
    return cores_fit and all(
        least >= 0 for column in after.base for least in _least(after, column, memory=column in after.memory)
    )


def _least(row: RowState, column: int, *, memory: bool) -> Iterable[int]:
    """What is free at least, zone by zone or group by group; negative where too much is taken."""
    base = row.base[column]
    areas = {1 << position for position in range(len(base))}
    if memory and row.groups is not None:
        areas = set(row.groups.cells)
    for area in areas:
        taken = sum(entry.amount for entry in row.entries if entry.column == column and entry.zones & area)
        yield sum(free for position, free in enumerate(base) if area >> position & 1) - taken
