"""What comes of a case for which differences on purpose are listed: those nobody can explain, and the listed ones.

The judges of the reference plugin and of the stock scheduler form opinions; campaigns count what was found."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from numalign.oracle import ask
from numalign.oracle.ask import Case, Judged
from numalign.oracle.divergence import Difference


class Opinion(Struct, frozen=True):
    differences: tuple[Difference, ...] = ()
    """What nobody can explain."""
    entries: frozenset[str] = frozenset()
    """Of the list, for what differs on purpose."""
    questions: frozenset[int] = frozenset()
    """Places of those with a difference that nobody can explain, where a case has several."""


def without(family: str, case: Case, answer: Case) -> Judged | None:
    """Where the program has no answer to compare with."""
    if "timeout" in answer:
        return Judged(family, case, answer, "unanswered")
    return ask.judged_without_answer(family, case, answer)


def survived(look: Callable[[Case], Opinion], answer: Case) -> Opinion:
    """Whatever goes wrong while a case is looked at, it has no answer of ours."""
    try:
        return look(answer)
    except Exception as problem:
        return Opinion((Difference("", answered=f"no answer: {type(problem).__name__}: {problem}"),))
