"""Defects of RTE and NFD that show in their reports, as rules on the input.

A rule names the numbers that a defect affects. `reports` accepts a difference only if everything that no rule
affects is equal."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from numalign.agent.inventory import plainform
from numalign.agent.inventory.plainform import Form
from numalign.agent.sources.podresources import ContainerResources, DeviceEntry, MemoryEntry
from numalign.api.attributes import grammar
from numalign.api.objects import resourcenames
from numalign.kubelet.report.plainreport import PER_ZONE_PAGES
from numalign.oracle.harness.divergence import Raw
from numalign.oracle.publishers import states

Number = tuple[str, str, str]
"""Zone, resource, and one of its three amounts."""
Touched = Callable[[Raw], frozenset[Number]]
CAPACITY, ALLOCATABLE, AVAILABLE = NUMBERS = ("capacity", "allocatable", "available")


def _numbers(places: Iterable[tuple[int, str]], *numbers: str) -> frozenset[Number]:
    return frozenset((grammar.zone_name(zone), name, each) for zone, name in places if zone >= 0 for each in numbers)


def _containers(row: Raw) -> Iterator[ContainerResources]:
    return (container for pod in states.pods(row) for container in pod.containers)


def _blocks(row: Raw) -> Iterator[MemoryEntry]:
    return (block for container in _containers(row) for block in container.memory)


def several_zones(row: Raw) -> frozenset[Number]:
    """Blocks in several zones: how they are divided among them (D-07)."""
    return _numbers(_spread(_blocks(row)), AVAILABLE)


def _spread(blocks: Iterable[MemoryEntry]) -> Iterator[tuple[int, str]]:
    return ((zone, block.type) for block in blocks if len(block.zones) > 1 for zone in block.zones)


def out_of_turn(row: Raw) -> frozenset[Number]:
    """Such blocks where NFD is wrong: listed before a narrower block, in a zone without the kind, or in an unknown zone
    (D-02)."""
    offered = {(zone, block.type) for block in states.allocatable(row).memory for zone in block.zones}
    zones = {zone.id for zone in states.machine(row).zones}
    lacking = {(zone, kind) for zone, kind in _spread(_blocks(row)) if zone in zones and (zone, kind) not in offered}
    unknown = zones ^ {*range(len(zones))}
    blocks: dict[str, list[MemoryEntry]] = {}
    for block in _blocks(row):
        blocks.setdefault(block.type, []).append(block)
    wrong = [
        each
        for each in blocks.values()
        if any(place in lacking or place[0] in unknown for place in _spread(each))
        or sorted(len(block.zones) for block in each) != [len(block.zones) for block in each]
    ]
    return _numbers((place for each in wrong for place in _spread(each)), AVAILABLE)


def not_as_offered(row: Raw) -> frozenset[Number]:
    """Devices and CPUs that pods hold where none are offered (D-28), or that are offered where pods do not hold
    them."""
    offered = states.zones_of(states.allocatable(row).devices)
    held = states.zones_of(each for one in _containers(row) for each in one.devices)
    apart = ((zone, key[0]) for key, zones in held.items() for zone in zones ^ offered.get(key, set()))
    missing = {cpu for container in _containers(row) for cpu in container.cpus} - {*states.allocatable(row).cpus}
    return _numbers([*apart, *((zone, resourcenames.CPU) for zone in _zones_with(row, missing))], AVAILABLE)


def _zones_with(row: Raw, cpus: Iterable[int]) -> Iterable[int]:
    return plainform.by_zone(states.machine(row), cpus)


def spanning(row: Raw) -> frozenset[Number]:
    """Devices in several zones (D-24)."""
    devices = states.zones_of(states.allocatable(row).devices).items()
    return _numbers(
        ((zone, resource) for (resource, _), zones in devices if len(zones) > 1 for zone in zones), AVAILABLE
    )


def other_namespaces(row: Raw) -> frozenset[Number]:
    """Everything that pods of other namespaces hold."""
    pods = states.pods(row)
    if row.get("namespace", "*") in ("", "*") or all(pod.namespace == row["namespace"] for pod in pods):
        return frozenset()
    allocatable = states.allocatable(row)
    names = {"cpu", *(entry.resource for entry in allocatable.devices), *(block.type for block in allocatable.memory)}
    zones = [zone.id for zone in states.machine(row).zones]
    return _numbers(((zone, name) for zone in zones for name in names), AVAILABLE)


def listed_twice(row: Raw) -> frozenset[Number]:
    """CPUs and devices that are listed more than once in the same place, as allocatable or as held."""
    allocatable, held = states.allocatable(row), list(_containers(row))
    offered = _twice(row, allocatable.cpus, allocatable.devices)
    taken = _twice(row, (cpu for each in held for cpu in each.cpus), (entry for each in held for entry in each.devices))
    return _numbers(offered, *NUMBERS) | _numbers(taken, AVAILABLE)


def held_often(row: Raw) -> frozenset[Number]:
    """Devices that are held more than once in any zones: NFD looks them up by id only."""
    held = (entry for each in _containers(row) for entry in each.devices)
    often = _repeated((entry.resource, each) for entry in held for each in entry.ids)
    zones = states.zones_of(states.allocatable(row).devices)
    return _numbers(((zone, key[0]) for key in often for zone in zones.get(key, ())), AVAILABLE)


def counted_often(row: Raw) -> frozenset[Number]:
    """What NFD counts more than once."""
    return listed_twice(row) | held_often(row)


def _twice(row: Raw, cpus: Iterable[int], devices: Iterable[DeviceEntry]) -> list[tuple[int, str]]:
    entries = ((entry.resource, each, zone) for entry in devices for each in entry.ids for zone in entry.zones or ())
    places = [(zone, resource) for resource, _, zone in _repeated(entries)]
    return [*places, *((zone, resourcenames.CPU) for zone in _zones_with(row, _repeated(cpus)))]


def _repeated(items: Iterable[Any]) -> set[Any]:
    return {item for item, times in Counter(items).items() if times > 1}


def pages_of_other_sizes(row: Raw) -> frozenset[Number]:
    """Pages of sizes whose number RTE does not know (D-06)."""
    return _numbers(
        (
            (zone, kind)
            for zone, kinds in states.capacity(row).items()
            for kind in kinds
            if resourcenames.is_hugepages(kind) and kind not in PER_ZONE_PAGES
        ),
        CAPACITY,
    )


def more_than_there_is(row: Raw) -> frozenset[Number]:
    """Memory of which the kubelet offers more than sysfs reports."""
    usable: Counter[tuple[int, str]] = Counter()
    for block in states.allocatable(row).memory:
        for zone in block.zones:
            usable[zone, block.type] += block.size
    times, known = states.scale(row), states.capacity(row)
    short = (
        (zone, kind) for (zone, kind), size in usable.items() if size > times * known.get(zone, {}).get(kind, size)
    )
    return _numbers(short, CAPACITY)


def without_cpus(row: Raw) -> frozenset[str]:
    """Zones with something allocatable and no CPU (D-37)."""
    zones = plainform.zones(states.machine(row), states.allocatable(row), (), "rte")
    bare = (zone for zone in zones if not zone.resources["cpu"].allocatable and len(zone.resources) > 1)
    return frozenset(grammar.zone_name(zone.id) for zone in bare)


def cpus_left_out(row: Raw) -> frozenset[str]:
    """Zones with nothing allocatable, where CPUs are excluded: NFD reports them."""
    zones = plainform.zones(states.machine(row), states.allocatable(row), (), "nfd")
    bare = (zone for zone in zones if zone.resources.keys() == {"cpu"} and not zone.resources["cpu"].allocatable)
    return frozenset(map(grammar.zone_name, (zone.id for zone in bare))) if "cpu" in states.excluded(row) else NONE


NONE: Final = frozenset[str]()
TOUCHED: Final[Mapping[Form, tuple[Touched, ...]]] = {
    "rte": (several_zones, not_as_offered, other_namespaces, listed_twice, pages_of_other_sizes),
    "nfd": (out_of_turn, spanning, other_namespaces, counted_often, more_than_there_is),
}
BARE: Final[Mapping[Form, Callable[[Raw], frozenset[str]]]] = {"rte": without_cpus, "nfd": cpus_left_out}
"""Zones whose unallocatable CPUs only one side reports."""


def untouched(zones: list[Any], row: Raw, form: Form) -> object:
    """The part of a report that no defect affects."""
    touched = frozenset[Number]().union(*(rule(row) for rule in TOUCHED[form]))
    bare = BARE[form](row)

    def left(zone: Raw) -> list[Raw]:
        kept = (each for each in zone["resources"] if not (zone["name"] in bare and _is_no_cpu(each)))
        return [_hidden(zone["name"], each, touched) for each in kept]

    kept = [{**zone, "resources": left(zone)} for zone in zones]
    if states.in_a_row(row):
        return kept
    # Where places are used as ids: zones that both sides have, without costs (D-02, D-03).
    ids = {zone.id for zone in states.machine(row).zones}
    shared = {grammar.zone_name(place) for place in ids & {*range(len(ids))}}
    return [{**zone, "costs": None} for zone in kept if zone["name"] in shared]


def _is_no_cpu(resource: Raw) -> bool:
    return bool(resource["name"] == resourcenames.CPU and not resource["allocatable"])


def _hidden(zone: str, resource: Raw, touched: frozenset[Number]) -> Raw:
    return {**resource, **{each: None for each in NUMBERS if (zone, resource["name"], each) in touched}}
