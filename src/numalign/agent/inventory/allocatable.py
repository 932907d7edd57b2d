"""What can be allocated: what the kubelet says of it beside what the model says.

`inventory` asks. Where they differ the kubelet's word counts (`heeded`); for kubelets without GetAllocatableResources,
or with the call switched off (exporter spec 2.3), there is the model's answer (`of`)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from numalign.agent.sources.podresources import Allocatable, DeviceEntry, MemoryEntry
from numalign.kubelet import mask as masks
from numalign.kubelet.machine import Device
from numalign.kubelet.start import Kubelet


def of(kubelet: Kubelet) -> Allocatable:
    """As exporter spec 2.5 has it: CPUs and memory of static policies alone, and healthy devices."""
    memory = kubelet.memory.allocatable if kubelet.memory else {}
    return Allocatable(
        devices=tuple(
            entry for resource in sorted(kubelet.devices.inventories) for entry in _devices(kubelet, resource)
        ),
        cpus=masks.members(kubelet.cpu.allocatable) if kubelet.cpu else (),
        memory=tuple(
            MemoryEntry(kind, size, (zone,))
            for zone in sorted(memory)
            for kind, size in memory[zone].items()
            if size > 0
        ),
    )


def heeded(kubelet: Kubelet, offered: Allocatable | None) -> Kubelet:
    """Whose pods get no CPUs but those that are offered: by whatever it was configured, the others are kept."""
    if kubelet.cpu is None or offered is None:
        return kubelet
    kept = kubelet.cpu.topology.cpus & ~masks.of(offered.cpus)
    if kept == kubelet.cpu.reserved:
        return kubelet
    return structs.replace(kubelet, cpu=structs.replace(kubelet.cpu, reserved=kept))


def _devices(kubelet: Kubelet, resource: str) -> Iterator[DeviceEntry]:
    for device in kubelet.devices.inventories[resource].plugin.devices:
        yield from (DeviceEntry(resource, (device.id,), zones) for zones in _places(device) if device.healthy)


def _places(device: Device) -> list[tuple[int, ...] | None]:
    """An entry for each zone; one that has a topology without zones is not listed at all (exporter spec 2.4)."""
    return [None] if device.zones is None else [(zone,) for zone in device.zones]
