"""A simulated machine as files: what the kernel would show under /sys and /proc.

`node` writes one tree per machine and mounts its parts over the real files, so that every program of the node sees this
machine. `files` and `links` are values, `write` writes them (lab spec, "One kubelet"). As in the kernel, a zone lists
distances to existing zones only, and its CPUs are links."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final

from numalign.api.decode import cpuset
from numalign.kubelet.machine import zonecores
from numalign.kubelet.machine.machine import Core, HugePages, Machine, Zone

CPU: Final = "sys/devices/system/cpu"
NODE: Final = "sys/devices/system/node"
HUGEPAGES: Final = "sys/kernel/mm/hugepages"
L3_SIZE: Final = "32768K"
WORD: Final = 32
"""Bits between two commas of a kernel bitmap."""

# A kubelet sets these sysctls if they have other values, which would change the real machine.
TUNABLES: Final = {
    "proc/sys/vm/overcommit_memory": 1,
    "proc/sys/vm/panic_on_oom": 0,
    "proc/sys/kernel/panic": 10,
    "proc/sys/kernel/panic_on_oops": 1,
    "proc/sys/kernel/keys/root_maxkeys": 1_000_000,
    "proc/sys/kernel/keys/root_maxbytes": 25_000_000,
}


def write(machine: Machine, folder: Path) -> None:
    for path, text in files(machine).items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")
    for path, target in links(machine).items():
        (folder / path).symlink_to(target)
    # Without huge pages the folder exists and is empty.
    (folder / HUGEPAGES).mkdir(parents=True, exist_ok=True)


def files(machine: Machine) -> dict[str, str]:
    """Content by path, without the final newline."""
    tunables = ((path, str(value)) for path, value in TUNABLES.items())
    return dict(chain(_cpus(machine), _zones(machine), _totals(machine), tunables))


def links(machine: Machine) -> dict[str, str]:
    return {
        f"{NODE}/node{zone.id}/cpu{cpu}": f"../../cpu/cpu{cpu}"
        for zone in machine.zones
        for core in zone.cores
        for cpu in core.cpus
    }


def _cpus(machine: Machine) -> Iterator[tuple[str, str]]:
    cores = [core for zone in machine.zones for core in zone.cores]
    everything = cpuset.text(zonecores.mask(cores))
    for name in ("online", "possible", "present"):
        yield f"{CPU}/{name}", everything
    yield f"{CPU}/offline", ""
    groups = _l3_groups(cores)
    packages = _packages(machine)
    for number, core in _numbered(machine):
        siblings = zonecores.mask([core])
        for cpu in core.cpus:
            yield f"{CPU}/cpu{cpu}/online", "1"
            yield from _topology(f"{CPU}/cpu{cpu}/topology", number, core, siblings, packages[core.socket])
            if core.uncore is not None:
                yield from _l3(f"{CPU}/cpu{cpu}/cache/index3", core.uncore, groups[core.uncore])


def _topology(place: str, number: int, core: Core, siblings: int, package: int) -> Iterator[tuple[str, str]]:
    yield f"{place}/core_id", str(number)
    yield f"{place}/physical_package_id", str(core.socket)
    for name in ("book_id", "drawer_id"):
        yield f"{place}/{name}", "0"
    for members, names in ((siblings, ("thread_siblings", "core_cpus")), (package, ("core_siblings", "package_cpus"))):
        for name in names:
            yield f"{place}/{name}", _bitmap(members)
            yield f"{place}/{name}_list", cpuset.text(members)


def _l3(place: str, group: int, members: int) -> Iterator[tuple[str, str]]:
    """The files of an L3 group. One L3 per zone is not a group (kubelet spec 3)."""
    yield f"{place}/level", "3"
    yield f"{place}/type", "Unified"
    yield f"{place}/size", L3_SIZE
    yield f"{place}/id", str(group)
    yield f"{place}/shared_cpu_list", cpuset.text(members)
    yield f"{place}/shared_cpu_map", _bitmap(members)


def _zones(machine: Machine) -> Iterator[tuple[str, str]]:
    def those(chosen: Iterator[Zone]) -> str:
        return cpuset.text(sum(1 << zone.id for zone in chosen))

    with_memory = those(zone for zone in machine.zones if zone.memory)
    for name in ("online", "possible"):
        yield f"{NODE}/{name}", those(iter(machine.zones))
    yield f"{NODE}/has_cpu", those(zone for zone in machine.zones if zone.cores)
    for name in ("has_memory", "has_normal_memory"):
        yield f"{NODE}/{name}", with_memory
    for zone in machine.zones:
        yield from _zone(f"{NODE}/node{zone.id}", machine, zone)


def _zone(place: str, machine: Machine, zone: Zone) -> Iterator[tuple[str, str]]:
    members = zonecores.mask(zone.cores)
    yield f"{place}/cpulist", cpuset.text(members)
    yield f"{place}/cpumap", _bitmap(members)
    yield f"{place}/meminfo", "\n".join(f"Node {zone.id} {line}" for line in _memory_lines(zone.memory))
    if zone.distances:
        yield f"{place}/distance", " ".join(str(zone.distances[other]) for other in machine.zone_ids)
    for page in zone.hugepages:
        yield from _pages(f"{place}/hugepages", page.size_kib, page.pages)


def _totals(machine: Machine) -> Iterator[tuple[str, str]]:
    by_size: dict[int, int] = {}
    for page in _every_page(machine):
        by_size[page.size_kib] = by_size.get(page.size_kib, 0) + page.pages
    for size_kib, pages in by_size.items():
        yield from _pages(HUGEPAGES, size_kib, pages)
    memory = sum(zone.memory for zone in machine.zones)
    more = [f"MemAvailable: {memory >> 10} kB", "SwapTotal: 0 kB", "SwapFree: 0 kB", *_default_pages(by_size)]
    yield "proc/meminfo", "\n".join([*_memory_lines(memory), *more])
    yield "proc/cpuinfo", _cpuinfo(machine)


def _default_pages(by_size: Mapping[int, int]) -> list[str]:
    """The smallest size, which is the kernel's default."""
    if not by_size:
        return []
    size_kib = min(by_size)
    pages = [f"HugePages_{name}: {by_size[size_kib]}" for name in ("Total", "Free")]
    everything = sum(size * count for size, count in by_size.items())
    return [*pages, f"Hugepagesize: {size_kib} kB", f"Hugetlb: {everything} kB"]


def _every_page(machine: Machine) -> Iterator[HugePages]:
    return (page for zone in machine.zones for page in zone.hugepages)


def _pages(place: str, size_kib: int, pages: int) -> Iterator[tuple[str, str]]:
    for name, count in (("nr_hugepages", pages), ("free_hugepages", pages), ("surplus_hugepages", 0)):
        yield f"{place}/hugepages-{size_kib}kB/{name}", str(count)


def _memory_lines(memory: int) -> list[str]:
    return [f"MemTotal: {memory >> 10} kB", f"MemFree: {memory >> 10} kB"]


def _cpuinfo(machine: Machine) -> str:
    threads = {cpu: (number, core) for number, core in _numbered(machine) for cpu in core.cpus}
    packages = _packages(machine)
    cores: dict[int, int] = {}
    for _, core in _numbered(machine):
        cores[core.socket] = cores.get(core.socket, 0) + 1
    blocks = []
    for cpu, (number, core) in sorted(threads.items()):
        fields = {
            "processor": cpu,
            "vendor_id": "numalign",
            "model name": machine.name,
            "cpu MHz": "2000.000",
            "physical id": core.socket,
            "siblings": packages[core.socket].bit_count(),
            "core id": number,
            "cpu cores": cores[core.socket],
        }
        blocks.append("\n".join(f"{name}\t: {value}" for name, value in fields.items()) + "\n")
    return "\n".join(blocks)


def _numbered(machine: Machine) -> Iterator[tuple[int, Core]]:
    """Every core with its number within its socket."""
    counts: dict[int, int] = {}
    for zone in machine.zones:
        for core in zone.cores:
            number = counts.get(core.socket, 0)
            counts[core.socket] = number + 1
            yield number, core


def _packages(machine: Machine) -> Mapping[int, int]:
    return _grouped([(core.socket, core) for zone in machine.zones for core in zone.cores])


def _l3_groups(cores: list[Core]) -> Mapping[int, int]:
    return _grouped([(core.uncore, core) for core in cores if core.uncore is not None])


def _grouped(members: list[tuple[int, Core]]) -> Mapping[int, int]:
    """The CPUs of each group."""
    groups: dict[int, int] = {}
    for group, core in members:
        groups[group] = groups.get(group, 0) | zonecores.mask([core])
    return groups


def _bitmap(members: int) -> str:
    """The bitmap in the kernel's format: 32-bit words, highest first."""
    words: list[str] = []
    while members or not words:
        words.append(f"{members & (1 << WORD) - 1:08x}")
        members >>= WORD
    return ",".join(reversed(words))
