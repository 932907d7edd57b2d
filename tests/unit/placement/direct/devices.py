"""Devices that are handed out in parts or together, for tests."""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from numalign.api.attributes import devicespec
from numalign.api.attributes.devicetable import Device, DeviceTable, Function, Partition
from numalign.api.attributes.directresult import DeviceGrant
from numalign.api.decode import quantity
from numalign.api.objects.pod import Container, Pod, ResourceRequirements
from numalign.placement.columns.directmachine import DirectMachine
from numalign.placement.direct.share import amounts
from numalign.placement.direct.taking import Grant
from tests.unit.kubelet import made
from tests.unit.placement.direct import machines

GIB = 1 << 30
GPU, CORE, RATIO, MEMORY = (f"koordinator.sh/{name}" for name in ("gpu", "gpu-core", "gpu-memory-ratio", "gpu-memory"))
SHARED, RDMA, FPGA = "koordinator.sh/gpu.shared", "koordinator.sh/rdma", "koordinator.sh/fpga"
SINGLE = '{"policy": "SingleNUMANode", "scope": "Container"}'
SAME_PCIE = '{"joint": {"types": ["gpu", "rdma"], "scope": "SamePCIe"}}'
JOINT = '{"joint": {"types": ["gpu", "rdma"]}}'


def gpu(minor: int, zone: int, root: str, **more: Any) -> Device:
    return Device(
        **{"type": "gpu", "minor": minor, "id": f"GPU-{minor}", "zone": zone, "pcie": root, "memory": 80 * GIB, **more}
    )


def nic(minor: int, zone: int, root: str, functions: int = 0, **more: Any) -> Device:
    buses = tuple(Function(f"0000:{minor:02x}:00.{number}") for number in range(functions))
    return Device(**{"type": "rdma", "minor": minor, "zone": zone, "pcie": root, "functions": buses, **more})


def table(*more: Device, partitions: tuple[Partition, ...] = (), only_partitions: bool = False) -> DeviceTable:
    """Two zones, each with two PCIe roots of two GPUs and one NIC."""
    devices = list(more)
    if not devices:
        for root in range(4):
            devices += [gpu(2 * root + each, root // 2, f"r{root}") for each in range(2)]
            devices.append(nic(root, root // 2, f"r{root}", functions=2))
    devices.sort(key=lambda each: (each.type, each.minor))
    return DeviceTable(devices=tuple(devices), partitions=partitions, only_partitions=only_partitions)


def container(name: str, amounts: Mapping[str, int | str], **more: Any) -> Container:
    plain = made.container(name, **{"cpu": 1, **more})
    extra = {resource: quantity.parse(str(amount)) for resource, amount in amounts.items()}
    requests, limits = {**plain.resources.requests, **extra}, {**plain.resources.limits, **extra}
    return structs.replace(plain, resources=ResourceRequirements(requests=requests, limits=limits))


def pod(*containers: Container | Mapping[str, int | str], init: Any = (), spec: str = SINGLE, devices: str = "") -> Pod:
    """Containers c0, c1, ... with these limits."""
    every = [
        each if isinstance(each, Container) else container(f"c{place}", each) for place, each in enumerate(containers)
    ]
    found = machines.with_spec(made.pod("p", *every, init=init), spec)
    if not devices:
        return found
    annotations = {**found.metadata.annotations, devicespec.DEVICE_SPEC: devices}
    return structs.replace(found, metadata=structs.replace(found.metadata, annotations=annotations))


def minors(on: DirectMachine, grant: Grant, kind: str = "gpu") -> list[int]:
    return [each.minor for each in granted(on, grant, kind)]


def granted(on: DirectMachine, grant: Grant, kind: str = "gpu") -> tuple[DeviceGrant, ...]:
    return amounts.grants(on.stock, grant.shares).get(kind, ()) if grant.shares.parts else ()
