"""What made-up sources answer about nodes, pods and decisions: what a test gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numalign.dashboard.details import (
    Change,
    DecisionDetail,
    NodeDetail,
    PodAnswer,
    Repetition,
    WaitingMatrix,
)


class MadeUpDetails:
    nodes: Mapping[str, NodeDetail] = {}
    matrix = WaitingMatrix()
    answers: Mapping[str, Callable[[Change], PodAnswer]] = {}
    """By pod."""
    made: Mapping[str, DecisionDetail] = {}
    """Decisions by key."""
    repetitions: Mapping[str, Repetition] = {}

    async def node(self, name: str, at: float | None = None) -> NodeDetail | None:
        return self.nodes.get(name)

    async def waiting(self, at: float | None = None) -> WaitingMatrix:
        return self.matrix

    async def asked(self, pod: str, change: Change, at: float | None = None) -> PodAnswer | None:
        return self.answers[pod](change) if pod in self.answers else None

    async def decision(self, key: str, at: float | None = None) -> DecisionDetail | None:
        return self.made.get(key)

    async def repeated(self, key: str, at: float | None = None) -> Repetition | None:
        return self.repetitions.get(key)
