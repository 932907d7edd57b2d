"""Hints of the static memory policy, for containers and whole pods (kubelet spec 6.2, 6.3 and 9)."""

from collections.abc import Sequence
from typing import Any

import pytest

from numalign.api.decode import cpuset
from numalign.api.objects.pod import Container, Pod
from numalign.kubelet import demand as demands
from numalign.kubelet.demand import PodDemand, Reading
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.memory.state import Block, MemoryState, ReusableMemory
from numalign.kubelet.memory.static import StaticMemory
from numalign.kubelet.refusals import Undecided
from numalign.kubelet.topologymanager.hints import Hint, HintList, UnlistedHints
from numalign.kubelet.topologymanager.merge import HintMap
from tests.unit.kubelet import made

Before = Sequence[tuple[int, str, str]]
"""What other pods hold: zones, memory, hugepages."""

GIB, MIB = 1 << 30, 1 << 20
PAGES = "hugepages-2Mi"
PLAIN = made.machine()  # 7Gi and 8Gi for pods: 1Gi of zone 0 is reserved
THREE = made.machine(zones=3)  # 7Gi, 8Gi, 8Gi
HUGE = made.machine(hugepages={"2Mi": 512})  # 1Gi of each zone in hugepages: 6Gi and 7Gi, and 1Gi and 1Gi
EITHER = {"0": True, "1": True, "0-1": False}

# (machine, held by others, memory, hugepages, zones and whether they are preferred)
FRESH: dict[str, tuple[Machine, Before, str, str, dict[str, bool]]] = {
    "either zone": (PLAIN, [], "2Gi", "", EITHER),
    "the zone without the reservation": (PLAIN, [], "8Gi", "", {"1": True, "0-1": False}),
    "larger than any zone": (PLAIN, [], "9Gi", "", {"0-1": True}),
    "all there is": (PLAIN, [], "15Gi", "", {"0-1": True}),
    "a zone that is used alone joins no group": (PLAIN, [(0b01, "6Gi", "")], "2Gi", "", {"1": True}),
    "a group is offered as a whole, and not preferred": (PLAIN, [(0b11, "12Gi", "")], "2Gi", "", {"0-1": False}),
    "a group and a zone outside": (THREE, [(0b011, "10Gi", "")], "2Gi", "", {"2": True, "0-1": False}),
    "groups of idle zones": (THREE, [(0b001, "1Gi", "")], "10Gi", "", {"1-2": True}),
    "in the order of enumeration": (
        THREE,
        [],
        "8Gi",
        "",
        {"1": True, "2": True, "0-1": False, "0,2": False, "1-2": False, "0-2": False},
    ),
    "hugepages take memory away": (HUGE, [], "7Gi", "", {"1": True, "0-1": False}),
    "both kinds in either zone": (HUGE, [], "2Gi", "512Mi", EITHER),
    "one kind needs more zones than the other": (HUGE, [], "2Gi", "1536Mi", {"0-1": True}),
    "one kind is used up": (HUGE, [(0b01, "1Gi", "1Gi")], "1Gi", "512Mi", {"1": True}),
    "real zone ids": (made.machine(ids=(0, 5)), [], "2Gi", "", {"0": True, "5": True, "0,5": False}),
    "zones without CPUs count": (made.machine(cores=(4, 0), sockets=1), [], "2Gi", "", EITHER),
}

# (machine, held by others, memory, hugepages)
NOWHERE: dict[str, tuple[Machine, Before, str, str]] = {
    "more than there is": (PLAIN, [], "16Gi", ""),
    "zones that are used alone and full": (PLAIN, [(0b01, "6Gi", ""), (0b10, "7Gi", "")], "2Gi", ""),
    "zones that are used alone and would do together": (PLAIN, [(0b01, "4Gi", ""), (0b10, "4Gi", "")], "6Gi", ""),
    "a group that is full": (PLAIN, [(0b11, "12Gi", "")], "4Gi", ""),
    "one of two kinds": (HUGE, [], "1Gi", "3Gi"),
    "more than many zones have": (made.machine(zones=17, cores=1), [], "200Gi", ""),
}

# (blocks of the container, memory and hugepages it asks for, the mask it is offered again)
AGAIN: dict[str, tuple[tuple[Block, ...], str, str, int | None]] = {
    "as it is": ((Block("memory", 0b10, GIB),), "1Gi", "", 0b10),
    "across zones": ((Block("memory", 0b11, GIB),), "1Gi", "", 0b11),
    "both kinds": ((Block("memory", 0b10, GIB), Block(PAGES, 0b10, 2 * MIB)), "1Gi", "2Mi", 0b10),
    "another size": ((Block("memory", 0b10, GIB),), "2Gi", "", None),
    "one kind more": ((Block("memory", 0b10, GIB),), "1Gi", "2Mi", None),
    "one kind less": ((Block("memory", 0b10, GIB), Block(PAGES, 0b10, 2 * MIB)), "1Gi", "", None),
    "reused away": ((Block("memory", 0b10, 0),), "1Gi", "", None),
    "a record without blocks": ((), "1Gi", "", None),
}


def policy(on: Machine = PLAIN) -> StaticMemory:
    manager = made.kubelet(on, policy="none", cpu=False, memory=True).memory
    assert manager is not None
    return manager


def app(memory: str, pages: str = "", name: str = "c", sidecar: bool = False) -> Container:
    others: dict[str, Any] = {PAGES: pages} if pages else {}
    return made.container(name, memory=memory, sidecar=sidecar, **others)


def read(pod: Pod) -> PodDemand:
    return demands.of(pod, Reading())


def busy(manager: StaticMemory, before: Before) -> MemoryState:
    state = manager.initial()
    for number, (zones, memory, pages) in enumerate(before):
        other = read(made.pod(f"other-{number}", app(memory, pages)))
        state, refused = manager.allocate(state, other, other.containers[0], Hint(zones, False))
        assert refused is None, refused
    return state


def spelled(offered: HintMap | None) -> list[tuple[str, bool]]:
    assert offered
    first, *others = offered.values()
    assert isinstance(first, HintList)
    assert all(hints == first for hints in others)
    return [(cpuset.text(hint.mask or 0), hint.preferred) for hint in first]


@pytest.mark.parametrize("machine, before, memory, pages, expected", FRESH.values(), ids=FRESH)
def test_a_new_container_is_offered_every_set_of_zones_with_room(
    machine: Machine, before: Before, memory: str, pages: str, expected: dict[str, bool]
) -> None:
    manager, pod = policy(machine), read(made.pod("p", app(memory, pages)))
    offered = manager.container_hints(busy(manager, before), pod, pod.containers[0])
    assert spelled(offered) == list(expected.items())
    assert set(offered or ()) == ({"memory", PAGES} if pages else {"memory"})


@pytest.mark.parametrize("machine, before, memory, pages", NOWHERE.values(), ids=NOWHERE)
def test_what_fits_nowhere_is_offered_as_dont_care(machine: Machine, before: Before, memory: str, pages: str) -> None:
    manager, pod = policy(machine), read(made.pod("p", app(memory, pages)))
    assert manager.container_hints(busy(manager, before), pod, pod.containers[0]) == {}


def test_many_zones_are_not_listed() -> None:
    manager, pod = policy(made.machine(zones=17, cores=1)), read(made.pod("p", app("100Gi")))
    offered = manager.container_hints(manager.initial(), pod, pod.containers[0])
    assert offered is not None
    assert isinstance(offered["memory"], UnlistedHints)
    assert offered["memory"].narrowest == 13


@pytest.mark.parametrize("uid, expected", [("p", {"0": True, "1": True}), ("q", {"0": True})])
def test_what_init_containers_left_counts_for_their_pod_in_their_zones(uid: str, expected: dict[str, bool]) -> None:
    manager = policy()
    known = busy(manager, [(0b10, "4Gi", "")])
    left = MemoryState(known.zones, reuse=ReusableMemory(uid, {(0b10, "memory"): 4 * GIB}))
    pod = read(made.pod("p", app("6Gi")))
    assert spelled(manager.container_hints(left, pod, pod.containers[0])) == list(expected.items())


@pytest.mark.parametrize("blocks, memory, pages, mask", AGAIN.values(), ids=AGAIN)
@pytest.mark.parametrize("whole", [False, True], ids=["container", "pod"])
def test_what_is_held_is_offered_again_if_it_is_what_is_asked_for(
    blocks: tuple[Block, ...], memory: str, pages: str, mask: int | None, whole: bool
) -> None:
    manager, pod = policy(HUGE), read(made.pod("p", app(memory, pages)))
    known = manager.initial().with_blocks("p", {"c": blocks})
    offered = manager.pod_hints(known, pod) if whole else manager.container_hints(known, pod, pod.containers[0])
    again = None if mask is None else {block.kind: HintList((mask,), frozenset({mask})) for block in blocks}
    assert offered == again


# (pod, zones and whether they are preferred, kinds)
WHOLE: dict[str, tuple[Pod, dict[str, bool], set[str]]] = {
    "apps add up": (
        made.pod("p", app("3Gi"), app("4Gi", name="d")),
        {"1": True, "0-1": False},
        {"memory"},
    ),
    "the largest init container": (
        made.pod("p", app("1Gi"), init=[app("7Gi", name="i")]),
        {"1": True, "0-1": False},
        {"memory"},
    ),
    "sidecars run beside init containers": (
        made.pod("p", app("1Gi"), init=[app("4Gi", name="s", sidecar=True), app("3Gi", name="i")]),
        {"1": True, "0-1": False},
        {"memory"},
    ),
    "sidecars run beside apps": (
        made.pod("p", app("4Gi"), init=[app("3Gi", name="s", sidecar=True)]),
        {"1": True, "0-1": False},
        {"memory"},
    ),
    "a kind that only init containers ask for": (
        made.pod("p", app("1Gi"), init=[app("1Gi", "3Gi", name="i")]),
        EITHER,
        {"memory"},
    ),
    "a kind that one app asks for": (
        made.pod("p", app("1Gi"), app("1Gi", "512Mi", name="d"), init=[app("1Gi", "768Mi", name="i")]),
        EITHER,
        {"memory", PAGES},
    ),
}


@pytest.mark.parametrize("pod, expected, kinds", WHOLE.values(), ids=WHOLE)
def test_a_pod_is_offered_zones_for_all_its_containers(pod: Pod, expected: dict[str, bool], kinds: set[str]) -> None:
    manager = policy(HUGE)
    offered = manager.pod_hints(manager.initial(), read(pod))
    assert (spelled(offered), set(offered or ())) == (list(expected.items()), kinds)


def test_the_first_container_that_holds_anything_is_held_against_the_whole_pod() -> None:
    manager, pod = policy(), read(made.pod("p", app("1Gi"), app("1Gi", name="d")))
    known = manager.initial().with_blocks("p", {"c": (Block("memory", 0b10, GIB),)})
    assert manager.pod_hints(known, pod) is None
    summed = manager.initial().with_blocks("p", {"d": (Block("memory", 0b10, 2 * GIB),)})
    assert manager.pod_hints(summed, pod) == {"memory": HintList((0b10,), frozenset({0b10}))}


@pytest.mark.parametrize(
    "container", [made.container(burstable=True), made.container(memory="1500m")], ids=["burstable", "no whole bytes"]
)
def test_a_container_that_is_not_served_does_not_care(container: Container) -> None:
    manager, pod = policy(), read(made.pod("p", container))
    assert manager.container_hints(manager.initial(), pod, pod.containers[0]) is None
    assert manager.pod_hints(manager.initial(), pod) is None


def test_hugepages_that_a_zone_does_not_report_have_no_answer() -> None:
    manager, pod = policy(PLAIN), read(made.pod("p", app("1Gi", "2Mi")))
    with pytest.raises(Undecided, match="crashes on a request for hugepages-2Mi"):
        manager.container_hints(manager.initial(), pod, pod.containers[0])
