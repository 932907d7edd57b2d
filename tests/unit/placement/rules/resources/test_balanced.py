"""Nodes that a pod leaves evenly used score higher."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.schedulerconfig.pluginargs import NodeResourcesBalancedAllocationArgs, ResourceSpec
from numalign.placement.rules.resources.balanced import NodeResourcesBalancedAllocation
from tests.unit.placement.rules import reference, worlds

GIB = 1 << 30
GPU = "example.com/gpu"
NAMES = ("cpu", "memory", GPU)
RULE = NodeResourcesBalancedAllocation()
WITH_GPU = NodeResourcesBalancedAllocation(
    NodeResourcesBalancedAllocationArgs(resources=tuple(ResourceSpec(name=name) for name in NAMES))
)
Amounts = tuple[int, ...]


def written(amounts: Amounts) -> dict[str, str]:
    units = ("m", "", "")
    return {name: f"{amount}{unit}" for name, amount, unit in zip(NAMES, amounts, units, strict=False)}


def score(rule: NodeResourcesBalancedAllocation, offered: Amounts, used: Amounts, asked: Amounts) -> list[int] | None:
    node = worlds.node("n", allocatable=written(offered) | {"pods": "10"})
    world = worlds.world([node], {"n": [worlds.pod(written(used))]})
    prepared = rule.prepare_score(worlds.pod(written(asked)), world, worlds.all_rows(world))
    scores = worlds.scores(rule, worlds.pod(written(asked)), world)
    assert scores == (None if prepared is None else [prepared.row(0)])
    return scores


@pytest.mark.parametrize(
    "offered, used, asked, expected",
    [
        ((4000, 10000), (0, 0), (3000, 5000), 68),
        ((6000, 10000), (0, 0), (3000, 5000), 75),
        ((10000, 20000), (3000, 0), (3000, 5000), 73),
        ((10000, 20000), (3000, 5000), (3000, 5000), 74),
        ((10000, 50000), (3000, 5000), (3000, 5000), 70),
        ((3000, 5000), (3000, 0), (0, 5000), 100),
        ((3000, 5000), (0, 0), (0, 5000), 50),
        ((6000, 10000), (3000, 0), (3000, 0), 62),
        ((3500, 40000, 8), (3000, 5000, 3), (0, 0, 1), 75),
        ((3500, 40000, 8), (3000, 5000, 0), (0, 0, 1), 76),
        ((3500, 40000, 8), (0, 0, 0), (3000, 5000, 0), 56),
        ((8000, 32 * GIB), (4000, 8 * GIB), (2000, 4 * GIB), 72),
        ((8000, 32 * GIB), (1000, 16 * GIB), (2000, 4 * GIB), 78),
        ((8000, 32 * GIB), (0, 0), (2000, 4 * GIB), 71),
        ((8000, 32 * GIB, 8), (4000, 8 * GIB, 4), (1000, 2 * GIB, 1), 73),
    ],
)
def test_vectors_of_balance(offered: Amounts, used: Amounts, asked: Amounts, expected: int) -> None:
    """Kube-scheduler spec A.4."""
    assert score(WITH_GPU if len(offered) == 3 else RULE, offered, used, asked) == [expected]


def test_a_pod_that_asks_for_nothing_is_not_scored() -> None:
    assert score(RULE, (8000, GIB), (1000, 0), (0, 0)) is None


def test_what_silent_containers_are_taken_to_need_does_not_enter() -> None:
    world = worlds.world([worlds.node("n")], {"n": [worlds.pod()] * 9})
    alone = worlds.world([worlds.node("n")])
    pod = worlds.pod({"cpu": "8", "memory": "1Gi"})
    assert worlds.scores(RULE, pod, world) == worlds.scores(RULE, pod, alone)


def test_amounts_for_the_pod_as_a_whole_enter() -> None:
    world = worlds.world([worlds.node("n")])
    whole = worlds.pod(resources={"requests": {"cpu": "8", "memory": "1Gi"}})
    assert worlds.scores(RULE, whole, world) == worlds.scores(RULE, worlds.pod({"cpu": "8", "memory": "1Gi"}), world)


def test_a_node_without_resources_is_neutral() -> None:
    assert score(RULE, (0, 0), (0, 0), (1000, 1)) == [75]


caps = st.one_of(st.just(0), st.integers(1, 500_000))
amounts = st.tuples(*[st.integers(0, 200_000)] * 3)


@given(st.tuples(caps, caps, caps), amounts, amounts.map(lambda asked: (*asked[:2], asked[2] + 1)))
def test_scores_equal_the_specification(offered: Amounts, used: Amounts, asked: Amounts) -> None:
    assert score(WITH_GPU, offered, used, asked) == [reference.balanced(offered, used, asked)]
    if asked[0] or asked[1]:
        assert score(RULE, offered[:2], used[:2], asked[:2]) == [reference.balanced(offered[:2], used[:2], asked[:2])]
