from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode.quantity import NANO
from numalign.api.nrt.wire import PublishedZone
from numalign.api.objects.pod import Pod
from numalign.api.objects.qos import QoS
from numalign.placement import referenceargs
from numalign.placement.reference import demand, scoring
from numalign.placement.reference.filter import Seen
from numalign.placement.reference.numanodes import NumaNode
from numalign.placement.reference.scoring import ReferenceScoring
from numalign.placement.referenceargs import Strategy
from tests.unit.placement.reference import made
from tests.unit.placement.reference.made import container, pod, zone

LEAST, MOST, BALANCED = Strategy.LEAST_ALLOCATED, Strategy.MOST_ALLOCATED, Strategy.BALANCED_ALLOCATION
SMALL = pod(container(cpu=2, memory="20Mi"))
HEAVY = pod(container(cpu=1, memory="6Gi"))
TWO = (zone(0, cpu=4, memory="8Gi"), zone(1, cpu=4, memory="8Gi"))
STEPS = pod(container(cpu=1, memory="2Gi"), container(cpu=2, memory="2Gi"), init=[container(cpu=3, memory="1Gi")])


def scored(wanted: Pod, seen: Seen, strategy: Strategy, **weights: int) -> int:
    return scoring.score(demand.of(wanted), seen, ReferenceScoring(strategy, weights))


# The worked examples of scheduler plugin spec 8.4, and what it says beside them.
RATED: dict[str, tuple[Strategy, Pod, tuple[PublishedZone, ...], int]] = {
    "least": (LEAST, SMALL, (zone(0, cpu=4, memory="500Mi"),), 73),
    "most": (MOST, SMALL, (zone(0, cpu=4, memory="500Mi"),), 27),
    "balanced": (BALANCED, SMALL, (zone(0, cpu=4, memory="500Mi"),), 89),
    "most, half full": (MOST, SMALL, (zone(0, cpu=2, memory="50Mi"),), 70),
    "least, half full": (LEAST, SMALL, (zone(0, cpu=2, memory="50Mi"),), 30),
    "equal shares": (BALANCED, SMALL, (zone(0, cpu=6, memory="60Mi"),), 100),
    "thousandths round up": (
        LEAST,
        pod(container(cpu="1500m", memory="4Gi")),
        (zone(0, cpu="3500m", memory="8Gi"),),
        50,
    ),
    "the lowest counts": (LEAST, HEAVY, (zone(0, cpu=4, memory="6Gi"), zone(1, cpu=4, memory="24Gi")), 37),
    "but zero does not": (LEAST, HEAVY, (zone(0, cpu=1, memory="6Gi"), zone(1, cpu=4, memory="24Gi")), 75),
    "what a zone lacks weighs": (LEAST, pod(container(cpu=2, memory=1)), (zone(0, cpu=4),), 25),
    "what does not fit weighs": (LEAST, HEAVY, (zone(0, cpu=4, memory="1Gi"),), 37),
    "none of a resource": (
        LEAST,
        pod(container(cpu=2, memory="4Gi", nic=0)),
        (zone(0, cpu=4, memory="8Gi", nic=1),),
        66,
    ),
    "what a zone lacks is a full share": (BALANCED, pod(container(cpu=2, memory=1)), (zone(0, cpu=4),), 87),
    "less than nothing is a full share too": (
        BALANCED,
        pod(container(cpu=2, memory=1)),
        (zone(0, cpu=4, memory="-5"),),
        87,
    ),
    "more than there is": (BALANCED, HEAVY, (zone(0, cpu=4, memory="1Gi"),), 0),
    "no zones": (LEAST, SMALL, (), 0),
    "gaps between ids": (LEAST, SMALL, (zone(0, cpu=4, memory="500Mi"), zone(5, cpu=4, memory="500Mi")), 73),
}


@pytest.mark.parametrize("strategy, wanted, zones, expected", RATED.values(), ids=RATED)
def test_zones_are_rated_and_the_lowest_rating_counts(
    strategy: Strategy, wanted: Pod, zones: tuple[PublishedZone, ...], expected: int
) -> None:
    assert scored(wanted, made.seen(*zones), strategy) == expected


def test_weights_shift_the_mean() -> None:
    assert scored(HEAVY, made.seen(zone(0, cpu=4, memory="8Gi")), LEAST, cpu=3, memory=1) == 62


@pytest.mark.parametrize("scope, expected", [("container", 64), ("pod", 37)])
def test_containers_are_averaged_and_pods_are_not(scope: str, expected: int) -> None:
    assert scored(STEPS, made.seen(*TWO, scope=scope), LEAST) == expected


TOP: dict[str, tuple[Pod, Seen, int]] = {
    "not guaranteed": (pod(container(cpu=1, limits={})), Seen(), 100),
    "not guaranteed, stale data": (pod(container()), Seen(fresh=False), 100),
    "stale data": (SMALL, Seen(fresh=False), 0),
    "no report": (SMALL, Seen(), 0),
    "another policy": (SMALL, made.seen(*TWO, policy="restricted"), 0),
}


@pytest.mark.parametrize("strategy", [LEAST, MOST, BALANCED])
@pytest.mark.parametrize("wanted, seen, expected", TOP.values(), ids=TOP)
def test_what_is_asked_before_zones_are(strategy: Strategy, wanted: Pod, seen: Seen, expected: int) -> None:
    assert scored(wanted, seen, strategy) == expected


NOTHING = pod(container(), qos=QoS.GUARANTEED)
ONE = pod(container(cpu=2), qos=QoS.GUARANTEED)
MIXED = pod(container(), container(cpu=2, memory="2Gi"), qos=QoS.GUARANTEED)


@pytest.mark.parametrize("scope", ["container", "pod"])
@pytest.mark.parametrize("strategy", [LEAST, MOST, BALANCED])
def test_a_pod_that_asks_for_nothing_suits_every_node(strategy: Strategy, scope: str) -> None:
    assert scored(NOTHING, made.seen(*TWO, scope=scope), strategy) == 100


def test_a_container_that_asks_for_nothing_has_no_say() -> None:
    assert scored(MIXED, made.seen(*TWO), LEAST) == scored(pod(*MIXED.spec.containers[1:]), made.seen(*TWO), LEAST)


def test_a_single_resource_is_in_balance_with_itself() -> None:
    assert scored(ONE, made.seen(*TWO), BALANCED) == 100


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=4), st.sampled_from([LEAST, MOST, BALANCED])
)
def test_a_score_is_between_0_and_100(free: list[tuple[int, int]], strategy: Strategy) -> None:
    zones = [zone(place, cpu=cpu, nic=nic) for place, (cpu, nic) in enumerate(free)]
    wanted = pod(container(cpu=7, nic=3), qos=QoS.GUARANTEED)
    assert 0 <= scored(wanted, made.seen(*zones), strategy) <= 100


@given(st.lists(st.integers(1, 20), min_size=2, max_size=6))
def test_balance_is_the_variance_of_the_shares(asked: list[int]) -> None:
    names = [f"example.com/d{place}" for place in range(len(asked))]
    wanted = demand.wanted(made.amounts(dict(zip(names, asked, strict=True))), QoS.GUARANTEED)
    node = NumaNode(0, dict.fromkeys(names, 20 * NANO))
    exact = 100 * (1 - statistics.variance([share / 20 for share in asked]))
    assert abs(scoring.balanced_allocation(wanted, node, {}) - exact) <= 1


def test_settings_choose_strategy_and_weights() -> None:
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]}
    by = scoring.scoring(referenceargs.complete({"scoringStrategy": strategy}))
    assert by == ReferenceScoring(Strategy.MOST_ALLOCATED, {"cpu": 3})
