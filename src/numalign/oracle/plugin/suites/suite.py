"""What a suite of recorded plugin cases is to the rest of this room: how to answer one, and how to compare.

Each module of this package exports `SUITES`; the package collects them, `judging` puts cases to them. A suite sees a
case as it was read, with the file's `fixtures` added. Where we differ from the recording on purpose, a `Deliberate`
says so by a rule on the input, never by a case's name, and points to its entry in docs/compatibility.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from numalign.oracle import divergence
from numalign.oracle.divergence import Difference

Case = dict[str, Any]
"""id, suite, input, expect, and the file's fixtures."""

Compare = Callable[[Any, Any], Sequence[Difference]]


def always(_: Any) -> bool:
    return True


class Deliberate(Struct, frozen=True):
    """A difference that we want: whom it concerns, by the input, and what the recording then shows."""

    anchor: str
    """The entry in docs/compatibility.md."""
    reason: str
    applies: Callable[[Any], bool]
    """Of the input: can the reference's defect show here?"""
    shows: Callable[[Case], bool] = always
    """Of the whole case: is it the defect that was recorded? A recording of anything else is a mismatch."""


def exactly(expected: Any, answered: Any) -> Sequence[Difference]:
    """Every key, item and type counts."""
    return divergence.between(divergence.canonical(expected), divergence.canonical(answered))


class Suite(Struct, frozen=True):
    """One suite: its name in the files, our answer to a case in the form of `expect`, the comparison."""

    name: str
    answer: Callable[[Case], object]
    compare: Compare = exactly
    deliberate: tuple[Deliberate, ...] = ()
