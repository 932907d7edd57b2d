"""Small machines, settings and pods for the kubelet's tests, with defaults that a test may forget about.

The plain machine has 2 zones of 4 cores and 8Gi each and two NICs in either zone; CPU 0 is reserved. Amounts are
written as in a manifest, CPU sets as in "0-3,8"."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from numalign.api.decode import cpuset, quantity
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec, ResourceList, ResourceRequirements
from numalign.kubelet import start
from numalign.kubelet.machine.machine import Core, Device, DevicePlugin, HugePages, Machine, Zone
from numalign.kubelet.settings import MemoryReservation, Settings, TopologyPolicy, TopologyScope

NIC = "example.com/nic"
Amount = str | int
Where = int | tuple[int, ...] | None
"""The zone of a device, its zones, or None: it reports no topology."""


def machine(
    zones: int = 2,
    cores: int | Sequence[int] = 4,
    threads: int = 1,
    sockets: int | None = None,
    memory: Amount | Sequence[Amount] = "8Gi",
    hugepages: Mapping[str, int | Sequence[int | None]] | None = None,
    devices: Mapping[str, Sequence[Where]] | None = None,
    ids: Sequence[int] | None = None,
    uncores: int | None = None,
) -> Machine:
    """First threads are numbered zone by zone, then the second ones; hugepages are pages by size, None: unreported."""
    ids = range(zones) if ids is None else ids
    counts: list[int] = _each(cores, zones)
    total = sum(counts)
    numbered = (
        Core(
            socket=core * (sockets or zones) // total,
            cpus=tuple(core + total * thread for thread in range(threads)),
            uncore=None if uncores is None else core * uncores // total,
        )
        for core in range(total)
    )
    built = []
    for place, zone in enumerate(ids):
        pages = {size: _each(each, zones)[place] for size, each in (hugepages or {}).items()}
        huge = tuple(HugePages(_bytes(size) // 1024, count) for size, count in pages.items() if count is not None)
        built.append(Zone(zone, tuple(islice(numbered, counts[place])), _bytes(_each(memory, zones)[place]), huge))
    devices = {NIC: [zone for zone in ids[:2] for _ in range(2)]} if devices is None else devices
    return Machine("test", tuple(built), {name: _plugin(name, places) for name, places in devices.items()})


def settings(
    policy: TopologyPolicy = "restricted",
    scope: TopologyScope = "container",
    cpu: bool = True,
    memory: bool | Mapping[int, Amount] = False,
    reserved_cpus: str = "0",
    **overrides: Any,
) -> Settings:
    """`memory`: bytes reserved by zone; True reserves 1Gi in zone 0. `overrides` are fields of Settings."""
    held = {0: 1 << 30} if memory is True else {zone: _bytes(amount) for zone, amount in (memory or {}).items()}
    cpus = cpuset.parse(reserved_cpus) if cpu else 0
    chosen: dict[str, Any] = {
        "cpu_policy": "static" if cpu else "none",
        "reserved_cpus": cpus,
        "memory_policy": "Static" if held else "None",
        "reserved_memory": tuple(MemoryReservation(zone, {"memory": amount}) for zone, amount in held.items()),
        "reserved": {"cpu": 1000 * cpus.bit_count(), "memory": sum(held.values())},
    }
    return Settings(topology_policy=policy, topology_scope=scope, **(chosen | overrides))


def kubelet(on: Machine | None = None, **chosen: Any) -> start.Kubelet:
    """A started kubelet; keywords as for `settings`."""
    return start.start(on or machine(), settings(**chosen))


def pod(name: str = "p", *containers: Container, init: Iterable[Container] = (), level: Any = None) -> Pod:
    """Its uid is its name. `level`: pod-level resources, as amounts (Guaranteed) or as ResourceRequirements."""
    if not isinstance(level, ResourceRequirements):
        level = ResourceRequirements(requests=_amounts(level or {}), limits=_amounts(level or {}))
    spec = PodSpec(containers=containers or (container(),), init_containers=tuple(init), resources=level)
    return Pod(metadata=ObjectMeta(name=name, namespace="default", uid=name), spec=spec)


# A keyword such as `nic=1` means example.com/nic; full names go in as `**{"hugepages-2Mi": "4Mi"}`.
def container(
    name: str = "c",
    cpu: Amount | None = 2,
    memory: Amount | None = "1Gi",
    burstable: bool = False,
    limits_only: bool = False,
    sidecar: bool = False,
    **others: Amount,
) -> Container:
    own = _amounts({name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount is not None})
    more = _amounts({name if "-" in name or "/" in name else f"example.com/{name}": others[name] for name in others})
    wants = ResourceRequirements(requests={} if limits_only else own | more, limits=more if burstable else own | more)
    return Container(name=name, restart_policy="Always" if sidecar else "", resources=wants)


def _plugin(name: str, places: Sequence[Where]) -> DevicePlugin:
    zones = [(place,) if isinstance(place, int) else place for place in places]
    return DevicePlugin(tuple(Device(f"{name.rpartition('/')[2]}-{i}", where) for i, where in enumerate(zones)))


def _each(value: Any, zones: int) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value] * zones


def _amounts(written: Mapping[str, Amount]) -> ResourceList:
    return {name: quantity.parse(amount) for name, amount in written.items()}


def _bytes(written: Amount) -> int:
    return quantity.parse(written).value
