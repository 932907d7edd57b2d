"""The dashboard's page of a decision, from a recording of a scheduler: the story is whole, and the decision comes out
the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from numalign.cli.results.moments.sources import RecordedSource
from numalign.dashboard.details import DecisionDetail, Repetition
from tests.embedded import schedulerhavoc as havoc
from tests.embedded.test_recording import recorded

__all__ = ["recorded"]


@pytest.fixture
def answers(recorded: Path) -> list[tuple[DecisionDetail, Repetition]]:
    """Some decisions of a troubled history."""
    havoc.played(3)

    async def asked() -> list[tuple[DecisionDetail, Repetition]]:
        source, found = RecordedSource(recorded), []
        assert source.period is not None
        for mark in source.period.marks[::9]:
            each = (await source.moment(mark + 0.001)).decisions[0]
            detail, again = await source.decision(each.key, mark + 0.001), await source.repeated(each.key)
            assert detail is not None
            assert again is not None
            found.append((detail, again))
        return found

    return asyncio.run(asked())


def test_decisions_come_out_the_same_and_every_node_has_an_answer(
    answers: list[tuple[DecisionDetail, Repetition]],
) -> None:
    placed = [(detail, again) for detail, again in answers if detail.decision.node]
    assert placed
    for detail, again in placed:
        assert again.agrees
        assert again.node == detail.decision.node
        assert "node chosen" in {step.what for step in detail.story.steps}
        assert detail.repeats
        if detail.decision.fitting > 1:
            assert detail.decision.node in {each.node for each in again.scores}
        refused = {each.node for each in again.refused}
        assert not refused & {each.node for each in again.scores}
        assert sum(cause.nodes for cause in again.causes) == len(again.refused)
