from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.nrt.wire import PublishedZone
from numalign.api.objects import qos
from numalign.api.objects.pod import Pod
from numalign.api.objects.qos import QoS
from numalign.placement.reference import classes, demand, filter, status
from numalign.placement.reference.filter import FilterResult, Preemption, Seen
from numalign.placement.reference.status import Status, StatusCode
from tests.unit.placement.reference import made
from tests.unit.placement.reference.made import container, pod, zone

TWO = (zone(0, cpu=4, memory="8Gi"), zone(1, cpu=4, memory="8Gi"))
NICS = (zone(0, cpu=4, nic=3), zone(1, cpu=4, nic=1))
THREE = container(cpu=3, memory="1Gi")
BIG = container(cpu=5, memory="1Gi")
RELAXED = container(cpu=40, memory="1Gi", limits={})
FREE_FOR_ALL = container()

PRESENT = classes.present_on(made.node())


def decided(wanted: Pod, *zones: PublishedZone, scope: str = "container", policy: str = made.SINGLE) -> Status:
    return filter.decide(demand.of(wanted), PRESENT, made.seen(*zones, scope=scope, policy=policy)).status


CONTAINERS: dict[str, tuple[Pod, tuple[PublishedZone, ...], Status]] = {
    "two containers on a zone each": (pod(THREE, THREE), TWO, status.SUCCESS),
    "a third finds no room": (pod(THREE, THREE, THREE), TWO, status.CONTAINER),
    "a container larger than a zone": (pod(BIG), TWO, status.CONTAINER),
    "an init container larger than a zone": (pod(THREE, init=[BIG]), TWO, status.INIT_CONTAINER),
    "a sidecar larger than a zone": (
        pod(THREE, init=[container(sidecar=True, cpu=5, memory="1Gi")]),
        TWO,
        status.SIDECAR,
    ),
    "init containers leave no trace": (pod(THREE, THREE, init=[THREE, THREE, THREE]), TWO, status.SUCCESS),
    "sidecars leave no trace either": (
        pod(THREE, THREE, init=[container(sidecar=True, cpu=3, memory="1Gi")]),
        TWO,
        status.SUCCESS,
    ),
    "the lowest zone with room, without a second try": (
        pod(container(cpu=2, memory=1), container(cpu=4, memory=1)),
        (zone(0, cpu=4, memory=9), zone(1, cpu=3, memory=9)),
        status.CONTAINER,
    ),
    "the same in another order": (
        pod(container(cpu=4, memory=1), container(cpu=2, memory=1)),
        (zone(0, cpu=4, memory=9), zone(1, cpu=3, memory=9)),
        status.SUCCESS,
    ),
    "cpu of a burstable pod has to be listed": (pod(RELAXED), TWO, status.SUCCESS),
    "cpu that no zone lists": (pod(RELAXED), (zone(0, memory="8Gi"),), status.CONTAINER),
    "no zones at all": (pod(RELAXED), (), status.CONTAINER),
    "devices count for every class": (
        pod(container(nic=2, limits={}), container(nic=2, limits={})),
        NICS,
        status.CONTAINER,
    ),
    "fractions count for guaranteed pods": (
        pod(container(cpu="3500m", memory=1), container(cpu="600m", memory=1)),
        (zone(0, cpu=4, memory=9),),
        status.CONTAINER,
    ),
    "host-level resources that no zone lists do not matter": (
        pod(container(cpu=1, memory=1, disk="1Gi")),
        TWO,
        status.SUCCESS,
    ),
    "a device that no zone lists is the host's": (pod(container(cpu=1, memory=1, gpu=1)), TWO, status.SUCCESS),
    "a device that a zone lists with none left is not": (
        pod(container(cpu=1, gpu=1)),
        (zone(0, cpu=4, gpu=0),),
        status.CONTAINER,
    ),
    "a resource that the node does not have": (
        pod(container(cpu=1, fpga=1)),
        (zone(0, cpu=4, fpga=4),),
        status.CONTAINER,
    ),
    "none of a resource that the node does not have": (
        pod(container(cpu=1, memory=1, fpga=0)),
        TWO,
        status.SUCCESS,
    ),
    "zones out of order, with gaps": (
        pod(THREE, THREE),
        (zone(63, cpu=4, memory="8Gi"), zone(2, cpu=4, memory="8Gi")),
        status.SUCCESS,
    ),
    "a zone that the masks do not reach": (pod(THREE), (zone(64, cpu=4, memory="8Gi"),), status.CONTAINER),
    "a zone that is there twice and disagrees": (
        pod(container(cpu=4, memory=1)),
        (zone(0, cpu=4, memory=9), zone(0, cpu=3, memory=9)),
        status.CONTAINER,
    ),
}


@pytest.mark.parametrize("wanted, zones, expected", CONTAINERS.values(), ids=CONTAINERS)
def test_each_container_needs_one_zone(wanted: Pod, zones: tuple[PublishedZone, ...], expected: Status) -> None:
    assert decided(wanted, *zones) == expected


PODS: dict[str, tuple[Pod, Status]] = {
    "the sum fits a zone": (pod(container(cpu=2, memory=1), container(cpu=2, memory=1)), status.SUCCESS),
    "the sum does not": (pod(THREE, THREE), status.POD),
    "the larger of init and app counts": (pod(THREE, init=[container(cpu=4, memory=1)]), status.SUCCESS),
    "a sidecar is not added": (pod(THREE, init=[container(sidecar=True, cpu=4, memory=1)]), status.SUCCESS),
    "overhead is": (pod(container(cpu=4, memory=1), cpu="1m"), status.POD),
}


@pytest.mark.parametrize("wanted, expected", PODS.values(), ids=PODS)
def test_a_whole_pod_needs_one_zone(wanted: Pod, expected: Status) -> None:
    assert decided(wanted, *TWO, scope="pod") == expected


@pytest.mark.parametrize("policy", ["none", "best-effort", "restricted", "Single-Numa-Node"])
def test_other_policies_refuse_nothing(policy: str) -> None:
    assert decided(pod(BIG), *TWO, policy=policy) == status.SUCCESS


STALE = Seen(fresh=False)
UNKNOWN = Seen()
FULL = made.seen(zone(0, cpu=1, memory="1Gi"))

TOP: dict[str, tuple[Pod, frozenset[str] | None, Seen, FilterResult]] = {
    "no such node": (pod(FREE_FOR_ALL), None, FULL, FilterResult(status.NODE_NOT_FOUND)),
    "nothing asked for, stale data": (pod(FREE_FOR_ALL), PRESENT, STALE, filter.PASSES),
    "stale data": (pod(THREE), PRESENT, STALE, FilterResult(status.STALE)),
    "stale data, burstable": (pod(RELAXED), PRESENT, STALE, FilterResult(status.STALE)),
    "stale data, a device of best-effort": (pod(container(nic=0)), PRESENT, STALE, FilterResult(status.STALE)),
    "no report": (pod(BIG), PRESENT, UNKNOWN, filter.PASSES),
    "a refusal is passed on to the cache": (
        pod(THREE),
        PRESENT,
        FULL,
        FilterResult(status.CONTAINER, rejects_node=True),
    ),
}


@pytest.mark.parametrize("wanted, present, seen, expected", TOP.values(), ids=TOP)
def test_what_is_asked_before_zones_are(
    wanted: Pod, present: frozenset[str] | None, seen: Seen, expected: FilterResult
) -> None:
    assert filter.decide(demand.of(wanted), present, seen) == expected


VICTIM = pod(container(cpu=3, memory="1Gi"), name="victim")
PLACED = {made.ref("victim"): 0}

PREEMPTIONS: dict[str, tuple[Preemption, Status]] = {
    "a victim makes room": (Preemption((VICTIM,), PLACED), status.SUCCESS),
    "nobody knows where the victim is": (Preemption((VICTIM,), None), status.CONTAINER),
    "a placement without containers": (Preemption((VICTIM,), {}), status.CONTAINER),
    "the victim is on another zone": (Preemption((VICTIM,), {made.ref("victim"): 1}), status.CONTAINER),
    "a victim that gives nothing back": (
        Preemption((pod(RELAXED, name="victim"),), PLACED),
        status.unschedulable(
            "eviction simulation in NRT is not possible:no resources to add, cannot process eviction simulation"
        ),
    ),
}


@pytest.mark.parametrize("preemption, expected", PREEMPTIONS.values(), ids=PREEMPTIONS)
def test_victims_are_removed_first_and_their_node_is_not_marked(preemption: Preemption, expected: Status) -> None:
    seen = made.seen(zone(0, cpu=1, memory="1Gi"), zone(1, memory="1Gi"))
    assert filter.decide(demand.of(pod(THREE)), PRESENT, seen, preemption) == FilterResult(expected)


small = st.integers(0, 5)
machines = st.lists(st.tuples(small, small), min_size=1, max_size=4)
wishes = st.lists(st.tuples(small, small), min_size=1, max_size=3)


def guaranteed(asked: list[tuple[int, int]]) -> Pod:
    return pod(*(container(cpu=cpu, nic=nic) for cpu, nic in asked), qos=QoS.GUARANTEED)


@given(machines, wishes)
def test_a_pod_that_is_let_in_can_be_placed_zone_by_zone(
    free: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    left = [list(each) for each in free]
    fits = True
    for want in asked:
        chosen = next((zone for zone in left if all(have >= need for have, need in zip(zone, want, strict=True))), None)
        fits = fits and chosen is not None
        if chosen is not None and fits:
            chosen[:] = [have - need for have, need in zip(chosen, want, strict=True)]
    zones = [zone(place, cpu=cpu, nic=nic) for place, (cpu, nic) in enumerate(free)]
    assert decided(guaranteed(asked), *zones).is_success is fits


@given(machines, wishes, st.randoms(use_true_random=False))
def test_the_order_of_resources_and_zones_does_not_matter(
    free: list[tuple[int, int]], asked: list[tuple[int, int]], rng: Random
) -> None:
    zones = [zone(place, cpu=cpu, nic=nic) for place, (cpu, nic) in enumerate(free)]
    shuffled = [zone(place, nic=nic, cpu=cpu) for place, (cpu, nic) in enumerate(free)]
    rng.shuffle(shuffled)
    assert decided(guaranteed(asked), *zones) == decided(guaranteed(asked), *shuffled)


@given(machines, wishes)
def test_more_room_never_turns_a_pod_away(free: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    wanted = guaranteed(asked[:1])
    zones = [zone(place, cpu=cpu, nic=nic) for place, (cpu, nic) in enumerate(free)]
    roomier = [zone(place, cpu=cpu + 1, nic=nic + 1) for place, (cpu, nic) in enumerate(free)]
    assert not decided(wanted, *zones).is_success or decided(wanted, *roomier).is_success


def test_a_class_in_the_status_wins() -> None:
    assert decided(pod(BIG, qos=QoS.BURSTABLE), *TWO).is_success
    assert qos.of(pod(RELAXED, qos=QoS.GUARANTEED)) is QoS.GUARANTEED
    assert decided(pod(RELAXED, qos=QoS.GUARANTEED), *TWO).code is StatusCode.UNSCHEDULABLE
