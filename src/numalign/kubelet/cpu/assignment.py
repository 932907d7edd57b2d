"""Picks the CPUs of a container: packed, or distributed across NUMA zones (cpu_assignment.go).

`static` calls it. `take_by_topology_packed` takes whole zones and sockets first, then L3 groups if configured, then
whole cores, then single CPUs; among equals the one with the fewest free CPUs (kubelet spec 5.6).
`take_by_topology_distributed` (`distribute-cpus-across-numa`) spreads the CPUs evenly over as few zones as possible: it
scores combinations of zones by how evenly free CPUs would remain (kubelet spec 5.7). Two properties of the original
decide its answers and are kept: later combinations overwrite earlier ones in growable arrays, and some inputs never
end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import comb, floor, inf, sqrt

from msgspec import Struct

from numalign.api.decode import cpuset
from numalign.kubelet.cpu.topology import CPUTopology, Elements
from numalign.kubelet.refusals import Refusal, Undecided

Nested = Mapping[int, tuple[int, ...]]
"""Id of an element to the ids of the smaller ones in it."""


class Picking(Struct, frozen=True):
    """How to pick: single CPUs spread over cores instead of filling them, and whether L3 groups are kept together."""

    spread: bool = False
    align_uncore: bool = False


def take_by_topology_packed(topology: CPUTopology, free: int, need: int, picking: Picking) -> int:
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


BUDGET = 50_000
"""Combinations and subsets that are examined before the model gives up: at 8 zones there are at most 6,561."""

HANGS = "the kubelet never returns: the remainder cannot be handed out in whole cores and it tries for ever"


class Distributing(Struct, frozen=True):
    """`group`: CPUs handed out at a time, a whole core with full-pcpus-only. `capped`: shares shrink to what each
    zone has, as since 1.37."""

    group: int
    by_socket: bool
    capped: bool
    picking: Picking


def take_by_topology_distributed(
    topology: CPUTopology, free: int, need: int, how: Distributing, least_zones: int = 0
) -> int:
    """Take `need` of the free CPUs evenly from as few zones as possible, else packed. `least_zones` raises that number,
    where so many zones have free CPUs."""
    if need % how.group:
        return take_by_topology_packed(topology, free, need, how.picking)
    if need < 1:
        return 0
    if need > (free & topology.cpus).bit_count():
        raise not_enough(need, free)
    # A zone whose cores are in several sockets is listed once per socket, and may be combined with itself.
    zones = Pick(topology, free, need).zones()
    available = {zone: (topology.zones[zone] & free).bit_count() for zone in zones}
    search = Search(topology, Candidates(zones, available), need, how, least_zones)
    for count in search.counts():
        found = search.best(count)
        if found is not None:
            return HandingOut(Pick(topology, free, need), how).all(found)
    return take_by_topology_packed(topology, free, need, how.picking)


class Distribution(Struct, frozen=True):
    """Zones to take equal shares from, and those that the remainder is handed out over."""

    zones: Sequence[int]
    remainder: Sequence[int]


class Candidates(Struct, frozen=True):
    """Zones in the order in which they are combined, and how many CPUs each has free."""

    listed: Sequence[int]
    available: Mapping[int, int]


class Slice:
    """A growable array: several slices may share one store, and appending to a shorter one overwrites a longer one."""

    __slots__ = ("length", "store")

    def __init__(self, store: list[int], length: int) -> None:
        self.store = store
        self.length = length

    def appended(self, value: int) -> Slice:
        if self.length < len(self.store):
            self.store[self.length] = value
            return Slice(self.store, self.length + 1)
        room = max(1, 2 * self.length) - self.length
        return Slice([*self.store[: self.length], value, *[0] * (room - 1)], self.length + 1)

    def values(self) -> list[int]:
        return self.store[: self.length]


def combinations(values: Sequence[int], size: int, visit: Callable[[Slice], bool]) -> None:
    """Visit combinations in lexicographic order until a visit returns False."""

    def extend(size: int, start: int, prefix: Slice) -> bool:
        if size == 0:
            return visit(prefix)
        return all(extend(size - 1, i + 1, prefix.appended(values[i])) for i in range(start, len(values) - size + 1))

    if size > 0:
        extend(size, 0, Slice([], 0))


class Search:
    """The search for the most even combination of a given number of zones."""

    def __init__(
        self, topology: CPUTopology, candidates: Candidates, need: int, how: Distributing, least_zones: int
    ) -> None:
        self.topology = topology
        self.listed = candidates.listed
        self.available = candidates.available
        self.need = need
        self.how = how
        self.least_zones = least_zones
        self.steps = 0

    def counts(self) -> range:
        group = self.how.group
        groups = -(-self.topology.cpus.bit_count() // group)
        per_zone = -(-groups // len(self.topology.zones))
        needed = -(-self.need // group)
        fewest = max(-(-needed // per_zone), self.least_zones if self.least_zones <= len(self.available) else 0)
        return range(fewest, min(needed, len(self.available)) + 1)

    def best(self, count: int) -> Distribution | None:
        self.score, self.in_one_socket = inf, False
        self.combination: Slice | None = None
        self.remainder: Slice | None = None
        combinations(self.listed, count, self._consider)
        if self.combination is None:
            return None
        return Distribution(self.combination.values(), self.remainder.values() if self.remainder else ())

    def _consider(self, combination: Slice) -> bool:
        by_socket = self.how.by_socket
        if self.score == 0 and (not by_socket or self.in_one_socket):
            return False
        self._spend()
        zones = combination.values()
        share = self._share(zones)
        if share is None:
            return True
        score, remainder = self._scored(zones, share)
        one_socket = by_socket and self._in_one_socket(zones)
        better = one_socket if by_socket and one_socket != self.in_one_socket else score < self.score
        if better:
            self.score, self.remainder, self.combination, self.in_one_socket = score, remainder, combination, one_socket
        return True

    def _share(self, zones: Sequence[int]) -> int | None:
        """CPUs that each zone gives, or None where the combination cannot hold the request."""
        group, available = self.how.group, self.available
        if sum(available[zone] for zone in set(zones)) < self.need:
            return None
        if sum(available[zone] // group for zone in zones) * group < self.need:
            return None
        share = self.need // len(zones) // group * group
        if self.how.by_socket:
            share = min(share, *(available[zone] // group * group for zone in zones))
        return None if any(available[zone] < share for zone in zones) else share

    def _scored(self, zones: Sequence[int], share: int) -> tuple[float, Slice | None]:
        after = dict(self.available)
        for zone in zones:
            after[zone] -= share
        remainder = self.need - share * len(zones)
        if remainder == 0:
            return _deviation(list(after.values())), None
        with_room = [zone for zone in zones if after[zone] >= self.how.group]
        best: tuple[float, Slice | None] = (inf, None)

        def consider(subset: Slice) -> bool:
            nonlocal best
            self._spend()
            chosen = subset.values()
            if sum(after[zone] for zone in chosen) >= remainder:
                score = _deviation(list(self._handed_out(after, chosen, remainder).values()))
                if score < best[0]:
                    best = score, subset
            return True

        for size in range(len(with_room), 0, -1):
            combinations(with_room, size, consider)
        return best

    def _handed_out(self, after: Mapping[int, int], zones: Sequence[int], remainder: int) -> dict[int, int]:
        left, group = dict(after), self.how.group
        while remainder > 0:
            before = remainder
            for zone in zones:
                if remainder == 0:
                    break
                if left[zone] >= group:
                    left[zone] -= group
                    remainder -= group
            if remainder == before:
                raise Undecided(HANGS)
        return left

    def _in_one_socket(self, zones: Sequence[int]) -> bool:
        return len({socket for zone in zones for socket in self.topology.sockets_in_zone[zone]}) <= 1

    def _spend(self) -> None:
        self.steps += 1
        if self.steps > BUDGET:
            zones = len(self.listed)
            estimate = sum(comb(zones, count) << count for count in self.counts())
            raise Undecided(
                "the kubelet would try every combination of zones and every share of the remainder", estimate
            )


class HandingOut:
    """Taking the CPUs of a settled combination, zone by zone with the packed picker."""

    def __init__(self, pick: Pick, how: Distributing) -> None:
        self.pick = pick
        self.how = how

    def all(self, found: Distribution) -> int:
        need, group = self.pick.need, self.how.group
        share = need // len(found.zones) // group * group
        if self.how.capped:
            share = min(share, *(self._free_in(zone) // group * group for zone in found.zones))
        for zone in found.zones:
            self._take(zone, share)
        self._remainder(found.remainder, need - share * len(found.zones))
        if self.pick.need > 0:
            raise Refusal(f"accounting error, not enough CPUs allocated, remaining: {self.pick.need}")
        if self.pick.need < 0:
            raise Refusal(f"accounting error, too many CPUs allocated, remaining: {self.pick.need}")
        return self.pick.taken

    def _remainder(self, zones: Sequence[int], remainder: int) -> None:
        group = self.how.group
        while remainder > 0:
            before = remainder
            for zone in zones:
                if remainder == 0:
                    break
                if self._free_in(zone) >= group:
                    self._take(zone, group)
                    remainder -= group
            if remainder == before:
                raise Undecided(HANGS)

    def _take(self, zone: int, count: int) -> None:
        pick = self.pick
        # On a failure the kubelet continues with nothing from this zone and detects it in the sum.
        with suppress(Refusal):
            pick.take(
                take_by_topology_packed(pick.topology, pick.topology.zones[zone] & pick.free, count, self.how.picking)
            )

    def _free_in(self, zone: int) -> int:
        return (self.pick.topology.zones[zone] & self.pick.free).bit_count()


def _deviation(values: Sequence[int]) -> float:
    """Standard deviation in the kubelet's roundings: mean and result to three decimals, halves away from zero."""
    mean = _rounded(sum(map(float, values)) / len(values))
    return _rounded(sqrt(sum((value - mean) * (value - mean) for value in values) / len(values)))


def _rounded(value: float) -> float:
    scaled = value * 1000
    whole = floor(scaled)
    return (whole + (scaled - whole >= 0.5)) / 1000
