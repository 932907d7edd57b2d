"""The comparison of a case for which deliberate differences are listed: unexplained differences, and entries of the
list.

The judges of the scheduler plugin, of kube-scheduler and of the publishers return an `Opinion`."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from numalign.oracle import ask, divergence
from numalign.oracle.ask import Case, Finding, Judged
from numalign.oracle.divergence import Difference


class Opinion(Struct, frozen=True):
    differences: tuple[Difference, ...] = ()
    """Differences that no entry explains."""
    entries: frozenset[str] = frozenset()
    """Entries of the list that explain differences."""
    questions: frozenset[int] = frozenset()
    """Places of the questions with an unexplained difference, where a case has several questions."""


def without(family: str, case: Case, answer: Case) -> Judged | None:
    """The judgement where the program has no answer to compare with."""
    if "timeout" in answer:
        return Judged(family, case, answer, "unanswered")
    return ask.judged_without_answer(family, case, answer)


def judged(family: str, case: Case, answer: Case, opinion: Opinion, questions: int = 1) -> Judged:
    """The judgement that follows from an opinion."""
    finding: Finding = "differs" if opinion.differences else "deliberate" if opinion.entries else "agreed"
    return Judged(family, case, answer, finding, opinion.differences, questions)


def survived(look: Callable[[Case], Opinion], answer: Case) -> Opinion:
    """The opinion of `look`. An exception there counts as a missing answer."""
    try:
        return look(answer)
    except Exception as problem:
        return Opinion((divergence.no_answer(problem),))
