"""Usage becomes a score: the appendix' numbers, and any others as the specification computes them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.schedulerconfig import pluginargs
from numalign.api.schedulerconfig.pluginargs import (
    RequestedToCapacityRatioParam,
    ScoringStrategy,
    UtilizationShapePoint,
)
from numalign.placement.rules import nodeamounts
from numalign.placement.rules.nodeamounts import AmountTerms, Asked
from numalign.placement.rules.resources import strategies
from tests.unit.placement.rules import reference, worlds

GIB, MIB = 1 << 30, 1 << 20
FALLING, RISING, LOW = ((0, 10), (100, 0)), ((0, 0), (100, 10)), ((0, 0), (100, 1))
BROKEN = ((0, 0), (40, 6), (80, 10), (100, 3))
Amounts = tuple[int, ...]


def along(*points: tuple[int, int]) -> ScoringStrategy:
    shape = tuple(UtilizationShapePoint(utilization=x, score=y) for x, y in points)
    ratio = RequestedToCapacityRatioParam(shape=shape)
    return ScoringStrategy(type=pluginargs.REQUESTED_TO_CAPACITY_RATIO, requested_to_capacity_ratio=ratio)


LEAST, MOST = ScoringStrategy(), ScoringStrategy(type=pluginargs.MOST_ALLOCATED)


def scored(
    strategy: ScoringStrategy, offered: Sequence[Amounts], used: Sequence[Amounts], weights: Amounts
) -> list[int]:
    """A node per element of the amounts; resources across."""
    what, line = strategies.of(strategy)
    terms = AmountTerms(what, tuple(Asked(column, 0, weight) for column, weight in enumerate(weights)), line)
    return [nodeamounts.evaluated(terms, worlds.totals(*node), 0) for node in zip(offered, used, strict=True)]


@pytest.mark.parametrize(
    "offered, used, weights, least, most",
    [
        ((4000, 10000), (3000, 5000), (1, 1), 37, 62),
        ((6000, 10000), (3000, 5000), (1, 1), 50, 50),
        ((4000, 10000), (3000, 5000), (1, 2), 41, None),
        ((6000, 10000), (3000, 5000), (1, 2), 50, None),
        ((10000, 20000), (6000, 0), (1, 1), 70, None),
        ((10000, 20000), (6000, 5000), (1, 1), 57, None),
        ((10000, 20000), (6000, 10000), (1, 1), 45, None),
        ((10000, 50000), (6000, 10000), (1, 1), 60, None),
        ((8000, 32 * GIB), (6000, 12 * GIB), (1, 1), 43, 56),
        ((8000, 32 * GIB), (3000, 20 * GIB), (1, 1), 49, 49),
        ((8000, 32 * GIB), (2000, 4 * GIB), (1, 1), 81, None),
        ((8000, 32 * GIB), (100, 200 * MIB), (1, 1), 98, None),
        ((8000, 32 * GIB), (1000, 2000 * MIB), (1, 1), 90, None),
    ],
)
def test_vectors_of_least_and_most(
    offered: Amounts, used: Amounts, weights: Amounts, least: int, most: int | None
) -> None:
    """Kube-scheduler spec A.2."""
    assert scored(LEAST, [offered], [used], weights) == [least]
    assert most is None or scored(MOST, [offered], [used], weights) == [most]


@pytest.mark.parametrize(
    "shape, offered, used, weights, score",
    [
        (FALLING, (4000, 10000), (3000, 5000), (1, 1), 38),
        (FALLING, (6000, 10000), (3000, 5000), (1, 1), 50),
        (FALLING, (4000, 10000), (0, 0), (1, 1), 100),
        (RISING, (8,), (2,), (1,), 25),
        (RISING, (4,), (2,), (1,), 50),
        (LOW, (8,), (2,), (1,), 2),
        (LOW, (4,), (4,), (1,), 10),
        (RISING, (8, 4), (2, 2), (3, 5), 41),
        (RISING, (4, 8), (2, 2), (3, 5), 34),
        (RISING, (4, 8), (6, 4), (3, 5), 69),
        (RISING, (8, 4), (4, 2), (3, 5), 50),
        (RISING, (4, 8), (4, 2), (3, 5), 53),
        (LOW, (8, 4), (2, 2), (3, 5), 4),
        (LOW, (4, 8), (2, 2), (3, 5), 3),
        (LOW, (4, 8), (6, 4), (3, 5), 7),
    ],
)
def test_vectors_of_the_drawn_line(
    shape: tuple[tuple[int, int], ...], offered: Amounts, used: Amounts, weights: Amounts, score: int
) -> None:
    """Kube-scheduler spec A.3."""
    assert scored(along(*shape), [offered], [used], weights) == [score]


def test_vectors_of_points_on_a_broken_line() -> None:
    """Kube-scheduler spec A.3, last row."""
    line = strategies.line(along(*BROKEN).requested_to_capacity_ratio.shape)
    expected = [0, 15, 49, 60, 70, 99, 100, 65, 34, 30]
    assert [line[each] for each in (0, 10, 33, 40, 50, 79, 80, 90, 99, 100)] == expected


def test_a_line_is_flat_beyond_its_ends() -> None:
    line = strategies.line(along((20, 3), (60, 7)).requested_to_capacity_ratio.shape)
    assert [line[each] for each in (0, 20, 60, 61, 100)] == [30, 30, 70, 70, 70]


amounts = st.integers(0, 300 * GIB)
caps = st.one_of(st.just(0), st.integers(1, 300 * GIB), st.integers(1, 200))
nodes = st.lists(st.tuples(st.tuples(caps, caps, caps), st.tuples(amounts, amounts, amounts)), min_size=1, max_size=5)
weightings = st.tuples(*[st.integers(1, 100)] * 3)
shapes = st.dictionaries(st.integers(0, 100), st.integers(0, 10), min_size=1, max_size=4).map(
    lambda points: tuple(sorted(points.items()))
)


@given(nodes, weightings, shapes)
def test_scores_equal_the_specification(
    nodes: list[tuple[Amounts, Amounts]], weights: Amounts, shape: tuple[tuple[int, int], ...]
) -> None:
    offered, used = [each[0] for each in nodes], [each[1] for each in nodes]
    assert scored(LEAST, offered, used, weights) == [reference.least(*node, weights) for node in nodes]
    assert scored(MOST, offered, used, weights) == [reference.most(*node, weights) for node in nodes]
    line = along(*shape)
    assert scored(line, offered, used, weights) == [reference.ratio(*node, weights, shape) for node in nodes]
