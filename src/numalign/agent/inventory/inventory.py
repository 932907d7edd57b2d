"""Turns the readings into a modelled node: the machine with its devices, the kubelet, and its managers' state.

`snapshot` calls `of`. The result is the model's `Kubelet` and `KubeletState`, so that `kubelet.report` writes the same
report as for a simulated node; `allocations` determines what pods hold. `plainform` makes the formats of RTE and NFD.
Where the kubelet's GetAllocatableResources differs from the model, the kubelet's answer counts; kubelets without the
call get the model's (exporter spec 2.3). `PlacementCache` reuses the placements of pods that did not change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct, structs

from numalign.agent.inventory import exclusions, plainform, podidentity, startview
from numalign.agent.inventory.allocations import Allocations
from numalign.agent.inventory.exclusions import Exclusions
from numalign.agent.inventory.plainform import real
from numalign.agent.inventory.podidentity import KnownUids
from numalign.agent.inventory.readings import Readings
from numalign.agent.inventory.startview import Evidence
from numalign.agent.sources.podresources import Allocatable, DeviceEntry, MemoryEntry, PodResources
from numalign.api.attributes.podplacements import PodPlacement
from numalign.api.nrt.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission, holdings, start, versions
from numalign.kubelet.machine.machine import Device, DevicePlugin, Machine
from numalign.kubelet.report import report
from numalign.kubelet.report.report import Pods
from numalign.kubelet.settings import Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks

PodAssignments = tuple[object, ...]
"""Everything that the managers recorded for one pod."""


class PlacementCache:
    """Placements of one node's pods, reused while their inputs are equal."""

    def __init__(self) -> None:
        self._kubelet: Kubelet | None = None
        self._kept: dict[str, tuple[PodAssignments, PodPlacement, PodPlacement]] = {}

    def started(self, machine: Machine, settings: Settings) -> Kubelet:
        """The kubelet model for this machine and configuration. StartRefusal where the kubelet would not start."""
        last = self._kubelet
        if last is not None and last.machine == machine and last.settings == settings:
            return last
        self._kubelet, self._kept = start.start(machine, settings), {}
        return self._kubelet

    def pods(self, kubelet: Kubelet, state: KubeletState) -> Pods:
        kept = self._kept if kubelet is self._kubelet else {}
        found = {}
        for uid, pod in state.active.items():
            assigned = _assignments(state, uid, pod)
            before = kept.get(uid)
            if before is None or before[0] != assigned:
                before = assigned, holdings.listed_of(kubelet, state, pod), holdings.of(kubelet, state, pod)
            found[uid] = before
        self._kept = found
        return Pods(tuple(each[1] for each in found.values()), tuple(each[2] for each in found.values()))


def _assignments(state: KubeletState, uid: str, pod: Pod) -> PodAssignments:
    cpu, memory = state.cpu, state.memory
    return (
        pod,
        cpu and (cpu.assignments.get(uid), cpu.pods.get(uid)),
        memory and (memory.blocks.get(uid), memory.pods.get(uid)),
        state.devices.pods.get(uid),
    )


def modelled_allocatable(kubelet: Kubelet) -> Allocatable:
    """CPUs and memory of static policies, and healthy devices (exporter spec 2.5)."""
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


def with_reported_cpus(kubelet: Kubelet, offered: Allocatable | None) -> Kubelet:
    """The kubelet with all CPUs reserved that GetAllocatableResources does not list."""
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
    """One entry per zone; a device with a topology without zones is not listed (exporter spec 2.4)."""
    return [None] if device.zones is None else [(zone,) for zone in device.zones]


Mode = Literal["own", "rte", "nfd"]


class Inventory(Struct, frozen=True):
    """The modelled node of one snapshot."""

    kubelet: Kubelet
    state: KubeletState
    """Without allocations of pods that ended."""
    placed: Pods
    """Placements of the pods."""
    pods: tuple[PodResources, ...] = ()
    """Pods as podresources lists them."""
    allocatable: Allocatable = Allocatable()
    unlisted: bool = False
    """Whether checkpoints have entries of pods that may exist and are not listed."""
    answered: bool = True
    """Whether podresources answered."""
    contradictions: tuple[str, ...] = ()
    """Where the kubelet's answer contradicts its checkpoints or its configuration."""
    dated: bool = True
    """Whether the kubelet's version is known; otherwise the newest is assumed."""

    def report(self, node: str, mode: Mode = "own", left_out: Exclusions = exclusions.NONE) -> NodeTopology:
        own = report.of_collected(node, self.kubelet, self.state, self.placed)
        own = own if self.dated else report.undated(own)
        if mode == "own":
            return own if self.answered else report.with_capacities(own, self.kubelet.machine)
        counted = plainform.zones(self.kubelet.machine, self.allocatable, self.pods, mode, left_out.resources)
        zones = tuple(_limited(zone, modelled) for zone, modelled in zip(counted, own.zones, strict=True))
        signed = [pod for pod in self.pods if not left_out.has(pod.namespace, pod.name)]
        return structs.replace(plainform.of(node, self.kubelet, signed, mode), zones=zones)


def _limited(zone: Zone, modelled: Zone) -> Zone:
    """Limits what is available to the modelled amounts, which come from checkpoints: these include plain init
    containers, pods that a restarted kubelet does not list yet, and how a block is split."""
    free = {name: each.available for name, each in modelled.resources.items()}
    resources = {
        name: Amounts(each.capacity, each.allocatable, min(each.allocatable, free.get(name, each.available)))
        for name, each in zone.resources.items()
    }
    return structs.replace(zone, resources=resources)


def of(readings: Readings, machine: Machine, uids: KnownUids, placing: PlacementCache | None = None) -> Inventory:
    """Models the node from one set of readings. `placing` is the cache of this node. StartRefusal where no kubelet
    would start with these settings on this machine."""
    match, placing = podidentity.match(readings, uids), placing or PlacementCache()
    evidence = Evidence(readings.cpu_checkpoint, readings.memory_checkpoint, readings.allocatable)
    seen = startview.of(machine, readings.settings, evidence)
    kubelet = placing.started(
        structs.replace(seen, devices=_plugins(readings, match.open - match.inactive)), readings.settings
    )
    allocations = Allocations(kubelet, readings, match, uids)
    contradictions = tuple(allocations.contradictions())
    kubelet = with_reported_cpus(kubelet, readings.allocatable)
    state = admission.collect(kubelet, allocations.state())
    return Inventory(
        kubelet,
        state,
        placing.pods(kubelet, state),
        readings.pods or (),
        readings.allocatable or modelled_allocatable(kubelet),
        unlisted=bool(match.open),
        answered=readings.pods is not None,
        contradictions=contradictions,
        dated=versions.parse(readings.kubelet_version) is not None,
    )


def _plugins(readings: Readings, unlisted: frozenset[str]) -> dict[str, DevicePlugin]:
    """Offered devices are healthy. Devices that pods hold and no plugin offers are unhealthy, and so are those of pods
    that may exist and are not listed."""
    offered = _zones_by_id(readings.allocatable.devices if readings.allocatable is not None else ())
    held = _zones_by_id(each for pod in readings.pods or () for one in pod.containers for each in one.devices)
    registered = readings.device_checkpoint.registered if readings.device_checkpoint is not None else {}
    found = {}
    for resource in sorted({*offered, *held, *registered}):
        known, used = offered.get(resource, {}), held.get(resource, {})
        reserved = _held_by(unlisted, resource, readings)
        healthy = [Device(each, zones, each not in reserved) for each, zones in sorted(known.items())]
        unhealthy = [Device(each, zones, healthy=False) for each, zones in sorted(used.items()) if each not in known]
        # A device with a topology without zones is not listed (exporter spec 2.4).
        hidden = registered.get(resource, frozenset()) - known.keys() if readings.allocatable is not None else ()
        found[resource] = DevicePlugin(
            (*healthy, *_hidden(hidden, used), *(each for each in unhealthy if each.id not in hidden))
        )
    return found


def _held_by(uids: Iterable[str], resource: str, readings: Readings) -> frozenset[str]:
    written = readings.device_checkpoint.state.pods if readings.device_checkpoint is not None else {}
    containers = (held for uid in uids for held in written.get(uid, {}).values())
    return frozenset(each for held in containers for each in held.get(resource, ()))


def _hidden(ids: Iterable[str], used: Mapping[str, tuple[int, ...] | None]) -> Iterator[Device]:
    return (Device(each, used.get(each) or ()) for each in sorted(ids))


def _zones_by_id(entries: Iterable[DeviceEntry]) -> dict[str, dict[str, tuple[int, ...] | None]]:
    """A device in several zones has an entry for each."""
    found: dict[str, dict[str, tuple[int, ...] | None]] = {}
    for entry in entries:
        devices = found.setdefault(entry.resource, {})
        for each in entry.ids:
            before = devices.get(each)
            here = None if entry.zones is None else real(entry.zones)
            devices[each] = here if before is None else tuple(sorted({*before, *(here or ())}))
    return found
