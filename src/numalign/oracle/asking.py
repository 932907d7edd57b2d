"""Asking the real kubelet and the model about the same case, and judging whether they agree.

The real one fills a case in; the model is then held against it like against a recording. Where the real code panics
or never ends, the model has to say so: those are the deliberate differences, and the only ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from numalign.kubelet.refusals import Undecided
from numalign.kubelet.versions import Minor
from numalign.oracle import divergence, families, replay, vectors
from numalign.oracle.divergence import Difference
from numalign.oracle.families.family import Origin
from numalign.oracle.loading import Found
from numalign.oracle.programs import Program

Case = dict[str, Any]
Finding = Literal["agreed", "deliberate", "undecided", "differs", "unanswered"]


class Deliberate(Struct, frozen=True):
    """A difference that we want: what the real code does, and what the model says instead."""

    answered: str
    """The key with which the oracle program reports it."""
    model_says: str
    reason: str


DELIBERATE: Final = (
    Deliberate(
        "timeout", "never returns", "the kubelet spins for ever; the model says so instead of entering the loop"
    ),
    Deliberate("panic", "crashes", "the kubelet dereferences a missing entry; the model says so instead of crashing"),
)

UNANSWERED: Final = ("nondeterministic", "refused")
"""The real code answers differently each time, or would take too long: nothing to compare with."""


class Judged(Struct, frozen=True):
    """One case with the real answer, and how the model's compares."""

    family: str
    case: Case
    answer: Case
    finding: Finding
    differences: tuple[Difference, ...] = ()


def ask(program: Program, cases: Sequence[tuple[str, Case]], minor: Minor) -> list[Judged]:
    answers = program.ask(cases)
    return [judge(family, case, answer, minor) for (family, case), answer in zip(cases, answers, strict=True)]


def is_answered(answer: Case) -> bool:
    """Whether the real code gave the one answer that it always gives."""
    silent = ("error", *UNANSWERED, *(each.answered for each in DELIBERATE))
    return "id" in answer and not any(key in answer for key in silent)


def judge(family: str, case: Case, answer: Case, minor: Minor) -> Judged:
    if any(key in answer for key in UNANSWERED):
        return Judged(family, case, answer, "unanswered")
    if "error" in answer:
        wrong = Difference(path="", expected=answer["error"])
        return Judged(family, case, answer, "differs", (wrong,))
    for each in DELIBERATE:
        if each.answered in answer:
            return _instead(family, case, answer, minor, each)
    found = Found(f"{family} {answer.get('id')}", answer, divergence.canonical(answer))
    differences = replay.judge(vectors.of(found, dict, minor)).differences
    if any(_is_beyond_budget(difference) for difference in differences):
        return Judged(family, case, answer, "undecided", differences)
    return Judged(family, case, answer, "differs" if differences else "agreed", differences)


def _is_beyond_budget(difference: Difference) -> bool:
    """The model gave up and said how many steps the kubelet takes: no answer, and no wrong one."""
    said = difference.answered
    return isinstance(said, str) and said.startswith("no answer: Undecided") and said.endswith(" steps)")


def _instead(family: str, case: Case, answer: Case, minor: Minor, expected: Deliberate) -> Judged:
    """The model must be undecided for the same reason."""
    said = "an answer"
    try:
        known = next(each for each in families.FAMILIES if each.name == family)
        known.answer(vectors.typed(known.case, case), Origin({}, minor))
    except Undecided as undecided:
        said = str(undecided)
    if expected.model_says in said:
        return Judged(family, case, answer, "deliberate")
    return Judged(family, case, answer, "differs", (Difference(path="", expected=expected.reason, answered=said),))
