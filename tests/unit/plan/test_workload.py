from __future__ import annotations

from collections import Counter

import pytest
from msgspec import structs

from numalign.plan import workload
from numalign.plan.gorandom import GoRandom
from numalign.plan.trace import WHOLE
from tests.unit.plan import traces


def test_random_numbers_are_those_of_go() -> None:
    """As Go 1.26 prints them for `rand.New(rand.NewSource(42))`."""
    random, order = GoRandom(42), list(range(10))
    assert [random.int63() for _ in range(2)] == [3440579354231278675, 608747136543856411]
    assert [random.int63() for _ in range(3)] == [5571782338101878760, 1926012586526624009, 404153945743547657]
    assert [random.below(most) for most in (10, 64, 1_000_003)] == [5, 37, 588_701]

    def swap(one: int, other: int) -> None:
        order[one], order[other] = order[other], order[one]

    random.shuffle(10, swap)
    assert order == [4, 9, 6, 7, 0, 2, 1, 8, 5, 3]
    assert sorted(random.permutation(100)) == list(range(100))


@pytest.mark.parametrize("pods", [20, 60, 400])
def test_pods_ask_for_130_percent_of_all_gpus(pods: int) -> None:
    trace = traces.small(pods=pods)
    arrived = workload.arrivals(trace, 42)
    asked = sum(arrived.shapes[number].gpus * arrived.shapes[number].gpu_milli for number in arrived.pods)
    wanted = workload.DEMAND * trace.gpus * WHOLE
    # The published program looks at one GPU of the pod that it adds last.
    assert wanted - 8 * WHOLE < asked < wanted + 8 * WHOLE


def test_the_same_seed_gives_the_same_order_and_another_seed_another_one() -> None:
    trace = traces.small()
    assert workload.arrivals(trace, 42) == workload.arrivals(trace, 42)
    assert workload.arrivals(trace, 42) != workload.arrivals(trace, 43)


def test_some_nodes_get_pods_for_130_percent_of_their_gpus() -> None:
    trace = traces.small(nodes=30, pods=400)
    some = workload.with_some_nodes(trace, 12, 42)
    assert len(some.nodes) == 12
    assert [node for node in trace.nodes if node in some.nodes] == list(some.nodes)
    assert workload.with_some_nodes(trace, 12, 42) == some != workload.with_some_nodes(trace, 12, 43)
    arrived = workload.arrivals(some, 42)
    asked = sum(arrived.shapes[number].gpus * arrived.shapes[number].gpu_milli for number in arrived.pods)
    assert asked == pytest.approx(workload.DEMAND * some.gpus * WHOLE, abs=8 * WHOLE)


def test_every_pod_of_a_list_that_is_too_short_arrives() -> None:
    trace = traces.small(pods=20)
    arrived = workload.arrivals(trace, 42)
    there = Counter(arrived.shapes[number] for number in arrived.pods)
    assert not Counter(map(workload.shape_of, trace.pods)) - there
    assert sorted(arrived.nodes) == list(range(len(trace.nodes)))


def test_a_list_without_gpus_is_replayed_as_it_is() -> None:
    trace = traces.small()
    without = structs.replace(trace, pods=tuple(pod for pod in trace.pods if not pod.gpus))
    assert len(workload.arrivals(without, 42).pods) == len(without.pods)


def test_typical_shapes_cover_the_list() -> None:
    typical = workload.typical(traces.small(pods=200))
    shares = [share for _, share in typical]
    assert sum(shares) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True)
