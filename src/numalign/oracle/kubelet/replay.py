"""Compares the model's answers with recorded cases and with the real managers.

`numalign oracle replay` counts the mismatches of `replay`, and with `--against` those of `reask`, which puts recorded
cases to a real kubelet again: a changed answer is a difference between versions. `sources` passes `judge_case` to
campaigns. A case that the model cannot answer is a mismatch. Where the real managers panic or never return, the model
must say so; these are the only deliberate differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec
from msgspec import Struct

from numalign.kubelet.refusals import Undecided
from numalign.kubelet.versions import Minor
from numalign.oracle.harness import ask, divergence
from numalign.oracle.harness.ask import JudgedCase, ProgramPair, judged_without_answer
from numalign.oracle.harness.divergence import Case, Difference
from numalign.oracle.harness.files import RecordedValue
from numalign.oracle.kubelet import cpu, vectors
from numalign.oracle.kubelet.family import CaseOrigin, Family
from numalign.oracle.kubelet.vectors import Vector


class ReplayVerdict(Struct, frozen=True):
    """One case and the differences from its recording; none if the answer is right."""

    vector: Vector
    differences: tuple[Difference, ...]


class FamilyTally(Struct, frozen=True):
    cases: int = 0
    mismatches: int = 0

    def plus(self, verdict: ReplayVerdict) -> FamilyTally:
        return FamilyTally(self.cases + 1, self.mismatches + bool(verdict.differences))


class ReplayReport(Struct, frozen=True):
    """Cases and mismatches in total and by family, and every mismatch in file order."""

    total: FamilyTally
    families: dict[str, FamilyTally]
    diverged: tuple[ReplayVerdict, ...]


def judge(vector: Vector) -> ReplayVerdict:
    """Compare the model's answer to one case with the recording."""
    try:
        answered = divergence.canonical(vector.family.answer(vector.case, vector.origin))
    except Exception as problem:
        return ReplayVerdict(vector, (divergence.no_answer(problem),))
    return ReplayVerdict(vector, divergence.between(vector.recorded, answered))


def replay(vectors: Iterable[Vector]) -> Iterator[ReplayVerdict]:
    return map(judge, vectors)


def summed(verdicts: Iterable[ReplayVerdict]) -> ReplayReport:
    total, families, diverged = FamilyTally(), dict[str, FamilyTally](), list[ReplayVerdict]()
    for verdict in verdicts:
        name = verdict.vector.family.name
        total = total.plus(verdict)
        families[name] = families.get(name, FamilyTally()).plus(verdict)
        if verdict.differences:
            diverged.append(verdict)
    return ReplayReport(total, families, tuple(diverged))


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


def judge_case(case: Case, answer: Case, minor: Minor) -> JudgedCase:
    """Judge a case of the kubelet's families: the model of this minor against the real managers."""
    family = known(case)
    if (without := judged_without_answer(family.name, case, answer)) is not None:
        return without
    for each in DELIBERATE:
        if each.answered in answer:
            return _instead(family, case, answer, minor, each)
    found = RecordedValue(f"{family.name} {answer.get('id')}", answer, divergence.canonical(answer))
    differences = judge(vectors.of(found, dict, minor)).differences
    if any(_is_beyond_budget(difference) for difference in differences):
        return JudgedCase(family.name, case, answer, "undecided", differences)
    return JudgedCase(family.name, case, answer, "differs" if differences else "agreed", differences)


def known(case: Case) -> Family:
    family = vectors.recognised(case)
    assert family is not None, "cases are drawn from known families, or were recognised when they were loaded"
    return family


def _is_beyond_budget(difference: Difference) -> bool:
    """Whether the model stopped at its step limit. This is neither an answer nor a wrong one."""
    said = difference.answered
    return isinstance(said, str) and said.startswith("no answer: Undecided") and said.endswith(" steps)")


def _instead(family: Family, case: Case, answer: Case, minor: Minor, expected: Substitute) -> JudgedCase:
    """The model must be undecided for the same reason."""
    said = "an answer"
    try:
        family.answer(vectors.typed(family.case, case), CaseOrigin({}, minor))
    except Undecided as undecided:
        said = str(undecided)
    if expected.model_says in said:
        return JudgedCase(family.name, case, answer, "deliberate")
    wrong = Difference(path="", expected=expected.reason, answered=said)
    return JudgedCase(family.name, case, answer, "differs", (wrong,))


CHUNK = 500
LIVELOCK = cpu.LIVELOCK.name


class ReaskedCase(Struct, frozen=True):
    """One recorded case: the differences of the new real answer, and the model's judgement of that answer."""

    vector: Vector
    judged: JudgedCase
    differences: tuple[Difference, ...]

    @property
    def is_answered(self) -> bool:
        return self.judged.finding != "unanswered"

    @property
    def model_agrees(self) -> bool:
        return self.judged.finding in ("agreed", "deliberate")


def reask(pair: ProgramPair, vectors: Iterable[Vector]) -> Iterator[ReaskedCase]:
    """Asks every case again, in order."""
    left = iter(vectors)
    while chunk := list(islice(left, CHUNK)):
        yield from _asked(pair, chunk)


def _asked(pair: ProgramPair, vectors: Sequence[Vector]) -> Iterator[ReaskedCase]:
    judged = pair.ask([_question(vector) for vector in vectors])
    paired = list(zip(vectors, judged, strict=True))
    doubted = [ask.differs(each) or bool(_differences(vector, each)) for vector, each in paired]
    for vector, each in zip(vectors, pair.ask_again(judged, doubted), strict=True):
        yield ReaskedCase(vector, each, _differences(vector, each))


def _question(vector: Vector) -> tuple[str, Case]:
    """The case as the program reads it: with its machine, and as a family that the program knows."""
    case: Case = msgspec.json.decode(vector.recorded)
    if isinstance(case.get("topology"), str):
        case["topology"] = msgspec.to_builtins(vector.origin.topology(case["topology"]))
    if vector.family.name == LIVELOCK:
        step = {"container": case.pop("container"), "affinity": case.pop("affinity")}
        return "cpu_static", {**case, "steps": [step]}
    return vector.family.name, case


def _differences(vector: Vector, judged: JudgedCase) -> tuple[Difference, ...]:
    if judged.finding == "unanswered":
        return ()
    recorded: Case = msgspec.json.decode(vector.recorded)
    if vector.family.name == LIVELOCK and "timeout" in judged.answer:
        return ()
    answer = dict(judged.answer)
    if "topology" in answer:
        answer["topology"] = recorded["topology"]
    return divergence.between(vector.recorded, divergence.canonical(answer))
