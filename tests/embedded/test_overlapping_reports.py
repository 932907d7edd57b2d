"""Publishers that look at a node again while their last reports are still on their way: what a report says of its pods
counts, not how many reports there were."""

from __future__ import annotations

import pytest
from msgspec import structs

from numalign.scheduler import profiles
from numalign.simulator.nodes.specs import NodeSpec, PublisherKind
from numalign.simulator.scenarios import catalogue, judge, play

STORY = catalogue.scenario("lagging-exporter")


def overlapping(node: NodeSpec, publisher: PublisherKind) -> NodeSpec:
    faults = structs.replace(node.publishing.faults, overlapping=True)
    return structs.replace(node, publishing=structs.replace(node.publishing, publisher=publisher, faults=faults))


def broken(publisher: PublisherKind, seed: int) -> list[str]:
    """What the story asks for and did not get; that no pod is turned away, above all."""
    story = structs.replace(STORY, nodes=tuple(overlapping(node, publisher) for node in STORY.nodes))
    played = play.play(story, profiles.NAME, seed)
    return [str(each) for each in judge.judge(story, profiles.NAME, played.lines)]


@pytest.mark.parametrize("publisher, seed", [("nfd", 0), ("nfd", 5), ("rte", 1), ("agent", 2)])
def test_no_pod_is_turned_away(publisher: PublisherKind, seed: int) -> None:
    assert broken(publisher, seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("publisher", ["nfd", "rte"])
def test_no_pod_is_turned_away_whatever_the_seed(publisher: PublisherKind, seed: int) -> None:
    assert broken(publisher, seed) == []
