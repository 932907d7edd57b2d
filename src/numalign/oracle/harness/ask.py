"""Asks the real component and numalign about the same case, and judges whether they agree.

`fuzz` and the kubelet's `replay` use it. An oracle program is a child process: cases in, the real component's answers
out, one JSON line each. Each source passes its own judge. Judges with a list of deliberate differences return an
`Opinion` first."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

import msgspec
from msgspec import Struct

from numalign.oracle.harness import divergence
from numalign.oracle.harness.divergence import Case, Difference


class ProgramError(Exception):
    """The oracle program ended, or printed something that is not an answer."""


class OracleProgram:
    """A running oracle program. Use as a context manager."""

    def __init__(self, path: Path, arguments: Sequence[str] = ()) -> None:
        self.path = path
        self.process = subprocess.Popen(
            [path, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.complaints: list[bytes] = []
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def __enter__(self) -> OracleProgram:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the program."""
        self.process.terminate()
        self.process.wait(timeout=10)
        self.listener.join(timeout=10)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def ask(self, cases: Sequence[tuple[str, Case]]) -> list[Case]:
        """The answers to these cases, in order."""
        writer = threading.Thread(target=self._write, args=(cases,), daemon=True)
        writer.start()
        answers = [self._answer() for _ in cases]
        writer.join()
        return answers

    def _write(self, cases: Iterable[tuple[str, Case]]) -> None:
        stdin = self.process.stdin
        assert stdin is not None, "the process was started with a pipe"
        try:
            for family, case in cases:
                stdin.write(msgspec.json.encode({"family": family, **case}) + b"\n")
            stdin.flush()
        except (BrokenPipeError, ValueError):
            return  # the reader reports that the program has ended, and why

    def _answer(self) -> Case:
        assert self.process.stdout is not None, "the process was started with a pipe"
        line = self.process.stdout.readline()
        if not line:
            self.listener.join(timeout=5)  # its last output may still be in the pipe
            said = b"".join(self.complaints[-20:]).decode(errors="replace").strip()
            raise ProgramError(f"{self.path.name} ended: {said or 'without a word'}")
        answer = msgspec.json.decode(line)
        if not isinstance(answer, dict):
            raise ProgramError(f"{self.path.name} answered {line[:80]!r}, which is not a case")
        return answer

    def _listen(self) -> None:
        assert self.process.stderr is not None, "the process was started with a pipe"
        for line in self.process.stderr:
            self.complaints.append(line)
            del self.complaints[:-200]


Finding = Literal["agreed", "deliberate", "undecided", "differs", "unanswered"]

ONCE: Final = ("-repeat", "1")
"""The first run of a case: one repetition is enough if our answer is the same."""

OFTEN: Final = ("-repeat", "16")
"""The run of a case that is to be recorded or shrunk."""

SURELY: Final = ("-repeat", "200", "-limit", "60s")
"""The second run of a disagreement. 200 repetitions detect an answer that varies once in a hundred times. Most varying
answers vary early, so only true disagreements take the full time."""


PATIENTLY: Final = ("-workers", "1", "-repeat", "1", "-limit", "60s")
"""The second run of a case that timed out: it distinguishes a slow answer from an endless loop."""


UNANSWERED: Final = ("nondeterministic", "refused")
"""The real component answers differently each time, or would take too long. There is nothing to compare with."""


class JudgedCase(Struct, frozen=True):
    """One case with the real answer and the result of the comparison."""

    family: str
    case: Case
    answer: Case
    finding: Finding
    differences: tuple[Difference, ...] = ()
    asked: int = 1
    """The number of questions in the case. A kube-scheduler case has one per pod."""


Judge = Callable[[Case, Case], JudgedCase]
"""Compares our answer to a case with the real answer."""


def ask(program: OracleProgram, cases: Sequence[tuple[str, Case]], judge: Judge) -> list[JudgedCase]:
    answers = program.ask(cases)
    return [judge(case, answer) for (_, case), answer in zip(cases, answers, strict=True)]


class ProgramPair:
    """The oracle program, running twice: one process answers once per case, the other repeats the doubtful cases."""

    def __init__(self, once: OracleProgram, sure: OracleProgram, judge: Judge) -> None:
        self.once = once
        self.sure = sure
        self.judge = judge

    def ask(self, cases: Sequence[tuple[str, Case]]) -> list[JudgedCase]:
        return ask(self.once, cases, self.judge)

    def ask_again(self, judged: Sequence[JudgedCase], doubted: Sequence[bool]) -> list[JudgedCase]:
        """The same list, with the doubtful cases asked and judged again."""
        doubts = [each for each, doubt in zip(judged, doubted, strict=True) if doubt]
        slow = [each for each in doubts if "timeout" in each.answer]
        sure = iter(self._again(self.sure, [each for each in doubts if "timeout" not in each.answer]))
        patient = iter(self._patiently(slow))
        return [
            (next(patient) if "timeout" in each.answer else next(sure)) if doubt else each
            for each, doubt in zip(judged, doubted, strict=True)
        ]

    def _again(self, program: OracleProgram, doubts: Sequence[JudgedCase]) -> list[JudgedCase]:
        return ask(program, [(each.family, each.case) for each in doubts], self.judge)

    def _patiently(self, doubts: Sequence[JudgedCase]) -> list[JudgedCase]:
        if not doubts:
            return []
        with OracleProgram(self.once.path, PATIENTLY) as program:
            return self._again(program, doubts)


def differs(judged: JudgedCase) -> bool:
    return judged.finding == "differs"


def is_answered(answer: Case) -> bool:
    """Whether the real component gave one stable answer."""
    silent = ("error", "timeout", "panic", *UNANSWERED)
    return "id" in answer and not any(key in answer for key in silent)


def judged_without_answer(family: str, case: Case, answer: Case) -> JudgedCase | None:
    """The judgement where the program has no answer to compare with, for any family."""
    if any(key in answer for key in UNANSWERED):
        return JudgedCase(family, case, answer, "unanswered")
    if "error" in answer:
        return JudgedCase(family, case, answer, "differs", (Difference(path="", expected=answer["error"]),))
    return None


class Opinion(Struct, frozen=True):
    differences: tuple[Difference, ...] = ()
    """Differences that no entry explains."""
    entries: frozenset[str] = frozenset()
    """Entries of the list that explain differences."""
    questions: frozenset[int] = frozenset()
    """Places of the questions with an unexplained difference, where a case has several questions."""


def without(family: str, case: Case, answer: Case) -> JudgedCase | None:
    """The judgement where the program has no answer to compare with."""
    if "timeout" in answer:
        return JudgedCase(family, case, answer, "unanswered")
    return judged_without_answer(family, case, answer)


def judged(family: str, case: Case, answer: Case, opinion: Opinion, questions: int = 1) -> JudgedCase:
    """The judgement that follows from an opinion."""
    finding: Finding = "differs" if opinion.differences else "deliberate" if opinion.entries else "agreed"
    return JudgedCase(family, case, answer, finding, opinion.differences, questions)


def survived(look: Callable[[Case], Opinion], answer: Case) -> Opinion:
    """The opinion of `look`. An exception there counts as a missing answer."""
    try:
        return look(answer)
    except Exception as problem:
        return Opinion((divergence.no_answer(problem),))
