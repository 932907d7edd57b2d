"""The CPUs of a node in direct mode: which may be handed out, and the shared pools.

`state` asks it for every container that has no CPUs of its own. docs/concepts/direct-mode.md has the rule. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from numalign.api.decode import cpuset
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.topologymanager import mask as masks


class NodeCPUs(Struct, frozen=True):
    """The CPUs of a node, as masks."""

    zones: Mapping[int, int]
    """By zone id."""
    reserved: int = 0

    @property
    def every(self) -> int:
        found = 0
        for cpus in self.zones.values():
            found |= cpus
        return found

    @property
    def allocatable(self) -> int:
        return self.every & ~self.reserved

    @property
    def memory_zones(self) -> int:
        return masks.of(self.zones)

    def pool(self, zones: Iterable[int], taken: int) -> int:
        """The shared pool of these zones; of the node if none are given. `taken`: CPUs that belong to containers."""
        inside = 0
        for zone in zones:
            inside |= self.zones.get(zone, 0)
        shared = self.allocatable & ~taken
        return shared & (inside if zones else self.every) or self.reserved or self.every


def of_machine(machine: Machine, reserved: int) -> NodeCPUs:
    zones = {zone.id: cpuset.of(cpu for core in zone.cores for cpu in core.cpus) for zone in machine.zones}
    return NodeCPUs(zones, reserved & machine.cpus)
