"""Our own agent's reports that tell of the machine what the one before told.

`mirror` asks here first, as it asks `rereading` about plain reports. Pods come and go, and with them what is free; the
machine, its settings and what there is at all stay. Whatever the last report said as well is compared and not worked
out again. The facts that come out equal those of `ingest.read`; None: something else changed, and `ingest` has to read
it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import structs

from numalign.api import fingerprint, resourcenames
from numalign.api.attributes import NodeFacts
from numalign.api.deviceclasses import DeviceClass
from numalign.api.memorystate import MemoryZone
from numalign.api.nodetopology import Amounts, NodeTopology, Zone
from numalign.placement import hardware, ingest, supplies, zonemasks
from numalign.placement.rowfacts import Assumption, RowFacts, Stock, Supplies


def read(topology: NodeTopology, last: NodeTopology, before: RowFacts) -> RowFacts | None:
    """`last`: a report of our agent on the same node, or on one whose Node says the same; `before`: its facts."""
    now, then, stock = topology.facts, last.facts, before.supplies.stock
    if not stock.names or topology.manager != last.manager or topology.guesses != last.guesses:
        return None
    if not (_is_same_kubelet(now, then) and _is_told(now, before)):
        return None
    if not _are_same_zones(topology.zones, last.zones, before):
        return None
    free = list(before.supplies.free)
    _take_amounts(free, topology.zones, before)
    homeless = _take_devices(free, now.devices or (), then.devices or (), before)
    if homeless is None:
        return None
    full, threads, groups = before.free_full_core_cpus, before.cores, before.groups
    if now.default_cpus != then.default_cpus:
        full, threads = _take_cpus(free, now, then, before)
    if now.memory is not None and then.memory is not None and now.memory != then.memory:
        are_same = _take_memory(free, now.memory, then.memory, stock)
        if before.rules.static_memory and not are_same:
            groups = supplies.groups_in(now.memory, before.rules.zones)
    signature = topology.fingerprint
    return structs.replace(
        before,
        node=sys.intern(topology.node),
        supplies=Supplies(stock, tuple(free), homeless),
        free_full_core_cpus=full,
        cores=threads,
        groups=groups,
        placements=now.placements,
        payload=ingest.payload(topology),
        fingerprint=signature.text if signature else "",
        exclusive_only=signature is not None and signature.method is fingerprint.Method.EXCLUSIVE,
    )


def _is_same_kubelet(now: NodeFacts, then: NodeFacts) -> bool:
    """Whether settings and cores are as they were, and the same things are told."""
    # Nodes of one make share the map of their cores.
    return (
        (now.cores is then.cores or now.cores == then.cores)
        and (now.managers is then.managers or now.managers == then.managers)
        and (now.kubelet is then.kubelet or now.kubelet == then.kubelet)
        and now.reserved_cpus == then.reserved_cpus
        and _told(now) == _told(then)
    )


def _told(facts: NodeFacts) -> tuple[bool, ...]:
    return facts.default_cpus is None, facts.memory is None, facts.devices is None, facts.placements is None


def _are_same_zones(now: Sequence[Zone], then: Sequence[Zone], before: RowFacts) -> bool:
    """Whether there is just as much of everything, and as far apart where that counts."""
    ids = before.rules.zones
    if len(now) != len(ids) or list(now[0].resources) != list(then[0].resources):
        return False
    closest = before.rules.distances is not None or Assumption.DISTANCES_UNKNOWN in before.assumptions
    for zone, known, number in zip(now, then, ids, strict=True):
        # Pods that came or left did so in few zones.
        if zone.resources != known.resources and not _is_same_stock(zone.resources, known.resources):
            return False
        if zone.id != number or (closest and zone.costs != known.costs):
            return False
    return True


def _is_same_stock(now: Mapping[str, Amounts], then: Mapping[str, Amounts]) -> bool:
    if len(now) != len(then):
        return False
    for name, each in now.items():
        known = then.get(name)
        if known is None or each.allocatable != known.allocatable or each.capacity != known.capacity:
            return False
    return True


def _is_told(now: NodeFacts, before: RowFacts) -> bool:
    """Whether the memory manager's table was and is there, and speaks of just these zones, if memory is managed."""
    if now.memory is None:
        return not before.rules.static_memory
    names = before.supplies.stock.names
    places = supplies.memory_places(names)
    # All memory is from the books, or none of it.
    told = not places or names[places[0]] in before.from_books
    return told and tuple([zone.zone for zone in now.memory]) == before.rules.zones


def _take_amounts(free: list[int], zones: Sequence[Zone], before: RowFacts) -> None:
    """Of what no manager keeps books about."""
    names = before.supplies.stock.names
    for place, name in enumerate(names) if len(before.from_books) < len(names) else ():
        if name not in before.from_books:
            unit = supplies.MILLI if name == resourcenames.CPU else 1
            amounts = [zone.resources.get(name, supplies.NOTHING).available for zone in zones]
            free[place :: len(names)] = [amount // unit for amount in amounts]


def _take_cpus(
    free: list[int], now: NodeFacts, then: NodeFacts, before: RowFacts
) -> tuple[int | None, tuple[tuple[int, ...], ...] | None]:
    """Of zones where some were taken or given back; how many are on full cores, and cores by their free threads."""
    cores = hardware.cores(before.rules.zones, now.cores) if now.cores else None
    left, known = supplies.free_cpus(now), supplies.free_cpus(then)
    if cores is None or left is None or known is None:
        return None, None
    names, threads = before.supplies.stock.names, list(before.cores or ())
    place, width, changed = names.index(resourcenames.CPU), len(names), left ^ known
    for position, members in enumerate(cores.members):
        if members & changed:
            own = members & left
            free[position * width + place] = own.bit_count()
            threads[position] = cores.histogram(position, own)
    return supplies.on_full_cores(now, cores), tuple(threads)


def _take_memory(free: list[int], now: Sequence[MemoryZone], then: Sequence[MemoryZone], stock: Stock) -> bool:
    """Of zones that changed; whether zones are bound together, and in use, as they were."""
    # Without a memory resource there is nothing to be free, and the last table may be of other zones.
    if len(now) != len(then):
        return False
    places, width, same = supplies.memory_places(stock.names), len(stock.names), True
    for position, zone in enumerate(now):
        known = then[position]
        # What did not change is mostly the same object.
        if zone is known:
            continue
        same = same and _group(zone) == _group(known)
        for place in places:
            spot = position * width + place
            free[spot] = min(zone.free.get(stock.names[place], 0), stock.allocatable[spot])
    return same


def _group(zone: MemoryZone) -> tuple[int, int, bool]:
    return zone.zone, zone.cells, zone.assignments > 0


def _take_devices(
    free: list[int], now: Sequence[DeviceClass], then: Sequence[DeviceClass], before: RowFacts
) -> tuple[int, ...] | None:
    """Those without a zone; None: there are others than before, or such as lie in several zones have changed."""
    names, zones, homeless = before.supplies.stock.names, before.rules.zones, before.supplies.homeless
    if len(now) != len(then):
        return None
    for each, known in zip(now, then, strict=True):
        # What did not change is mostly the same object.
        if each is known or each == known:
            continue
        if not _is_same_class(each, known) or not supplies.is_device(each.resource):
            return None
        gain = each.free - known.free
        spot = _spot(each.resource, each.zones, names, zones) if each.zones is not None else None
        if spot is not None:
            free[spot] += gain
        elif each.zones is None:
            left = list(homeless or (0,) * len(names))
            left[names.index(each.resource)] += gain
            homeless = tuple(left) if any(left) else ()
        else:
            return None
    return homeless


@lru_cache(maxsize=supplies.ALIKE)
def _spot(resource: str, mask: int, names: tuple[str, ...], zones: tuple[int, ...]) -> int | None:
    """Where devices that lie in one zone are counted; None: they lie in several, or in none that there is."""
    own = zonemasks.from_ids(mask, zones)
    return (own.bit_length() - 1) * len(names) + names.index(resource) if own.bit_count() == 1 else None


def _is_same_class(now: DeviceClass, then: DeviceClass) -> bool:
    """But for those that are free."""
    if now.resource != then.resource or now.zones != then.zones:
        return False
    return now.total == then.total and now.healthy == then.healthy
