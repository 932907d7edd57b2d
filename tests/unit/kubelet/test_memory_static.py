"""The static memory policy: where a container's memory goes, or why it is refused (kubelet spec 6.2, 6.4)."""

from collections.abc import Sequence
from typing import Any

import pytest

from numalign.api.decode import cpuset, quantity
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod
from numalign.kubelet import demand as demands
from numalign.kubelet.demand import ContainerDemand, PodDemand, Reading, Role
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.memory.state import Block, MemoryState
from numalign.kubelet.memory.static import StaticMemory
from numalign.kubelet.refusals import UNEXPECTED, Undecided
from numalign.kubelet.topologymanager.hints import Hint
from numalign.kubelet.versions import Minor
from tests.unit.kubelet import made

PLAIN = made.machine()  # 7Gi and 8Gi for pods: 1Gi of zone 0 is reserved
THREE = made.machine(zones=3)  # 7Gi, 8Gi, 8Gi
HUGE = made.machine(hugepages={"2Mi": 512})  # 1Gi of each zone in hugepages: 6Gi and 7Gi, and 1Gi and 1Gi

MIB = "hugepages-2Mi"
ZONE_0, ZONE_1, BOTH = 0b01, 0b10, 0b11
Before = Sequence[tuple[int, str]]
"""Zones and sizes of what other pods hold."""

GROUP: Before = [(BOTH, "12Gi")]  # drains zone 0, leaves 3Gi in zone 1

# (held by others, affinity, preferred, request, blocks)
PLACED: dict[str, tuple[Before, int | None, bool, str, str]] = {
    "in the zone of the affinity": ([], ZONE_1, True, "2Gi", "memory 2Gi in 1"),
    "all of a zone": ([], ZONE_0, True, "7Gi", "memory 7Gi in 0"),
    "across the zones of the affinity": ([], BOTH, True, "10Gi", "memory 10Gi in 0-1"),
    "all that a zone of a group has left": (GROUP, ZONE_1, True, "3Gi", "memory 3Gi in 1"),
    "anywhere: the lowest zone": ([], None, True, "2Gi", "memory 2Gi in 0"),
    "anywhere: the lowest with room": ([(ZONE_0, "6Gi")], None, True, "2Gi", "memory 2Gi in 1"),
    "anywhere: as many zones as it takes": ([], None, True, "9Gi", "memory 9Gi in 0-1"),
    "anywhere, not preferred": (GROUP, None, False, "2Gi", "memory 2Gi in 0-1"),
    "an affinity that is too small is extended": ([], ZONE_0, False, "10Gi", "memory 10Gi in 0-1"),
    "extended to what was preferred": ([], ZONE_0, True, "10Gi", "memory 10Gi in 0-1"),
    "extended to what was not preferred": (GROUP, ZONE_0, False, "2Gi", "memory 2Gi in 0-1"),
    "into a group that is exactly the affinity": (GROUP, BOTH, False, "3Gi", "memory 3Gi in 0-1"),
    "beside others in their zone": ([(ZONE_1, "2Gi")], ZONE_1, True, "6Gi", "memory 6Gi in 1"),
    "a single zone out of a group is not checked": (GROUP, ZONE_1, True, "2Gi", "memory 2Gi in 1"),
}

# (machine, held by others, affinity, preferred, request, error)
REFUSED: dict[str, tuple[Machine, Before, int | None, bool, str, str]] = {
    "no room anywhere": (
        PLAIN,
        [],
        None,
        False,
        "16Gi",
        "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available",
    ),
    "room only across zones that are used alone": (
        PLAIN,
        [(ZONE_0, "4Gi"), (ZONE_1, "4Gi")],
        None,
        False,
        "6Gi",
        "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available",
    ),
    "anywhere has to be preferred": (PLAIN, GROUP, None, True, "2Gi", "failed to find the default preferred hint"),
    "nothing to extend to": (
        PLAIN,
        [(ZONE_1, "1Gi")],
        ZONE_0,
        False,
        "10Gi",
        "failed to find NUMA nodes to extend the current topology hint",
    ),
    "room elsewhere is no extension": (
        PLAIN,
        [(ZONE_0, "6Gi")],
        ZONE_0,
        True,
        "2Gi",
        "failed to find NUMA nodes to extend the current topology hint",
    ),
    "the extension has to be preferred": (
        PLAIN,
        GROUP,
        ZONE_0,
        True,
        "2Gi",
        "failed to find the extended preferred hint",
    ),
    "zones that are used alone cannot be grouped": (
        PLAIN,
        [(ZONE_1, "1Gi")],
        BOTH,
        True,
        "2Gi",
        "preferred hint violates NUMA node allocation",
    ),
    "groups cannot overlap": (
        THREE,
        [(BOTH, "10Gi")],
        0b110,
        False,
        "2Gi",
        "preferred hint violates NUMA node allocation",
    ),
    "a group cannot grow": (
        THREE,
        [(BOTH, "10Gi")],
        0b111,
        False,
        "2Gi",
        "preferred hint violates NUMA node allocation",
    ),
}


def policy(on: Machine = PLAIN, **settings: Any) -> StaticMemory:
    manager = made.kubelet(on, cpu=False, memory=True, **settings).memory
    assert manager is not None
    return manager


def read(*containers: Container, name: str = "p") -> PodDemand:
    return demands.of(made.pod(name, *containers), Reading())


def asking(memory: str, name: str = "p", **others: Any) -> PodDemand:
    return read(made.container(memory=memory, **others), name=name)


def busy(manager: StaticMemory, before: Before) -> MemoryState:
    state = manager.initial()
    for number, (zones, size) in enumerate(before):
        pod = asking(size, f"other-{number}")
        state, refused = manager.allocate(state, pod, pod.containers[0], Hint(zones, False))
        assert refused is None, refused
    return state


def spelled(blocks: tuple[Block, ...] | None) -> str | None:
    if blocks is None:
        return None
    sizes = {block: quantity.of(block.size, quantity.Format.BINARY_SI) for block in blocks}
    return ", ".join(f"{block.kind} {size} in {cpuset.text(block.zones)}" for block, size in sizes.items())


@pytest.mark.parametrize("before, affinity, preferred, request_, expected", PLACED.values(), ids=PLACED)
def test_memory_is_placed(before: Before, affinity: int | None, preferred: bool, request_: str, expected: str) -> None:
    manager, pod = policy(), asking(request_)
    state, refused = manager.allocate(busy(manager, before), pod, pod.containers[0], Hint(affinity, preferred))
    assert (spelled(state.held("p", "c")), refused) == (expected, None)


@pytest.mark.parametrize("machine, before, affinity, preferred, size, error", REFUSED.values(), ids=REFUSED)
def test_memory_is_refused_in_the_kubelets_words(
    machine: Machine, before: Before, affinity: int | None, preferred: bool, size: str, error: str
) -> None:
    manager, pod = policy(machine), asking(size)
    state, refused = manager.allocate(busy(manager, before), pod, pod.containers[0], Hint(affinity, preferred))
    assert refused is not None
    assert (refused.error, refused.reason) == (f"[memorymanager] {error}", UNEXPECTED)
    assert state == busy(manager, before)


def test_a_single_zone_taken_out_of_a_group_stands_alone_again() -> None:
    manager, pod = policy(), asking("2Gi")
    state, _ = manager.allocate(busy(manager, GROUP), pod, pod.containers[0], Hint(ZONE_1, True))
    assert {zone: each.cells for zone, each in state.zones.items()} == {0: BOTH, 1: ZONE_1}


def test_each_kind_is_a_block_and_an_assignment() -> None:
    manager, pod = policy(HUGE), asking("2Gi", **{"hugepages-2Mi": "512Mi"})
    state, _ = manager.allocate(manager.initial(), pod, pod.containers[0], Hint(ZONE_1, True))
    assert spelled(state.held("p", "c")) == "hugepages-2Mi 512Mi in 1, memory 2Gi in 1"
    assert state.zones[1].assignments == 2


def test_what_one_kind_lacks_widens_all_of_them() -> None:
    manager, pod = policy(HUGE), asking("1Gi", **{"hugepages-2Mi": "1536Mi"})
    state, _ = manager.allocate(manager.initial(), pod, pod.containers[0], Hint(None, True))
    assert spelled(state.held("p", "c")) == "hugepages-2Mi 1536Mi in 0-1, memory 1Gi in 0-1"


@pytest.mark.parametrize(
    "container",
    [made.container(burstable=True), made.container(cpu=None)],
    ids=["burstable", "no cpu"],
)
def test_only_guaranteed_pods_are_served(container: Container) -> None:
    manager, pod = policy(), read(container)
    assert manager.allocate(manager.initial(), pod, pod.containers[0], Hint(ZONE_0, True)) == (manager.initial(), None)


def test_amounts_that_are_no_whole_bytes_are_refused() -> None:
    manager, pod = policy(), asking("1500m")
    state, refused = manager.allocate(manager.initial(), pod, pod.containers[0], Hint(ZONE_0, True))
    assert refused is not None
    assert refused.error == "[memorymanager] failed to represent quantity as int64"
    assert state == manager.initial()


def test_what_is_held_already_stays_whatever_is_asked_for() -> None:
    manager, pod, more = policy(), asking("2Gi"), asking("4Gi")
    once, _ = manager.allocate(manager.initial(), pod, pod.containers[0], Hint(ZONE_0, True))
    again, refused = manager.allocate(once, more, more.containers[0], Hint(ZONE_1, True))
    assert (again.zones, again.blocks, refused) == (once.zones, once.blocks, None)


def sharing_pod() -> PodDemand:
    pod = made.pod("p", Container(name="b"), level={"cpu": 2, "memory": "2Gi"})
    return demands.of(pod, Reading(pod_level_managers=True))


@pytest.mark.parametrize("minor, blocks", [(36, ()), (37, None)], ids=["1.36", "1.37"])
def test_a_container_without_memory_is_left_alone_since_then(minor: int, blocks: tuple[Block, ...] | None) -> None:
    manager, pod = policy(minor=Minor(1, minor)), sharing_pod()
    state, refused = manager.allocate(manager.initial(), pod, pod.containers[0], Hint(ZONE_0, True))
    assert (state.held("p", "b"), refused) == (blocks, None)
    assert state.zones == manager.initial().zones


@pytest.mark.parametrize("minor, refused", [(36, True), (37, False)], ids=["1.36", "1.37"])
@pytest.mark.parametrize(
    "before, affinity, error",
    [
        ([], None, "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"),
        ([(ZONE_0, "1Gi")], BOTH, "preferred hint violates NUMA node allocation"),
    ],
    ids=["without affinity", "with one that breaks a group"],
)
def test_a_container_without_memory_was_refused_before(
    minor: int, refused: bool, before: Before, affinity: int | None, error: str
) -> None:
    manager, pod = policy(minor=Minor(1, minor)), sharing_pod()
    _, refusal = manager.allocate(busy(manager, before), pod, pod.containers[0], Hint(affinity, True))
    assert (refusal and refusal.error) == (f"[memorymanager] {error}" if refused else None)


CRASHES = {
    "a size that no zone has": (PLAIN, {"memory": 1, MIB: 1}, f"a request for {MIB}, which some zone does not report"),
    "a size that one zone lacks": (
        made.machine(hugepages={"2Mi": (512, None)}),
        {"memory": 1, MIB: 1},
        f"a request for {MIB}, which some zone does not report",
    ),
    "hugepages and no memory": (HUGE, {MIB: 1}, "a container that requests hugepages and no memory"),
}


def demanding(request: dict[str, int]) -> PodDemand:
    return PodDemand(Pod(metadata=ObjectMeta(uid="p")), (ContainerDemand("c", Role.APP, 0, request, {}),), pinned=True)


@pytest.mark.parametrize("machine, request_, why", CRASHES.values(), ids=CRASHES)
def test_what_crashes_the_kubelet_has_no_answer(machine: Machine, request_: dict[str, int], why: str) -> None:
    manager, pod = policy(machine), demanding(request_)
    with pytest.raises(Undecided) as undecided:
        manager.allocate(manager.initial(), pod, pod.containers[0], Hint(None, True))
    assert str(undecided.value) == f"the kubelet crashes on {why}"


def test_hugepages_without_memory_crash_nothing_where_the_affinity_has_room() -> None:
    manager, pod = policy(HUGE), demanding({MIB: 1 << 21})
    state, _ = manager.allocate(manager.initial(), pod, pod.containers[0], Hint(ZONE_1, True))
    assert spelled(state.held("p", "c")) == "hugepages-2Mi 2Mi in 1"
