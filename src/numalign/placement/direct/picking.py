"""Picks CPUs for one container: whole cores or single threads, from one zone or socket if possible.

`scope` calls `take` with the free CPUs of the zones that it has chosen. The rules are those of Koordinator's
accumulator (koordinator spec 11) with CPUs that one container holds at a time. Exclusive policies are soft: CPUs that
they forbid are used when there are no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from numalign.api.attributes.directspec import BindPolicy, CPUExclusion
from numalign.kubelet.cpu.topology import CPUTopology


class Picking(Struct, frozen=True):
    """How to pick."""

    bind: BindPolicy = "FullPCPUs"
    fill: bool = True
    """The fullest zone that fits first (MostAllocated); else the emptiest."""
    exclusion: CPUExclusion = "None"
    held_cores: int = 0
    """CPUs that other pods hold under PCPULevel."""
    held_zones: int = 0
    """The same under NUMANodeLevel."""


def usable(topology: CPUTopology, free: int, required: BindPolicy | None) -> int:
    """The free CPUs that a required bind policy can use: those of whole cores, or one of each core."""
    whole = topology.most_threads
    if required is None or whole == 1:
        return free
    found = 0
    for threads in topology.cores.values():
        own = threads & free
        if required == "FullPCPUs":
            found |= own if own.bit_count() == whole else 0
        else:
            found |= own & -own
    return found


def take(topology: CPUTopology, free: int, need: int, how: Picking) -> int | None:
    """So many of the free CPUs; None: there are fewer."""
    free &= topology.cpus
    if need < 1:
        return 0
    if need > free.bit_count():
        return None
    if need == free.bit_count():
        return free
    return _Accumulator(topology, free, need, how).all()


class _Accumulator:
    def __init__(self, topology: CPUTopology, free: int, need: int, how: Picking) -> None:
        self.topology, self.free, self.need, self.how = topology, free, need, how
        self.taken = 0
        self.before = free
        self.sign = 1 if how.fill else -1
        self.threads = topology.most_threads

    def all(self) -> int:
        for step in self._steps():
            step()
            if not self.need:
                return self.taken
        raise AssertionError("there are enough free CPUs")

    def _steps(self) -> Iterator[Callable[[], None]]:
        if self.how.bind == "FullPCPUs" or self.threads == 1:
            yield self.cores_of_one_zone
            yield self.cores_of_one_socket
            yield self.whole_sockets
        else:
            yield self.threads_of_one_zone
            yield self.threads_of_one_socket
        yield self.remainder

    # Whole cores

    def cores_of_one_zone(self) -> None:
        for allowed in self._twice(self._zone_exclusion):
            if self._first(self.topology.zones, allowed, self._whole_cores, self._in_core_order):
                return

    def cores_of_one_socket(self) -> None:
        self._first(self.topology.sockets, self.free, self._whole_cores, self._in_core_order)

    def whole_sockets(self) -> None:
        """Largest sockets while one fits, then core by core from the smallest ones."""
        counted = sorted(
            ((self._whole_cores(own & self.free), key) for key, own in self.topology.sockets.items()),
            key=lambda each: (-each[0].bit_count(), each[1]),
        )
        left = []
        for cpus, _ in counted:
            if cpus and self.need >= cpus.bit_count():
                self._take(cpus)
            else:
                left.append(cpus)
        for cpus in reversed(left):
            for core in self._in_core_order(cpus, 0):
                if self.need < self.threads:
                    return
                self._take(core)

    # Single threads

    def threads_of_one_zone(self) -> None:
        for allowed in self._twice(self._exclusion):
            if self._first(self.topology.zones, allowed, lambda cpus: cpus, self._spread):
                return

    def threads_of_one_socket(self) -> None:
        self._first(self.topology.sockets, self.free, lambda cpus: cpus, self._spread)

    def remainder(self) -> None:
        """Wherever something is free: near what is taken already, and where cores are in use anyway."""
        for allowed in self._twice(self._exclusion):
            for cpu in self._spread_over(self._cores_by_remainder(allowed)):
                if not self.need:
                    return
                self._take(cpu & self.free)

    def _cores_by_remainder(self, allowed: int) -> list[int]:
        topology, free = self.topology, self.free
        keyed = []
        for core, threads in topology.cores.items():
            own = threads & allowed & free
            if not own:
                continue
            socket, home = self._area(topology.sockets, threads), self._area(topology.zones, threads)
            keyed.append(
                (
                    -(topology.sockets[socket] & self.taken).bit_count(),
                    self.sign * (topology.sockets[socket] & free).bit_count(),
                    self.sign * (topology.zones[home] & free).bit_count(),
                    (threads & free).bit_count(),
                    socket,
                    core,
                    own,
                )
            )
        return [each[-1] for each in sorted(keyed)]

    # Shared

    def _first(
        self,
        areas: Mapping[int, int],
        allowed: int,
        fitting: Callable[[int], int],
        order: Callable[[int, int], Iterable[int]],
    ) -> bool:
        """Takes everything from the first area that has enough."""
        topology, free = self.topology, self.free
        candidates = []
        for key, area in areas.items():
            cpus = fitting(area & allowed & free)
            if cpus:
                socket = topology.sockets[self._area(topology.sockets, area)]
                around = (socket & free).bit_count() if areas is topology.zones else 0
                candidates.append((self.sign * cpus.bit_count(), self.sign * around, key, cpus))
        for _, _, _, cpus in sorted(candidates):
            if cpus.bit_count() >= self.need:
                for each in order(cpus, self.need):
                    if not self.need:
                        break
                    self._take(each)
                return True
        return False

    def _take(self, cpus: int) -> None:
        """The lowest of these, as many as are needed."""
        while cpus and self.need:
            cpu = cpus & -cpus
            self.taken |= cpu
            self.free ^= cpu
            cpus ^= cpu
            self.need -= 1

    def _whole_cores(self, cpus: int) -> int:
        return usable(self.topology, cpus, "FullPCPUs")

    def _in_core_order(self, cpus: int, _: int) -> Sequence[int]:
        return [own for threads in self.topology.cores.values() if (own := threads & cpus)]

    def _spread(self, cpus: int, _: int) -> Iterator[int]:
        return self._spread_over([own for threads in self.topology.cores.values() if (own := threads & cpus)])

    def _spread_over(self, cores: Sequence[int]) -> Iterator[int]:
        """One CPU of each core in turn, until there is none left."""
        left = list(cores)
        if sum(own.bit_count() for own in left) <= self.threads:
            yield from left
            return
        while left:
            after = []
            for own in left:
                cpu = own & -own
                yield cpu
                if own ^ cpu:
                    after.append(own ^ cpu)
            left = after

    def _twice(self, forbid: Callable[[], int]) -> Iterator[int]:
        """What is free without the CPUs that an exclusive policy forbids, then all of it."""
        if self.how.exclusion != "None":
            yield self.free & ~forbid()
        yield self.free

    def _exclusion(self) -> int:
        if self.how.exclusion == "PCPULevel":
            # At most one thread of each core, so that the pod keeps its other threads idle.
            one_each = usable(self.topology, self.free, "SpreadByPCPUs") if self.threads > 1 else self.free
            taken = self.topology.whole_cores(self.how.held_cores | self.taken)
            return taken | (self.free & ~one_each)
        return self._zone_exclusion()

    def _zone_exclusion(self) -> int:
        if self.how.exclusion != "NUMANodeLevel":
            return 0
        forbidden = 0
        for cpus in self.topology.zones.values():
            forbidden |= cpus if cpus & self.how.held_zones else 0
        return forbidden

    def _area(self, areas: Mapping[int, int], cpus: int) -> int:
        return next(key for key, own in areas.items() if own & cpus)
