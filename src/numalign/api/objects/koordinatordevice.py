"""The Device object of Koordinator (scheduling.koordinator.sh/v1alpha1): GPUs, NICs and FPGAs of one node.

Its koordlet writes one per node, with the node's name. `attributes.devicetable` makes a table of it. Fields that the
table does not need are left out."""

from __future__ import annotations

from typing import Final

import msgspec

from numalign.api.decode.quantity import Quantity
from numalign.api.decode.structs import Int32, Wire
from numalign.api.objects.meta import ObjectMeta

GROUP: Final = "scheduling.koordinator.sh"
VERSION: Final = "v1alpha1"
PARTITIONS: Final = "scheduling.koordinator.sh/gpu-partitions"
PARTITION_POLICY: Final = "node.koordinator.sh/gpu-partition-policy"
MODEL: Final = "node.koordinator.sh/gpu-model"
HONOR: Final = "Honor"


class VirtualFunction(Wire, frozen=True):
    minor: Int32 = 0
    bus_id: str = msgspec.field(default="", name="busID")


class FunctionGroup(Wire, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    vfs: tuple[VirtualFunction, ...] = ()


class Place(Wire, frozen=True):
    """Where a device is. `node_id` -1: unknown."""

    node_id: Int32 = msgspec.field(default=-1, name="nodeID")
    pcie_id: str = msgspec.field(default="", name="pcieID")
    bus_id: str = msgspec.field(default="", name="busID")


class DeviceInfo(Wire, frozen=True):
    type: str = ""
    id: str = ""
    minor: Int32 | None = None
    health: bool = False
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    resources: dict[str, Quantity] = msgspec.field(default_factory=dict)
    topology: Place | None = None
    vf_groups: tuple[FunctionGroup, ...] = ()


class DeviceObjectSpec(Wire, frozen=True):
    devices: tuple[DeviceInfo, ...] = ()


class DeviceObject(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceObjectSpec = DeviceObjectSpec()


class PartitionEntry(Wire, frozen=True):
    """GPUs that are linked with each other."""

    minors: tuple[Int32, ...] = ()
    gpu_link_type: str = msgspec.field(default="", name="gpuLinkType")
    ring_bus_bandwidth: Quantity | None = None
    allocation_score: Int32 = 0
