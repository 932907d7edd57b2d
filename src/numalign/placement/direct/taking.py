"""Takes what one container asks for from given zones: CPUs by id, memory and shared CPUs by zone, devices by minor.

`scope` calls `fit` for zones that it considers. What init containers of the same pod have left (`Reuse`) is used up
first. Over several zones an amount is packed into as few of them as hold it, or divided evenly where the strategy says
so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from numalign.api.attributes.directspec import Strategy
from numalign.placement.columns.deviceshares import NO_SHARES, Shares
from numalign.placement.columns.directmachine import MILLI, DirectMachine, FreeState, positions
from numalign.placement.direct import picking
from numalign.placement.direct.asks import ContainerAsk, PodAsk
from numalign.placement.direct.picking import Picking
from numalign.placement.direct.share import amounts as sharing
from numalign.placement.direct.share import choosing

Amounts = tuple[int, ...]


class Grant(Struct, frozen=True):
    """What one container gets."""

    zones: int = 0
    """0: it is not aligned."""
    cpus: int = 0
    """Of its own."""
    shared: Amounts = ()
    """By position, thousandths of CPUs in shared pools; empty: none."""
    memory: tuple[Amounts, ...] = ()
    """By memory type and position; empty: none."""
    devices: Amounts = ()
    """By resource the minors; empty: none."""
    shares: Shares = NO_SHARES
    """By device of the stock; empty: none."""


class Reuse(NamedTuple):
    """What init containers have left for later containers of their pod; like in `FreeState`."""

    cpus: int
    shared: Amounts
    memory: tuple[Amounts, ...]
    devices: Amounts
    shares: Shares = NO_SHARES


def nothing(machine: DirectMachine) -> Reuse:
    zeros = (0,) * len(machine.zones)
    return Reuse(0, zeros, (zeros,) * len(machine.memory), (0,) * len(machine.devices), machine.stock.nothing)


NO_GRANT: Final = Grant()


def fit(
    machine: DirectMachine, free: FreeState, reuse: Reuse, asked: ContainerAsk, pod: PodAsk, mask: int
) -> Grant | None:
    """What the container gets in these zones; None: they do not have enough."""
    cpus = _own_cpus(machine, free, reuse, asked.cpus, pod, mask) if asked.cpus else 0
    if cpus is None:
        return None
    shared: Amounts = ()
    if asked.milli:
        pools = zip(machine.cpus, free.shared, reuse.shared, strict=True)
        room = [(own & free.cpus).bit_count() * MILLI - used + left for own, used, left in pools]
        found = spread(room, asked.milli, mask, pod.strategy)
        if found is None:
            return None
        shared = found
    memory: list[Amounts] = []
    for kind, amount in enumerate(asked.memory):
        room = [own + left for own, left in zip(free.memory[kind], reuse.memory[kind], strict=True)]
        found = spread(room, amount, mask, pod.strategy)
        if found is None:
            return None
        memory.append(found)
    devices: list[int] = []
    for resource, count in enumerate(asked.devices):
        minors = _devices(machine, (free.devices[resource], reuse.devices[resource]), resource, count, mask)
        if minors is None:
            return None
        devices.append(minors)
    shares = NO_SHARES
    if asked.shares is not None:
        fill = pod.strategy == "MostAllocated"
        chosen = choosing.allocate(machine.stock, free.shares, reuse.shares, asked.shares, mask, fill=fill)
        if chosen is None:
            return None
        shares = chosen
    zones = mask if asked.policy != "none" else 0
    return Grant(zones, cpus, shared, tuple(memory), tuple(devices), shares)


def spread(room: Sequence[int], need: int, mask: int, strategy: Strategy, step: int = 1) -> Amounts | None:
    """The amount by position, in multiples of `step`; None: the zones do not have enough."""
    inside = positions(mask)
    left = {place: max(0, room[place]) // step * step for place in inside}
    if sum(left.values()) < need:
        return None
    taken = [0] * len(room)
    if len(inside) == 1:
        taken[inside[0]] = need
    elif strategy == "DistributeEvenly":
        # The scarcest zone first: what it cannot give is divided among the others, and the last one gets the rest.
        for done, place in enumerate(sorted(inside, key=lambda place: (left[place], place))):
            zones = len(inside) - done
            taken[place] = need if zones == 1 else min(need // (step * zones) * step, left[place])
            need -= taken[place]
    else:
        for place in sorted(inside, key=lambda place: (-left[place], place)):
            taken[place] = min(need, left[place])
            need -= taken[place]
    return tuple(taken)


def _own_cpus(machine: DirectMachine, free: FreeState, reuse: Reuse, need: int, pod: PodAsk, mask: int) -> int | None:
    topology, inside = machine.topology, machine.of_mask[mask]
    left, fresh = (picking.usable(topology, cpus & inside, pod.required) for cpus in (reuse.cpus, free.cpus))
    if (left | fresh).bit_count() < need:
        return None
    step = machine.threads if pod.required == "FullPCPUs" else 1
    if need % step:
        return None
    lefts = [(left & own).bit_count() for own in machine.cpus]
    room = [
        count + max(0, min((fresh & own).bit_count(), free.poolable(machine, place))) // step * step
        for place, (count, own) in enumerate(zip(lefts, machine.cpus, strict=True))
    ]
    counts = spread(room, need, mask, pod.strategy, step)
    if counts is None:
        return None
    how = Picking(pod.preferred, pod.strategy == "MostAllocated", pod.exclusion, free.whole_cores, free.whole_zones)
    taken = 0
    for place in positions(mask):
        own, first = machine.cpus[place], min(counts[place], lefts[place])
        for source, count in ((left & own, first), (fresh & own, counts[place] - first)):
            found = picking.take(topology, source, count, how)
            assert found is not None, "the zone has room for its part"
            taken |= found
    return taken


def _devices(machine: DirectMachine, sources: tuple[int, int], resource: int, count: int, mask: int) -> int | None:
    """Those that are left over first, and those without a zone last."""
    free, left = sources
    local = machine.local_minors[resource][mask]
    # Where every zone is allowed, it does not matter where a device lies.
    loose = machine.devices[resource][2]
    taken = 0
    for minors in (left & local, free & local, left & loose, free & loose):
        taken |= _lowest(minors & ~taken, count - taken.bit_count())
    return taken if taken.bit_count() == count else None


def _lowest(members: int, count: int) -> int:
    taken = 0
    while members and count:
        lowest = members & -members
        taken |= lowest
        members ^= lowest
        count -= 1
    return taken


def charged(free: FreeState, reuse: Reuse, grant: Grant, *, is_init: bool) -> tuple[FreeState, Reuse]:
    """What is free, and what is left for reuse, once a container has its grant. A container that stays takes what it
    reuses for good; an init container leaves everything."""
    cpus = grant.cpus & ~reuse.cpus
    shared = _beyond(grant.shared, reuse.shared)
    memory = tuple(map(_beyond, grant.memory, reuse.memory)) if grant.memory else ()
    devices = tuple([own & ~left for own, left in zip(grant.devices, reuse.devices, strict=False)])
    shares = sharing.beyond(grant.shares, reuse.shares) if grant.shares.parts else NO_SHARES
    after = free._replace(
        cpus=free.cpus & ~cpus,
        shared=_added(free.shared, shared),
        memory=tuple([_less(own, taken) for own, taken in zip(free.memory, memory, strict=True)])
        if memory
        else free.memory,
        devices=tuple([own & ~taken for own, taken in zip(free.devices, devices, strict=True)])
        if devices
        else free.devices,
        shares=sharing.less(free.shares, shares) if shares.parts else free.shares,
    )
    if is_init:
        return after, Reuse(
            reuse.cpus | cpus,
            _added(reuse.shared, shared),
            tuple(map(_added, reuse.memory, memory)) if memory else reuse.memory,
            tuple([left | own for left, own in zip(reuse.devices, devices, strict=True)]) if devices else reuse.devices,
            sharing.added(reuse.shares, shares) if shares.parts else reuse.shares,
        )
    return after, Reuse(
        reuse.cpus & ~grant.cpus,
        _floored(reuse.shared, grant.shared),
        tuple(map(_floored, reuse.memory, grant.memory)) if grant.memory else reuse.memory,
        tuple([left & ~own for left, own in zip(reuse.devices, grant.devices, strict=True)])
        if grant.devices
        else reuse.devices,
        sharing.floored(reuse.shares, grant.shares) if grant.shares.parts else reuse.shares,
    )


def _beyond(taken: Amounts, left: Amounts) -> Amounts:
    """What has to come from elsewhere than from what is left."""
    return tuple([max(0, amount - own) for amount, own in zip(taken, left, strict=True)]) if taken else ()


def _added(amounts: Amounts, more: Amounts) -> Amounts:
    return tuple([amount + each for amount, each in zip(amounts, more, strict=True)]) if more else amounts


def _less(amounts: Amounts, taken: Amounts) -> Amounts:
    return tuple([amount - each for amount, each in zip(amounts, taken, strict=True)]) if taken else amounts


def _floored(amounts: Amounts, taken: Amounts) -> Amounts:
    return tuple([max(0, amount - each) for amount, each in zip(amounts, taken, strict=True)]) if taken else amounts
