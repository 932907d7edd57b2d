"""How a node's kubelet decides: everything about it that is not an amount.

`reports.read` makes these from a report and the Node. Rows that have equal rules are evaluated together, and kernels
read nothing else about a node but its numbers. Zones are known by their *position* among the node's zone ids,
ascending: bit p of every mask in this room stands for the p-th zone, and `zones` turns positions into real ids."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from msgspec import Struct

from numalign.api.nrt.topologymanager import Policy, Scope
from numalign.kubelet.demand import Reading
from numalign.placement.columns.directmachine import DirectTerms

MOST_ZONES: Final = 8
"""Zones up to which arrays decide; larger machines go to the object model (engine spec 4, last paragraph)."""

FULL_CORES: Final = "full-pcpus-only"
BY_SOCKET: Final = "align-by-socket"
ACROSS_ZONES: Final = "distribute-cpus-across-numa"
ACROSS_CORES: Final = "distribute-cpus-across-cores"
BY_L3: Final = "prefer-align-cpus-by-uncorecache"


class NodeRules(Struct, frozen=True, kw_only=True, dict=True, cache_hash=True):
    """Equal for all nodes of one make and configuration; hashable, so that rows can be grouped by it."""

    zones: tuple[int, ...]
    """Real zone ids, ascending."""
    policy: Policy = "none"
    scope: Scope = "container"
    distances: tuple[tuple[int, ...], ...] | None = None
    """By position; only where the node prefers closest zones."""
    static_cpus: bool = False
    """Whether the CPU manager gives out exclusive CPUs."""
    cpu_options: frozenset[str] = frozenset()
    """Names of CPU manager options that are switched on."""
    threads_per_core: int = 1
    sockets: tuple[int, ...] = ()
    """By position: the mask of sockets that the zone touches. Empty: not known."""
    static_memory: bool = False
    """Whether the memory manager pins memory and hugepages."""
    reading: Reading = Reading()
    minor: tuple[int, int] = (1, 37)
    regular: bool = True
    """Whether the count picker holds (engine spec 2): cores alike, sockets inside zones or zones inside sockets."""
    l3_straddles: bool = False
    """Whether CPUs are given out by L3 groups, and one of them has a part of a zone and something of another. It is
    listed twice then and counted twice, and what is missing comes from anywhere (kubelet spec 5.6)."""

    direct: DirectTerms | None = None
    """The scheduler decides and the agent enforces; all other rules are then those of a kubelet that aligns nothing.
    None: predict mode."""

    @cached_property
    def every_zone(self) -> int:
        return int((1 << len(self.zones)) - 1)

    @cached_property
    def fits_arrays(self) -> bool:
        return len(self.zones) <= MOST_ZONES

    def real(self, mask: int) -> tuple[int, ...]:
        """The ids of the zones at these positions."""
        return tuple(zone for position, zone in enumerate(self.zones) if mask >> position & 1)
