"""Finds why a history ends differently in numalign than in v0.34.7: which behaviours and which cache defects show in
it.

`judging` calls it where the two differ. The changes from v0.34.7 to numalign are applied one after the other; a
change that alters an answer is a cause. Changes that the history's content rules out are applied first and must
alter nothing."""

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
"""Entries of docs/compatibility/plugin-caches.md and docs/develop/oracle-reference.md. Defects of Filter and Score have
their own rules."""


class Cause(Struct, frozen=True):
    entry: str
    possible: bool


def of(old: Script, new: Script) -> Iterator[Cause]:
    """The causes. `old` and `new` are the same history with QoS classes as v0.34.7 and as numalign computes them."""
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
    """The dialect without these behaviours, and with these repairs."""
    mended = [change for change in changes if isinstance(change, Repair)]
    return Dialect(manner.habits.difference(changes), manner.repairs.union(mended))


def _said(old: Script, new: Script, manner: Dialect) -> list[Any]:
    told = old if Habit.OLD_CLASSES in manner.habits else new
    return [answer.said for answer in playing.play(told, manner)]
