"""Readings of a node that is known to the last detail: what the model's kubelet would answer and write down."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.agent.inventory.podidentity import KnownUids
from numalign.agent.inventory.readings import Readings
from numalign.agent.sources.checkpoints import CPUCheckpoint, DeviceCheckpoint, MemoryCheckpoint, Sizes
from numalign.agent.sources.podresources import Allocatable, ContainerResources, DeviceEntry, MemoryEntry, PodResources
from numalign.api.attributes.podplacements import HeldDevices, Holding, PodPlacement
from numalign.kubelet import admission, holdings
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks


def at(kubelet: Kubelet, state: KubeletState) -> Readings:
    """What a look at the node finds. Checkpoints still tell of pods that are gone, podresources does not."""
    pods = holdings.listed(kubelet, admission.collect(kubelet, state))
    return Readings(
        machine=kubelet.machine,
        settings=kubelet.settings,
        settings_source="test",
        settings_assumed=False,
        kubelet_version=f"v{kubelet.settings.minor}.0",
        pods=tuple(map(listed, pods)),
        allocatable=offered(kubelet),
        cpu_checkpoint=CPUCheckpoint("static", state.cpu) if state.cpu else None,
        memory_checkpoint=MemoryCheckpoint("Static", state.memory, sizes(kubelet.machine)) if state.memory else None,
        device_checkpoint=DeviceCheckpoint(state.devices, {}, registered(kubelet)),
    )


def sizes(machine: Machine) -> dict[int, dict[str, Sizes]]:
    """What a kubelet that starts on this machine finds; of what it keeps for itself nobody asks here."""
    return {
        zone.id: {"memory": Sizes(zone.memory, 0, zone.memory)}
        | {page.resource: Sizes(page.total_bytes, 0, page.total_bytes) for page in zone.hugepages}
        for zone in machine.zones
    }


def told(state: KubeletState) -> KnownUids:
    """Uids by name, as the API server knows them."""
    return KnownUids(
        {(pod.metadata.namespace or "default", pod.metadata.name): uid for uid, pod in state.active.items()}
    )


def listed(pod: PodPlacement) -> PodResources:
    whole = next((each for each in pod.holdings if each.container == holdings.WHOLE_POD), Holding(container=""))
    containers = tuple(container(each) for each in pod.holdings if each.container != holdings.WHOLE_POD)
    return PodResources(pod.namespace, pod.name, containers, masks.members(whole.cpus), memory(whole))


def container(held: Holding) -> ContainerResources:
    devices = tuple(entry for each in held.devices for entry in entries(each))
    return ContainerResources(held.container, devices, masks.members(held.cpus), memory(held))


def memory(held: Holding) -> tuple[MemoryEntry, ...]:
    return tuple(MemoryEntry(each.type, each.size, masks.members(each.zones)) for each in held.memory)


def entries(held: HeldDevices) -> Iterable[DeviceEntry]:
    """One for each device and zone."""
    zones = masks.members(held.zones) if held.zones else ()
    places: list[tuple[int, ...] | None] = [(zone,) for zone in zones] or [None if held.zones is None else ()]
    return [DeviceEntry(held.resource, (each,), place) for each in held.ids for place in places]


def offered(kubelet: Kubelet) -> Allocatable:
    """Healthy devices; those whose topology names no zone are not in it (exporter spec 2.4)."""
    found = []
    for resource, inventory in kubelet.devices.inventories.items():
        for device in inventory.plugin.devices:
            places = [None] if device.zones is None else [(zone,) for zone in device.zones]
            found += [DeviceEntry(resource, (device.id,), place) for place in places if device.healthy]
    memory = kubelet.memory.allocatable if kubelet.memory else {}
    blocks = [
        MemoryEntry(kind, size, (zone,)) for zone, kinds in memory.items() for kind, size in kinds.items() if size > 0
    ]
    return Allocatable(tuple(found), masks.members(kubelet.cpu.allocatable) if kubelet.cpu else (), tuple(blocks))


def registered(kubelet: Kubelet) -> dict[str, frozenset[str]]:
    return {resource: inventory.healthy for resource, inventory in kubelet.devices.inventories.items()}
