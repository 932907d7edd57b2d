"""Machines as files for tests of what reads them, and what a reader can know of a machine."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from numalign.agent.sources import sysfs
from numalign.api.decode import cpuset
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Core, Machine, Zone
from numalign.lab import machinetree


def written(machine: Machine, folder: Path) -> Path:
    machinetree.write(machine, folder)
    return folder


def preset(name: str, folder: Path) -> Path:
    return written(presets.machine(name), folder)


def put(root: Path, path: str, text: str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{text}\n")


def switch_off(root: Path, *cpus: int) -> None:
    """As the kernel does it: a CPU leaves the lists of those online, of zones and of caches; its folder stays."""
    off = cpuset.of(cpus)
    lists = [root / sysfs.CPUS / "online", *root.glob(f"{sysfs.ZONES}/node*/cpulist")]
    lists += root.glob(f"{sysfs.CPUS}/cpu*/cache/index*/shared_cpu_list")
    for path in lists:
        path.write_text(cpuset.text(cpuset.parse(path.read_text().strip()) & ~off) + "\n")


def as_seen(machine: Machine) -> Machine:
    """What files can tell: no devices, no L3 as large as its zone, distances to zones that exist."""
    groups: dict[int, int] = {}
    for zone in machine.zones:
        for core in zone.cores:
            if core.uncore is not None:
                groups[core.uncore] = groups.get(core.uncore, 0) + len(core.cpus)
    return Machine("node", tuple(_seen(machine, zone, groups) for zone in machine.zones))


def _seen(machine: Machine, zone: Zone, groups: dict[int, int]) -> Zone:
    cores = [_grouped(core, len(zone.cores), groups) for core in zone.cores]
    distances = [
        distance if other in machine.zone_ids else sysfs.NO_SUCH_ZONE for other, distance in enumerate(zone.distances)
    ]
    return structs.replace(
        zone,
        cores=tuple(sorted(cores, key=lambda core: core.cpus)),
        hugepages=tuple(sorted(zone.hugepages, key=lambda pages: pages.size_kib)),
        distances=tuple(distances),
    )


def _grouped(core: Core, cores: int, groups: dict[int, int]) -> Core:
    whole = core.uncore is not None and groups[core.uncore] == cores * len(core.cpus)
    return Core(core.socket, tuple(sorted(core.cpus)), None if whole else core.uncore)
