"""What a pod holds on a node, as far as it is known: amounts on sets of zones.

An entry with one zone is exact. One with several means: the amount lies somewhere in these zones, and only the sum is
known. An entry that is not certain may be there or not. `ledger` keeps entries, `rowmodel` bounds what is free between
them (engine spec 9)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Entry(Struct, frozen=True, cache_hash=True, omit_defaults=True):
    """An amount of one resource (by column) on a set of zone positions."""

    column: int
    amount: int
    zones: int
    """0: devices that lie in no zone."""
    certain: bool = True
    span: int = 0
    """Of memory: in how many of these zones it lies as one group; 0: not known. Other resources leave it at 0."""

    @property
    def is_exact(self) -> bool:
        return self.certain and self.zones & (self.zones - 1) == 0


class Source(StrEnum):
    """How sure we are of where a pod sits."""

    OBSERVED = "observed"
    PREDICTED = "predicted"
    UNKNOWN = "unknown"


class ContainerZones(Struct, frozen=True):
    """The zones a container is aligned to, by position: one mask, or every mask that is possible."""

    container: str
    possible: tuple[int, ...]
    """Empty: it is not aligned to anything."""

    @property
    def union(self) -> int:
        mask = 0
        for each in self.possible:
            mask |= each
        return mask


class Aligned(Struct, frozen=True, gc=False):
    """A container and the sets of zones (real ids) of which the kubelet will choose one; none: it is not aligned."""

    container: str
    zones: tuple[tuple[int, ...], ...]


class Holding(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One pod's share of a node."""

    uid: str
    name: str
    """namespace/name"""
    source: Source
    entries: tuple[Entry, ...] = ()
    containers: tuple[ContainerZones, ...] = ()
    shape: int = -1
    """The shape's number; -1 for pods whose spec was never seen."""
    interchangeable: bool = False
    """Which pod of this shape on the node sits where is not known; what they hold together is."""
    unsteady: bool = False
    """Whether pods that come before it could move it although there is room for all of them."""
    promised: bool = False
    """It has a place that is not known any more; pods that come now may not take it."""
