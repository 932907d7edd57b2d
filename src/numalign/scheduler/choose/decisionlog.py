"""Keeps the latest scheduling decisions with their inputs, to explain or replay them.

`cycle` records every attempt; `dump` shows them and writes them into snapshots, `replay` compares its own result
with them. The number of records is bounded, and scores by plugin are recorded for at most ten decisions per second."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.placement.decisions import Decision, Randomness
from numalign.scheduler import placementannotation
from numalign.scheduler.choose.scoring import NodeScore

MOST: Final = 512
DETAILS_APART: Final = 0.1
"""Seconds between two decisions whose scores are kept."""


class LoggedAttempt(Struct, frozen=True, kw_only=True, eq=False):
    """One attempt."""

    pod: ObjectMeta
    attempt: int
    at: float
    result: str
    message: str = ""
    """Why there was no node."""
    decision: Decision | None = None
    nodes: int = 0
    fitting: int = 0
    """How many nodes were scored."""
    chances: tuple[float, ...] = ()
    """What was drawn to choose among equals."""
    start: int = 0
    best: tuple[NodeScore, ...] = ()
    """The chosen node and the next best ones; empty: not kept."""
    is_held: bool = False
    """No node was sought: the freed room is left to other schedulers for a moment, or the attempt failed."""


class DecisionRecord(Wire, frozen=True):
    """The same for people and files."""

    pod: str
    uid: str
    attempt: int
    at: float
    result: str
    message: str = ""
    node: str = ""
    zones: str = ""
    """Where its containers are expected, as in the placement annotation."""
    nodes: int = 0
    fitting: int = 0
    chances: tuple[float, ...] = ()
    start: int = 0
    best: tuple[NodeScore, ...] = ()
    is_held: bool = False
    """No node was sought, so the attempt cannot be repeated."""


def record_of(turn: LoggedAttempt) -> DecisionRecord:
    decision = turn.decision
    return DecisionRecord(
        pod=turn.pod.full_name,
        uid=turn.pod.uid,
        attempt=turn.attempt,
        at=turn.at,
        result=turn.result,
        message=turn.message,
        node=decision.node if decision is not None else "",
        zones=placementannotation.of(decision) if decision is not None else "",
        nodes=turn.nodes,
        fitting=turn.fitting,
        chances=turn.chances,
        start=turn.start,
        best=turn.best,
        is_held=turn.is_held,
    )


class DecisionLog:
    def __init__(self, most: int = MOST) -> None:
        self._turns: deque[LoggedAttempt] = deque(maxlen=most)
        self._detailed = float("-inf")

    def wants_details(self, now: float) -> bool:
        if not self._turns.maxlen or now - self._detailed < DETAILS_APART:
            return False
        self._detailed = now
        return True

    def note(self, turn: LoggedAttempt) -> None:
        self._turns.append(turn)

    def of(self, name: str) -> list[LoggedAttempt]:
        """Of the pod with this name (namespace/name) or uid; all without one. The latest last."""
        return [turn for turn in self._turns if name in ("", turn.pod.full_name, turn.pod.uid)]

    def __iter__(self) -> Iterator[LoggedAttempt]:
        return iter(self._turns)

    def __len__(self) -> int:
        return len(self._turns)


FORGETFUL: Final = DecisionLog(most=0)
"""Records nothing; for callers that run a part of the scheduler alone."""


class RecordedRandomness:
    """Randomness that can say what was drawn for the attempt at hand."""

    def __init__(self, drawn_from: Randomness) -> None:
        self._source = drawn_from
        self._drawn: list[float] = []

    def random(self) -> float:
        chance = self._source.random()
        self._drawn.append(chance)
        return chance

    def drawn(self) -> tuple[float, ...]:
        """Since it was last asked."""
        drawn, self._drawn = tuple(self._drawn), []
        return drawn


class ReplayedRandomness:
    """The same once more; when all is drawn, from the beginning."""

    def __init__(self, chances: Sequence[float]) -> None:
        self._chances = list(chances) or [0.0]
        self._place = -1

    def random(self) -> float:
        self._place = (self._place + 1) % len(self._chances)
        return self._chances[self._place]
