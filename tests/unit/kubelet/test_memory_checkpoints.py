"""Checkpoints of the memory manager that a new process refuses, with the kubelet's words."""

import pytest
from msgspec import structs

from numalign.kubelet.memory import static
from numalign.kubelet.memory.state import Block, MemoryState, Table, ZoneMemory
from numalign.kubelet.memory.static import StaticMemory
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.versions import NEWEST, behaviour

POLICY = StaticMemory({0: {"memory": 100}, 1: {"memory": 100}}, behaviour(NEWEST))
FRESH = POLICY.initial()
OTHER = "[memorymanager] the expected machine state is different from the real one"
WHO = "[memorymanager] (pod: p, container: c) the memory assignment uses"


def holding(block: Block) -> MemoryState:
    return FRESH.with_blocks("p", {"c": (block,)})


def zones(**changed: ZoneMemory | None) -> MemoryState:
    named = {int(name[1:]): zone for name, zone in changed.items()}
    kept = {zone: memory for zone, memory in {**FRESH.zones, **named}.items() if memory is not None}
    return structs.replace(FRESH, zones=kept)


REFUSED = {
    "a zone that is not there": (holding(Block("memory", 1 << 5, 1)), f"{WHO} the NUMA that does not exist"),
    "a kind that is not there": (holding(Block("hugepages-2Mi", 1, 1)), f"{WHO} memory resource that does not exist"),
    "a zone missing": (zones(z1=None), OTHER),
    "a zone too many": (zones(z2=ZoneMemory(4, {"memory": Table(1)})), OTHER),
    "a kind missing": (zones(z1=ZoneMemory(2, {})), OTHER),
    "blocks without a machine": (
        structs.replace(holding(Block("memory", 1, 1)), zones={}),
        "[memorymanager] machine state can not be empty when it has memory assignments",
    ),
}


@pytest.mark.parametrize("checkpoint, result", REFUSED.values(), ids=REFUSED)
def test_a_checkpoint_that_does_not_fit_the_machine_is_refused(checkpoint: MemoryState, result: str) -> None:
    with pytest.raises(StartRefusal) as refusal:
        static.restart_memory_manager(POLICY, checkpoint)
    assert refusal.value.error == result


def test_an_empty_checkpoint_starts_afresh() -> None:
    assert static.restart_memory_manager(POLICY, MemoryState(zones={})) == FRESH
