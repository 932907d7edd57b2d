from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec import structs

from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.nrt.wire import NodeResourceTopology, PublishedZone, Resource
from numalign.api.objects.pod import Pod
from numalign.placement.reference import eviction
from numalign.placement.reference.eviction import Impossible
from tests.unit.placement.reference import made
from tests.unit.placement.reference.made import container, pod, zone

REPORT = made.report(zone(0, cpu=1, memory=1, nic=0), zone(1, cpu=1, memory=1))
ON_0 = {made.ref("p"): 0}
VICTIM = pod(container(cpu=2, memory=3, nic=1))


def free(report: NodeResourceTopology | Impossible) -> list[dict[str, object]]:
    assert isinstance(report, NodeResourceTopology)
    return [{resource.name: resource.available for resource in zone.resources} for zone in report.zones or ()]


def simulated(*victims: Pod, placement: Mapping[ContainerRef, int] = ON_0) -> list[dict[str, object]]:
    return free(eviction.simulate(REPORT, victims, placement))


BACK: dict[str, tuple[Pod, dict[str, str]]] = {
    "everything exclusive": (VICTIM, {"cpu": "3", "memory": "4", "example.com/nic": "1"}),
    "no fractions of cpus": (
        pod(container(cpu="1500m", memory=1)),
        {"cpu": "1", "memory": "2", "example.com/nic": "0"},
    ),
    "devices of any class": (
        pod(container(cpu=1, nic=2, limits={})),
        {"cpu": "1", "memory": "1", "example.com/nic": "2"},
    ),
    "nothing of init containers": (
        pod(container(cpu=1, memory=1), init=[container(sidecar=True, cpu=5, memory=5)]),
        {"cpu": "2", "memory": "2", "example.com/nic": "0"},
    ),
}


@pytest.mark.parametrize("victim, left", BACK.values(), ids=BACK)
def test_a_victim_gives_back_what_it_held_alone(victim: Pod, left: dict[str, str]) -> None:
    assert simulated(victim) == [left, {"cpu": "1", "memory": "1"}]


def test_victims_add_up_zone_by_zone() -> None:
    one, two = pod(container(cpu=1, memory=1), name="one"), pod(container(cpu=2, memory=1), name="two")
    placement = {made.ref("one"): 1, made.ref("two"): 1}
    assert simulated(one, two, placement=placement)[1] == {"cpu": "4", "memory": "3"}


def test_what_the_zone_does_not_list_is_lost() -> None:
    assert simulated(VICTIM, placement={made.ref("p"): 1})[1] == {"cpu": "3", "memory": "4"}


IMPOSSIBLE: dict[
    str, tuple[NodeResourceTopology | None, Sequence[Pod], Mapping[ContainerRef, int] | None, Impossible]
] = {
    "no report": (None, [VICTIM], ON_0, Impossible.NO_REPORT),
    "no victims": (REPORT, [], ON_0, Impossible.NO_VICTIMS),
    "no placement": (REPORT, [VICTIM], None, Impossible.NO_PLACEMENT),
    "an empty placement": (REPORT, [VICTIM], {}, Impossible.NO_CONTAINERS),
    "a victim that is not placed": (REPORT, [VICTIM], {made.ref("p", "x"): 0}, Impossible.NOTHING_TO_ADD),
    "a victim that holds nothing alone": (
        REPORT,
        [pod(container(cpu=1, limits={}))],
        ON_0,
        Impossible.NOTHING_TO_ADD,
    ),
    "more than the zone ever had": (
        REPORT,
        [pod(container(cpu=1, memory="50Gi"))],
        ON_0,
        Impossible.EXCEEDS_ALLOCATABLE,
    ),
}


@pytest.mark.parametrize("report, victims, placement, why", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_simulated_has_a_cause(
    report: NodeResourceTopology | None,
    victims: Sequence[Pod],
    placement: Mapping[ContainerRef, int] | None,
    why: Impossible,
) -> None:
    assert eviction.simulate(report, victims, placement) is why


def test_of_a_resource_that_is_listed_twice_the_first_entry_grows() -> None:
    entry = Resource(name="cpu", allocatable="9", available="1")
    report = made.report(PublishedZone(name="node-0", type="Socket", resources=(entry, entry)), zone("other", cpu=1))
    after = eviction.simulate(report, [pod(container(cpu=2, memory=1))], ON_0)
    assert isinstance(after, NodeResourceTopology)
    grown = structs.replace(entry, available="3")
    assert after.zones == (PublishedZone(name="node-0", type="Socket", resources=(grown, entry)), zone("other", cpu=1))
