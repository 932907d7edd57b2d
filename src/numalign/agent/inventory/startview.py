"""The machine as the running kubelet knows it: as it was when the kubelet started.

`inventory` builds on it, because the kubelet reads the hardware once: CPUs, memory, huge pages and zones that change
later count from its next start (exporter spec 2.5). Its view is in the checkpoints of the CPU and memory managers and
in GetAllocatableResources; without these, the kernel's view is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, structs

from numalign.agent.sources.checkpoints import CPUCheckpoint, MemoryCheckpoint, Sizes
from numalign.agent.sources.podresources import Allocatable
from numalign.api.decode import quantity
from numalign.api.objects import resourcenames
from numalign.kubelet.cpu.static import STRICT_RESERVATION
from numalign.kubelet.machine.machine import Core, HugePages, Machine, Zone
from numalign.kubelet.machine.zonecores import short_text
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import CPU_OPTIONS, Settings, boolean_option
from numalign.kubelet.topologymanager import mask as masks

STATIC_CPUS: Final = "static"
STATIC_MEMORY: Final = "Static"


class Evidence(Struct, frozen=True):
    """What the kubelet's answers and checkpoints show of the machine that it found."""

    cpu: CPUCheckpoint | None = None
    memory: MemoryCheckpoint | None = None
    offered: Allocatable | None = None


def of(machine: Machine, settings: Settings, evidence: Evidence) -> Machine:
    """The machine with the memory that the kubelet counts on, without zones and CPUs that it does not know."""
    seen, came = _with_known_memory(machine, settings, evidence.memory), _came(machine, settings, evidence)
    if not came:
        return seen
    zones = (structs.replace(zone, cores=tuple(_without(zone.cores, came))) for zone in seen.zones)
    return structs.replace(seen, zones=tuple(zones))


def changes(machine: Machine, settings: Settings, evidence: Evidence) -> Iterator[str]:
    """Changes of the hardware since the kubelet started, as sentences."""
    before = {zone.id: zone for zone in _with_known_memory(machine, settings, evidence.memory).zones}
    for zone in machine.zones:
        if zone.id not in before:
            yield f"zone {zone.id} appeared after the kubelet started, which does not know it; ignored"
            continue
        now, then = _amounts(zone), _amounts(before[zone.id])
        for kind in sorted({*now, *then}):
            if now.get(kind, 0) != then.get(kind, 0):
                yield (
                    f"zone {zone.id} has {now.get(kind, 0)} bytes of {kind} now;"
                    f" the kubelet uses {then.get(kind, 0)} until it restarts"
                )
    if came := _came(machine, settings, evidence):
        yield f"CPUs {short_text(came)} came online after the kubelet started, which does not know them; ignored"
    if went := _counted_on(settings, evidence) & ~machine.cpus:
        yield (
            f"CPUs {short_text(went)} went offline after the kubelet started,"
            " which uses them until it restarts; ignored"
        )


def _came(machine: Machine, settings: Settings, evidence: Evidence) -> int:
    """CPUs that came online after the kubelet started; empty where they cannot be distinguished from reserved ones."""
    counted = _counted_on(settings, evidence)
    if not machine.cpus & counted:
        return 0  # unknown, or of another machine
    if settings.reserved_cpus or _reserved_are_counted(settings, evidence):
        return machine.cpus & ~counted & ~settings.reserved_cpus
    return 0


def _counted_on(settings: Settings, evidence: Evidence) -> int:
    """CPUs that the kubelet found, with or without reserved ones. Empty: unknown."""
    if settings.cpu_policy != STATIC_CPUS:
        return 0
    offered = masks.of(evidence.offered.cpus) if evidence.offered is not None else 0
    return _written(evidence.cpu) or offered


def _written(checkpoint: CPUCheckpoint | None) -> int:
    """The shared pool and exclusive CPUs add up to all CPUs of the static policy."""
    if checkpoint is None or checkpoint.policy != STATIC_CPUS:
        return 0
    found = checkpoint.state.default
    for held in (*checkpoint.state.assignments.values(), checkpoint.state.pods):
        for cpus in held.values():
            found |= cpus
    return found


def _reserved_are_counted(settings: Settings, evidence: Evidence) -> bool:
    """Whether the CPUs include reserved ones: by default containers share them, and the checkpoint has them."""
    text = settings.cpu_options.get(STRICT_RESERVATION, "false")
    try:
        strict = boolean_option(STRICT_RESERVATION, text, CPU_OPTIONS)
    except StartRefusal:
        strict = False
    return bool(_written(evidence.cpu)) and not strict


def _without(cores: Iterable[Core], cpus: int) -> Iterator[Core]:
    for core in cores:
        if kept := tuple(each for each in core.cpus if not cpus >> each & 1):
            yield structs.replace(core, cpus=kept)


def _with_known_memory(machine: Machine, settings: Settings, checkpoint: MemoryCheckpoint | None) -> Machine:
    if checkpoint is None or settings.memory_policy != STATIC_MEMORY or checkpoint.policy != STATIC_MEMORY:
        return machine
    known = {zone.id: checkpoint.sizes.get(zone.id, {}) for zone in machine.zones}
    zones = tuple(_seen(zone, known[zone.id]) for zone in machine.zones if resourcenames.MEMORY in known[zone.id])
    return structs.replace(machine, zones=zones) if zones else machine


def _seen(zone: Zone, sizes: Mapping[str, Sizes]) -> Zone:
    pages = (_pages(kind, each.total) for kind, each in sizes.items() if resourcenames.is_hugepages(kind))
    return structs.replace(
        zone,
        memory=sizes[resourcenames.MEMORY].total,
        hugepages=tuple(sorted((each for each in pages if each), key=lambda each: each.size_kib)),
    )


def _pages(kind: str, total: int) -> HugePages | None:
    """None for a name that is not a hugepage resource."""
    try:
        size = quantity.parse(kind.removeprefix(resourcenames.HUGEPAGES_PREFIX)).value
    except quantity.QuantityError:
        return None
    made = HugePages(size >> 10, total // size) if size >> 10 > 0 else None
    return made if made and made.resource == kind else None


def _amounts(zone: Zone) -> dict[str, int]:
    return {resourcenames.MEMORY: zone.memory} | {page.resource: page.total_bytes for page in zone.hugepages}
