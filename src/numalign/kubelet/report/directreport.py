"""What the agent adds to the report of a node in direct mode: that it enforces decisions, and all that there is.

The simulator's publisher calls `advertised`, and so does the agent where it can enforce. The kubelet's managers are off
there, so their part of the report is empty, and capacities and reservations come from the machine instead."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from numalign.api.attributes.devicetable import DeviceTable
from numalign.api.attributes.directmode import AppliedContainer, DeviceMinors, DirectMode
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.report import report
from numalign.kubelet.settings import Settings
from numalign.kubelet.topologymanager import mask as masks


def advertised(
    topology: NodeTopology,
    machine: Machine,
    settings: Settings,
    mode: DirectMode,
    applied: Iterable[AppliedContainer] = (),
    shares: DeviceTable | None = None,
) -> NodeTopology:
    """The report with direct mode and the acknowledged decisions."""
    facts = structs.replace(
        topology.facts,
        mode=mode,
        minors=minors(machine),
        applied=tuple(sorted(applied)),
        shares=shares,
        reserved_cpus=settings.reserved_cpus,
        reserved_memory={each.zone: each.limits for each in settings.reserved_memory},
    )
    return report.with_capacities(structs.replace(topology, facts=facts), machine)


def minors(machine: Machine) -> tuple[DeviceMinors, ...]:
    """The healthy devices, numbered by resource in the order of the plugin."""
    found: dict[tuple[str, int], int] = {}
    for resource, plugin in machine.devices.items():
        for minor, device in enumerate(plugin.devices):
            if device.healthy:
                key = resource, masks.of(device.zones or ())
                found[key] = found.get(key, 0) | 1 << minor
    return tuple(sorted(DeviceMinors(resource, zones, own) for (resource, zones), own in found.items()))
