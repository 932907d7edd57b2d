"""Zone tables of the memory manager: charging, releasing, and the records beside them (kubelet spec 6.4, 6.6, 6.7)."""

from collections.abc import Mapping

import pytest

from numalign.kubelet.memory import state
from numalign.kubelet.memory.state import Block, MemoryState, ReusableMemory, Table, ZoneMemory, Zones
from numalign.kubelet.topologymanager import mask as masks

# Amounts are small numbers here: zone 0 has 7 free, zone 1 has 8; both have 4 of the other kind.
Spelled = dict[int, tuple[int, int, int, str]]
"""Zone to free memory, reserved memory, assignments and group."""

SEVEN_AND_EIGHT: Zones = {
    zone: ZoneMemory(cells=1 << zone, tables={"memory": Table(size), "huge": Table(4)})
    for zone, size in enumerate((7, 8))
}

# (zones of the block, size, amount charged, what the tables say)
CHARGES: dict[str, tuple[int, int, int, Spelled]] = {
    "one zone": (0b01, 5, 5, {0: (2, 5, 1, "0"), 1: (8, 0, 0, "1")}),
    "all of a zone": (0b10, 8, 8, {0: (7, 0, 0, "0"), 1: (0, 8, 1, "1")}),
    "a group, the lowest zone first": (0b11, 5, 5, {0: (2, 5, 1, "0,1"), 1: (8, 0, 1, "0,1")}),
    "a group, then the next zone": (0b11, 10, 10, {0: (0, 7, 1, "0,1"), 1: (5, 3, 1, "0,1")}),
    "nothing, but it counts and binds": (0b11, 5, 0, {0: (7, 0, 1, "0,1"), 1: (8, 0, 1, "0,1")}),
    "more than there is": (0b01, 9, 9, {0: (0, 7, 1, "0"), 1: (8, 0, 0, "1")}),
}

# (blocks charged in turn, blocks released in turn, what the tables say)
RELEASES: dict[str, tuple[list[tuple[int, int]], list[tuple[int, int]], Spelled]] = {
    "the only block dissolves its group": (
        [(0b11, 10)],
        [(0b11, 10)],
        {0: (7, 0, 0, "0"), 1: (8, 0, 0, "1")},
    ),
    "a group stays while somebody is in it": (
        [(0b11, 5), (0b11, 5)],
        [(0b11, 5)],
        {0: (5, 2, 1, "0,1"), 1: (5, 3, 1, "0,1")},
    ),
    "the lowest zone is freed first, whichever was charged": (
        [(0b11, 7), (0b11, 4)],
        [(0b11, 4)],
        {0: (4, 3, 1, "0,1"), 1: (4, 4, 1, "0,1")},
    ),
    "a block that was reused away still counts": (
        [(0b01, 4), (0b01, 3)],
        [(0b01, 0)],
        {0: (0, 7, 1, "0"), 1: (8, 0, 0, "1")},
    ),
    "never more than is reserved": ([(0b01, 3)], [(0b01, 9)], {0: (7, 0, 0, "0"), 1: (8, 0, 0, "1")}),
}


def spelled(zones: Zones) -> Spelled:
    return {
        zone: (
            each.tables["memory"].free,
            each.tables["memory"].reserved,
            each.assignments,
            ",".join(map(str, masks.members(each.cells))),
        )
        for zone, each in zones.items()
    }


def memory(mask: int, size: int) -> Block:
    return Block("memory", mask, size)


@pytest.mark.parametrize("mask, size, charged, expected", CHARGES.values(), ids=CHARGES)
def test_a_charge_drains_the_zones_of_its_block(mask: int, size: int, charged: int, expected: Spelled) -> None:
    zones = state.charge(SEVEN_AND_EIGHT, memory(mask, size), charged)
    assert spelled(zones) == expected
    assert all(each.tables["huge"] == Table(4) for each in zones.values())


@pytest.mark.parametrize("charged, released, expected", RELEASES.values(), ids=RELEASES)
def test_a_release_gives_back_to_the_zones_of_its_block(
    charged: list[tuple[int, int]], released: list[tuple[int, int]], expected: Spelled
) -> None:
    zones = SEVEN_AND_EIGHT
    for mask, size in charged:
        zones = state.charge(zones, memory(mask, size), size)
    assert spelled(state.release(zones, [memory(*block) for block in released])) == expected


def test_every_kind_is_drained_and_counted_by_itself() -> None:
    zones = SEVEN_AND_EIGHT
    for block in (both := [memory(0b01, 5), Block("huge", 0b01, 3)]):
        zones = state.charge(zones, block, block.size)
    assert zones[0] == ZoneMemory(0b01, {"memory": Table(2, 5), "huge": Table(1, 3)}, assignments=2)
    assert state.release(zones, both) == SEVEN_AND_EIGHT


def test_charging_leaves_the_old_tables_as_they_were() -> None:
    state.charge(SEVEN_AND_EIGHT, memory(0b11, 10), 10)
    assert spelled(SEVEN_AND_EIGHT) == {0: (7, 0, 0, "0"), 1: (8, 0, 0, "1")}


def recorded(**blocks: int) -> Mapping[str, tuple[Block, ...]]:
    return {name: (memory(0b01, size),) for name, size in blocks.items()}


def test_blocks_are_kept_by_pod_and_container() -> None:
    known = MemoryState(SEVEN_AND_EIGHT).with_blocks("p", recorded(a=1)).with_blocks("p", recorded(b=2))
    assert known.held("p", "a") == (memory(0b01, 1),)
    assert known.held("p", "b") == (memory(0b01, 2),)
    assert (known.held("p", "c"), known.held("q", "a")) == (None, None)


def test_a_container_without_blocks_is_not_one_without_a_record() -> None:
    assert MemoryState(SEVEN_AND_EIGHT).with_blocks("p", {"a": ()}).held("p", "a") == ()


def test_a_pod_is_forgotten_with_its_last_container() -> None:
    known = MemoryState(SEVEN_AND_EIGHT).with_blocks("p", recorded(a=1, b=2)).with_blocks("q", recorded(a=3))
    without_a = known.without_container("p", "a")
    assert without_a.blocks == {"q": recorded(a=3), "p": recorded(b=2)}
    assert without_a.without_container("p", "b").blocks == {"q": recorded(a=3)}
    assert known.without_container("r", "a") == known


@pytest.mark.parametrize(
    "uid, mask, kind, amount",
    [("p", 0b11, "memory", 5), ("p", 0b01, "memory", 0), ("p", 0b11, "huge", 0), ("q", 0b11, "memory", 0)],
    ids=["exactly", "another mask", "another kind", "another pod"],
)
def test_memory_is_reusable_by_its_pod_mask_and_kind(uid: str, mask: int, kind: str, amount: int) -> None:
    known = MemoryState(SEVEN_AND_EIGHT, reuse=ReusableMemory("p", {(0b11, "memory"): 5}))
    assert known.reusable(uid, mask, kind) == amount


def test_blocks_sort_by_kind_then_zones_then_size() -> None:
    blocks = [memory(0b10, 1), memory(0b01, 2), Block("hugepages-2Mi", 0b10, 3), memory(0b01, 1)]
    assert sorted(blocks) == [blocks[2], blocks[3], blocks[1], blocks[0]]
