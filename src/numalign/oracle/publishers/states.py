"""Reads recorded node states for the agent's modules: a machine, allocatable resources, and pods.

The other modules here use it. It converts both publishers' tables into one form; null and a missing column are
empty lists and tables. Memory may be recorded in bytes that are no multiple of a page; `scale` is the factor that makes
it one."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from numalign.agent.inventory import exclusions
from numalign.agent.sources.podresources import Allocatable, ContainerResources, DeviceEntry, MemoryEntry, PodResources
from numalign.api.decode import quantity
from numalign.api.objects import resourcenames
from numalign.kubelet.machine.machine import Core, HugePages, Machine, Zone
from numalign.oracle.harness.divergence import Raw

SCALES: Final = (1, 1 << 10, 1 << 20, 1 << 30, 1 << 40)


def machine(row: Raw) -> Machine:
    known, times, ids = capacity(row), scale(row), sorted(each["id"] for each in _zones(row))
    return Machine("recorded", tuple(_zone(each, known.get(each["id"], {}), times, ids) for each in _zones(row)))


def in_a_row(row: Raw) -> bool:
    """Whether the zones have the ids 0, 1, 2 and so on."""
    return sorted(each["id"] for each in _zones(row)) == list(range(len(_zones(row))))


def scale(row: Raw) -> int:
    amounts = (kinds.items() for kinds in capacity(row).values())
    pages = [(_page(kind), size) for kinds in amounts for kind, size in kinds if resourcenames.is_hugepages(kind)]
    return next(times for times in SCALES if all(times * size % page == 0 for page, size in pages))


def allocatable(row: Raw) -> Allocatable:
    given, times = row.get("allocatable") or {}, scale(row)
    return Allocatable(
        _devices(given.get("devices")), tuple(given.get("cpus") or ()), _memory(given.get("memory"), times)
    )


def pods(row: Raw, times: int = 1) -> tuple[PodResources, ...]:
    return tuple(_pod(each, times) for each in row.get("pods") or ())


def excluded(row: Raw) -> frozenset[str]:
    """Resources excluded on this node."""
    given = row.get("exclude") or {}
    if isinstance(given, Mapping):
        return exclusions.on_node({node: names or () for node, names in given.items()}, row.get("node", ""))
    return frozenset(given)


def zones_of(devices: Iterable[DeviceEntry]) -> dict[tuple[str, str], set[int]]:
    """The zones of devices, by resource and id."""
    found: dict[tuple[str, str], set[int]] = {}
    for entry in devices:
        for each in entry.ids:
            found.setdefault((entry.resource, each), set()).update(entry.zones or ())
    return found


def _zones(row: Raw) -> list[Raw]:
    return list((row.get("topology") or {}).get("nodes") or ())


def capacity(row: Raw) -> dict[int, dict[str, int]]:
    """Bytes in sysfs by zone and kind, from either form."""
    found: dict[int, dict[str, int]] = {zone["id"]: {} for zone in _zones(row)}
    for kind, zones in (row.get("sys_memory") or {}).items():
        for name, amount in (zones or {}).items():
            found.setdefault(int(name), {})[kind] = amount
    for name, kinds in (row.get("memory_capacity") or {}).items():
        found.setdefault(int(name), {}).update(kinds or {})
    return found


def _page(kind: str) -> int:
    """The page size of this kind, in bytes."""
    return quantity.parse(kind.removeprefix(resourcenames.HUGEPAGES_PREFIX)).value


def _zone(zone: Raw, known: Mapping[str, int], times: int, ids: list[int]) -> Zone:
    pages = ((_page(kind), size) for kind, size in known.items() if resourcenames.is_hugepages(kind))
    return Zone(
        id=zone["id"],
        cores=tuple(Core(zone["id"], (cpu,)) for cpu in zone.get("cpus") or ()),
        memory=times * known.get("memory", 0),
        hugepages=tuple(HugePages(page >> 10, times * size // page) for page, size in pages),
        distances=_distances(zone.get("distances") or (), ids),
    )


def _distances(given: Iterable[int], ids: list[int]) -> tuple[int, ...]:
    """Distances by id; the kernel lists them by place among the existing zones (D-03)."""
    by_id = dict(zip(ids, given, strict=False))
    return tuple(by_id.get(zone, 0) for zone in range(max(by_id, default=-1) + 1))


def _pod(pod: Raw, times: int) -> PodResources:
    containers = pod.get("containers") or ()
    return PodResources(pod["namespace"], pod["name"], tuple(_container(each, times) for each in containers))


def _container(container: Raw, times: int) -> ContainerResources:
    if "resources" in container:
        container = _unified(container)
    return ContainerResources(
        container["name"],
        _devices(container.get("devices")),
        tuple(container.get("cpus") or ()),
        _memory(container.get("memory"), times),
    )


def _unified(container: Raw) -> Raw:
    """Converts the updater's form, which lists all resources of a container together, into the exporter's."""
    own: dict[str, Any] = {"name": container["name"], "cpus": [], "memory": [], "devices": []}
    for held in container["resources"] or ():
        name, data, numa = held["name"], held.get("data") or (), held.get("numa")
        if name == resourcenames.CPU:
            own["cpus"] += map(int, data)
        elif resourcenames.is_bytes(name):
            # A block has one size; the updater ignores entries with any other number of them.
            own["memory"] += [{"type": name, "size": int(size), "numa": numa} for size in data if len(data) == 1]
        else:
            own["devices"].append({"resource": name, "ids": data, "numa": numa})
    return own


def _devices(entries: Iterable[Raw] | None) -> tuple[DeviceEntry, ...]:
    given = entries or ()
    return tuple(DeviceEntry(each["resource"], tuple(each["ids"] or ()), numa(each)) for each in given)


def _memory(entries: Iterable[Raw] | None, times: int) -> tuple[MemoryEntry, ...]:
    given = entries or ()
    return tuple(MemoryEntry(each["type"], times * each["size"], numa(each) or ()) for each in given)


def numa(entry: Raw) -> tuple[int, ...] | None:
    """The zones of an entry; None if it has no topology, which differs from a topology without zones."""
    zones = entry.get("numa")
    return None if zones is None else tuple(zones)
