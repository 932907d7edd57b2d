"""The state of the Memory Manager: free memory and group of each zone, and the blocks of every container.

An immutable value. Blocks span all zones of their group. Inside a group, amounts are charged and released zone by zone
in ascending order, so only the sum of a group is meaningful (kubelet spec 6.7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field, structs

from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.mask import Mask


class Block(Struct, frozen=True, order=True):
    """An amount of one memory type that a container holds somewhere in a set of zones."""

    kind: str
    zones: Mask
    size: int


class Table(Struct, frozen=True):
    """One memory type in one zone, in bytes."""

    free: int
    reserved: int = 0


class ZoneMemory(Struct, frozen=True):
    """`assignments` counts (container, type) pairs; `cells` is the group that the zone currently belongs to."""

    cells: Mask
    tables: Mapping[str, Table]
    assignments: int = 0


Blocks = Mapping[str, tuple[Block, ...]]
"""Container name to its blocks."""

Zones = Mapping[int, ZoneMemory]


class ReusableMemory(Struct, frozen=True):
    """Memory that one pod's init containers held, by exact mask and type. Only the last pod's is kept."""

    uid: str = ""
    amounts: Mapping[tuple[Mask, str], int] = field(default_factory=dict)


class MemoryState(Struct, frozen=True):
    """The machine's memory and the blocks handed out; `reuse` lives only as long as the kubelet process."""

    zones: Zones
    blocks: Mapping[str, Blocks] = field(default_factory=dict)
    pods: Mapping[str, tuple[Block, ...]] = field(default_factory=dict)
    """Blocks of pods that are served as a whole (pod-level resources)."""
    reuse: ReusableMemory = ReusableMemory()

    def held(self, uid: str, container: str) -> tuple[Block, ...] | None:
        return self.blocks.get(uid, {}).get(container)

    def reusable(self, uid: str, mask: Mask, kind: str) -> int:
        return self.reuse.amounts.get((mask, kind), 0) if self.reuse.uid == uid else 0

    def with_blocks(self, uid: str, blocks: Blocks) -> MemoryState:
        return structs.replace(self, blocks={**self.blocks, uid: {**self.blocks.get(uid, {}), **blocks}})

    def without_container(self, uid: str, container: str) -> MemoryState:
        remaining = {name: held for name, held in self.blocks.get(uid, {}).items() if name != container}
        others = {other: held for other, held in self.blocks.items() if other != uid}
        return structs.replace(self, blocks={**others, uid: remaining} if remaining else others)


def charge(zones: Zones, block: Block, amount: int) -> Zones:
    """Bind the zones to the block's group and drain `amount` from them, lowest zone first."""
    changed = dict(zones)
    for zone in masks.members(block.zones):
        before = changed[zone]
        table = before.tables[block.kind]
        drained = min(amount, table.free)
        amount -= drained
        tables = {**before.tables, block.kind: Table(table.free - drained, table.reserved + drained)}
        changed[zone] = ZoneMemory(cells=block.zones, tables=tables, assignments=before.assignments + 1)
    return changed


def release(zones: Zones, blocks: Iterable[Block]) -> Zones:
    """Releases blocks; a zone without assignments is a group of its own again."""
    changed = dict(zones)
    for block in blocks:
        amount = block.size
        for zone in masks.members(block.zones):
            before = changed[zone]
            table = before.tables[block.kind]
            returned = min(amount, table.reserved)
            amount -= returned
            tables = {**before.tables, block.kind: Table(table.free + returned, table.reserved - returned)}
            assignments = before.assignments - 1
            cells = before.cells if assignments else 1 << zone
            changed[zone] = ZoneMemory(cells=cells, tables=tables, assignments=assignments)
    return changed
