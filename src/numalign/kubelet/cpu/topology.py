"""The CPU Manager's view of the machine: which CPUs share a core, an L3 cache, a socket and a zone.

Built once per machine and never changed. Every element is a CPU set (an int, see `api.decode.cpuset`), so that counting
free CPUs is one AND and a popcount. Averages over the whole machine decide what counts as a full core or socket, also
on uneven machines (kubelet spec 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct

from numalign.api.decode import cpuset
from numalign.kubelet.machine.machine import Core, Machine
from numalign.kubelet.topologymanager import mask as masks

Elements = Mapping[int, int]
"""Id of a core, L3, socket or zone to its CPUs."""


class CPUTopology(Struct, frozen=True, dict=True):
    """CPUs by zone, socket, L3 and core. Zones without CPUs are unknown to the CPU manager."""

    zones: Elements
    sockets: Elements
    uncores: Elements
    cores: Elements

    @cached_property
    def cpus(self) -> int:
        return _union(self.zones.values())

    @cached_property
    def cpus_per_core(self) -> int:
        return self.cpus.bit_count() // len(self.cores) if self.cores else 0

    @cached_property
    def most_threads(self) -> int:
        """Of any core; 1 for a machine without CPUs."""
        return max((threads.bit_count() for threads in self.cores.values()), default=1)

    @cached_property
    def cpus_per_socket(self) -> int:
        return self.cpus.bit_count() // len(self.sockets) if self.sockets else 0

    @cached_property
    def cpus_per_uncore(self) -> int:
        return self.cpus.bit_count() // len(self.uncores) if self.uncores else 0

    @cached_property
    def zones_first(self) -> bool:
        """Whether a zone is the larger unit: machines with at least as many sockets as zones."""
        return len(self.sockets) >= len(self.zones)

    @cached_property
    def sockets_in_zone(self) -> Mapping[int, tuple[int, ...]]:
        return _overlaps(self.zones, self.sockets)

    @cached_property
    def zones_in_socket(self) -> Mapping[int, tuple[int, ...]]:
        return _overlaps(self.sockets, self.zones)

    @cached_property
    def uncores_in_zone(self) -> Mapping[int, tuple[int, ...]]:
        return _overlaps(self.zones, self.uncores)

    @cached_property
    def cores_in_zone(self) -> Mapping[int, tuple[int, ...]]:
        return _overlaps(self.zones, self.cores)

    @cached_property
    def cores_in_socket(self) -> Mapping[int, tuple[int, ...]]:
        return _overlaps(self.sockets, self.cores)

    @cached_property
    def cores_in_uncore(self) -> Mapping[int, tuple[int, ...]]:
        return _overlaps(self.uncores, self.cores)

    def of_zones(self, mask: int) -> int:
        """All CPUs of the zones in a mask; zones without CPUs have none."""
        return _union(self.zones.get(zone, 0) for zone in masks.members(mask))

    def of_sockets_touching(self, mask: int) -> int:
        """All CPUs of every socket that has a CPU in the mask's zones."""
        sockets = {socket for zone in masks.members(mask) for socket in self.sockets_in_zone.get(zone, ())}
        return _union(self.sockets[socket] for socket in sockets)

    def whole_cores(self, cpus: int) -> int:
        """The CPUs together with all their core siblings."""
        return _union(threads for threads in self.cores.values() if threads & cpus)

    def by_zone(self, cpus: int) -> dict[int, int]:
        """How many of the CPUs lie in each zone, keyed by the zone's mask."""
        return {1 << zone: (members & cpus).bit_count() for zone, members in self.zones.items()}


def discover(machine: Machine) -> CPUTopology:
    zones: dict[int, int] = {}
    sockets: dict[int, int] = {}
    uncores: dict[int, int] = {}
    cores: dict[int, int] = {}
    for zone in machine.zones:
        for core in zone.cores:
            threads = cpuset.of(core.cpus)
            for elements, key in ((zones, zone.id), (sockets, core.socket), (uncores, _uncore(core))):
                elements[key] = elements.get(key, 0) | threads
            cores[min(core.cpus)] = threads
    return CPUTopology(zones=zones, sockets=sockets, uncores=uncores, cores=cores)


def _uncore(core: Core) -> int:
    return core.socket if core.uncore is None else core.uncore


def _union(sets: Iterable[int]) -> int:
    together = 0
    for cpus in sets:
        together |= cpus
    return together


def _overlaps(outer: Elements, inner: Elements) -> dict[int, tuple[int, ...]]:
    return {key: tuple(i for i, part in inner.items() if part & cpus) for key, cpus in outer.items()}
