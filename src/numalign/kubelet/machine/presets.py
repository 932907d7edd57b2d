"""Named machines, and the numbers that each is built from.

The command line, the simulator and `machinefile` (for `extends`) call `machine(name)`; docs/use/machines.md lists them.
A `Blueprint` describes a regular machine, and `build` makes a `Machine` of it. CPUs are numbered as Linux does: on x86
the second threads of all cores follow all first threads; on ARM the threads of a core are neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, field, structs

from numalign.api import errors
from numalign.kubelet.machine.machine import Core, Device, DevicePlugin, HugePages, Machine, Zone

Numbering = Literal["split", "consecutive"]

GIB: Final = 1 << 30
MIB_IN_KIB: Final = 1 << 10
GIB_IN_KIB: Final = 1 << 20

GPU: Final = "nvidia.com/gpu"

# Grace and its GPUs: the other CPU, the CPU's own GPUs, the other CPU's GPUs, GPU to GPU.
OTHER_CPU, OWN_GPU, OTHER_GPU, BETWEEN_GPUS = 40, 80, 120, 255
ZONES_PER_GPU = 8


def x86_pages(*, mib2: int = 0, gib1: int = 0) -> tuple[HugePages, ...]:
    """Both sizes of x86; a kernel reports a size even when no page of it is set aside."""
    return HugePages(2 * MIB_IN_KIB, mib2), HugePages(GIB_IN_KIB, gib1)


# A kernel with base pages of 64 KiB, which is what Grace is delivered with.
ARM_PAGES: Final = (HugePages(2 * MIB_IN_KIB, 0), HugePages(512 * MIB_IN_KIB, 0), HugePages(16 * GIB_IN_KIB, 0))


class Blueprint(Struct, frozen=True, kw_only=True):
    """A machine whose zones are all alike: `cores` and `memory` are per zone, zones fill socket after socket."""

    zones: int
    sockets: int
    cores: int
    threads: int = 1
    numbering: Numbering = "split"
    cores_per_l3: int | None = None
    """None: one L3 for all cores of a zone, which cAdvisor does not report as an uncore cache."""
    memory: int
    hugepages: tuple[HugePages, ...] = x86_pages()
    near: int = 12
    """Distance to another zone of the same socket; `far` is the one to another socket."""
    far: int = 21
    devices: Mapping[str, DevicePlugin] = field(default_factory=dict)

    def socket(self, zone: int) -> int:
        return zone * self.sockets // self.zones


def names() -> tuple[str, ...]:
    return tuple(PRESETS)


def machine(name: str) -> Machine:
    if name not in PRESETS:
        raise errors.BadObject("Machine preset", errors.echo(name), "name", f"unknown; known are {', '.join(PRESETS)}")
    return PRESETS[name](name)


def build(name: str, plan: Blueprint) -> Machine:
    zones = tuple(_zone(plan, zone) for zone in range(plan.zones))
    return Machine(name, zones, plan.devices)


def fold(cpus: Sequence[int], threads: int, numbering: Numbering) -> tuple[tuple[int, ...], ...]:
    """The threads of each core, from the ascending CPUs of whole cores."""
    if numbering == "consecutive":
        return tuple(tuple(cpus[first : first + threads]) for first in range(0, len(cpus), threads))
    cores = len(cpus) // threads
    return tuple(tuple(cpus[core::cores]) for core in range(cores))


def attached(stem: str, zones: Sequence[int], *, preferred_allocation: bool = False) -> DevicePlugin:
    """A plugin with one device per entry of `zones`, in the zone that the entry names."""
    devices = tuple(Device(f"{stem}-{number}", (zone,)) for number, zone in enumerate(zones))
    return DevicePlugin(devices, preferred_allocation)


def _zone(plan: Blueprint, zone: int) -> Zone:
    folded = fold(_zone_cpus(plan, zone), plan.threads, plan.numbering)
    cores = tuple(Core(plan.socket(zone), cpus, _l3(plan, zone, core)) for core, cpus in enumerate(folded))
    distances = tuple(_distance(plan, zone, other) for other in range(plan.zones))
    return Zone(zone, cores, plan.memory, plan.hugepages, distances)


def _zone_cpus(plan: Blueprint, zone: int) -> list[int]:
    first = zone * plan.cores
    if plan.numbering == "consecutive":
        return list(range(first * plan.threads, (first + plan.cores) * plan.threads))
    all_cores = plan.zones * plan.cores
    return [thread * all_cores + first + core for thread in range(plan.threads) for core in range(plan.cores)]


def _l3(plan: Blueprint, zone: int, core: int) -> int | None:
    return None if plan.cores_per_l3 is None else (zone * plan.cores + core) // plan.cores_per_l3


def _distance(plan: Blueprint, zone: int, other: int) -> int:
    if zone == other:
        return 10
    return plan.near if plan.socket(zone) == plan.socket(other) else plan.far


def _superchip(name: str) -> Machine:
    """Two Grace CPUs and four GPUs of eight zones each; an unpartitioned GPU has all its memory in the first."""
    grace = build(name, Blueprint(zones=2, sockets=2, cores=72, memory=480 * GIB, hugepages=ARM_PAGES))
    gpu_zones = tuple(
        Zone(zone, memory=0 if (zone - 2) % ZONES_PER_GPU else 186 * GIB, hugepages=ARM_PAGES)
        for zone in range(2, 2 + 4 * ZONES_PER_GPU)
    )
    ids = range(2 + 4 * ZONES_PER_GPU)
    zones = tuple(
        structs.replace(zone, distances=tuple(_superchip_distance(zone.id, other) for other in ids))
        for zone in grace.zones + gpu_zones
    )
    return Machine(name, zones, {GPU: attached("gpu", (0, 0, 1, 1), preferred_allocation=True)})


def _superchip_distance(zone: int, other: int) -> int:
    low, high = sorted((zone, other))
    if low == high:
        return 10
    if high < 2:
        return OTHER_CPU
    if low >= 2:
        return BETWEEN_GPUS
    gpu = (high - 2) // ZONES_PER_GPU
    return OWN_GPU if gpu // 2 == low else OTHER_GPU


def _regular(plan: Blueprint) -> Callable[[str], Machine]:
    return lambda name: build(name, plan)


def _dgx(zones: Sequence[int]) -> Blueprint:
    """Eight zones, and eight GPUs each with a NIC beside it, in the zones given."""
    gpus, nics = attached("gpu", zones, preferred_allocation=True), attached("nic", zones)
    return Blueprint(
        zones=8,
        sockets=2,
        cores=16,
        threads=2,
        cores_per_l3=4,
        memory=128 * GIB,
        far=32,
        devices={GPU: gpus, "nvidia.com/hostdev": nics},
    )


PRESETS: Final[Mapping[str, Callable[[str], Machine]]] = {
    "2x16": _regular(Blueprint(zones=2, sockets=2, cores=16, memory=64 * GIB)),
    "2x32-smt": _regular(Blueprint(zones=2, sockets=2, cores=16, threads=2, memory=128 * GIB)),
    "xeon-2x14-smt": _regular(
        Blueprint(zones=2, sockets=2, cores=14, threads=2, memory=128 * GIB, hugepages=x86_pages(gib1=32))
    ),
    "xeon-snc": _regular(
        # The L3 spans both zones of its socket, so it is reported as an uncore cache.
        Blueprint(zones=4, sockets=2, cores=28, threads=2, cores_per_l3=56, memory=128 * GIB)
    ),
    "epyc-nps1": _regular(Blueprint(zones=2, sockets=2, cores=64, threads=2, cores_per_l3=8, memory=512 * GIB, far=32)),
    "epyc-nps4": _regular(Blueprint(zones=8, sockets=2, cores=16, threads=2, cores_per_l3=8, memory=128 * GIB, far=32)),
    "gpu-8": _regular(
        Blueprint(
            zones=2,
            sockets=2,
            cores=48,
            threads=2,
            cores_per_l3=8,
            memory=1024 * GIB,
            far=32,
            devices={
                GPU: attached("gpu", (0, 0, 0, 0, 1, 1, 1, 1), preferred_allocation=True),
                "vpc.amazonaws.com/efa": attached("efa", (0, 0, 0, 0, 1, 1, 1, 1)),
            },
        )
    ),
    "dgx-8": _regular(_dgx(tuple(range(8)))),
    "dgx-a100": _regular(_dgx((3, 3, 1, 1, 7, 7, 5, 5))),
    "superchip-34": _superchip,
    "edge-1": _regular(
        Blueprint(
            zones=1,
            sockets=1,
            cores=8,
            threads=2,
            memory=32 * GIB,
            hugepages=x86_pages(mib2=2048),
            devices={"intel.com/sriov_netdevice": attached("vf", (0,) * 8)},
        )
    ),
}
