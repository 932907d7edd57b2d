"""Decides a pod in direct mode: the zones of every container, or one set of zones for all of them.

`decider` calls `assign`. Under scope `container` each container has zones of its own, in the kubelet's order, and what
an init container got is used again by those that come after it. The search goes back to an earlier container where a
later one finds no zones, and on to a smaller footprint, for at most `ALTERNATIVES` alternatives (koordinator spec
20.4). Under scope `pod` all containers have the same zones.

`single-numa-node` allows one zone. `restricted` allows as many zones as an empty machine would need, `best-effort` the
fewest that are enough now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Final, Literal

from msgspec import Struct, structs

from numalign.api.attributes.devicetable import WHOLE
from numalign.kubelet.demand import Role, peak
from numalign.kubelet.topologymanager import mask as masks
from numalign.placement.columns.directmachine import DirectMachine, FreeState, positions
from numalign.placement.direct import taking
from numalign.placement.direct.asks import ContainerAsk, PodAsk
from numalign.placement.direct.share.asks import ShareAsk
from numalign.placement.direct.taking import Grant, Reuse

ALTERNATIVES: Final = 64
"""Zones that are tried for a container beside the best ones, in the whole search."""


class Assignment(Struct, frozen=True):
    """By container in admission order what it gets, and what is free afterwards."""

    grants: tuple[Grant, ...]
    after: FreeState


class Unplaced(Struct, frozen=True):
    """Why there is no assignment."""

    container: int
    """Place in admission order; -1: all containers together find no common zones."""
    width: int
    """How many zones its policy allows; 0: it needs none in particular."""
    is_exclusive: bool = False
    """Whether it would have zones but for pods from which they are to be kept apart."""
    partial_cores: bool = False
    """Whether it requests a part of a core and only whole ones are allowed."""
    is_connected: bool = False
    """Whether it would have devices if it did not matter how they are connected."""


def assign(machine: DirectMachine, free: FreeState, pod: PodAsk) -> Assignment | Unplaced:
    if pod.scope == "pod" and pod.policy != "none" and sum(each.policy != "none" for each in pod.containers) > 1:
        return _together(machine, free, pod)
    return _one_by_one(machine, free, pod)


# Zones that may be tried


class _Candidates(Struct, frozen=True):
    """The sets of zones that a policy allows, and in which order they are tried."""

    machine: DirectMachine
    pod: PodAsk

    def allowed(self, policy: str, width: int) -> tuple[tuple[int, ...], ...]:
        """Sets of zones, those of one size together; the smallest size first."""
        sizes = _by_size(len(self.machine.zones))
        if policy == "none":
            return (sizes[-1],)
        return sizes if policy == "best-effort" else sizes[width - 1 : width] if width else ()

    def is_apart(self, mask: int, free: FreeState) -> bool:
        """Whether a container in these zones shares none with pods that it has to be kept apart from."""
        return not self.pod.exclusive or is_apart(mask, free)

    def order(self, found: Sequence[int], free: FreeState, reuse: Reuse, asked: ContainerAsk) -> Sequence[int]:
        """Most reuse first, then the fullest or the emptiest zones."""
        machine, sign = self.machine, 1 if self.pod.strategy == "MostAllocated" else -1

        def key(mask: int) -> tuple[int, int, int]:
            fresh = max(0, asked.cpus - (reuse.cpus & machine.of_mask[mask]).bit_count())
            return fresh, sign * room(machine, free, asked, mask), mask

        return sorted(found, key=key) if len(found) > 1 else found

    def different(self, ordered: Sequence[int], free: FreeState, reuse: Reuse) -> Iterator[int]:
        """Of zones that are alike, those that come first."""
        if self.machine.has_wide_devices or self.pod.has_shares:
            yield from ordered
            return
        # Mostly no more than the first one is asked for, and looking at zones takes longer than trying them.
        yield from ordered[:1]
        looks = {self._look(mask, free, reuse) for mask in ordered[:1]} if len(ordered) > 1 else set()
        for mask in ordered[1:]:
            look = self._look(mask, free, reuse)
            if look not in looks:
                looks.add(look)
                yield mask

    def _look(self, mask: int, free: FreeState, reuse: Reuse) -> object:
        return tuple(sorted([_zone_look(self.machine, free, reuse, place) for place in positions(mask)]))


def is_apart(mask: int, free: FreeState) -> bool:
    """Whether a container in one zone meets none over several there, and one over several none in one zone."""
    return not free.spread & mask if mask & (mask - 1) == 0 else not free.single & ~free.spread & mask


def room(machine: DirectMachine, free: FreeState, asked: ContainerAsk, mask: int) -> int:
    """How much of what the container asks for is free in these zones, in thousandths of what there is."""
    empty, total = machine.empty, 0
    if asked.cpus or asked.milli:
        inside = machine.of_mask[mask]
        used = sum(free.shared[place] for place in positions(mask))
        total += max(0, (free.cpus & inside).bit_count() * 1000 - used) // max(1, inside.bit_count())
    for kind, amount in enumerate(asked.memory):
        if amount:
            there = sum(empty.memory[kind][place] for place in positions(mask))
            total += 1000 * sum(free.memory[kind][place] for place in positions(mask)) // max(1, there)
    for resource, count in enumerate(asked.devices):
        if count:
            local = machine.local_minors[resource][mask]
            total += 1000 * (free.devices[resource] & local).bit_count() // max(1, local.bit_count())
    if asked.shares is not None:
        kinds = {each.kind for each in asked.shares.types}
        units = machine.stock.units
        near = [at for at, each in enumerate(units) if each.kind in kinds and mask >> max(0, each.position) & 1]
        there = sum(units[at].parts for at in near)
        total += 1000 * sum(free.shares.parts[at] for at in near) // max(1, there)
    return total


def _zone_look(machine: DirectMachine, free: FreeState, reuse: Reuse, place: int) -> tuple[object, ...]:
    """Equal for zones that are interchangeable: what is free in them, core by core."""
    inside = machine.cpus[place]
    cores = [
        ((threads & free.cpus).bit_count(), (threads & reuse.cpus).bit_count(), bool(threads & free.whole_cores))
        for threads in machine.topology.cores.values()
        if threads & inside
    ]
    devices = [
        (minors & by_zone[place]).bit_count()
        for source in (free.devices, reuse.devices)
        for minors, (_, by_zone, _) in zip(source, machine.devices, strict=True)
    ]
    return (
        tuple(sorted(cores)),
        (free.shared[place], reuse.shared[place], *(amounts[place] for amounts in (*free.memory, *reuse.memory))),
        tuple(devices),
        (free.single >> place & 1, free.spread >> place & 1, bool(inside & free.whole_zones)),
    )


@lru_cache(maxsize=16)
def _by_size(zones: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(sorted(masks.of_size(tuple(range(zones)), size))) for size in range(1, zones + 1))


# Each container by itself


def _one_by_one(machine: DirectMachine, free: FreeState, pod: PodAsk) -> Assignment | Unplaced:
    search = _Search(machine, free, pod)
    # What init containers leave was free before, so nothing helps a container that does not fit alone. For the first
    # one the search itself finds that out.
    if all(search.fits_alone(place) for place in range(1, len(pod.containers))):
        search.run(0, free, search.nothing, ())
        if search.best is not None:
            return _settled(free, pod, *search.best[1:])
    for place, asked in enumerate(pod.containers):
        if not search.fits_alone(place):
            return _why(machine, free, pod, place, asked, search.widths[place])
    return Unplaced(-1, max((width for width in search.widths if width), default=0))


class _Search:
    def __init__(self, machine: DirectMachine, free: FreeState, pod: PodAsk) -> None:
        self._machine, self._pod = machine, pod
        self._candidates = _Candidates(machine, pod)
        self._before = free
        self.nothing = taking.nothing(machine)
        self.widths = [_width(machine, pod, (asked,)) for asked in pod.containers]
        self.best: tuple[Footprint, tuple[Grant, ...], FreeState] | None = None
        self._least = _least_footprint(machine, pod) if pod.has_init else None
        self._left = ALTERNATIVES
        self._dead: set[object] = set()

    def fits_alone(self, place: int) -> bool:
        return any(True for _ in self.options(place, self._before, self.nothing))

    def options(self, place: int, free: FreeState, reuse: Reuse) -> Iterator[Grant]:
        """What the container may get, best first."""
        asked, candidates = self._pod.containers[place], self._candidates
        if asked.policy == "none" and not (asked.cpus or asked.devices or asked.shares):
            yield taking.NO_GRANT
            return
        for number, size in enumerate(candidates.allowed(asked.policy, self.widths[place])):
            if number and self.best is not None:
                return  # more zones than necessary are worse than a larger footprint
            apart = [mask for mask in size if asked.policy == "none" or candidates.is_apart(mask, self._before)]
            for mask in candidates.different(candidates.order(apart, free, reuse, asked), free, reuse):
                grant = taking.fit(self._machine, free, reuse, asked, self._pod, mask)
                if grant is not None:
                    yield grant

    def run(self, place: int, free: FreeState, reuse: Reuse, grants: tuple[Grant, ...]) -> bool:
        """Whether the rest of the containers find a place; `best` has the best one that was found."""
        if place == len(self._pod.containers):
            self._note(free, grants)
            return True
        key = place, free, reuse
        if key in self._dead:
            return False
        is_init, found = self._pod.containers[place].role is Role.INIT, False
        for number, grant in enumerate(self.options(place, free, reuse)):
            if number:
                if not self._left:
                    return found
                self._left -= 1
            after = taking.charged(free, reuse, grant, is_init=is_init)
            found = self.run(place + 1, *after, (*grants, grant)) or found
            if self._is_done:
                return found
        if not found:
            self._dead.add(key)
        return found

    @property
    def _is_done(self) -> bool:
        return self.best is not None and (self._least is None or self.best[0] <= self._least)

    def _note(self, free: FreeState, grants: tuple[Grant, ...]) -> None:
        kept = footprint(self._before, free)
        if self.best is None or kept < self.best[0]:
            self.best = kept, grants, free


Footprint = tuple[int, int, int, int]
"""Thousandths of CPUs, hundredths of devices, bytes of memory, bytes of devices' memory."""


def footprint(before: FreeState, after: FreeState) -> Footprint:
    """What a pod keeps from others."""
    own = (before.cpus & ~after.cpus).bit_count() * 1000
    devices = WHOLE * sum((had & ~has).bit_count() for had, has in zip(before.devices, after.devices, strict=True))
    memory = sum(sum(had) - sum(has) for had, has in zip(before.memory, after.memory, strict=True))
    devices += sum(before.shares.parts) - sum(after.shares.parts)
    own_memory = sum(before.shares.memory) - sum(after.shares.memory)
    return own + sum(after.shared) - sum(before.shared), devices, memory, own_memory


def _least_footprint(machine: DirectMachine, pod: PodAsk) -> Footprint:
    """No assignment can do with less."""

    def most(amount: Callable[[ContainerAsk], int]) -> int:
        return peak((each.role, amount(each)) for each in pod.containers)

    cpus = most(lambda each: each.cpus) * 1000 + most(lambda each: each.milli)
    devices = WHOLE * sum(most(partial(_at, place, "devices")) for place in range(len(machine.devices)))
    memory = sum(most(partial(_at, place, "memory")) for place in range(len(machine.memory)))
    parts, own_memory = (most(partial(_share, machine, place)) for place in (0, 1))
    return cpus, devices + parts, memory, own_memory


def _share(machine: DirectMachine, place: int, asked: ContainerAsk) -> int:
    return asked.shares.least(machine.stock)[place] if asked.shares is not None else 0


def _at(place: int, kind: Literal["devices", "memory"], asked: ContainerAsk) -> int:
    amounts = asked.devices if kind == "devices" else asked.memory
    return amounts[place] if amounts else 0


# All containers in the same zones


def _together(machine: DirectMachine, free: FreeState, pod: PodAsk) -> Assignment | Unplaced:
    width = _width(machine, pod, pod.containers)
    candidates, nothing = _Candidates(machine, pod), taking.nothing(machine)
    whole = summed(pod.containers)
    for size in candidates.allowed(pod.policy, width):
        apart = [mask for mask in size if candidates.is_apart(mask, free)]
        for mask in candidates.order(apart, free, nothing, whole):
            found = _in_turn(machine, free, pod, pod.containers, mask)
            if found is not None:
                return _settled(free, pod, *found)
    return Unplaced(-1, width)


def _in_turn(
    machine: DirectMachine, free: FreeState, pod: PodAsk, containers: Sequence[ContainerAsk], mask: int
) -> tuple[tuple[Grant, ...], FreeState] | None:
    """All containers in these zones; those that are not aligned anywhere."""
    reuse, grants = taking.nothing(machine), list[Grant]()
    for asked in containers:
        zones = mask if asked.policy != "none" else machine.every_zone
        grant = taking.fit(machine, free, reuse, asked, pod, zones)
        if grant is None:
            return None
        grants.append(grant)
        free, reuse = taking.charged(free, reuse, grant, is_init=asked.role is Role.INIT)
    return tuple(grants), free


def summed(containers: Sequence[ContainerAsk]) -> ContainerAsk:
    """All containers as one, for the order of zones."""

    def added(each: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(map(sum, zip(*filter(None, each), strict=True)))

    types = tuple(kind for each in containers if each.shares is not None for kind in each.shares.types)
    return ContainerAsk(
        role=Role.APP,
        cpus=sum(each.cpus for each in containers),
        milli=sum(each.milli for each in containers),
        memory=added([each.memory for each in containers]),
        devices=added([each.devices for each in containers]),
        shares=ShareAsk(types=types) if types else None,
    )


def _settled(before: FreeState, pod: PodAsk, grants: tuple[Grant, ...], after: FreeState) -> Assignment:
    single, spread, own = before.single, before.spread, before.cpus & ~after.cpus
    for grant in grants:
        if grant.zones & (grant.zones - 1):
            spread |= grant.zones
        else:
            single |= grant.zones
    return Assignment(
        grants,
        after._replace(
            single=single,
            spread=spread,
            whole_cores=after.whole_cores | (own if pod.exclusion == "PCPULevel" else 0),
            whole_zones=after.whole_zones | (own if pod.exclusion == "NUMANodeLevel" else 0),
        ),
    )


def _width(machine: DirectMachine, pod: PodAsk, containers: Sequence[ContainerAsk]) -> int:
    """How many zones the containers need on the machine without other pods; 0: it is too small for them."""
    policy = pod.policy if len(containers) > 1 else containers[0].policy
    if policy in ("single-numa-node", "best-effort", "none"):
        return 1
    for size, found in enumerate(_by_size(len(machine.zones)), 1):
        if any(_in_turn(machine, machine.empty, pod, containers, mask) is not None for mask in found):
            return size
    return 0


def _why(machine: DirectMachine, free: FreeState, pod: PodAsk, place: int, asked: ContainerAsk, width: int) -> Unplaced:
    partial_cores = pod.required == "FullPCPUs" and bool(asked.cpus % machine.threads)
    limit = width if asked.policy in ("single-numa-node", "restricted") else 0
    nothing = taking.nothing(machine)
    sizes = _Candidates(machine, pod).allowed(asked.policy, width)

    def fits(each: ContainerAsk) -> bool:
        return any(taking.fit(machine, free, nothing, each, pod, mask) for size in sizes for mask in size)

    exclusive = pod.exclusive and asked.policy != "none" and fits(asked)
    shares = asked.shares
    connected = shares is not None and not exclusive and fits(structs.replace(asked, shares=shares.unconnected()))
    return Unplaced(place, limit, exclusive, partial_cores, connected)
