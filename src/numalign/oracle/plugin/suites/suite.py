"""A suite of recorded cases: how numalign answers a case, and how the answer is compared.

`judging` runs the suites. A suite receives a case as read, with the file's `fixtures` added. A deliberate difference is
a rule on the input, never on a case's name, with an entry in docs/compatibility.md."""

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
    """A difference on purpose: the inputs that it applies to, and what the recording shows then."""

    anchor: str
    """The entry in docs/compatibility.md."""
    reason: str
    applies: Callable[[Any], bool]
    """Whether the defect can show for this input."""
    shows: Callable[[Case], bool] = always
    """Whether the recording shows the defect. A recording of anything else is a mismatch."""


def exactly(expected: Any, answered: Any) -> Sequence[Difference]:
    """Every key, item and type counts."""
    return divergence.between(divergence.canonical(expected), divergence.canonical(answered))


class Suite(Struct, frozen=True):
    """One suite: its name in the files, our answer to a case in the form of `expect`, and the comparison."""

    name: str
    answer: Callable[[Case], object]
    compare: Compare = exactly
    deliberate: tuple[Deliberate, ...] = ()
