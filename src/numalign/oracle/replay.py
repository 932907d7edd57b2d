"""Putting recorded cases to the model, one after the other, and counting where its answer is another one.

`vectors` brings the cases, the command line prints the report. A case that the model cannot answer, or that makes it
fail, is a mismatch like any other: nothing is skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from numalign.oracle import divergence
from numalign.oracle.divergence import Difference
from numalign.oracle.vectors import Vector


class Verdict(Struct, frozen=True):
    """One case, and where the answer differs from the recording: nowhere, if it is right."""

    vector: Vector
    differences: tuple[Difference, ...]


class Tally(Struct, frozen=True):
    cases: int = 0
    mismatches: int = 0

    def plus(self, verdict: Verdict) -> Tally:
        return Tally(self.cases + 1, self.mismatches + bool(verdict.differences))


class Report(Struct, frozen=True):
    """Cases and mismatches, over all and by family; every case that differs, in the order of the files."""

    total: Tally
    families: dict[str, Tally]
    diverged: tuple[Verdict, ...]


def judge(vector: Vector) -> Verdict:
    """Put one case to the model."""
    try:
        answered = divergence.canonical(vector.family.answer(vector.case, vector.origin))
    except Exception as problem:
        failed = Difference(path="", answered=f"no answer: {type(problem).__name__}: {problem}")
        return Verdict(vector, (failed,))
    return Verdict(vector, divergence.between(vector.recorded, answered))


def replay(vectors: Iterable[Vector]) -> Iterator[Verdict]:
    return map(judge, vectors)


def summed(verdicts: Iterable[Verdict]) -> Report:
    total, families, diverged = Tally(), dict[str, Tally](), list[Verdict]()
    for verdict in verdicts:
        name = verdict.vector.family.name
        total = total.plus(verdict)
        families[name] = families.get(name, Tally()).plus(verdict)
        if verdict.differences:
            diverged.append(verdict)
    return Report(total, families, tuple(diverged))
