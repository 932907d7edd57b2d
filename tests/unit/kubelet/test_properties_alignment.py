"""What an admitted pod has: exactly what it asked for, and under single-numa-node all of it in one zone."""

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import and_

from hypothesis import assume

from numalign.kubelet import demand as demands
from numalign.kubelet.admission import Outcome
from numalign.kubelet.demand import ContainerDemand, PodDemand, Role
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import ContainerPlacement
from numalign.kubelet.topologymanager.mask import Mask
from tests.campaigns import holds_for
from tests.strategies.lives import Life, lives

SINGLE_ZONE = {"topology_policy": "single-numa-node"}


def admitted(life: Life) -> Iterator[tuple[PodDemand, Outcome]]:
    """Every pod that was admitted, with the answer it got."""
    for moment in life.moments():
        for uid, outcome in moment.outcomes.items():
            if outcome.admitted:
                yield demands.of(moment.state.active[uid], life.kubelet.reading), outcome


def containers(life: Life) -> Iterator[tuple[ContainerDemand, ContainerPlacement]]:
    for pod, outcome in admitted(life):
        yield from ((each, outcome.placement[each.name]) for each in pod.containers)


def filled(kubelet: Kubelet, placed: ContainerPlacement) -> list[Mask]:
    """The zones of its CPUs, and those of each block of memory."""
    cpus = placed.cpus or 0
    zones = kubelet.cpu.topology.zones if kubelet.cpu else {}
    return [1 << zone for zone in zones if zones[zone] & cpus] + [block.zones for block in placed.memory]


def touched(kubelet: Kubelet, placed: ContainerPlacement) -> Iterator[Mask]:
    """The zones that each device is attached to, if it is to any."""
    for resource, ids in placed.devices.items():
        zones = kubelet.devices.inventories[resource].zones
        yield from (zones[each] for each in ids if each in zones)


def share_a_zone(kubelet: Kubelet, placed: Iterable[ContainerPlacement]) -> bool:
    """Whether some zone has all CPUs and memory, and every device is attached to it."""
    together = list(placed)
    whole = {mask for each in together for mask in filled(kubelet, each)}
    within = reduce(and_, (mask for each in together for mask in touched(kubelet, each)), kubelet.machine.all_zones)
    return any(whole <= {1 << zone} and within >> zone & 1 for zone in kubelet.machine.zone_ids)


@holds_for(lives(pod_level=True), examples=50)
def test_an_admitted_container_has_exactly_the_cpus_it_asked_for(life: Life) -> None:
    for wanted, placed in containers(life):
        assert (placed.cpus or 0).bit_count() == (wanted.cpus if life.kubelet.cpu else 0)


@holds_for(lives(pod_level=True), examples=50)
def test_an_admitted_container_has_exactly_the_devices_it_asked_for(life: Life) -> None:
    for wanted, placed in containers(life):
        counts = {resource: len(ids) for resource, ids in placed.devices.items()}
        assert counts == {name: count for name, count in wanted.limits.items() if name in life.kubelet.machine.devices}


@holds_for(lives(pod_level=True), examples=50)
def test_a_container_that_keeps_running_has_exactly_the_memory_it_asked_for(life: Life) -> None:
    """What an init container had is written off when a later one takes it over (kubelet spec 6.5)."""
    for wanted, placed in containers(life):
        recorded = {block.kind: block.size for block in placed.memory}
        if wanted.role is not Role.INIT:
            assert recorded == (wanted.memory if life.kubelet.memory else {})


@holds_for(lives(settings=SINGLE_ZONE | {"topology_scope": "container"}, restarts=False), examples=60)
def test_everything_a_container_has_is_in_one_zone(life: Life) -> None:
    """On a machine of one zone there is no mask to align to, so devices of zones that it does not have are as good."""
    assume(len(life.kubelet.machine.zones) > 1)
    for _, placed in containers(life):
        assert share_a_zone(life.kubelet, [placed])


@holds_for(lives(settings=SINGLE_ZONE | {"topology_scope": "pod"}, restarts=False), examples=60)
def test_everything_a_pod_has_is_in_one_zone(life: Life) -> None:
    """Except if only an init container requests a type of hugepages: the kubelet does not check its fit (6.2)."""
    assume(len(life.kubelet.machine.zones) > 1)
    for pod, outcome in admitted(life):
        assert pod.memory is not None
        if all(kind in pod.memory for each in pod.containers for kind in each.memory or ()):
            assert share_a_zone(life.kubelet, outcome.placement.values())
