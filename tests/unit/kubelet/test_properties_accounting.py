"""The managers' accounting: what is free, what is taken, and that everything is released in the end."""

from collections.abc import Iterator

from numalign.kubelet import admission
from numalign.kubelet.memory.state import Block, MemoryState
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks
from tests.campaigns import holds_for
from tests.strategies.lives import Life, lives


def blocks(state: MemoryState) -> list[Block]:
    return [block for pod in state.blocks.values() for held in pod.values() for block in held]


def tidy_memories(life: Life) -> Iterator[MemoryState]:
    return (moment.state.memory for moment in life.tidy_moments() if moment.state.memory)


@holds_for(lives(), examples=50)
def test_free_and_reserved_memory_add_up_to_what_is_allocatable(life: Life) -> None:
    for state in (moment.state.memory for moment in life.moments() if moment.state.memory):
        assert life.kubelet.memory
        for zone, amounts in life.kubelet.memory.allocatable.items():
            tables = state.zones[zone].tables
            assert {kind: table.free + table.reserved for kind, table in tables.items()} == amounts


@holds_for(lives(), examples=50)
def test_the_blocks_of_a_group_add_up_to_what_its_zones_have_reserved(life: Life) -> None:
    for state in tidy_memories(life):
        for group in {zone.cells for zone in state.zones.values()}:
            zones = [state.zones[zone] for zone in masks.members(group)]
            for kind in zones[0].tables:
                held = sum(block.size for block in blocks(state) if (block.kind, block.zones) == (kind, group))
                assert held == sum(zone.tables[kind].reserved for zone in zones)


@holds_for(lives(), examples=50)
def test_a_zone_counts_its_blocks_and_knows_their_group(life: Life) -> None:
    for state in tidy_memories(life):
        for zone, memory in state.zones.items():
            here = [block for block in blocks(state) if block.zones >> zone & 1]
            assert memory.assignments == len(here)
            assert {memory.cells} == ({block.zones for block in here} or {1 << zone})


@holds_for(lives(), examples=50)
def test_memory_handed_out_never_exceeds_what_its_zones_can_give(life: Life) -> None:
    for state in tidy_memories(life):
        assert life.kubelet.memory
        for group, kind in {(block.zones, block.kind) for block in blocks(state)}:
            held = sum(block.size for block in blocks(state) if (block.zones, block.kind) == (group, kind))
            assert held <= sum(life.kubelet.memory.allocatable[zone][kind] for zone in masks.members(group))


@holds_for(lives(), examples=50)
def test_without_pods_no_cpu_and_no_device_is_taken(life: Life) -> None:
    empty, initial = emptied(life, life.end), life.kubelet.initial()
    assert (empty.devices.pods, empty.active) == ({}, {})
    if empty.cpu and initial.cpu:
        assert (empty.cpu.default, empty.cpu.assignments) == (initial.cpu.default, {})


@holds_for(lives(), examples=50)
def test_without_pods_memory_is_as_it_was_in_the_beginning(life: Life) -> None:
    """In every zone, even after groups: what the last block of a group leaves is all that is reserved there."""
    empty, initial = emptied(life, life.tidy_moments()[-1].state), life.kubelet.initial()
    if empty.memory and initial.memory:
        assert (empty.memory.zones, empty.memory.blocks) == (initial.memory.zones, {})


def emptied(life: Life, state: KubeletState) -> KubeletState:
    for uid in state.active:
        state = state.without_pod(uid)
    return admission.collect(life.kubelet, state)
