"""Judges a case of the kubelet's families: the model against the real managers of one minor.

`sources` passes `judge` to campaigns. Where the real managers panic or never return, the model must say so: these are
the only deliberate differences."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.kubelet.refusals import Undecided
from numalign.kubelet.versions import Minor
from numalign.oracle import divergence, replay, vectors
from numalign.oracle.ask import Case, Judged, judged_without_answer
from numalign.oracle.divergence import Difference
from numalign.oracle.families.family import Family, Origin
from numalign.oracle.loading import Found


class Substitute(Struct, frozen=True):
    """A difference on purpose: what the real component does, and what the model reports instead."""

    answered: str
    """The key under which the oracle program reports it."""
    model_says: str
    reason: str


DELIBERATE: Final = (
    Substitute(
        "timeout", "never returns", "the kubelet spins for ever; the model says so instead of entering the loop"
    ),
    Substitute("panic", "crashes", "the kubelet dereferences a missing entry; the model says so instead of crashing"),
)


def judge(case: Case, answer: Case, minor: Minor) -> Judged:
    """Judge a case of the kubelet's families: the model of this minor against the real managers."""
    family = known(case)
    if (without := judged_without_answer(family.name, case, answer)) is not None:
        return without
    for each in DELIBERATE:
        if each.answered in answer:
            return _instead(family, case, answer, minor, each)
    found = Found(f"{family.name} {answer.get('id')}", answer, divergence.canonical(answer))
    differences = replay.judge(vectors.of(found, dict, minor)).differences
    if any(_is_beyond_budget(difference) for difference in differences):
        return Judged(family.name, case, answer, "undecided", differences)
    return Judged(family.name, case, answer, "differs" if differences else "agreed", differences)


def known(case: Case) -> Family:
    family = vectors.recognised(case)
    assert family is not None, "cases are drawn from known families, or were recognised when they were loaded"
    return family


def _is_beyond_budget(difference: Difference) -> bool:
    """Whether the model stopped at its step limit. This is neither an answer nor a wrong one."""
    said = difference.answered
    return isinstance(said, str) and said.startswith("no answer: Undecided") and said.endswith(" steps)")


def _instead(family: Family, case: Case, answer: Case, minor: Minor, expected: Substitute) -> Judged:
    """The model must be undecided for the same reason."""
    said = "an answer"
    try:
        family.answer(vectors.typed(family.case, case), Origin({}, minor))
    except Undecided as undecided:
        said = str(undecided)
    if expected.model_says in said:
        return Judged(family.name, case, answer, "deliberate")
    wrong = Difference(path="", expected=expected.reason, answered=said)
    return Judged(family.name, case, answer, "differs", (wrong,))
