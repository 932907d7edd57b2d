"""One node's report, read for the engine: amounts by zone position, with what had to be assumed.

`ingest` makes it, `columns` copies the numbers into arrays, the ledger charges pods against it. Amounts are whole CPUs,
bytes and devices; node totals count cpu in thousandths. Nothing in here changes: a new report is a new `RowFacts`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from numalign.api.podplacements import PodPlacement
from numalign.placement.noderules import NodeRules


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
    MINOR_ASSUMED = "minor-assumed"
    PLACEMENTS_UNKNOWN = "placements-unknown"
    NO_REPORT = "no-report"


class RowFacts(Struct, frozen=True, kw_only=True, gc=False):
    """Everything that one report says."""

    node: str
    rules: NodeRules
    supplies: Mapping[str, Supply] = field(default_factory=dict)
    classes: tuple[DeviceClass, ...] = ()
    free_full_core_cpus: int | None = None
    """Free CPUs less all threads of cores with a reserved CPU: what `full-pcpus-only` counts. None: not known."""
    cores: tuple[tuple[int, ...], ...] | None = None
    """By position: number of cores with t free threads, t from 1. None: not known."""
    groups: Groups | None = None
    """None: not known, or memory is not managed."""
    unknown_size: Mapping[str, int] = field(default_factory=dict)
    """By resource: how much of the node's capacity lies in a zone that the report does not tell (engine spec R6)."""
    placements: tuple[PodPlacement, ...] | None = None
    """Where each pod sits, as the agent saw it. None: the report does not say."""
    zone_cpus: tuple[int, ...] = ()
    """By position: the CPUs of the zone, as a set. Empty: not known."""
    from_books: frozenset[str] = frozenset()
    """Resources whose `free` comes from the managers' own books: what the pod resources API hides is deducted there."""
    covered: frozenset[str] | None = None
    """The pods ("namespace/name") that `free` already accounts for, where the report names them."""
    fingerprint: str = ""
    """Of the pods that `free` accounts for; empty: not given."""
    exclusive_only: bool = False
    """Whether the fingerprint is over pods with exclusive resources alone."""
    assumptions: frozenset[Assumption] = frozenset()
