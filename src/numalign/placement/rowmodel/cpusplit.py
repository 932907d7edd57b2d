"""How a choice of CPUs is split among zones, from counts.

`cpus` asks this module where the picker may take from several zones. On regular machines the split follows from how
many cores of each zone have how many free threads (engine spec 5): the module makes up a machine with just these cores
and runs the kubelet's own picker on it. Which ids it takes there means nothing; how many of which zone does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from numalign.kubelet import versions
from numalign.kubelet.cpu.static import CPUOptions, StaticCPUs
from numalign.kubelet.cpu.topology import CPUTopology
from numalign.kubelet.refusals import Refusal, Undecided
from numalign.placement.columns.noderules import ACROSS_CORES, ACROSS_ZONES, BY_L3, BY_SOCKET, FULL_CORES, NodeRules
from numalign.placement.columns.resources import CPU
from numalign.placement.rowmodel.causes import Cause, Refuses, Unsure
from numalign.placement.rowmodel.state import Amounts, RowState

SAFE_TO_SPREAD = 4
"""Zones up to which spreading cannot be led astray by arrays that the kubelet uses twice (kubelet spec 5.7)."""


class Run(Struct, frozen=True):
    """One run of the picker: so many CPUs out of these zones."""

    zones: int
    count: int
    least_zones: int = 0
    """Over how many zones CPUs are distributed at least."""


class CoreCounts(Struct, frozen=True):
    """The cores of a row: by position how many CPUs there are, and how many cores have t free threads, t from 1."""

    rules: NodeRules
    size: Amounts
    free: tuple[Amounts, ...]


def of(row: RowState) -> CoreCounts | None:
    """The cores of a row; None if counts do not determine the split (irregular machine, options, unknown cores)."""
    rules, base = row.rules, row.base.get(CPU, ())
    one_socket_each = all(own & (own - 1) == 0 for own in rules.sockets)
    if not (rules.regular and rules.sockets and one_socket_each) or {ACROSS_CORES, BY_L3} & rules.cpu_options:
        return None
    free = tuple((amount,) for amount in base) if rules.threads_per_core == 1 else row.cores
    found = None if free is None else CoreCounts(rules, row.size.get(CPU, ()), free)
    return found if found is not None and _adds_up(found, base) else None


def split(cores: CoreCounts, runs: Sequence[Run]) -> list[int]:
    """What the last run takes after the others, by position."""
    manager = _manager(cores.rules, cores.size)
    before, taken = _played(cores, manager, runs)
    return _by_position(manager, taken & before, len(cores.size))


def after(cores: CoreCounts, runs: Sequence[Run]) -> tuple[Amounts, ...]:
    """What the runs leave of the cores."""
    manager = _manager(cores.rules, cores.size)
    before, taken = _played(cores, manager, runs)
    topology, left = manager.topology, before & ~taken
    counts = [[0] * (cores.rules.threads_per_core + 1) for _ in cores.size]
    for position, inside in topology.cores_in_zone.items():
        for core in inside:
            counts[position][(topology.cores[core] & left).bit_count()] += 1
    return tuple(tuple(by_free[1:]) for by_free in counts)


def _played(cores: CoreCounts, manager: StaticCPUs, runs: Sequence[Run]) -> tuple[int, int]:
    """What is free before the last run, and what it takes."""
    free, taken = _free(cores, manager.topology), 0
    for run in runs:
        free &= ~taken
        try:
            taken = manager.take(free & manager.topology.of_zones(run.zones), run.count, run.least_zones)
        except Refusal:
            raise Refuses(Cause.UNEVEN_SHARES) from None
        except Undecided:
            raise Unsure(Cause.NEVER_ENDS) from None
    return free, taken


def _adds_up(cores: CoreCounts, base: Amounts) -> bool:
    """Whether the cores are those of this row now, and not of an earlier moment or of a report that is wrong."""
    threads = cores.rules.threads_per_core
    return len(cores.free) == len(cores.size) == len(base) and all(
        size % threads == 0
        and len(counts) <= threads
        and sum(counts) * threads <= size
        and sum(free * count for free, count in enumerate(counts, start=1)) == amount
        for counts, size, amount in zip(cores.free, cores.size, base, strict=True)
    )


def _free(cores: CoreCounts, topology: CPUTopology) -> int:
    free = 0
    for position, counts in enumerate(cores.free):
        inside = iter(topology.cores_in_zone.get(position, ()))
        for threads, count in enumerate(counts, start=1):
            for _ in range(count):
                core = next(inside)
                free |= ((1 << threads) - 1) << core
    return free


def _by_position(manager: StaticCPUs, cpus: int, positions: int) -> list[int]:
    zones = manager.topology.zones
    return [(zones.get(position, 0) & cpus).bit_count() for position in range(positions)]


@lru_cache(maxsize=256)
def _manager(rules: NodeRules, size: Amounts) -> StaticCPUs:
    """The CPU manager of a machine with these zones, whose CPUs are numbered zone by zone and core by core."""
    threads = rules.threads_per_core
    zones: dict[int, int] = {}
    sockets: dict[int, int] = {}
    first = 0
    for position, count in enumerate(size):
        if count:
            zones[position] = cpus = ((1 << count) - 1) << first
            socket = rules.sockets[position].bit_length() - 1
            sockets[socket] = sockets.get(socket, 0) | cpus
            first += count
    cores = {cpu: ((1 << threads) - 1) << cpu for cpu in range(0, first, threads)}
    options = CPUOptions(
        full_pcpus_only=FULL_CORES in rules.cpu_options,
        align_by_socket=BY_SOCKET in rules.cpu_options,
        across_numa=ACROSS_ZONES in rules.cpu_options,
    )
    topology = CPUTopology(zones=zones, sockets=sockets, uncores=sockets, cores=cores)
    return StaticCPUs(topology, options, reserved=0, behaviour=versions.behaviour(versions.Minor(*rules.minor)))
