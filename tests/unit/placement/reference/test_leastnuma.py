from __future__ import annotations

from itertools import combinations
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.nrt.wire import PublishedZone
from numalign.api.objects.pod import Pod
from numalign.api.objects.qos import QoS
from numalign.placement.reference import demand, leastnuma, numanodes, scoring
from numalign.placement.reference.demand import Demand
from numalign.placement.reference.leastnuma import Found
from numalign.placement.reference.numanodes import NumaNode
from numalign.placement.reference.scoring import ReferenceScoring
from numalign.placement.referenceargs import Strategy
from tests.unit.placement.reference import made
from tests.unit.placement.reference.made import container, pod, zone

NEAR = {0: {0: 10, 1: 12, 2: 20, 3: 20}, 1: {0: 12, 1: 10, 2: 20, 3: 20}}
FAR = {2: {0: 20, 1: 20, 2: 10, 3: 12}, 3: {0: 20, 1: 20, 2: 12, 3: 10}}
COSTS = NEAR | FAR


def four(*gpus: int) -> tuple[PublishedZone, ...]:
    return tuple(zone(place, COSTS[place], cpu=8, memory=9, gpu=count) for place, count in enumerate(gpus))


def scored(
    wanted: Pod, *zones: PublishedZone, scope: str = "container", policy: str = "none", max_zones: str = "8"
) -> int:
    seen = made.seen(*zones, scope=scope, policy=policy, max_zones=max_zones)
    return scoring.score(demand.of(wanted), seen, ReferenceScoring(Strategy.LEAST_NUMA_NODES))


def guaranteed(**wanted: int) -> Pod:
    return pod(made.requesting(wanted), qos=QoS.GUARANTEED)


def asking(**wanted: int) -> Demand:
    return demand.wanted(made.amounts(made.named(wanted)), QoS.GUARANTEED)


SIX = guaranteed(cpu=6)
HALVES = (zone(0, cpu=4), zone(1, cpu=4))

SCORES: dict[str, tuple[Pod, tuple[PublishedZone, ...], str, int]] = {
    "one zone": (guaranteed(cpu=4), HALVES, "8", 94),
    "two zones": (SIX, HALVES, "8", 82),
    "two that are close": (guaranteed(cpu=1, gpu=2), four(1, 1, 0, 0), "8", 82),
    "two that could be closer": (guaranteed(cpu=1, gpu=2), four(1, 0, 1, 0), "8", 76),
    "all that are allowed": (SIX, HALVES, "2", 25),
    "more than are allowed": (guaranteed(cpu=12), (*HALVES, zone(2, cpu=4)), "2", 0),
    "so many allowed that steps vanish": (SIX, HALVES, "200", 100),
    "too much": (guaranteed(cpu=9), HALVES, "8", 0),
    "something that no zone lists": (guaranteed(cpu=1, disk=1), HALVES, "8", 0),
    "nothing that a zone lists": (guaranteed(nic=1), HALVES, "8", 100),
    "nothing": (guaranteed(), HALVES, "8", 100),
    "a device on one zone keeps others out": (
        guaranteed(cpu=6, nic=1),
        (zone(0, cpu=4, nic=1), zone(1, cpu=4)),
        "8",
        0,
    ),
    "far apart is not too far": (
        guaranteed(cpu=1),
        (zone(0, {0: 300, 1: 400}, cpu=4), zone(1, {0: 400, 1: 300}, cpu=4)),
        "8",
        94,
    ),
}


@pytest.mark.parametrize("wanted, zones, max_zones, expected", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize("policy, scope", [("none", "container"), ("restricted", "pod"), ("single-numa-node", "pod")])
def test_fewer_and_closer_zones_are_better_under_every_policy(
    wanted: Pod, zones: tuple[PublishedZone, ...], max_zones: str, expected: int, policy: str, scope: str
) -> None:
    assert scored(wanted, *zones, scope=scope, policy=policy, max_zones=max_zones) == expected


FOUR = container(cpu=4)


def test_containers_take_what_they_need_and_init_containers_keep_it() -> None:
    three = (zone(0, cpu=4), zone(1, cpu=4), zone(2, cpu=4))
    apps = pod(FOUR, FOUR, FOUR, init=[FOUR], qos=QoS.GUARANTEED)
    assert scored(apps, *three) == 0
    assert scored(pod(FOUR, FOUR, init=[FOUR], qos=QoS.GUARANTEED), *three) == 94


@pytest.mark.parametrize("ids", [(1, 0), (0, 1), (3, 7)], ids=["out of order", "in order", "with gaps"])
def test_what_is_taken_comes_from_the_zone_that_was_chosen(ids: tuple[int, int]) -> None:
    zones = (zone(ids[0], cpu=4, memory=9), zone(ids[1], cpu=12, memory=9))
    both = pod(container(cpu=8, memory=1), container(cpu=8, memory=1))
    assert scored(both, *zones) == 82


def test_what_is_taken_comes_from_the_lowest_ids_first() -> None:
    nodes = numanodes.of_zones((zone(1, cpu=8, memory=9), zone(0, cpu=8, memory=9)))
    left = leastnuma.taken(asking(cpu=12, memory=2), nodes, (0, 1))
    assert [(node.id, node.free["cpu"] // 10**9, node.free["memory"] // 10**9) for node in left] == [
        (1, 4, 9),
        (0, 0, 7),
    ]


def test_the_first_of_equally_close_sets_is_taken() -> None:
    nodes = numanodes.of_zones(four(1, 1, 1, 1))
    assert leastnuma.smallest_set(asking(gpu=2), nodes) == Found((0, 1), closest=True)


machines = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5)
distances = st.lists(st.integers(10, 300), min_size=25, max_size=25)


def by_definition(wanted: Demand, nodes: tuple[NumaNode, ...]) -> Found | None:
    for size in range(1, len(nodes) + 1):
        sets = list(combinations(range(len(nodes)), size))
        shortest = min(leastnuma.distance_sum(nodes, places) for places in sets)
        roomy = [places for places in sets if leastnuma.has_room(wanted, nodes, places)]
        if roomy:
            best = min(roomy, key=lambda places: leastnuma.distance_sum(nodes, places))
            return Found(best, leastnuma.distance_sum(nodes, best) == shortest)
    return None


@given(machines, distances, st.integers(0, 12), st.integers(0, 12))
def test_the_search_finds_what_trying_everything_finds(
    free: list[tuple[int, int]], costs: list[int], cpu: int, nic: int
) -> None:
    zones = tuple(
        zone(place, dict(enumerate(costs[5 * place : 5 * place + 5])), cpu=cpus, nic=nics)
        for place, (cpus, nics) in enumerate(free)
    )
    nodes = numanodes.of_zones(zones)
    assert leastnuma.smallest_set(asking(cpu=cpu, nic=nic), nodes) == by_definition(asking(cpu=cpu, nic=nic), nodes)


MANY = tuple(
    zone(place, {other: 10 + abs(place - other) for other in range(64)}, cpu=4, nic=place % 2) for place in range(64)
)


def test_a_machine_of_64_zones_is_scored_in_no_time() -> None:
    began = process_time()
    assert scored(guaranteed(cpu=100, nic=20), *MANY, max_zones="64") > 0
    assert scored(guaranteed(cpu=100, nic=33), *MANY) == 0
    assert process_time() - began < 1


def test_a_set_that_was_not_searched_for_is_not_called_the_closest() -> None:
    found = leastnuma.smallest_set(asking(cpu=100), numanodes.of_zones(MANY))
    assert found == Found(tuple(range(25)), closest=False)
