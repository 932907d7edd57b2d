"""The kubelet of a node, brought back from its report: the managers themselves, for what numbers cannot decide.

`commit` asks it where engine spec 7 says ids. Only our agent's reports tell enough; for any other, and for one that
contradicts itself, there is no model. CPUs and memory are the real ones, devices go by made-up ids in their zones.
`admission.align` on the result answers as the node would; totals of the node are not restored, since the engine checks
them itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import structs

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.memorystate import MemoryZone
from numalign.api.attributes.podplacements import Holding
from numalign.api.decode import quantity
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.nodetopology import Zone as ReportedZone
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Pod
from numalign.kubelet import start
from numalign.kubelet.machine import DevicePlugin, HugePages, Machine, Zone
from numalign.kubelet.refusals import StartRefusal, Undecided
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.placement.commit import restoredstate
from numalign.placement.commit.deviceids import Devices, Unaccounted
from numalign.placement.reports import cores as hardware
from numalign.placement.reports import nodesettings
from numalign.placement.reports.nodefacts import Assumption

HIGHEST_ZONE = 63
"""The kubelet keeps zone sets in 64-bit masks."""
HIGHEST_SOCKET = 4095
"""Sockets become bits of masks, too; real ids stay far below."""


class Restored(NamedTuple):
    """A kubelet and what it knows."""

    kubelet: Kubelet
    state: KubeletState


class Incomplete(Exception):
    """The report does not tell enough, or contradicts itself."""


def restored(topology: NodeTopology, pods: Mapping[str, Pod]) -> Restored | None:
    """The node's kubelet with every pod where the report says it is; None where the report does not tell enough.

    `pods` has the specs by namespace/name, as far as they are known; a pod without one is represented by the names of
    its containers, which is all that matters to others."""
    try:
        return _restored(topology, pods)
    except (Incomplete, Unaccounted, StartRefusal, Undecided):
        return None


def _restored(topology: NodeTopology, pods: Mapping[str, Pod]) -> Restored:
    facts, noted = topology.facts, set[Assumption]()
    settings = nodesettings.read(topology, None, noted)
    _require(not noted and facts.placements is not None and facts.devices is not None)
    devices = Devices(facts.devices or ())
    known = restoredstate.residents(facts.placements or (), pods)
    held = restoredstate.device_state(known.placed, devices)
    machine = _machine(topology, settings, devices.plugins())
    kubelet = start.start(machine, _with_reservations(settings, facts))
    _require_holdings(kubelet, [holding for pod in known.placed.values() for holding in pod.holdings], facts)
    return Restored(kubelet, restoredstate.of(kubelet, facts, known, held))


def _machine(topology: NodeTopology, settings: Settings, plugins: Mapping[str, DevicePlugin]) -> Machine:
    published, zones = topology.facts.cores, tuple(zone.id for zone in topology.zones)
    _require(published is not None and zones and zones[-1] <= HIGHEST_ZONE)
    cores = published or ()
    _require(all(core.zone in zones and core.socket <= HIGHEST_SOCKET for core in cores))
    bare = hardware.zones_with_cores(zones, cores)
    memory = {zone.zone: zone for zone in topology.facts.memory or ()}
    static = settings.memory_policy == "Static"
    _require(not static or sorted(memory) == list(zones))
    reserved = topology.facts.reserved_memory or {}
    furnished = (
        _with_memory(zone, reported, memory[zone.id], reserved.get(zone.id, {})) if static else zone
        for zone, reported in zip(bare, topology.zones, strict=True)
    )
    measured = (_with_distances(*pair, zones) for pair in zip(furnished, topology.zones, strict=True))
    return Machine(topology.node, tuple(measured), plugins)


def _with_memory(zone: Zone, reported: ReportedZone, table: MemoryZone, reserved: Mapping[str, int]) -> Zone:
    """As much of every type as makes the start compute just what the report says pods can get (kubelet spec 6.1)."""
    _require(all(kind in reported.resources for kind in table.free) and resourcenames.MEMORY in table.free)
    total = {kind: reported.resources[kind].allocatable + reserved.get(kind, 0) for kind in table.free}
    pages = tuple(_pages(kind, amount) for kind, amount in total.items() if kind != resourcenames.MEMORY)
    ordinary = total[resourcenames.MEMORY] + sum(page.total_bytes for page in pages)
    return structs.replace(zone, memory=ordinary, hugepages=pages)


def _pages(kind: str, amount: int) -> HugePages:
    try:
        size = quantity.parse(kind.removeprefix(resourcenames.HUGEPAGES_PREFIX)).value
    except quantity.QuantityError:
        raise Incomplete(kind) from None
    _require(size >= 1024)
    pages = HugePages(size // 1024, amount // size)
    _require(pages.resource == kind and pages.total_bytes == amount)
    return pages


def _with_distances(zone: Zone, reported: ReportedZone, zones: tuple[int, ...]) -> Zone:
    """Indexed by zone id. Without all of them there are none, and no kubelet that wants close zones starts."""
    costs = reported.costs
    complete = all(to in costs for to in zones)
    return structs.replace(zone, distances=tuple(costs.get(to, 0) for to in range(zones[-1] + 1)) if complete else ())


def _with_reservations(settings: Settings, facts: NodeFacts) -> Settings:
    """Node totals are not published; these make the sums match that the managers check when they start."""
    cpus, reserved = facts.reserved_cpus or 0, facts.reserved_memory or {}
    totals = {resourcenames.CPU: 1000 * cpus.bit_count()}
    for limits in reserved.values():
        totals |= {kind: totals.get(kind, 0) + amount for kind, amount in limits.items()}
    return structs.replace(
        settings,
        reserved_cpus=cpus,
        reserved_memory=tuple(MemoryReservation(zone, limits) for zone, limits in sorted(reserved.items())),
        reserved=totals,
    )


def _require_holdings(kubelet: Kubelet, holdings: list[Holding], facts: NodeFacts) -> None:
    """What pods hold must exist, and what is free cannot be more than there is."""
    if kubelet.cpu:
        cpus = kubelet.cpu.topology.cpus
        _require(facts.default_cpus is not None and not facts.default_cpus & ~cpus)
        _require(not any(holding.cpus & ~cpus for holding in holdings))
    if kubelet.memory:
        every, allocatable = kubelet.machine.all_zones, kubelet.memory.allocatable
        for zone in facts.memory or ():
            _require(zone.cells and not zone.cells & ~every)
            _require(all(zone.free[kind] <= amount for kind, amount in allocatable[zone.zone].items()))
        blocks = [block for holding in holdings for block in holding.memory]
        _require(all(block.zones and not block.zones & ~every for block in blocks))
        _require(all(block.type in kubelet.machine.memory_types for block in blocks))


def _require(condition: object) -> None:
    if not condition:
        raise Incomplete
