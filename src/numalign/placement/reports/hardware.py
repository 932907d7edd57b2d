"""The machine behind a report: its cores, from the agent's core map.

`read` counts with it and `commit.restorekubelet` starts a kubelet on it. Nodes of one make publish the same map, so
what follows from a map is computed once and kept. Nothing here knows what is free."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Final

from msgspec import Struct

from numalign.api.attributes.coremap import Core as PublishedCore
from numalign.api.caches import BoundedCache
from numalign.kubelet.cpu.topology import CPUTopology, discover
from numalign.kubelet.machine.machine import Core, Machine, Zone
from numalign.kubelet.topologymanager import mask as masks

MAKES = 1024
"""Number of machines that are cached."""
HISTOGRAMS = 4096
"""Number of cached results per machine: zones with their free CPUs."""


class Cores(Struct, frozen=True, dict=True):
    """The CPU manager's view of a machine, counted by zone position."""

    zones: tuple[int, ...]
    topology: CPUTopology

    @cached_property
    def members(self) -> tuple[int, ...]:
        """By position: the CPUs of the zone."""
        return tuple(self.topology.zones.get(zone, 0) for zone in self.zones)

    def by_position(self, cpus: int) -> tuple[int, ...]:
        """How many of the CPUs lie in each zone."""
        return tuple([(members & cpus).bit_count() for members in self.members])

    def by_free_threads(self, free: int) -> tuple[tuple[int, ...], ...]:
        """By position: how many cores have t free threads, t from 1 to the most that any core has."""
        histogram = self.histogram
        return tuple([histogram(place, members & free) for place, members in enumerate(self.members)])

    @cached_property
    def histogram(self) -> Callable[[int, int], tuple[int, ...]]:
        """Counts cores by free threads for one zone, given its position and its free CPUs."""
        # From report to report, and between nodes of one hardware type, most zones have the same CPUs free.
        return lru_cache(maxsize=HISTOGRAMS)(self._counted)

    def _counted(self, place: int, free: int) -> tuple[int, ...]:
        counts = [0] * (self.topology.most_threads + 1)
        for threads in self._cores_by_position[place]:
            counts[(threads & free).bit_count()] += 1
        return tuple(counts[1:])

    def on_full_cores(self, cpus: int, reserved: int) -> int:
        """How many of the CPUs are on cores without a reserved one."""
        return (cpus & self._never_reserved(reserved)).bit_count()

    @cached_property
    def _never_reserved(self) -> Callable[[int], int]:
        return lru_cache(maxsize=MAKES)(self._spared)

    def _spared(self, reserved: int) -> int:
        return self.topology.cpus & ~(self.topology.whole_cores(reserved) | reserved)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """By position: how many CPUs the zone has."""
        return self.by_position(self.topology.cpus)

    @cached_property
    def _cores_by_position(self) -> tuple[tuple[int, ...], ...]:
        inside, cores = self.topology.cores_in_zone, self.topology.cores
        return tuple(tuple(cores[core] for core in inside.get(zone, ())) for zone in self.zones)

    @cached_property
    def sockets(self) -> tuple[int, ...]:
        """By position: the sockets that the zone touches, as a mask over the machine's sockets in ascending order."""
        place = {socket: position for position, socket in enumerate(sorted(self.topology.sockets))}
        touched = self.topology.sockets_in_zone
        return tuple(masks.of(place[socket] for socket in touched.get(zone, ())) for zone in self.zones)

    @cached_property
    def regular(self) -> bool:
        """Whether counts alone determine how a choice of CPUs is split among zones (engine spec 2)."""
        topology = self.topology
        alike = len({threads.bit_count() for threads in topology.cores.values()}) <= 1
        inner = topology.zones_in_socket if topology.zones_first else topology.sockets_in_zone
        return alike and all(len(outer) == 1 for outer in inner.values()) and self._averages_hold

    @cached_property
    def l3_straddles(self) -> bool:
        """Whether an L3 group lies in several zones; one of whole zones does no harm, those are taken before it."""
        zones, uncores = self.topology.zones.values(), self.topology.uncores.values()
        touched = [(own, [zone for zone in zones if zone & own]) for own in uncores]
        return any(len(inside) > 1 and any(zone & ~own for zone in inside) for own, inside in touched)

    @property
    def _averages_hold(self) -> bool:
        """Whether sockets have one size, or none shares its zone; otherwise the kubelet takes some for free ones."""
        sizes = {cpus.bit_count() for cpus in self.topology.sockets.values()}
        return len(sizes) <= 1 or all(own & (own - 1) == 0 for own in self.sockets)


def cores(zones: tuple[int, ...], published: tuple[PublishedCore, ...]) -> Cores | None:
    """The cores of a machine with these zones; None if the map puts a core anywhere else."""
    known = _LATEST.get(id(published))
    if known is not None and known[0] is published and known[1] == zones:
        return known[2]
    found = _cores(zones, published)
    return _LATEST.keep(id(published), (published, zones, found))[2]


_LATEST: Final[BoundedCache[int, tuple[tuple[PublishedCore, ...], tuple[int, ...], Cores | None]]] = BoundedCache(MAKES)
"""By the identity of maps, because hashing hundreds of cores is slow. The maps are kept alive with it."""


@lru_cache(maxsize=MAKES)
def _cores(zones: tuple[int, ...], published: tuple[PublishedCore, ...]) -> Cores | None:
    if not {core.zone for core in published} <= set(zones):
        return None
    return Cores(zones, discover(Machine("", zones_with_cores(zones, published))))


def zones_with_cores(zones: tuple[int, ...], published: tuple[PublishedCore, ...]) -> tuple[Zone, ...]:
    by_zone: dict[int, list[Core]] = {zone: [] for zone in zones}
    for core in published:
        by_zone[core.zone].append(Core(socket=core.socket, cpus=core.cpus, uncore=core.l3))
    return tuple(Zone(id=zone, cores=tuple(own)) for zone, own in by_zone.items())
