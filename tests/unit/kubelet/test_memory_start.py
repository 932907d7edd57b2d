"""Starting and restarting the memory manager: reservations and checkpoints (kubelet spec 6.1, 6.8, 9)."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.objects.pod import Pod
from numalign.kubelet import demand as demands
from numalign.kubelet.demand import Reading
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.memory import static
from numalign.kubelet.memory.state import Block, MemoryState, ReusableMemory, Table
from numalign.kubelet.memory.static import StaticMemory
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import MemoryReservation
from numalign.kubelet.topologymanager.hints import Hint
from tests.unit.kubelet import made

GIB, MIB = 1 << 30, 1 << 20
PAGES = "hugepages-2Mi"
PLAIN = made.machine()
HUGE = made.machine(hugepages={"2Mi": 512, "1Gi": 2})
ZONE_0, ZONE_1, BOTH = 0b01, 0b10, 0b11
DIFFERENT = "[memorymanager] the expected machine state is different from the real one"

# (machine, reserved by zone, what pods can have by zone)
ALLOCATABLE: dict[str, tuple[Machine, dict[int, dict[str, str]], dict[int, dict[str, str]]]] = {
    "one zone reserves": (PLAIN, {0: {"memory": "1Gi"}}, {0: {"memory": "7Gi"}, 1: {"memory": "8Gi"}}),
    "both do": (
        PLAIN,
        {0: {"memory": "1Gi"}, 1: {"memory": "512Mi"}},
        {0: {"memory": "7Gi"}, 1: {"memory": "7680Mi"}},
    ),
    "hugepages of all sizes come out of memory": (
        HUGE,
        {0: {"memory": "1Gi"}},
        {
            0: {PAGES: "1Gi", "hugepages-1Gi": "2Gi", "memory": "4Gi"},
            1: {PAGES: "1Gi", "hugepages-1Gi": "2Gi", "memory": "5Gi"},
        },
    ),
    "reserved hugepages do not come out of it twice": (
        HUGE,
        {0: {"memory": "1Gi"}, 1: {PAGES: "256Mi"}},
        {
            0: {PAGES: "1Gi", "hugepages-1Gi": "2Gi", "memory": "4Gi"},
            1: {PAGES: "768Mi", "hugepages-1Gi": "2Gi", "memory": "5Gi"},
        },
    ),
}

# (reserved by zone, withheld by node allocatable, error)
REFUSED: dict[str, tuple[dict[int, dict[str, str]], dict[str, str], str]] = {
    "nothing reserved": ({}, {}, "[memorymanager] you should specify the system reserved memory"),
    "only hugepages reserved": (
        {0: {PAGES: "2Mi"}},
        {PAGES: "2Mi"},
        "[memorymanager] you should specify the system reserved memory",
    ),
    "zones reserve less": (
        {0: {"memory": "1Gi"}},
        {"memory": "1536Mi"},
        'the total amount "1Gi" of type "memory" is not equal to the value "1536Mi" determined by Node Allocatable '
        "feature",
    ),
    "zones reserve more": (
        {0: {"memory": "1Gi"}, 1: {"memory": "1Gi"}},
        {"memory": "1Gi"},
        'the total amount "2Gi" of type "memory" is not equal to the value "1Gi" determined by Node Allocatable '
        "feature",
    ),
    "zones reserve what is not withheld": (
        {0: {"memory": "1Gi", PAGES: "2Mi"}},
        {"memory": "1Gi"},
        'the total amount "2Mi" of type "hugepages-2Mi" is not equal to the value "0" determined by Node Allocatable '
        "feature",
    ),
    "zones do not reserve what is withheld": (
        {0: {"memory": "1Gi"}},
        {"memory": "1Gi", PAGES: "2Mi"},
        'the total amount "0" of type "hugepages-2Mi" is not equal to the value "2Mi" determined by Node Allocatable '
        "feature",
    ),
    "a zone that is not there": (
        {2: {"memory": "1Gi"}},
        {"memory": "1Gi"},
        "the reserved memory configuration references a NUMA node 2 that does not exist on this machine",
    ),
    "a zone that is not there, before sums": (
        {0: {"memory": "1Gi"}, 7: {"memory": "1Gi"}},
        {"memory": "9Gi"},
        "the reserved memory configuration references a NUMA node 7 that does not exist on this machine",
    ),
}


def amounts(written: Mapping[str, str]) -> dict[str, int]:
    return {kind: quantity.parse(amount).value for kind, amount in written.items()}


def started(on: Machine, by_zone: Mapping[int, Mapping[str, str]], **withheld: Any) -> StaticMemory:
    reservations = tuple(MemoryReservation(zone, amounts(limits)) for zone, limits in by_zone.items())
    settings = made.settings(cpu=False, memory_policy="Static", reserved_memory=reservations, **withheld)
    manager = static.start_memory_manager(on, settings)
    assert manager is not None
    return manager


def policy(on: Machine = PLAIN, **settings: Any) -> StaticMemory:
    manager = static.start_memory_manager(on, made.settings(cpu=False, **{"memory": True} | settings))
    assert manager is not None
    return manager


def serving(manager: StaticMemory, *masks: int, size: str = "2Gi") -> MemoryState:
    """One pod after the other, in these zones."""
    state = manager.initial()
    for number, mask in enumerate(masks):
        pod = demands.of(made.pod(f"p{number}", made.container(memory=size)), Reading())
        state, refused = manager.allocate(state, pod, pod.containers[0], Hint(mask, False))
        assert refused is None, refused
    return state


def test_the_none_policy_does_nothing_and_needs_no_reservation() -> None:
    assert static.start_memory_manager(PLAIN, made.settings(memory=False)) is None


@pytest.mark.parametrize("machine, by_zone, expected", ALLOCATABLE.values(), ids=ALLOCATABLE)
def test_pods_can_have_what_is_neither_reserved_nor_hugepages(
    machine: Machine, by_zone: dict[int, dict[str, str]], expected: dict[int, dict[str, str]]
) -> None:
    totals: dict[str, int] = {}
    for limits in by_zone.values():
        totals |= {kind: totals.get(kind, 0) + amount for kind, amount in amounts(limits).items()}
    manager = started(machine, by_zone, reserved=totals)
    assert manager.allocatable == {zone: amounts(each) for zone, each in expected.items()}


def test_a_new_node_is_all_free_and_every_zone_alone() -> None:
    initial = policy().initial()
    assert [(zone.cells, zone.assignments) for zone in initial.zones.values()] == [(ZONE_0, 0), (ZONE_1, 0)]
    assert [zone.tables["memory"] for zone in initial.zones.values()] == [Table(7 * GIB), Table(8 * GIB)]
    assert (initial.blocks, initial.pods, initial.reuse) == ({}, {}, ReusableMemory())


@pytest.mark.parametrize("by_zone, withheld, error", REFUSED.values(), ids=REFUSED)
def test_a_reservation_that_does_not_add_up(
    by_zone: dict[int, dict[str, str]], withheld: dict[str, str], error: str
) -> None:
    with pytest.raises(StartRefusal) as refused:
        started(HUGE, by_zone, reserved=amounts(withheld))
    assert (refused.value.manager, refused.value.error) == ("memorymanager", error)


def test_the_eviction_threshold_is_part_of_what_is_withheld() -> None:
    manager = started(
        PLAIN, {0: {"memory": "612Mi"}}, reserved={"memory": 512 * MIB}, eviction_hard={"memory": 100 * MIB}
    )
    assert manager.allocatable[0]["memory"] == 8 * GIB - 612 * MIB


# What a process may find of its predecessor, and take over.
TAKEN_OVER: dict[str, tuple[int, ...]] = {
    "nothing": (),
    "a zone": (ZONE_1,),
    "several in a zone": (ZONE_1, ZONE_1),
    "both zones": (ZONE_0, ZONE_1),
    "a group": (BOTH,),
    "several in a group": (BOTH, BOTH),
}


@pytest.mark.parametrize("masks", TAKEN_OVER.values(), ids=TAKEN_OVER)
def test_a_new_process_takes_over_what_follows_from_the_blocks(masks: tuple[int, ...]) -> None:
    manager = policy()
    state = serving(manager, *masks)
    assert static.restart_memory_manager(manager, state) == structs.replace(state, reuse=ReusableMemory())


def test_inside_a_group_only_the_sums_have_to_follow() -> None:
    manager = policy()
    drained = manager.remove(serving(manager, BOTH, BOTH, size="6Gi"), "p0", "c")
    afresh = serving(manager, BOTH, size="6Gi")
    assert [zone.tables for zone in drained.zones.values()] != [zone.tables for zone in afresh.zones.values()]
    assert static.restart_memory_manager(manager, drained) == structs.replace(drained, reuse=ReusableMemory())


def test_memory_that_init_containers_handed_on_follows_too() -> None:
    manager = policy()
    pod = demands.of(made.pod("p", made.container(memory="3Gi"), init=[made.container("i", memory="4Gi")]), Reading())
    state = manager.initial()
    for container in pod.containers:
        state, _ = manager.allocate(state, pod, container, Hint(ZONE_1, True))
    assert static.restart_memory_manager(manager, state).zones == state.zones


# (zones of the pods before, the state as it was changed or the node as it is now)
CHANGED: dict[str, tuple[tuple[int, ...], MemoryState | StaticMemory]] = {
    "a block without a charge": (
        (),
        policy().initial().with_blocks("p", {"c": (Block("memory", ZONE_0, GIB),)}),
    ),
    "a charge without a block": ((), structs.replace(serving(policy(), ZONE_0), blocks={})),
    "another counter": (
        (),
        MemoryState({**policy().initial().zones, 0: structs.replace(policy().initial().zones[0], assignments=1)}),
    ),
    "another group": (
        (),
        MemoryState({**policy().initial().zones, 0: structs.replace(policy().initial().zones[0], cells=BOTH)}),
    ),
    "more memory": ((ZONE_0,), policy(made.machine(memory="16Gi"))),
    "another reservation": ((ZONE_0,), policy(memory={0: "2Gi"})),
    "a reservation in another zone": ((), policy(memory={1: "1Gi"})),
    "more hugepages": ((), policy(made.machine(hugepages={"2Mi": 1}))),
}


@pytest.mark.parametrize("masks, changed", CHANGED.values(), ids=CHANGED)
def test_a_new_process_refuses_what_does_not_follow(
    masks: tuple[int, ...], changed: MemoryState | StaticMemory
) -> None:
    manager = changed if isinstance(changed, StaticMemory) else policy()
    state = changed if isinstance(changed, MemoryState) else serving(policy(), *masks)
    with pytest.raises(StartRefusal) as refused:
        static.restart_memory_manager(manager, state)
    assert (refused.value.manager, refused.value.error) == ("memorymanager", DIFFERENT)


def level_pod() -> Pod:
    return made.pod("p", made.container("a", cpu=1), level={"cpu": 4, "memory": "4Gi"})


def test_a_pod_served_whole_is_held_against_its_own_blocks_and_not_its_containers() -> None:
    manager, pod = policy(), demands.of(level_pod(), Reading(pod_level_managers=True))
    state, _ = manager.allocate_pod(manager.initial(), pod, Hint(ZONE_1, True))
    assert static.restart_memory_manager(manager, state) == state


def test_a_pod_that_was_served_twice_keeps_the_kubelet_from_starting() -> None:
    manager, pod = policy(), demands.of(level_pod(), Reading(pod_level_managers=True))
    state, _ = manager.allocate_pod(manager.initial(), pod, Hint(ZONE_1, True))
    state, _ = manager.allocate_pod(state, pod, Hint(ZONE_1, True))
    with pytest.raises(StartRefusal, match="different from the real one"):
        static.restart_memory_manager(manager, state)
