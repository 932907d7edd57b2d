"""Puts recorded cases to the real kubelet again and reports where this minor answers differently from the recording.

`numalign oracle replay --against` calls it. A changed answer is a difference between versions; the model of that minor
must give the new answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec
from msgspec import Struct

from numalign.oracle import ask, divergence
from numalign.oracle.ask import Case, Judged, Pair
from numalign.oracle.divergence import Difference
from numalign.oracle.families import cpu_livelock
from numalign.oracle.vectors import Vector

CHUNK = 500
LIVELOCK = cpu_livelock.FAMILY.name


class Reasked(Struct, frozen=True):
    """One recorded case: the differences of the new real answer, and the model's judgement of that answer."""

    vector: Vector
    judged: Judged
    differences: tuple[Difference, ...]

    @property
    def is_answered(self) -> bool:
        return self.judged.finding != "unanswered"

    @property
    def model_agrees(self) -> bool:
        return self.judged.finding in ("agreed", "deliberate")


def reask(pair: Pair, vectors: Iterable[Vector]) -> Iterator[Reasked]:
    """Every case, in order."""
    left = iter(vectors)
    while chunk := list(islice(left, CHUNK)):
        yield from _asked(pair, chunk)


def _asked(pair: Pair, vectors: Sequence[Vector]) -> Iterator[Reasked]:
    judged = pair.ask([_question(vector) for vector in vectors])
    paired = list(zip(vectors, judged, strict=True))
    doubted = [ask.differs(each) or bool(_differences(vector, each)) for vector, each in paired]
    for vector, each in zip(vectors, pair.ask_again(judged, doubted), strict=True):
        yield Reasked(vector, each, _differences(vector, each))


def _question(vector: Vector) -> tuple[str, Case]:
    """The case as the program reads it: with its machine, and as a family that the program knows."""
    case: Case = msgspec.json.decode(vector.recorded)
    if isinstance(case.get("topology"), str):
        case["topology"] = msgspec.to_builtins(vector.origin.topology(case["topology"]))
    if vector.family.name == LIVELOCK:
        step = {"container": case.pop("container"), "affinity": case.pop("affinity")}
        return "cpu_static", {**case, "steps": [step]}
    return vector.family.name, case


def _differences(vector: Vector, judged: Judged) -> tuple[Difference, ...]:
    if judged.finding == "unanswered":
        return ()
    recorded: Case = msgspec.json.decode(vector.recorded)
    if vector.family.name == LIVELOCK and "timeout" in judged.answer:
        return ()
    answer = dict(judged.answer)
    if "topology" in answer:
        answer["topology"] = recorded["topology"]
    return divergence.between(vector.recorded, divergence.canonical(answer))
