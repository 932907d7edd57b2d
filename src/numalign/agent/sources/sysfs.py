"""The machine as the kernel shows it in /sys: zones, distances, cores, L3 groups, memory and hugepages.

`readings` and the command line call `survey` with the folder that holds `sys` and `proc`: the host's root, or its mount
in a container. The ids are the kernel's, as the kubelet finds them. A missing or damaged file costs one value and is
reported; only a machine without any CPU is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from numalign.agent.sources.hostfiles import Files
from numalign.api import errors
from numalign.api.decode import cpuset
from numalign.kubelet.machine import machinefile, zonecores
from numalign.kubelet.machine.machine import Core, HugePages, Machine, Zone

KIND: Final = "Sysfs"
CPUS: Final = "sys/devices/system/cpu"
ZONES: Final = "sys/devices/system/node"
MEMORY: Final = "proc/meminfo"
NO_SUCH_ZONE: Final = machinefile.MAX_DISTANCE
"""The distance of an id that no zone has; the kernel's value for unreachable."""
HIGHEST_PRIVATE_CACHE: Final = 2

LINE: Final = r"%s:[ \t]*([0-9]{1,15})[ \tkB]*$"
TOTAL: Final = re.compile(LINE % "MemTotal", re.MULTILINE)
FREE: Final = re.compile(LINE % "MemFree", re.MULTILINE)
PAGES: Final = re.compile(r"hugepages-([1-9][0-9]{0,14})kB")


class Survey(Struct, frozen=True):
    machine: Machine
    """Online CPUs only, no devices."""
    offline: int = 0
    """The set of offline CPUs."""
    problems: tuple[str, ...] = ()


def survey(root: Path, name: str = "node") -> Survey:
    """BadObject where no CPU can be found."""
    files = Files(root)
    known = cpuset.of(files.numbered(CPUS, "cpu"))
    online = _online(files, known)
    ids = _zone_ids(files)
    zones = _zones(files, ids, online) if ids else _one_zone_per_socket(files, online)
    seen = zonecores.mask([core for zone in zones for core in zone.cores])
    if not seen:
        why = "no CPU is listed there; mount the host's /sys, or name the folder that has it with --host-root"
        raise errors.BadObject(KIND, str(root), CPUS, why)
    if online & ~seen:
        files.note(ZONES, f"CPUs {zonecores.short_text(online & ~seen)} are online and in no zone; left out")
    present = files.members(f"{CPUS}/present") or known
    return Survey(Machine(name, zones), present & ~(online | seen), tuple(files.problems))


def unused_memory(root: Path, machine: Machine) -> dict[int, int]:
    """Free bytes by zone; zones without data are absent."""
    files = Files(root)
    paths = {zone.id: f"{ZONES}/node{zone.id}/meminfo" for zone in machine.zones}
    if not _zone_ids(files) and len(paths) == 1:
        paths = dict.fromkeys(paths, MEMORY)
    found = {zone: FREE.search(files.text(path) or "") for zone, path in paths.items()}
    return {zone: int(match[1]) << 10 for zone, match in found.items() if match}


def _online(files: Files, known: int) -> int:
    listed = files.members(f"{CPUS}/online")
    if listed is not None:
        return listed
    # A kernel without CPU hotplug has no such list, and all CPUs are online.
    return cpuset.of(cpu for cpu in cpuset.members(known) if files.number(f"{CPUS}/cpu{cpu}/online") != 0)


def _zone_ids(files: Files) -> list[int]:
    found = files.numbered(ZONES, "node")
    for zone in found:
        if zone > machinefile.MAX_ZONE_ID:
            files.note(f"{ZONES}/node{zone}", f"kubelets know zones up to {machinefile.MAX_ZONE_ID} only; left out")
    return [zone for zone in found if zone <= machinefile.MAX_ZONE_ID]


def _zones(files: Files, ids: Sequence[int], online: int) -> tuple[Zone, ...]:
    zones = []
    free = online
    for zone in ids:
        zones.append(_zone(files, ids, zone, free))
        # A damaged file must not put a CPU into two zones.
        free &= ~zonecores.mask(zones[-1].cores)
    return tuple(zones)


def _zone(files: Files, ids: Sequence[int], zone: int, cpus: int) -> Zone:
    place = f"{ZONES}/node{zone}"
    return Zone(
        id=zone,
        cores=_cores(files, _cpus(files, place) & cpus),
        memory=_memory(files, f"{place}/meminfo"),
        hugepages=tuple(_hugepages(files, f"{place}/hugepages")),
        distances=_distances(files, f"{place}/distance", ids),
    )


def _cpus(files: Files, place: str) -> int:
    listed = files.members(f"{place}/cpulist")
    return cpuset.of(files.numbered(place, "cpu")) if listed is None else listed


def _one_zone_per_socket(files: Files, online: int) -> tuple[Zone, ...]:
    """For a kernel without zones; sockets replace them, as in the kubelet."""
    files.note(ZONES, "this kernel has no zones; every socket is taken as one")
    cores = _cores(files, online)
    sockets = sorted({core.socket for core in cores})
    zones = [Zone(socket, tuple(core for core in cores if core.socket == socket)) for socket in sockets]
    if len(zones) == 1:
        return (structs.replace(zones[0], memory=_memory(files, MEMORY)),)
    files.note(MEMORY, "the memory of each socket is unknown; none is shown")
    return tuple(zones)


def _cores(files: Files, cpus: int) -> tuple[Core, ...]:
    """Sorted by lowest CPU. CPUs with the same id in the same socket form a core (kubelet spec 4)."""
    threads: dict[tuple[int, str], list[int]] = {}
    vague = 0
    for cpu in cpuset.members(cpus):
        core = files.number(f"{CPUS}/cpu{cpu}/topology/core_id")
        socket = files.number(f"{CPUS}/cpu{cpu}/topology/physical_package_id")
        vague |= (core is None or socket is None) << cpu
        # The kernel writes -1 where the firmware reports no sockets.
        key = max(0, socket or 0), f"cpu {cpu}" if core is None else str(core)
        threads.setdefault(key, []).append(cpu)
    if vague:
        unknown = zonecores.short_text(vague)
        files.note(CPUS, f"cores or sockets of CPUs {unknown} are unknown; each counts as a core on socket 0")
    return _with_uncores(files, [Core(socket, tuple(members)) for (socket, _), members in threads.items()])


def _with_uncores(files: Files, cores: list[Core]) -> tuple[Core, ...]:
    """L3 groups as the kubelet finds them: an L3 cache as large as the zone does not count, and the first unreadable
    cache ends the search, as on ARM guests without them."""
    grouped = list(cores)
    for place, core in enumerate(cores):
        caches = list(_shared_caches(files, f"{CPUS}/cpu{core.cpus[0]}/cache"))
        if None in caches:
            break
        whole = len(cores) * len(core.cpus)
        uncore = next((cache[0] for cache in caches if cache and cache[1].bit_count() != whole), None)
        grouped[place] = structs.replace(core, uncore=uncore)
    return tuple(grouped)


def _shared_caches(files: Files, place: str) -> Iterator[tuple[int, int] | None]:
    """Id and CPUs of every cache that cores share; None for one with missing data."""
    for index in files.numbered(place, "index"):
        level = files.number(f"{place}/index{index}/level")
        if level is not None and level <= HIGHEST_PRIVATE_CACHE:
            continue
        number = files.number(f"{place}/index{index}/id")
        members = files.members(f"{place}/index{index}/shared_cpu_list")
        yield None if level is None or number is None or number < 0 or members is None else (number, members)


def _memory(files: Files, path: str) -> int:
    text = files.text(path)
    found = TOTAL.search(text or "")
    if found is None:
        files.note(path, "has no MemTotal; the zone is shown without memory")
        return 0
    return min(int(found[1]) << 10, machinefile.MAX_MEMORY)


def _hugepages(files: Files, place: str) -> Iterable[HugePages]:
    sizes = (match for match in map(PAGES.fullmatch, files.names(place)) if match)
    for size_kib in sorted(int(match[1]) for match in sizes):
        pages = files.number(f"{place}/hugepages-{size_kib}kB/nr_hugepages")
        if pages is None or not 0 <= pages <= machinefile.MAX_MEMORY // (size_kib << 10):
            files.note(f"{place}/hugepages-{size_kib}kB", "the number of pages is unknown; ignored")
            continue
        yield HugePages(size_kib, pages)


def _distances(files: Files, path: str, ids: Sequence[int]) -> tuple[int, ...]:
    """One distance per id up to the highest. The kernel writes those of existing zones only."""
    text = files.text(path)
    if text is None:
        return ()
    distances = [int(word) for word in text.split() if word.isascii() and word.isdigit() and len(word) < 4]
    if (
        len(distances) != len(ids)
        or len(distances) != len(text.split())
        or not all(0 < each <= NO_SUCH_ZONE for each in distances)
    ):
        files.note(path, f"{errors.echo(text)} is not one distance for each of {len(ids)} zones; left out")
        return ()
    by_id = dict(zip(ids, distances, strict=True))
    return tuple(by_id.get(zone, NO_SUCH_ZONE) for zone in range(ids[-1] + 1))
