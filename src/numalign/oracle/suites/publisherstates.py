"""Recorded states of nodes, as the agent reads them: a machine, what can be allocated, and what pods are listed with.

`publishers` and `publisherparts` ask. Both publishers' tables come out in one form. Memory may be recorded in bytes
that make no whole page; `scale` says by how much everything is taken larger to get some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from numalign.agent.podresources import Allocatable, ContainerResources, DeviceEntry, MemoryEntry, PodResources
from numalign.kubelet.machine import Core, HugePages, Machine, Zone

Row = Mapping[str, Any]
PAGES: Final = {"hugepages-2Mi": 2048, "hugepages-1Gi": 1 << 20, "hugepages-64Ki": 64}
"""Sizes in KiB."""
SCALES: Final = (1, 1 << 10, 1 << 20)


def machine(row: Row) -> Machine:
    capacity, times = _capacity(row), scale(row)
    return Machine("recorded", tuple(_zone(each, capacity.get(each["id"], {}), times) for each in _zones(row)))


def scale(row: Row) -> int:
    pages = [(kind, size) for kinds in _capacity(row).values() for kind, size in kinds.items() if kind in PAGES]
    return next(times for times in SCALES if all(times * size % (PAGES[kind] << 10) == 0 for kind, size in pages))


def allocatable(row: Row) -> Allocatable:
    told, times = row.get("allocatable", {}), scale(row)
    return Allocatable(_devices(told["devices"]), tuple(told["cpus"]), _memory(told["memory"], times))


def pods(row: Row, times: int = 1) -> tuple[PodResources, ...]:
    return tuple(_pod(each, times) for each in row["pods"])


def zones_of(row: Row) -> dict[tuple[str, str], set[int]]:
    """By resource and id, the zones of devices that can be allocated."""
    found: dict[tuple[str, str], set[int]] = {}
    for entry in allocatable(row).devices:
        for each in entry.ids:
            found.setdefault((entry.resource, each), set()).update(entry.zones or ())
    return found


def _zones(row: Row) -> list[Row]:
    return list(row["topology"]["nodes"])


def _capacity(row: Row) -> dict[int, dict[str, int]]:
    """By zone and kind, from either form."""
    found: dict[int, dict[str, int]] = {zone["id"]: {} for zone in _zones(row)}
    for kind, zones in row.get("sys_memory", {}).items():
        for name, amount in zones.items():
            found[int(name)][kind] = amount
    for name, kinds in row.get("memory_capacity", {}).items():
        found[int(name)].update(kinds)
    return found


def _zone(zone: Row, capacity: Mapping[str, int], times: int) -> Zone:
    pages = ((kind, size) for kind, size in capacity.items() if kind in PAGES)
    return Zone(
        id=zone["id"],
        cores=tuple(Core(zone["id"], (cpu,)) for cpu in zone["cpus"]),
        memory=times * capacity.get("memory", 0),
        hugepages=tuple(HugePages(PAGES[kind], times * size // (PAGES[kind] << 10)) for kind, size in pages),
        distances=tuple(zone["distances"]),
    )


def _pod(pod: Row, times: int) -> PodResources:
    return PodResources(pod["namespace"], pod["name"], tuple(_container(each, times) for each in pod["containers"]))


def _container(container: Row, times: int) -> ContainerResources:
    if "resources" in container:
        container = _unified(container)
    return ContainerResources(
        container["name"],
        _devices(container.get("devices", ())),
        tuple(container.get("cpus", ())),
        _memory(container.get("memory", ()), times),
    )


def _unified(container: Row) -> Row:
    """The updater's form, which has all that a container holds in one list, as the exporter's."""
    own: dict[str, Any] = {"name": container["name"], "cpus": [], "memory": [], "devices": []}
    for held in container["resources"]:
        if held["name"] == "cpu":
            own["cpus"] += map(int, held["data"])
        elif held["name"] == "memory" or held["name"].startswith("hugepages-"):
            own["memory"].append({"type": held["name"], "size": int(held["data"][0]), "numa": held["numa"]})
        else:
            own["devices"].append({"resource": held["name"], "ids": held["data"], "numa": held["numa"]})
    return own


def _devices(entries: Iterable[Row]) -> tuple[DeviceEntry, ...]:
    return tuple(DeviceEntry(each["resource"], tuple(each["ids"]), _numa(each["numa"])) for each in entries)


def _memory(entries: Iterable[Row], times: int) -> tuple[MemoryEntry, ...]:
    return tuple(MemoryEntry(each["type"], times * each["size"], _numa(each["numa"]) or ()) for each in entries)


def _numa(zones: Iterable[int] | None) -> tuple[int, ...] | None:
    return None if zones is None else tuple(zones)
