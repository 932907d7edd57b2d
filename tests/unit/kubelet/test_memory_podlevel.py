"""Memory of pods with pod-level resources: one charge for the pod, divided on paper (kubelet spec 10.4, 10.5)."""

from typing import Any

import pytest

from numalign.api.decode import cpuset, quantity
from numalign.api.objects.pod import Container, Pod
from numalign.kubelet import demand as demands
from numalign.kubelet.demand import PodDemand, Reading
from numalign.kubelet.memory.state import Block, MemoryState
from numalign.kubelet.memory.static import StaticMemory
from numalign.kubelet.refusals import EMPTY_POD_SHARED_POOL, UNEXPECTED
from numalign.kubelet.topologymanager.hints import Hint, HintList
from tests.unit.kubelet import made

GIB = 1 << 30
PAGES = "hugepages-2Mi"
HUGE = made.machine(hugepages={"2Mi": 512})  # 6Gi and 7Gi of memory, 1Gi and 1Gi of hugepages
ZONE_0, ZONE_1, BOTH = 0b01, 0b10, 0b11
FOUR = {"cpu": 4, "memory": "4Gi"}
BOTH_KINDS = {**FOUR, PAGES: "4Mi"}


def own(name: str, memory: str = "1Gi", pages: str = "", sidecar: bool = False) -> Container:
    others: dict[str, Any] = {PAGES: pages} if pages else {}
    return made.container(name, cpu=1, memory=memory, sidecar=sidecar, **others)


def sharing(name: str, sidecar: bool = False) -> Container:
    return Container(name=name, restart_policy="Always" if sidecar else "")


# (pod, blocks of its containers)
DIVIDED: dict[str, tuple[Pod, dict[str, str]]] = {
    "one that has all": (made.pod("p", own("a", "4Gi"), level=FOUR), {"a": "memory 4Gi"}),
    "some that leave a rest to nobody": (
        made.pod("p", own("a"), own("b"), level=FOUR),
        {"a": "memory 1Gi", "b": "memory 1Gi"},
    ),
    "the rest is shared": (
        made.pod("p", own("a"), sharing("b"), sharing("c"), level=FOUR),
        {"a": "memory 1Gi", "b": "memory 3Gi", "c": "memory 3Gi"},
    ),
    "a sidecar keeps its own": (
        made.pod("p", sharing("a"), init=[own("s", sidecar=True)], level=FOUR),
        {"s": "memory 1Gi", "a": "memory 3Gi"},
    ),
    "a sidecar that shares has the rest": (
        made.pod("p", own("a"), init=[sharing("s", sidecar=True)], level=FOUR),
        {"s": "memory 3Gi", "a": "memory 1Gi"},
    ),
    "an init container has all but what sidecars before it keep": (
        made.pod("p", own("a"), init=[sharing("i"), own("s", sidecar=True), sharing("j")], level=FOUR),
        {"i": "memory 4Gi", "s": "memory 1Gi", "j": "memory 3Gi", "a": "memory 1Gi"},
    ),
    "an init container with its own hands it on": (
        made.pod("p", own("a"), sharing("b"), init=[own("i", "3Gi")], level=FOUR),
        {"i": "memory 3Gi", "a": "memory 1Gi", "b": "memory 3Gi"},
    ),
    "whoever is not guaranteed shares": (
        made.pod("p", own("a"), made.container("b", burstable=True), level=FOUR),
        {"a": "memory 1Gi", "b": "memory 3Gi"},
    ),
    "kind by kind": (
        made.pod("p", own("a", pages="2Mi"), sharing("b"), level=BOTH_KINDS),
        {"a": "hugepages-2Mi 2Mi, memory 1Gi", "b": "hugepages-2Mi 2Mi, memory 3Gi"},
    ),
    "nothing of a kind is no block": (
        made.pod("p", own("a", pages="0"), sharing("b"), level=BOTH_KINDS),
        {"a": "memory 1Gi", "b": "hugepages-2Mi 4Mi, memory 3Gi"},
    ),
    "a kind that nobody has alone is shared whole": (
        made.pod("p", own("a"), sharing("b"), level=BOTH_KINDS),
        {"a": "memory 1Gi", "b": "hugepages-2Mi 4Mi, memory 3Gi"},
    ),
}

SHARED_INIT = "pod rejected, pod has shared init containers but no {} available for them"
SHARED = (
    "pod rejected, sum of exclusive container {} requests equals pod budget, leaving no memory for shared containers"
)

# (pod, why no container could share)
EMPTY: dict[str, tuple[Pod, str]] = {
    "init containers beside a sidecar": (
        made.pod("p", own("a"), init=[own("s", "4Gi", sidecar=True), sharing("i")], level=FOUR),
        SHARED_INIT.format("memory"),
    ),
    "init containers, by kind": (
        made.pod("p", own("a"), init=[own("s", "1Gi", "4Mi", sidecar=True), sharing("i")], level=BOTH_KINDS),
        SHARED_INIT.format(PAGES),
    ),
    "apps": (made.pod("p", own("a", "4Gi"), sharing("b"), level=FOUR), SHARED.format("memory")),
    "apps beyond the budget": (made.pod("p", own("a", "5Gi"), sharing("b"), level=FOUR), SHARED.format("memory")),
    "apps, by kind": (made.pod("p", own("a", "1Gi", "4Mi"), sharing("b"), level=BOTH_KINDS), SHARED.format(PAGES)),
    "sidecars": (
        made.pod("p", own("a", "4Gi"), init=[sharing("s", sidecar=True)], level=FOUR),
        SHARED.format("memory"),
    ),
}

# (size held by another pod in zone 1, affinity, preferred, budget, error)
REFUSED: dict[str, tuple[str, int | None, bool, str, str]] = {
    "no room": (
        "1Gi",
        None,
        False,
        "14Gi",
        "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available",
    ),
    "nothing to extend to": (
        "1Gi",
        ZONE_0,
        True,
        "7Gi",
        "failed to find NUMA nodes to extend the current topology hint",
    ),
    "a broken group": ("1Gi", BOTH, True, "2Gi", "preferred hint violates NUMA node allocation"),
}


def policy(**settings: Any) -> StaticMemory:
    manager = made.kubelet(HUGE, cpu=False, memory=True, **settings).memory
    assert manager is not None
    return manager


def read(pod: Pod) -> PodDemand:
    return demands.of(pod, Reading(pod_level_managers=True))


def served(manager: StaticMemory, pod: PodDemand, mask: int | None = ZONE_1) -> MemoryState:
    state, refused = manager.allocate_pod(manager.initial(), pod, Hint(mask, True))
    assert refused is None, refused
    return state


def spelled(state: MemoryState) -> dict[str, str]:
    def said(block: Block) -> str:
        return f"{block.kind} {quantity.of(block.size, quantity.Format.BINARY_SI)}"

    return {name: ", ".join(said(block) for block in sorted(held)) for name, held in state.blocks["p"].items()}


@pytest.mark.parametrize("pod, expected", DIVIDED.values(), ids=DIVIDED)
def test_the_budget_is_divided_among_the_containers(pod: Pod, expected: dict[str, str]) -> None:
    state = served(policy(), read(pod))
    assert spelled(state) == expected
    assert {block.zones for held in state.blocks["p"].values() for block in held} == {ZONE_1}


@pytest.mark.parametrize("level, kinds", [(FOUR, 1), (BOTH_KINDS, 2)], ids=["memory", "both kinds"])
def test_the_budget_is_charged_once(level: dict[str, Any], kinds: int) -> None:
    state = served(policy(), read(made.pod("p", own("a"), sharing("b"), sharing("c"), level=level)))
    assert state.zones[1].tables["memory"].free == 3 * GIB
    assert state.zones[1].assignments == kinds == len(state.pods["p"])


@pytest.mark.parametrize("mask, zones", [(ZONE_0, "0"), (None, "0"), (BOTH, "0-1")], ids=["there", "anywhere", "group"])
def test_the_pod_is_placed_as_one_container_would_be(mask: int | None, zones: str) -> None:
    state = served(policy(), read(made.pod("p", sharing("a"), level=FOUR)), mask)
    assert [cpuset.text(block.zones) for block in state.pods["p"]] == [zones]


@pytest.mark.parametrize("pod, error", EMPTY.values(), ids=EMPTY)
def test_sharers_need_something_to_share(pod: Pod, error: str) -> None:
    manager, demand = policy(), read(pod)
    state, refused = manager.allocate_pod(manager.initial(), demand, Hint(ZONE_1, True))
    assert refused is not None
    assert (refused.error, refused.reason, state) == (error, EMPTY_POD_SHARED_POOL, manager.initial())
    assert manager.pod_hints(manager.initial(), demand) == dict.fromkeys(demand.memory or {}, HintList())


@pytest.mark.parametrize("other, mask, preferred, budget, error", REFUSED.values(), ids=REFUSED)
def test_the_budget_is_refused_as_a_container_would_be(
    other: str, mask: int | None, preferred: bool, budget: str, error: str
) -> None:
    manager, neighbour = policy(), demands.of(made.pod("q", own("c", other)), Reading())
    state, _ = manager.allocate(manager.initial(), neighbour, neighbour.containers[0], Hint(ZONE_1, True))
    pod = read(made.pod("p", sharing("a"), level={"cpu": 4, "memory": budget}))
    after, refused = manager.allocate_pod(state, pod, Hint(mask, preferred))
    assert refused is not None
    assert (refused.error, refused.reason, after) == (f"[memorymanager] {error}", UNEXPECTED, state)


def test_hints_ask_for_the_budget_and_its_kinds() -> None:
    manager = policy()
    pod = read(made.pod("p", own("a"), sharing("b"), level={"cpu": 4, "memory": "7Gi", PAGES: "4Mi"}))
    hints = HintList((ZONE_1, BOTH), frozenset({ZONE_1}))
    assert manager.pod_hints(manager.initial(), pod) == {"memory": hints, PAGES: hints}


def test_a_kind_beyond_the_budget_wraps_around_for_those_who_share() -> None:
    state = served(policy(), read(made.pod("p", own("a", pages="2Mi"), sharing("b"), level=FOUR)))
    assert Block(PAGES, ZONE_1, 2**64 - (2 << 20)) in state.blocks["p"]["b"]


@pytest.mark.parametrize(
    "reading, level", [(Reading(), FOUR), (Reading(pod_level_managers=True), {"cpu": 4})], ids=["gate off", "burstable"]
)
def test_a_pod_whose_budget_does_not_count_is_left_alone(reading: Reading, level: dict[str, Any]) -> None:
    manager, pod = policy(), demands.of(made.pod("p", own("a"), level=level), reading)
    assert manager.pod_hints(manager.initial(), pod) is None
    assert manager.allocate_pod(manager.initial(), pod, Hint(ZONE_1, True)) == (manager.initial(), None)


def test_by_container_only_those_with_their_own_are_served() -> None:
    manager, pod = policy(), read(made.pod("p", own("a"), sharing("b"), level=FOUR))
    state = manager.initial()
    for container in pod.containers:
        state, _ = manager.allocate(state, pod, container, Hint(ZONE_1, True))
    assert (spelled(state), state.pods) == ({"a": "memory 1Gi"}, {})


def test_everything_comes_back_with_the_last_container() -> None:
    manager = policy()
    state = served(manager, read(made.pod("p", own("a"), sharing("b"), level=FOUR)))
    without = manager.remove(state, "p", "a")
    assert (without.zones, set(without.blocks["p"])) == (state.zones, {"b"})
    assert manager.remove(without, "p", "b") == manager.initial()
    assert manager.collect(state, {}) == manager.initial()


def test_init_containers_that_ended_lose_their_record_and_give_nothing_back() -> None:
    manager, pod = policy(), read(made.pod("p", sharing("a"), init=[own("i")], level=FOUR))
    state = served(manager, pod)
    started = manager.started(state, pod, "a")
    assert (set(started.blocks["p"]), started.zones) == ({"a"}, state.zones)


def test_a_second_allocation_charges_again_and_forgets_the_first() -> None:
    manager, pod = policy(), read(made.pod("p", own("a", "3Gi"), level={"cpu": 4, "memory": "3Gi"}))
    twice, _ = manager.allocate_pod(served(manager, pod), pod, Hint(ZONE_1, True))
    assert twice.zones[1].tables["memory"].free == GIB
    ended = manager.collect(twice, {})
    assert ended.zones[1].tables["memory"].reserved == 3 * GIB
