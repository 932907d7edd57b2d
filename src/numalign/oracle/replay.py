"""Replays recorded cases against the model and counts mismatches.

`numalign oracle replay` prints the report. A case that the model cannot answer, or that raises an exception, is a
mismatch: no case is skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from numalign.oracle import divergence
from numalign.oracle.divergence import Difference
from numalign.oracle.vectors import Vector


class Verdict(Struct, frozen=True):
    """One case and the differences from its recording; none if the answer is right."""

    vector: Vector
    differences: tuple[Difference, ...]


class Tally(Struct, frozen=True):
    cases: int = 0
    mismatches: int = 0

    def plus(self, verdict: Verdict) -> Tally:
        return Tally(self.cases + 1, self.mismatches + bool(verdict.differences))


class Report(Struct, frozen=True):
    """Cases and mismatches in total and by family, and every mismatch in file order."""

    total: Tally
    families: dict[str, Tally]
    diverged: tuple[Verdict, ...]


def judge(vector: Vector) -> Verdict:
    """Compare the model's answer to one case with the recording."""
    try:
        answered = divergence.canonical(vector.family.answer(vector.case, vector.origin))
    except Exception as problem:
        return Verdict(vector, (divergence.no_answer(problem),))
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
