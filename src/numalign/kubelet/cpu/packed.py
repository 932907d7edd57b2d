"""The packed picker: which CPUs a container gets when they should sit as close together as possible.

Whole zones and sockets first, then L3 groups (if asked for), then whole cores, then single CPUs; among equals the one
with the fewest free CPUs, so that what is already broken into is filled before anything untouched (kubelet spec
5.6). Orders list only what has free CPUs, and a socket that lies in several zones is listed once per zone, as there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from numalign.api.attributes import cpuset
from numalign.kubelet.cpu.topology import CPUTopology, Elements
from numalign.kubelet.refusals import Refusal

Nested = Mapping[int, tuple[int, ...]]
"""Id of an element to the ids of the smaller ones in it."""


class Picking(Struct, frozen=True):
    """How to pick: single CPUs spread over cores instead of filling them, and whether L3 groups are kept together."""

    spread: bool = False
    align_uncore: bool = False


def take(topology: CPUTopology, free: int, need: int, picking: Picking) -> int:
    """Take `need` of the free CPUs, or refuse with the kubelet's text."""
    if need < 1:
        return 0
    if need > (free & topology.cpus).bit_count():
        raise not_enough(need, free)
    pick = Pick(topology, free & topology.cpus, need)
    for step in _steps(pick, picking):
        step()
        if pick.satisfied:
            return pick.taken
    raise Refusal("failed to allocate cpus")


def not_enough(need: int, free: int) -> Refusal:
    available = free.bit_count()
    return Refusal(f"not enough cpus available to satisfy request: requested={need}, available={available}")


def _steps(pick: Pick, picking: Picking) -> Iterator[Callable[[], None]]:
    largest_first = (pick.full_zones, pick.full_sockets)
    yield from largest_first if pick.topology.zones_first else reversed(largest_first)
    if picking.align_uncore:
        yield pick.uncore_groups
    if picking.spread:
        yield pick.single_cpus_spread
    else:
        yield from (pick.full_cores, pick.single_cpus_packed)


class Pick:
    """One run of the picker: what is still free, still needed, and taken so far."""

    def __init__(self, topology: CPUTopology, free: int, need: int) -> None:
        self.topology = topology
        self.free = free
        self.need = need
        self.taken = 0

    @property
    def satisfied(self) -> bool:
        return self.need < 1

    def take(self, cpus: int) -> None:
        # A socket listed twice counts twice against the need, as in the kubelet.
        self.taken |= cpus
        self.free &= ~self.taken
        self.need -= cpus.bit_count()

    # Orders: what has free CPUs, that with the fewest first.

    def zones(self) -> list[int]:
        topology = self.topology
        if topology.zones_first:
            return self._fewest_first(topology.zones, topology.zones)
        return self._nested(self.sockets(), topology.sockets, topology.zones_in_socket, topology.zones)

    def sockets(self) -> list[int]:
        topology = self.topology
        if not topology.zones_first:
            return self._fewest_first(topology.sockets, topology.sockets)
        return self._nested(self.zones(), topology.zones, topology.sockets_in_zone, topology.sockets)

    def cores(self) -> list[int]:
        topology = self.topology
        if topology.zones_first:
            return self._nested(self.sockets(), topology.sockets, topology.cores_in_socket, topology.cores)
        return self._nested(self.zones(), topology.zones, topology.cores_in_zone, topology.cores)

    def uncores(self) -> list[int]:
        topology = self.topology
        return self._nested(self.zones(), topology.zones, topology.uncores_in_zone, topology.uncores)

    def _nested(self, outer: list[int], areas: Elements, inside: Nested, elements: Elements) -> list[int]:
        ordered: list[int] = []
        for key in outer:
            area = areas[key] & self.free
            ordered += self._fewest_first((each for each in inside[key] if elements[each] & area), elements)
        return ordered

    def _fewest_first(self, ids: Iterable[int], elements: Elements) -> list[int]:
        free = self.free
        counted = sorted([((elements[key] & free).bit_count(), key) for key in ids])
        return [key for count, key in counted if count]

    # Steps: each takes what it can.

    def full_zones(self) -> None:
        self._full(self.zones(), self.topology.zones)

    def full_sockets(self) -> None:
        self._full(self.sockets(), self.topology.sockets, self.topology.cpus_per_socket)

    def full_cores(self) -> None:
        self._full(self.cores(), self.topology.cores, self.topology.cpus_per_core)

    def uncore_groups(self) -> None:
        """Whole L3 groups while one fits, else exactly what is needed out of one of them."""
        for uncore in self.uncores():
            if self.need >= self.topology.cpus_per_uncore:
                self._full(self.uncores(), self.topology.uncores)
            if not self.satisfied:
                self._part_of_uncore(uncore)
            if self.satisfied:
                return

    def single_cpus_packed(self) -> None:
        self._singly([self.topology.cores[core] for core in self.cores()])

    def single_cpus_spread(self) -> None:
        self._singly([self.topology.sockets[socket] for socket in self.sockets()])

    def _full(self, ids: list[int], elements: Elements, average: int | None = None) -> None:
        """Take entirely free elements; "entirely" is measured by the machine's average where one is given."""
        free = self.free
        candidates = [elements[key] for key in ids]
        whole = [cpus for cpus in candidates if (cpus & free).bit_count() == (average or cpus.bit_count())]
        for cpus in whole:
            if self.need >= cpus.bit_count():
                self.take(cpus)

    def _part_of_uncore(self, uncore: int) -> None:
        topology = self.topology
        in_uncore = topology.uncores[uncore] & self.free
        cores = sorted(core for core in topology.cores_in_uncore[uncore] if topology.cores[core] & in_uncore)
        cpus = 0
        for core in cores[: -(-self.need // topology.cpus_per_core)]:
            cpus |= topology.cores[core] & self.free
        if self.need % 2 and topology.cpus_per_core > 1 and cpus.bit_count() > self.need:
            cpus &= ~(1 << cpus.bit_length() - 1)
        if cpus.bit_count() == self.need:
            self.take(cpus)

    def _singly(self, groups: list[int]) -> None:
        free = self.free
        for cpu in [cpu for group in groups for cpu in cpuset.members(group & free)]:
            if self.satisfied:
                return
            self.take(1 << cpu)
