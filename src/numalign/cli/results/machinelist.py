"""Lists the machine presets, for `numalign kubelet machines`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from numalign.cli.display import formats
from numalign.kubelet.machine import presets


class PresetOutput(Struct, frozen=True):
    name: str
    zones: int
    cpus: int
    memory: int
    """Bytes."""
    devices: dict[str, int]
    """Devices by resource."""


def listed() -> list[PresetOutput]:
    machines = ((name, presets.machine(name)) for name in presets.names())
    return [
        PresetOutput(
            name=name,
            zones=len(machine.zones),
            cpus=sum(len(core.cpus) for zone in machine.zones for core in zone.cores),
            memory=sum(zone.memory for zone in machine.zones),
            devices={resource: len(plugin.devices) for resource, plugin in machine.devices.items()},
        )
        for name, machine in machines
    ]


def text(found: Sequence[PresetOutput]) -> str:
    page = formats.Page()
    table = page.table("name", "NUMA zones", "CPUs", "memory", "devices")
    for each in found:
        devices = ", ".join(f"{count} {resource}" for resource, count in each.devices.items()) or "-"
        table.add_row(each.name, f"{each.zones}", f"{each.cpus}", formats.amount("memory", each.memory), devices)
    page.add(table)
    return page.text()
