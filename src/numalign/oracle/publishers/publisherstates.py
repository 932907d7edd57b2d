"""Recorded states of nodes, as the agent reads them: a machine, what can be allocated, and what pods are listed with.

`publishers` and its neighbours ask. Both publishers' tables come out in one form; null, and a column that is missing,
are lists and tables without an item. Memory may be recorded in bytes that make no whole page; `scale` says by how much
everything is taken larger to get some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from numalign.agent.publish import exclusions
from numalign.agent.sources.podresources import Allocatable, ContainerResources, DeviceEntry, MemoryEntry, PodResources
from numalign.api.decode import quantity
from numalign.api.objects import resourcenames
from numalign.kubelet.machine import Core, HugePages, Machine, Zone

Row = Mapping[str, Any]
SCALES: Final = (1, 1 << 10, 1 << 20, 1 << 30, 1 << 40)


def machine(row: Row) -> Machine:
    known, times, ids = capacity(row), scale(row), sorted(each["id"] for each in _zones(row))
    return Machine("recorded", tuple(_zone(each, known.get(each["id"], {}), times, ids) for each in _zones(row)))


def in_a_row(row: Row) -> bool:
    """Whether the zones have the ids 0, 1, 2 and so on."""
    return sorted(each["id"] for each in _zones(row)) == list(range(len(_zones(row))))


def scale(row: Row) -> int:
    amounts = (kinds.items() for kinds in capacity(row).values())
    pages = [(_page(kind), size) for kinds in amounts for kind, size in kinds if resourcenames.is_hugepages(kind)]
    return next(times for times in SCALES if all(times * size % page == 0 for page, size in pages))


def allocatable(row: Row) -> Allocatable:
    told, times = row.get("allocatable") or {}, scale(row)
    return Allocatable(_devices(told.get("devices")), tuple(told.get("cpus") or ()), _memory(told.get("memory"), times))


def pods(row: Row, times: int = 1) -> tuple[PodResources, ...]:
    return tuple(_pod(each, times) for each in row.get("pods") or ())


def excluded(row: Row) -> frozenset[str]:
    """Resources that are left out on this node."""
    told = row.get("exclude") or {}
    if isinstance(told, Mapping):
        return exclusions.on_node({node: names or () for node, names in told.items()}, row.get("node", ""))
    return frozenset(told)


def zones_of(row: Row) -> dict[tuple[str, str], set[int]]:
    """By resource and id, the zones of devices that can be allocated."""
    found: dict[tuple[str, str], set[int]] = {}
    for entry in allocatable(row).devices:
        for each in entry.ids:
            found.setdefault((entry.resource, each), set()).update(entry.zones or ())
    return found


def _zones(row: Row) -> list[Row]:
    return list((row.get("topology") or {}).get("nodes") or ())


def capacity(row: Row) -> dict[int, dict[str, int]]:
    """Bytes that sysfs tells of, by zone and kind, from either form."""
    found: dict[int, dict[str, int]] = {zone["id"]: {} for zone in _zones(row)}
    for kind, zones in (row.get("sys_memory") or {}).items():
        for name, amount in (zones or {}).items():
            found.setdefault(int(name), {})[kind] = amount
    for name, kinds in (row.get("memory_capacity") or {}).items():
        found.setdefault(int(name), {}).update(kinds or {})
    return found


def _page(kind: str) -> int:
    """Bytes of a page of this kind."""
    return quantity.parse(kind.removeprefix(resourcenames.HUGEPAGES_PREFIX)).value


def _zone(zone: Row, known: Mapping[str, int], times: int, ids: list[int]) -> Zone:
    pages = ((_page(kind), size) for kind, size in known.items() if resourcenames.is_hugepages(kind))
    return Zone(
        id=zone["id"],
        cores=tuple(Core(zone["id"], (cpu,)) for cpu in zone.get("cpus") or ()),
        memory=times * known.get("memory", 0),
        hugepages=tuple(HugePages(page >> 10, times * size // page) for page, size in pages),
        distances=_distances(zone.get("distances") or (), ids),
    )


def _distances(told: Iterable[int], ids: list[int]) -> tuple[int, ...]:
    """By id; the kernel tells them by place among the zones that there are (D-03)."""
    by_id = dict(zip(ids, told, strict=False))
    return tuple(by_id.get(zone, 0) for zone in range(max(by_id, default=-1) + 1))


def _pod(pod: Row, times: int) -> PodResources:
    containers = pod.get("containers") or ()
    return PodResources(pod["namespace"], pod["name"], tuple(_container(each, times) for each in containers))


def _container(container: Row, times: int) -> ContainerResources:
    if "resources" in container:
        container = _unified(container)
    return ContainerResources(
        container["name"],
        _devices(container.get("devices")),
        tuple(container.get("cpus") or ()),
        _memory(container.get("memory"), times),
    )


def _unified(container: Row) -> Row:
    """The updater's form, which has all that a container holds in one list, as the exporter's."""
    own: dict[str, Any] = {"name": container["name"], "cpus": [], "memory": [], "devices": []}
    for held in container["resources"] or ():
        name, data, numa = held["name"], held.get("data") or (), held.get("numa")
        if name == resourcenames.CPU:
            own["cpus"] += map(int, data)
        elif resourcenames.is_bytes(name):
            # A block has one size; the updater overlooks any other number of them.
            own["memory"] += [{"type": name, "size": int(size), "numa": numa} for size in data if len(data) == 1]
        else:
            own["devices"].append({"resource": name, "ids": data, "numa": numa})
    return own


def _devices(entries: Iterable[Row] | None) -> tuple[DeviceEntry, ...]:
    told = entries or ()
    return tuple(DeviceEntry(each["resource"], tuple(each["ids"] or ()), numa(each)) for each in told)


def _memory(entries: Iterable[Row] | None, times: int) -> tuple[MemoryEntry, ...]:
    told = entries or ()
    return tuple(MemoryEntry(each["type"], times * each["size"], numa(each) or ()) for each in told)


def numa(entry: Row) -> tuple[int, ...] | None:
    """Zones of an entry; None where it has no topology, which is something else than one without a zone."""
    zones = entry.get("numa")
    return None if zones is None else tuple(zones)
