"""A machine as direct mode hands it out, and what is free on it.

`reports` makes a `DirectMachine` from a report, and `direct` takes from a `FreeState`. Zones go by position, CPUs and
minors are sets as integers, memory is in bytes. A `FreeState` compares and hashes as a value: nodes in the same state
get the same answer, which is computed once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from numalign.api.attributes.directmode import NodeDefaults
from numalign.kubelet.cpu.topology import CPUTopology
from numalign.placement.columns.deviceshares import NO_SHARES, NO_STOCK, DeviceStock, Shares

MILLI: Final = 1000


class DirectTerms(Struct, frozen=True):
    """How a node decides: its defaults, and what its agent enforces."""

    features: frozenset[str] = frozenset()
    defaults: NodeDefaults = NodeDefaults()


class DirectMachine(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """Shared by all nodes of one make and configuration: `reports` returns one object for equal ones."""

    zones: tuple[int, ...]
    """Real ids, ascending."""
    topology: CPUTopology
    """All CPUs that may be handed out; reserved ones are not part of it."""
    memory: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """By memory type the bytes of each zone."""
    devices: tuple[tuple[str, tuple[int, ...], int], ...] = ()
    """By resource the minors of each zone, and those that lie in no zone."""
    stock: DeviceStock = NO_STOCK
    """Devices that are handed out in parts or together."""
    terms: DirectTerms

    @cached_property
    def cpus(self) -> tuple[int, ...]:
        """By position, the CPUs of the zone."""
        return tuple(self.topology.zones.get(zone, 0) for zone in self.zones)

    @cached_property
    def every_zone(self) -> int:
        return (1 << len(self.zones)) - 1

    @cached_property
    def plugins(self) -> frozenset[str]:
        """The resources that are handed out device by device."""
        return frozenset(name for name, _, _ in self.devices)

    @cached_property
    def threads(self) -> int:
        return self.topology.most_threads

    @cached_property
    def has_wide_devices(self) -> bool:
        """Whether some device lies in several zones, so that zones are not interchangeable."""
        return any(
            sum(own.bit_count() for own in by_zone) != union(by_zone).bit_count() for _, by_zone, _ in self.devices
        )

    @cached_property
    def empty(self) -> FreeState:
        """The machine without pods."""
        nothing = (0,) * len(self.zones)
        return FreeState(
            cpus=self.topology.cpus,
            shared=nothing,
            memory=tuple(amounts for _, amounts in self.memory),
            devices=tuple(union(by_zone) | loose for _, by_zone, loose in self.devices),
            shares=self.stock.whole,
        )

    @cached_property
    def of_mask(self) -> tuple[int, ...]:
        """By mask, its CPUs."""
        return tuple(union(self.cpus[place] for place in positions(mask)) for mask in range(self.every_zone + 1))

    @cached_property
    def local_minors(self) -> tuple[tuple[int, ...], ...]:
        """By resource and mask, the devices that lie in one of these zones."""
        masks = range(self.every_zone + 1)
        return tuple(
            tuple(union(by_zone[position] for position in positions(mask)) for mask in masks)
            for _, by_zone, _ in self.devices
        )

    def ids(self, mask: int) -> tuple[int, ...]:
        """The real ids of the zones at these positions."""
        return tuple(self.zones[place] for place in positions(mask))


class FreeState(NamedTuple):
    """What is free, and who shares what with whom."""

    cpus: int
    """In no container's own set."""
    shared: tuple[int, ...]
    """By position, thousandths of CPUs that containers in the zone's shared pool request."""
    memory: tuple[tuple[int, ...], ...]
    """By memory type and position, free bytes."""
    devices: tuple[int, ...]
    """By resource, free minors."""
    shares: Shares = NO_SHARES
    single: int = 0
    """Zones in which a container is that has one zone."""
    spread: int = 0
    """Zones in which a container is that has several."""
    whole_cores: int = 0
    """CPUs that are held under exclusion PCPULevel."""
    whole_zones: int = 0
    """CPUs that are held under exclusion NUMANodeLevel."""

    def poolable(self, machine: DirectMachine, position: int) -> int:
        """How many CPUs may leave the zone's shared pool, so that what its containers request remains."""
        own = (self.cpus & machine.cpus[position]).bit_count()
        return own - -(-self.shared[position] // MILLI)


@lru_cache(maxsize=1 << 12)
def positions(mask: int) -> tuple[int, ...]:
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)


def union(sets: Iterable[int]) -> int:
    together = 0
    for each in sets:
        together |= each
    return together
