"""Why a history goes another way with the product than with v0.34.7: which habits and which stalls show in it.

`judging` asks where the two differ. They are taken away one after the other, on the way from v0.34.7 to ours; what
changes an answer is a cause. What cannot be one, by the history's content, goes first and must change nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from numalign.oracle.plugin import dialect, occasions, playing
from numalign.oracle.plugin.dialect import Dialect, Habit
from numalign.oracle.plugin.occasions import Change
from numalign.oracle.plugin.playing import Script
from numalign.placement.reference.caches.repairs import Repair

ENTRIES: Final[Mapping[Change, str]] = {
    **{repair: f"cache-{repair}" for repair in Repair},
    Habit.EVERY_DEVICE: "difference 3",
    Habit.INIT_CONTAINERS: "difference 4",
    Habit.RESERVE_UNMARKS: "difference 5",
    Habit.OLD_CLASSES: "difference 7",
}
"""In docs/compatibility-caches.md and docs/oracle-reference.md. Defects of Filter and Score have rules of their own."""


class Cause(Struct, frozen=True):
    entry: str
    possible: bool


def of(old: Script, new: Script) -> Iterator[Cause]:
    """`old` and `new`: the same history, with classes of pods as v0.34.7 and as the product computes them."""
    possible = {change: occasions.given(change, old, new) for change in ENTRIES}
    left_out = [change for change in possible if not possible[change]]
    manner = without(dialect.V0_34_7, left_out)
    before, after = (_said(old, new, each) for each in (dialect.V0_34_7, manner))
    if before != after:
        yield Cause(", ".join(ENTRIES[change] for change in left_out), possible=False)
    for change in filter(possible.__getitem__, possible):
        manner, before = without(manner, [change]), after
        after = _said(old, new, manner)
        if before != after:
            yield Cause(ENTRIES[change], possible=True)


def without(manner: Dialect, changes: Collection[Change]) -> Dialect:
    """Habits are given up, stalls are mended."""
    mended = [change for change in changes if isinstance(change, Repair)]
    return Dialect(manner.habits.difference(changes), manner.repairs.union(mended))


def _said(old: Script, new: Script, manner: Dialect) -> list[Any]:
    told = old if Habit.OLD_CLASSES in manner.habits else new
    return [answer.said for answer in playing.play(told, manner)]
