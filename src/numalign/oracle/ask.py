"""Asks the real component and numalign about the same case, and judges whether they agree.

`fuzz` and `reask` use it. The oracle program completes a case with the real answer; our answer is then compared with it
as with a recording. Each source passes its own judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from numalign.oracle.divergence import Difference
from numalign.oracle.programs import Program

Case = dict[str, Any]
Finding = Literal["agreed", "deliberate", "undecided", "differs", "unanswered"]

ONCE: Final = ("-repeat", "1")
"""The first run of a case: one repetition is enough if our answer is the same."""

OFTEN: Final = ("-repeat", "16")
"""The run of a case that is to be recorded or shrunk."""

SURELY: Final = ("-repeat", "200", "-limit", "60s")
"""The second run of a disagreement. 200 repetitions detect an answer that varies once in a hundred times. Most varying
answers vary early, so only true disagreements take the full time."""


PATIENTLY: Final = ("-workers", "1", "-repeat", "1", "-limit", "60s")
"""The second run of a case that timed out: it tells a slow answer from an endless loop."""


UNANSWERED: Final = ("nondeterministic", "refused")
"""The real component answers differently each time, or would take too long. There is nothing to compare with."""


class Judged(Struct, frozen=True):
    """One case with the real answer and the result of the comparison."""

    family: str
    case: Case
    answer: Case
    finding: Finding
    differences: tuple[Difference, ...] = ()
    asked: int = 1
    """The number of questions in the case. A kube-scheduler case has one per pod."""


Judge = Callable[[Case, Case], Judged]
"""Compares our answer to a case with the real answer."""


def ask(program: Program, cases: Sequence[tuple[str, Case]], judge: Judge) -> list[Judged]:
    answers = program.ask(cases)
    return [judge(case, answer) for (_, case), answer in zip(cases, answers, strict=True)]


class Pair:
    """The oracle program, running twice: one process answers once per case, the other repeats the doubtful cases."""

    def __init__(self, once: Program, sure: Program, judge: Judge) -> None:
        self.once = once
        self.sure = sure
        self.judge = judge

    def ask(self, cases: Sequence[tuple[str, Case]]) -> list[Judged]:
        return ask(self.once, cases, self.judge)

    def ask_again(self, judged: Sequence[Judged], doubted: Sequence[bool]) -> list[Judged]:
        """The same list, with the doubtful cases asked and judged again."""
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
    """Whether the real component gave one stable answer."""
    silent = ("error", "timeout", "panic", *UNANSWERED)
    return "id" in answer and not any(key in answer for key in silent)


def judged_without_answer(family: str, case: Case, answer: Case) -> Judged | None:
    """The judgement where the program has no answer to compare with, for any family."""
    if any(key in answer for key in UNANSWERED):
        return Judged(family, case, answer, "unanswered")
    if "error" in answer:
        return Judged(family, case, answer, "differs", (Difference(path="", expected=answer["error"]),))
    return None
