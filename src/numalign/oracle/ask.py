"""Asking the real code and ours about the same case, and judging whether they agree.

The real one fills a case in; the model is then held against it like against a recording. Where the real code panics
or never ends, the model has to say so: those are the deliberate differences, and the only ones. Who judges is an
argument: `judge` speaks for the kubelet's families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from numalign.kubelet.refusals import Undecided
from numalign.kubelet.versions import Minor
from numalign.oracle import divergence, families, replay, vectors
from numalign.oracle.divergence import Difference
from numalign.oracle.families.family import Family, Origin
from numalign.oracle.loading import Found
from numalign.oracle.programs import Program

Case = dict[str, Any]
Finding = Literal["agreed", "deliberate", "undecided", "differs", "unanswered"]

ONCE: Final = ("-repeat", "1")
"""How a case is asked about first: one run is enough for an answer that ours is too."""

OFTEN: Final = ("-repeat", "16")
"""How a case is asked about that is to be recorded, or made small."""

SURELY: Final = ("-repeat", "200", "-limit", "60s")
"""How a disagreement is asked about again: an answer that varies once in a hundred times is no answer either. Most of
those vary early, so only true disagreements take that long."""


PATIENTLY: Final = ("-workers", "1", "-repeat", "1", "-limit", "60s")
"""How a case is asked about again that took too long: slow is not the same as endless."""


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
    """One case with the real answer, and how ours compares."""

    family: str
    case: Case
    answer: Case
    finding: Finding
    differences: tuple[Difference, ...] = ()
    asked: int = 1
    """How many questions the case has; where one cluster serves many pods, one for each."""


Judge = Callable[[Case, Case], Judged]
"""A case and the real answer to it in, what ours has to say to that out."""


def ask(program: Program, cases: Sequence[tuple[str, Case]], judge: Judge) -> list[Judged]:
    answers = program.ask(cases)
    return [judge(case, answer) for (_, case), answer in zip(cases, answers, strict=True)]


class Pair:
    """The same program twice: asked once about every case, and surely about those that are in doubt."""

    def __init__(self, once: Program, sure: Program, judge: Judge) -> None:
        self.once = once
        self.sure = sure
        self.judge = judge

    def ask(self, cases: Sequence[tuple[str, Case]]) -> list[Judged]:
        return ask(self.once, cases, self.judge)

    def ask_again(self, judged: Sequence[Judged], doubted: Sequence[bool]) -> list[Judged]:
        """The same list, with those in doubt asked about once more, and for good."""
        doubts = [each for each, doubt in zip(judged, doubted, strict=True) if doubt]
        slow = [each for each in doubts if "timeout" in each.answer]
        sure = iter(self._again(self.sure, [each for each in doubts if "timeout" not in each.answer]))
        patient = iter(self._patiently(slow))
        return [
            (next(patient) if "timeout" in each.answer else next(sure)) if doubt else each
            for each, doubt in zip(judged, doubted, strict=True)
        ]

    def _again(self, program: Program, doubts: Sequence[Judged]) -> list[Judged]:
        return ask(program, [(each.family, each.case) for each in doubts], self.judge)

    def _patiently(self, doubts: Sequence[Judged]) -> list[Judged]:
        if not doubts:
            return []
        with Program(self.once.path, PATIENTLY) as program:
            return self._again(program, doubts)


def differs(judged: Judged) -> bool:
    return judged.finding == "differs"


def is_answered(answer: Case) -> bool:
    """Whether the real code gave the one answer that it always gives."""
    silent = ("error", *UNANSWERED, *(each.answered for each in DELIBERATE))
    return "id" in answer and not any(key in answer for key in silent)


def judge(case: Case, answer: Case, minor: Minor) -> Judged:
    """The kubelet's families: the model, told the minor, beside the real managers."""
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


def judged_without_answer(family: str, case: Case, answer: Case) -> Judged | None:
    """What can be said of any family where the program has no answer to compare with."""
    if any(key in answer for key in UNANSWERED):
        return Judged(family, case, answer, "unanswered")
    if "error" in answer:
        return Judged(family, case, answer, "differs", (Difference(path="", expected=answer["error"]),))
    return None


def known(case: Case) -> Family:
    family = families.recognised(case)
    assert family is not None, "cases are drawn from known families, or were recognised when they were loaded"
    return family


def _is_beyond_budget(difference: Difference) -> bool:
    """The model gave up and said how many steps the kubelet takes: no answer, and no wrong one."""
    said = difference.answered
    return isinstance(said, str) and said.startswith("no answer: Undecided") and said.endswith(" steps)")


def _instead(family: Family, case: Case, answer: Case, minor: Minor, expected: Deliberate) -> Judged:
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
