"""What our own agent adds to a report: the managers' settings and the contents of their checkpoints.

`report` calls `of` with a state from which everything that pods left behind is collected. With these facts
`placement.reports.read` knows every number, and `placement.commit.restorekubelet` can run the managers themselves."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.coremap import Core
from numalign.api.attributes.deviceclasses import DeviceClass
from numalign.api.attributes.managers import KubeletBuild, ManagerPolicies, ReservedMemory
from numalign.api.attributes.memorystate import MemoryZone
from numalign.api.attributes.podplacements import PodPlacement
from numalign.kubelet import holdings, versions
from numalign.kubelet.device import DeviceState, Inventory
from numalign.kubelet.machine import Machine
from numalign.kubelet.memory.state import MemoryState
from numalign.kubelet.settings import Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState


def of(kubelet: Kubelet, state: KubeletState, pods: Iterable[PodPlacement]) -> NodeFacts:
    """Everything there is to say; facts of a manager that does nothing are left out."""
    settings = kubelet.settings
    return NodeFacts(
        managers=_policies(settings),
        kubelet=_build(settings),
        reserved_cpus=kubelet.cpu.reserved if kubelet.cpu else None,
        reserved_memory=_reserved_memory(settings) if kubelet.memory else None,
        cores=_cores(kubelet.machine),
        default_cpus=state.cpu.default if state.cpu else None,
        memory=_memory(state.memory) if state.memory else None,
        devices=_devices(kubelet, state.devices),
        placements=tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.uid))),
    )


def _policies(settings: Settings) -> ManagerPolicies:
    return ManagerPolicies(
        cpu=settings.cpu_policy,
        cpu_options=settings.cpu_options,
        memory=settings.memory_policy,
        topology_options=settings.topology_options,
    )


def _build(settings: Settings) -> KubeletBuild:
    gates = {name: on for name, on in settings.feature_gates.items() if name in versions.GATES}
    return KubeletBuild(version=f"v{settings.minor}", feature_gates=gates)


def _reserved_memory(settings: Settings) -> ReservedMemory:
    return {each.zone: each.limits for each in settings.reserved_memory}


def _cores(machine: Machine) -> tuple[Core, ...]:
    found = (
        Core(cpus=tuple(sorted(core.cpus)), zone=zone.id, socket=core.socket, l3=core.uncore)
        for zone in machine.zones
        for core in zone.cores
    )
    return tuple(sorted(found, key=lambda core: core.cpus))


def _memory(state: MemoryState) -> tuple[MemoryZone, ...]:
    return tuple(
        MemoryZone(
            zone=zone,
            assignments=memory.assignments,
            cells=memory.cells,
            free={kind: max(0, table.free) for kind, table in memory.tables.items()},
        )
        for zone, memory in sorted(state.zones.items())
    )


def _devices(kubelet: Kubelet, state: DeviceState) -> tuple[DeviceClass, ...]:
    found = (
        each
        for resource, inventory in sorted(kubelet.devices.inventories.items())
        for each in _classes(resource, inventory, state)
    )
    return tuple(found)


def _classes(resource: str, inventory: Inventory, state: DeviceState) -> Iterable[DeviceClass]:
    by_zones = holdings.classes(inventory.plugin.devices)
    if not by_zones:
        # A plugin without devices is registered all the same, and requests for its resource are refused.
        yield DeviceClass(resource=resource, zones=None, total=0, healthy=0, free=0)
    for zones in sorted(by_zones, key=lambda zones: -1 if zones is None else zones):
        healthy = {device.id for device in by_zones[zones] if device.healthy}
        free = len(healthy - state.in_use(resource))
        total = len(by_zones[zones])
        yield DeviceClass(resource=resource, zones=zones, total=total, healthy=len(healthy), free=free)
