"""What every pod on a node holds exclusively: CPUs, memory blocks and devices, container by container.

The agent publishes it from the pod resources API and the managers' checkpoints; the ledger turns it into observed
placements; the kubelet room restores its state from it. The structs are here, the compact text is `placementtext`.
Sets of CPUs and zones are integers, bit n standing for CPU or zone n.
"""

from msgspec import Struct


class MemoryBlock(Struct, frozen=True, kw_only=True, order=True):
    """Memory of one type (`memory` or a hugepage size) pinned to a set of zones."""

    type: str
    zones: int
    size: int


class HeldDevices(Struct, frozen=True, kw_only=True):
    """Devices of one resource on one set of zones, by id where the ids are known, else by number."""

    resource: str
    zones: int | None = None
    """None: the plugin reports no topology; the empty mask: a topology that names no zone."""
    count: int = 0
    ids: tuple[str, ...] = ()
    """Ascending; as many as `count`, or none."""


class Holding(Struct, frozen=True, kw_only=True):
    """What one container holds. Shared resources are not part of it."""

    container: str
    """Empty: what the pod holds as a whole (pod-level resources, kubelet spec 10)."""
    cpus: int = 0
    memory: tuple[MemoryBlock, ...] = ()
    devices: tuple[HeldDevices, ...] = ()

    @property
    def is_exclusive(self) -> bool:
        """By the rule of the fingerprint method `with-exclusive-resources` (exporter spec 4.6)."""
        return bool(self.cpus) or any(block.zones for block in self.memory) or any(held.zones for held in self.devices)


class PodPlacement(Struct, frozen=True, kw_only=True, weakref=True):
    """A pod, named by namespace and name, by uid, or by both, and what its containers hold."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    holdings: tuple[Holding, ...] = ()

    @property
    def is_exclusive(self) -> bool:
        return any(holding.is_exclusive for holding in self.holdings)
