"""One node's report as the engine uses it: amounts by zone position, with what had to be assumed.

`read` makes it, `columns` copies the numbers into arrays, the ledger charges pods against it. Amounts are whole CPUs,
bytes and devices; node totals count cpu in thousandths. Nothing in here changes: a new report is a new `RowFacts`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from itertools import chain

from msgspec import Struct, field

from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.attributes.podplacements import PodPlacement
from numalign.api.nrt.placementcodec import Payload
from numalign.placement.columns.directmachine import DirectMachine
from numalign.placement.columns.noderules import NodeRules


class Supply(Struct, frozen=True, kw_only=True, gc=False):
    """One resource by zone position (engine spec 2)."""

    size: tuple[int, ...]
    """What preference counts: all CPUs, allocatable memory, devices of any health."""
    allocatable: tuple[int, ...]
    free: tuple[int, ...]
    """What the report says is free, pods that it covers already deducted."""
    homeless: int = 0
    """Free devices that belong to no zone."""
    homeless_size: int = 0


class Stock(Struct, frozen=True, kw_only=True, dict=True, cache_hash=True):
    """What a node has of every resource, busy or not; one object for all nodes that have the same."""

    names: tuple[str, ...] = ()
    size: tuple[int, ...] = ()
    allocatable: tuple[int, ...] = ()
    """Both zone by zone, in each in the order of the names."""
    homeless_size: tuple[int, ...] = ()

    def of(self, place: int, amounts: tuple[int, ...]) -> tuple[int, ...]:
        """By position, of the resource that has this place among the names."""
        return amounts[place :: len(self.names)]

    @cached_property
    def tops(self) -> tuple[tuple[int, ...], ...]:
        """What can be had, in the order of the names, each by position."""
        return tuple(self.of(place, self.allocatable) for place in range(len(self.names)))

    @cached_property
    def unhealthy(self) -> tuple[str, ...]:
        """Devices of which there is no healthy one."""
        return tuple(
            name
            for place, name in enumerate(self.names)
            if any(self.of(place, self.size))
            and not any(self.of(place, self.allocatable))
            and not self.homeless_size[place]
        )


class Supplies(Struct, frozen=True, gc=False):
    """All resources of a node by name, each as a `Supply` on demand: there are many nodes, and few are asked."""

    stock: Stock = Stock()
    free: tuple[int, ...] = ()
    """In the order of the stock's amounts."""
    homeless: tuple[int, ...] = ()
    """In the order of the names; empty: none of any."""

    def free_of(self, name: str) -> tuple[int, ...]:
        """By position; empty where the node has nothing of the kind."""
        names = self.stock.names
        return self.stock.of(names.index(name), self.free) if name in names else ()

    def get(self, name: str) -> Supply | None:
        return self._at(self.stock.names.index(name)) if name in self.stock.names else None

    def keys(self) -> frozenset[str]:
        return frozenset(self.stock.names)

    def values(self) -> list[Supply]:
        return list(map(self._at, range(len(self))))

    def items(self) -> Iterator[tuple[str, Supply]]:
        return zip(self, self.values(), strict=True)

    def __getitem__(self, name: str) -> Supply:
        return self._at(self.stock.names.index(name))

    def _at(self, place: int) -> Supply:
        stock = self.stock
        return Supply(
            size=stock.of(place, stock.size),
            allocatable=stock.of(place, stock.allocatable),
            free=stock.of(place, self.free),
            homeless=self.homeless[place] if self.homeless else 0,
            homeless_size=stock.homeless_size[place],
        )

    def __contains__(self, name: str) -> bool:
        return name in self.stock.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.stock.names)

    def __len__(self) -> int:
        return len(self.stock.names)


NO_SUPPLIES = Supplies()


def supplies_of(found: Mapping[str, Supply]) -> Supplies:
    each = found.values()
    stock = Stock(
        names=tuple(found),
        size=_zone_by_zone(supply.size for supply in each),
        allocatable=_zone_by_zone(supply.allocatable for supply in each),
        homeless_size=tuple(supply.homeless_size for supply in each),
    )
    homeless = tuple(supply.homeless for supply in each)
    return Supplies(stock, _zone_by_zone(supply.free for supply in each), homeless if any(homeless) else ())


def _zone_by_zone(amounts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(chain.from_iterable(zip(*amounts, strict=True)))


class DeviceClass(Struct, frozen=True, kw_only=True):
    """Devices that are attached to several zones at once; those on one zone are in `Supply`."""

    resource: str
    zones: int
    size: int
    free: int


class Groups(Struct, frozen=True):
    """The memory manager's groups: by position the group of each zone, and the mask of zones with assignments."""

    cells: tuple[int, ...]
    busy: int = 0


class Assumption(StrEnum):
    """What a plain report does not say and the engine supposes instead; `wording` has a sentence for each."""

    POLICY_FROM_KUBELET_DEFAULT = "policy-from-kubelet-default"
    CPU_POLICY_FROM_AMOUNTS = "cpu-policy-from-amounts"
    CPU_OPTIONS_NONE = "cpu-options-none"
    MEMORY_POLICY_FROM_AMOUNTS = "memory-policy-from-amounts"
    SIZE_FROM_ALLOCATABLE = "size-from-allocatable"
    GROUPS_UNKNOWN = "groups-unknown"
    CORES_UNKNOWN = "cores-unknown"
    DISTANCES_UNKNOWN = "distances-unknown"
    CLOSEST_DESPITE_GAPS = "closest-despite-gaps"
    """Kubelets look zones up by their ids in a list without gaps, and end with a panic."""
    MINOR_ASSUMED = "minor-assumed"
    PLACEMENTS_UNKNOWN = "placements-unknown"
    NO_REPORT = "no-report"
    REPORT_DELETED = "report-deleted"
    """The last one stays in force."""
    KUBELET_AWAY = "kubelet-away"
    """The agent could not ask the kubelet; the report has what it knew before."""
    DIRECT_NOT_POSSIBLE = "direct-not-possible"
    """The agent offers direct mode, and the kubelet has managers of its own, or the report has no cores."""


class RowFacts(Struct, frozen=True, kw_only=True, gc=False):
    """Everything that one report says."""

    node: str
    rules: NodeRules
    supplies: Supplies = NO_SUPPLIES
    classes: tuple[DeviceClass, ...] = ()
    free_full_core_cpus: int | None = None
    """Free CPUs less all threads of cores with a reserved CPU: what `full-pcpus-only` counts. None: not known."""
    cores: tuple[tuple[int, ...], ...] | None = None
    """By position: number of cores with t free threads, t from 1. None: not known."""
    groups: Groups | None = None
    """None: not known, or memory is not managed."""
    unknown_size: Mapping[str, int] = field(default_factory=dict)
    """By resource: how much of the node's capacity lies in a zone that the report does not name (engine spec R6)."""
    placements: tuple[PodPlacement, ...] | None = None
    """Where each pod sits, as the agent saw it. None: the report does not say."""
    payload: Payload | None = None
    """The same in upstream's codec, which is read together with the pods. None: not given, or not needed."""
    zone_cpus: tuple[int, ...] = ()
    """By position: the CPUs of the zone, as a set. Empty: not known."""
    from_checkpoints: frozenset[str] = frozenset()
    """Resources whose `free` comes from the managers' own books: what the pod resources API hides is deducted there."""
    fingerprint: str = ""
    """Of the pods that `free` accounts for; empty: not given."""
    exclusive_only: bool = False
    """Whether the fingerprint is over pods with exclusive resources alone."""
    assumptions: frozenset[Assumption] = frozenset()
    direct: DirectMachine | None = None
    """What the scheduler hands out itself. None: the node is in predict mode."""
    applied: tuple[AppliedContainer, ...] = ()
    """What the agent did with decisions."""
