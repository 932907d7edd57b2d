"""Draws a machine: its zones with their CPUs, memory, caches and devices, and the distances between them.

`agent show` calls it with a reading of the host. What the kernel reports is drawn on any machine; where a kubelet runs,
its policies, what is allocatable and what is free are drawn, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from numalign.agent.inventory.snapshot import Snapshot
from numalign.agent.sources import sysfs
from numalign.api.decode import cpuset
from numalign.api.objects import resourcenames
from numalign.cli.display import formats
from numalign.cli.display.formats import INDENT, Page
from numalign.kubelet.machine.machine import Machine, Zone


class ZoneTold(Struct, frozen=True):
    zone: int
    sockets: tuple[int, ...]
    cores: int
    cpus: str
    caches: tuple[str, ...]
    """CPUs that share an L3, where a zone has several."""
    memory: int
    unused: int | None
    """Of the memory at this moment; None: the kernel does not report it."""
    hugepages: dict[str, int]
    """Bytes by resource."""
    distances: tuple[int, ...]
    """To the zones in their order."""
    free: dict[str, tuple[int, int]]
    """By resource: what is free, and what can be allocated, in the kubelet's units; empty: no kubelet reports it."""


class MachineOutput(Struct, frozen=True):
    zones: tuple[ZoneTold, ...]
    offline: str
    policies: str
    """Of the kubelet; empty: not known."""
    unknown: tuple[str, ...]
    """Why what the kubelet could allocate is not known."""
    problems: tuple[str, ...]
    hardware_problems: tuple[str, ...]
    """The problems that concern the kernel's files."""


def machine_output(look: Snapshot, host: Path) -> MachineOutput:
    machine = look.readings.machine
    assert machine is not None
    free, unused = _free(look), sysfs.unused_memory(host, machine)
    settings = look.readings.settings
    policies = (
        f"topology {settings.topology_policy} ({settings.topology_scope}), CPUs {settings.cpu_policy},"
        f" memory {settings.memory_policy}, from {look.readings.settings_source}"
    )
    return MachineOutput(
        zones=tuple(_zone(machine, zone, free.get(zone.id, {}), unused.get(zone.id)) for zone in machine.zones),
        offline=cpuset.text(look.readings.offline),
        policies="" if look.unknown else policies,
        unknown=look.unknown,
        problems=(*look.readings.problems, *look.contradictions, *filter(None, [look.doubt])),
        hardware_problems=look.readings.hardware_problems,
    )


def drawn(machine: MachineOutput) -> str:
    page = Page()
    page.add(Text(_summary(machine), "bold"))
    lines = formats.labelled()
    for label, text in _facts(machine):
        lines.add_row(label, text)
    page.add(lines, indent=INDENT)
    page.add()
    table = _zones(page, machine)
    if page.fits(table):
        page.add(table)
    else:
        _one_by_one(page, machine)
    if len(machine.zones) > 1 and any(zone.distances for zone in machine.zones):
        page.add()
        page.add("distances")
        matrix = _distances(page, machine)
        page.add(matrix if page.fits(matrix) else _distances_in_words(machine), indent=INDENT)
    return page.text()


def _free(look: Snapshot) -> dict[int, dict[str, tuple[int, int]]]:
    if look.inventory is None or look.unknown:
        return {}
    report = look.inventory.report("")
    return {
        zone.id: {name: (each.available, each.allocatable) for name, each in zone.resources.items()}
        for zone in report.zones
    }


def _zone(machine: Machine, zone: Zone, free: dict[str, tuple[int, int]], unused: int | None) -> ZoneTold:
    groups: dict[int, list[int]] = {}
    for core in zone.cores:
        if core.uncore is not None:
            groups.setdefault(core.uncore, []).extend(core.cpus)
    return ZoneTold(
        zone=zone.id,
        sockets=tuple(sorted({core.socket for core in zone.cores})),
        cores=len(zone.cores),
        cpus=cpuset.text(cpuset.of(cpu for core in zone.cores for cpu in core.cpus)),
        caches=tuple(cpuset.text(cpuset.of(cpus)) for cpus in groups.values()) if len(groups) > 1 else (),
        memory=zone.memory,
        unused=unused,
        hugepages={page.resource: page.total_bytes for page in zone.hugepages if page.total_bytes},
        distances=tuple(zone.distances[other] for other in machine.zone_ids if other < len(zone.distances)),
        free=free,
    )


def _summary(machine: MachineOutput) -> str:
    cpus = sum(cpuset.parse(zone.cpus).bit_count() for zone in machine.zones)
    cores = sum(zone.cores for zone in machine.zones)
    sockets = len({socket for zone in machine.zones for socket in zone.sockets})
    memory = formats.amount(resourcenames.MEMORY, sum(zone.memory for zone in machine.zones))
    threads = f", {cpus // cores} threads each" if cores and cpus > cores else ""
    counts = (_count(len(machine.zones), "zone"), _count(sockets, "socket"), _count(cores, "core"))
    return f"{', '.join(counts)}{threads}, {_count(cpus, 'CPU')}, {memory}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _facts(machine: MachineOutput) -> Iterator[tuple[str, str]]:
    if machine.offline:
        yield "offline", f"CPUs {machine.offline}"
    if machine.unknown:
        yield "kubelet", f"what it could allocate is not known here: {'; '.join(machine.unknown)}"
    else:
        yield "kubelet", machine.policies
    # Without a kubelet, missing kubelet files need no note.
    yield from (("note", each) for each in (machine.hardware_problems if machine.unknown else machine.problems))


def _cells(zone: ZoneTold) -> Iterator[tuple[str, str]]:
    yield "zone", str(zone.zone)
    yield "socket", ",".join(map(str, zone.sockets)) or "-"
    yield "cores", str(zone.cores)
    yield "CPUs", zone.cpus or "-"
    yield "memory", formats.amount(resourcenames.MEMORY, zone.memory)
    if zone.memory and zone.unused is not None:
        yield "unused", formats.amount(resourcenames.MEMORY, zone.unused)
    if zone.hugepages:
        yield (
            "huge pages",
            ", ".join(f"{formats.amount(name, each)} {name[10:]}" for name, each in zone.hugepages.items()),
        )
    if zone.caches:
        yield "L3 groups", " | ".join(zone.caches)
    for name, (free, allocatable) in zone.free.items():
        yield f"free {name.rpartition('/')[2]}", formats.free_of(name, free, allocatable)


def _zones(page: Page, machine: MachineOutput) -> Table:
    rows = list(_folded(dict(_cells(zone)) for zone in machine.zones))
    heads = list(dict.fromkeys(head for row in rows for head in row))
    table = page.table(*heads)
    for row in rows:
        table.add_row(*(row.get(head, "-") for head in heads))
    return table


def _folded(rows: Iterable[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Joins adjacent zones that differ in their number only: accelerators bring many empty zones."""
    for _, alike in groupby(rows, key=lambda row: {**row, "zone": ""}):
        first, *others = alike
        empty = first["CPUs"] == "-" and first["memory"] == "0"
        if empty and others:
            yield {**first, "zone": cpuset.text(cpuset.of(int(each["zone"]) for each in (first, *others)))}
        else:
            yield from (first, *others)


def _one_by_one(page: Page, machine: MachineOutput) -> None:
    """Draws one zone after the other, where a line is too narrow for a zone."""
    for zone in machine.zones:
        first, *others = _cells(zone)
        page.add(Text(" ".join(first), "bold"))
        lines = formats.labelled()
        for label, text in others:
            lines.add_row(label, text)
        page.add(lines, indent=INDENT)


def _distances_in_words(machine: MachineOutput) -> Table:
    """For a matrix that is too wide for the page: each zone with those that are equally far. Adjacent zones with the
    same distances share a line."""
    lines, ids = formats.labelled(), [zone.zone for zone in machine.zones]
    places = [place for place, zone in enumerate(machine.zones) if len(zone.distances) == len(ids)]
    for (own, seen), alike in groupby(places, key=lambda place: _seen_from(machine.zones[place].distances, place)):
        first, *others = alike
        far: dict[int, list[int]] = {}
        for place, distance in enumerate(seen):
            if others or place != first:
                far.setdefault(distance, []).append(ids[place])
        words = (f"{distance} to {cpuset.text(cpuset.of(zones))}" for distance, zones in sorted(far.items()))
        named = cpuset.of(ids[place] for place in (first, *others))
        lines.add_row(cpuset.text(named), ", ".join((f"{own} to itself", *words)))
    return lines


def _seen_from(distances: tuple[int, ...], place: int) -> tuple[int, tuple[int, ...]]:
    """Distances of a zone; its own place has a neighbour's, so that zones equally far from all others are alike."""
    neighbour = place + 1 if place + 1 < len(distances) else place - 1
    return distances[place], (*distances[:place], distances[neighbour], *distances[place + 1 :])


def _distances(page: Page, machine: MachineOutput) -> Table:
    names: Iterable[str] = [str(zone.zone) for zone in machine.zones]
    table = page.table("", *names)
    for zone in machine.zones:
        table.add_row(str(zone.zone), *(map(str, zone.distances) if zone.distances else "-" * len(machine.zones)))
    return table
