"""What every active pod holds, container by container, with devices by zone set.

`report` publishes all of it, as the checkpoints have it. Other publishers see only what the Pod Resources API lists,
which omits plain init containers (kubelet spec 11). A pod that is served as a whole has one holding without a container
name; those of its containers are part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from numalign.api.attributes.podplacements import HeldDevices, Holding, MemoryBlock, PodPlacement
from numalign.api.decode.quantity import INT64_MAX
from numalign.api.objects.pod import Pod
from numalign.kubelet import demand, versions
from numalign.kubelet.demand import PodDemand, Role
from numalign.kubelet.device import Held, Ids
from numalign.kubelet.machine.machine import Device
from numalign.kubelet.memory.state import Block
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import ContainerPlacement, KubeletState, placement
from numalign.kubelet.topologymanager import mask as masks

DEFAULT_NAMESPACE = "default"
WHOLE_POD = ""


def every(kubelet: Kubelet, state: KubeletState) -> tuple[PodPlacement, ...]:
    """All active pods, with everything that the managers have recorded for them."""
    return tuple(of(kubelet, state, pod) for pod in state.active.values())


def listed(kubelet: Kubelet, state: KubeletState) -> tuple[PodPlacement, ...]:
    """All active pods as the Pod Resources API lists them."""
    return tuple(listed_of(kubelet, state, pod) for pod in state.active.values())


def classes(devices: Iterable[Device]) -> dict[int | None, list[Device]]:
    """Devices by the exact set of their zones; None for those without a topology."""
    found: dict[int | None, list[Device]] = {}
    for device in devices:
        found.setdefault(None if device.zones is None else masks.of(device.zones), []).append(device)
    return found


def of(kubelet: Kubelet, state: KubeletState, pod: Pod) -> PodPlacement:
    """Everything that the managers have recorded for this pod."""
    asked = demand.of(pod, kubelet.reading)
    return _named(pod, (_whole(state, asked.uid), *_containers(kubelet, placement(state, asked))))


def listed_of(kubelet: Kubelet, state: KubeletState, pod: Pod) -> PodPlacement:
    """This pod as the Pod Resources API lists it."""
    by_isolation = versions.behaviour(kubelet.settings.minor).pod_resources_by_isolation
    asked = demand.of(pod, kubelet.reading)
    placed = _without_init(asked, placement(state, asked))
    if not by_isolation:
        return _named(pod, _containers(kubelet, placed))
    own = {name: _without_shared(each) for name, each in placed.items()}
    return _named(pod, (_whole(state, asked.uid), *_containers(kubelet, own)))


def _without_init(asked: PodDemand, placed: Mapping[str, ContainerPlacement]) -> dict[str, ContainerPlacement]:
    return {each.name: placed[each.name] for each in asked.containers if each.role is not Role.INIT}


def _without_shared(placed: ContainerPlacement) -> ContainerPlacement:
    return structs.replace(
        placed,
        cpus=placed.cpus if placed.cpu_isolation == "container" else None,
        memory=placed.memory if placed.memory_isolation == "container" else (),
    )


def _named(pod: Pod, holdings: Iterable[Holding]) -> PodPlacement:
    something = (each for each in holdings if each.cpus or each.memory or each.devices)
    return PodPlacement(
        namespace=pod.metadata.namespace or DEFAULT_NAMESPACE,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        holdings=tuple(sorted(something, key=lambda holding: holding.container)),
    )


def _whole(state: KubeletState, uid: str) -> Holding:
    return Holding(
        container=WHOLE_POD,
        cpus=state.cpu.pods.get(uid, 0) if state.cpu else 0,
        memory=_blocks(state.memory.pods.get(uid, ())) if state.memory else (),
    )


def _containers(kubelet: Kubelet, placed: Mapping[str, ContainerPlacement]) -> Iterable[Holding]:
    for name, each in placed.items():
        yield Holding(
            container=name, cpus=each.cpus or 0, memory=_blocks(each.memory), devices=_devices(kubelet, each.devices)
        )


def _blocks(blocks: Iterable[Block]) -> tuple[MemoryBlock, ...]:
    # A share of a pod's budget may have wrapped around to nearly 2^64 (kubelet spec 10.4); no report can carry that.
    found = (MemoryBlock(type=each.kind, zones=each.zones, size=min(each.size, INT64_MAX)) for each in blocks)
    return tuple(sorted(found))


def _devices(kubelet: Kubelet, held: Held) -> tuple[HeldDevices, ...]:
    found = (each for resource, ids in sorted(held.items()) for each in _of_resource(kubelet, resource, ids))
    return tuple(found)


def _of_resource(kubelet: Kubelet, resource: str, ids: Ids) -> Iterable[HeldDevices]:
    inventory = kubelet.devices.inventories.get(resource)
    known = inventory.by_id if inventory else {}
    by_zones = classes(known.get(each, Device(each)) for each in ids)
    for zones in sorted(by_zones, key=lambda zones: -1 if zones is None else zones):
        names = tuple(sorted(device.id for device in by_zones[zones]))
        yield HeldDevices(resource=resource, zones=zones, count=len(names), ids=names)
