"""The machine as the running kubelet knows it, which is as it was when the kubelet started.

`inventory` builds on this, because the kubelet looks at the hardware once: memory and huge pages that come or go later,
and zones that a driver adds, count from its next start on (exporter spec 2.5). What it saw is in the checkpoint of its
memory manager; without one, or without that manager, the kernel's word is all there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import structs

from numalign.agent.checkpoints import MemoryCheckpoint, Sizes
from numalign.api import quantity, resourcenames
from numalign.kubelet.machine import HugePages, Machine, Zone
from numalign.kubelet.settings import Settings

STATIC: Final = "Static"


def of(machine: Machine, checkpoint: MemoryCheckpoint | None, settings: Settings) -> Machine:
    """With the memory that the kubelet counts on, and without zones that it does not know."""
    if checkpoint is None or settings.memory_policy != STATIC or checkpoint.policy != STATIC:
        return machine
    known = {zone.id: checkpoint.sizes.get(zone.id, {}) for zone in machine.zones}
    zones = tuple(_seen(zone, known[zone.id]) for zone in machine.zones if resourcenames.MEMORY in known[zone.id])
    return structs.replace(machine, zones=zones) if zones else machine


def changes(machine: Machine, seen: Machine) -> Iterator[str]:
    """What the kernel shows by now and the kubelet does not know, in words."""
    before = {zone.id: zone for zone in seen.zones}
    for zone in machine.zones:
        if zone.id not in before:
            yield f"zone {zone.id} came after the kubelet started, which does not know it; left out"
            continue
        now, then = _amounts(zone), _amounts(before[zone.id])
        for kind in sorted({*now, *then}):
            if now.get(kind, 0) != then.get(kind, 0):
                yield (
                    f"zone {zone.id} has {now.get(kind, 0)} bytes of {kind} by now,"
                    f" and the kubelet counts on {then.get(kind, 0)} until it starts anew"
                )


def _seen(zone: Zone, sizes: Mapping[str, Sizes]) -> Zone:
    pages = (_pages(kind, each.total) for kind, each in sizes.items() if resourcenames.is_hugepages(kind))
    return structs.replace(
        zone,
        memory=sizes[resourcenames.MEMORY].total,
        hugepages=tuple(sorted((each for each in pages if each), key=lambda each: each.size_kib)),
    )


def _pages(kind: str, total: int) -> HugePages | None:
    """None for a size that no kubelet would name so."""
    try:
        size = quantity.parse(kind.removeprefix(resourcenames.HUGEPAGES_PREFIX)).value
    except quantity.QuantityError:
        return None
    made = HugePages(size >> 10, total // size) if size >> 10 > 0 else None
    return made if made and made.resource == kind else None


def _amounts(zone: Zone) -> dict[str, int]:
    return {resourcenames.MEMORY: zone.memory} | {page.resource: page.total_bytes for page in zone.hugepages}
