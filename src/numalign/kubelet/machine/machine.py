"""The hardware that a kubelet sees: zones with cores, memory and devices.

Presets, machine files, recorded topologies and the agent all produce this type. It holds facts only: what the kubelet
derives from them is in `cpu.topology`, and its configuration in `settings`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct, field

from numalign.api.decode import cpuset
from numalign.api.objects import resourcenames


class Core(Struct, frozen=True):
    """One physical core: its hardware threads, its socket and, where the machine reports one, its L3 group."""

    socket: int
    cpus: tuple[int, ...]
    uncore: int | None = None


class HugePages(Struct, frozen=True):
    """Preallocated pages of one size."""

    size_kib: int
    pages: int

    @property
    def resource(self) -> str:
        return resourcenames.HUGEPAGES_PREFIX + _page_size_text(self.size_kib)

    @property
    def total_bytes(self) -> int:
        return self.size_kib * 1024 * self.pages


class Zone(Struct, frozen=True):
    """One NUMA node by its real id. `distances` is indexed by zone id, as the kubelet indexes it."""

    id: int
    cores: tuple[Core, ...] = ()
    memory: int = 0
    hugepages: tuple[HugePages, ...] = ()
    distances: tuple[int, ...] = ()


class Device(Struct, frozen=True):
    """One device of a plugin. `zones` None: no topology reported; empty: a topology that names no zone."""

    id: str
    zones: tuple[int, ...] | None = None
    healthy: bool = True


class DevicePlugin(Struct, frozen=True):
    """What one device plugin advertises, and whether it wants to be asked which devices to hand out."""

    devices: tuple[Device, ...] = ()
    preferred_allocation: bool = False


class Machine(Struct, frozen=True, dict=True):
    """A whole machine; zones ascend by id."""

    name: str
    zones: tuple[Zone, ...]
    devices: Mapping[str, DevicePlugin] = field(default_factory=dict)

    @cached_property
    def zone_ids(self) -> tuple[int, ...]:
        return tuple(zone.id for zone in self.zones)

    @cached_property
    def all_zones(self) -> int:
        """The mask of every zone."""
        return sum(1 << zone.id for zone in self.zones)

    @cached_property
    def cpus(self) -> int:
        """The mask of every CPU."""
        return cpuset.of(cpu for zone in self.zones for core in zone.cores for cpu in core.cpus)

    @cached_property
    def memory_types(self) -> frozenset[str]:
        """`memory` and every hugepage size that some zone reports."""
        return frozenset({"memory"}.union(page.resource for zone in self.zones for page in zone.hugepages))

    @cached_property
    def capacity(self) -> Mapping[str, int]:
        """Node totals as the kubelet reports them: cpu in milli-CPUs, everything else in units or bytes."""
        totals = {"cpu": 1000 * sum(len(core.cpus) for zone in self.zones for core in zone.cores)}
        totals["memory"] = sum(zone.memory for zone in self.zones)
        for zone in self.zones:
            for page in zone.hugepages:
                totals[page.resource] = totals.get(page.resource, 0) + page.total_bytes
        for resource, plugin in self.devices.items():
            totals[resource] = len(plugin.devices)
        return totals


def _page_size_text(size_kib: int) -> str:
    for unit, kib in (("Ti", 1 << 30), ("Gi", 1 << 20), ("Mi", 1 << 10)):
        if size_kib % kib == 0:
            return f"{size_kib // kib}{unit}"
    return f"{size_kib}Ki"
