"""CPUs of pods with pod-level resources: who counts, in which order it is refused, where it goes (kubelet spec 10)."""

from typing import Any

import pytest

from numalign.api.decode import cpuset
from numalign.api.objects.pod import Container, Pod
from numalign.kubelet import demand as demands
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.cpu.static import ACROSS_CORES, FULL_PCPUS_ONLY, StaticCPUs
from numalign.kubelet.demand import Reading
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import EMPTY_POD_SHARED_POOL, SMT_ALIGNMENT, UNEXPECTED
from numalign.kubelet.topologymanager.hints import HintList
from tests.unit.kubelet import made

PLAIN = made.machine()  # 0-3 and 4-7, 0 reserved
SMT = made.machine(threads=2)
MANAGED = Reading(pod_level_managers=True)
FOUR = {"cpu": 4, "memory": "4Gi"}


def own(name: str, cpu: int | str = 1) -> Container:
    return made.container(name, cpu=cpu)


def sharing(name: str) -> Container:
    return Container(name=name)


# Containers that do not count as exclusive in a pod with pod-level resources.
SHARERS = {
    "no resources": sharing("b"),
    "a fraction": own("b", "1500m"),
    "no limits": made.container("b", cpu=1, burstable=True),
    "no memory": made.container("b", cpu=1, memory=None),
}

# (machine, options, pod, error, reason)
REFUSED = {
    "an empty pool before half a core": (
        SMT,
        (FULL_PCPUS_ONLY,),
        made.pod("p", own("a", 3), sharing("b"), level={"cpu": 3, "memory": "1Gi"}),
        "pod rejected, sum of exclusive container cpu requests equals pod budget, "
        "leaving no cpus for shared containers",
        EMPTY_POD_SHARED_POOL,
    ),
    "half a core before a shortage": (
        SMT,
        (FULL_PCPUS_ONLY,),
        made.pod("p", sharing("a"), level={"cpu": 17, "memory": "1Gi"}),
        "SMT Alignment Error: requested 17 cpus not multiple cpus per core = 2",
        SMT_ALIGNMENT,
    ),
    "no whole cores before a shortage": (
        SMT,
        (FULL_PCPUS_ONLY,),
        made.pod("p", sharing("a"), level={"cpu": 16, "memory": "1Gi"}),
        "SMT Alignment Error: not enough free physical CPUs: "
        "available physical CPUs = 14, requested CPUs = 16, CPUs per core = 2",
        SMT_ALIGNMENT,
    ),
    "a shortage": (
        PLAIN,
        (),
        made.pod("p", sharing("a"), level={"cpu": 8, "memory": "1Gi"}),
        "not enough cpus available to satisfy request: requested=5, available=4",
        UNEXPECTED,
    ),
}


def policy(on: Machine = PLAIN, *options: str) -> StaticCPUs:
    gates = {"CPUManagerPolicyAlphaOptions": True}
    manager = made.kubelet(on, cpu_options=dict.fromkeys(options, "true"), feature_gates=gates).cpu
    assert manager is not None
    return manager


def served(manager: StaticCPUs, pod: Pod, affinity: int | None = 0b10) -> CPUState:
    state, refused = manager.allocate_pod(manager.initial(), demands.of(pod, MANAGED), affinity)
    assert refused is None, refused
    return state


def held(state: CPUState) -> dict[str, str]:
    return {name: cpuset.text(cpus) for name, cpus in state.assignments["p"].items()}


@pytest.mark.parametrize("machine, options, pod, error, reason", REFUSED.values(), ids=REFUSED)
def test_refusals_come_in_this_order(
    machine: Machine, options: tuple[str, ...], pod: Pod, error: str, reason: str
) -> None:
    manager = policy(machine, *options)
    state, refused = manager.allocate_pod(manager.initial(), demands.of(pod, MANAGED), 0b01)
    assert refused is not None
    assert (refused.error, refused.reason) == (error, reason)
    assert state == manager.initial()


@pytest.mark.parametrize(
    "affinity, expected", [(0b10, "4-7"), (0b01, "1-4"), (None, "4-7")], ids=["in the zone", "beyond it", "anywhere"]
)
def test_the_pod_is_placed_as_one_container_would_be(affinity: int | None, expected: str) -> None:
    state = served(policy(), made.pod("p", sharing("a"), level=FOUR), affinity)
    assert cpuset.text(state.pods["p"]) == expected


@pytest.mark.parametrize("sharer", SHARERS.values(), ids=SHARERS)
def test_only_guaranteed_containers_with_whole_cpus_have_their_own(sharer: Container) -> None:
    state = served(policy(), made.pod("p", own("a", 2), sharer, level=FOUR))
    assert held(state) == {"a": "4-5", "b": "6-7"}


def test_an_init_container_that_shares_has_all_but_what_sidecars_before_it_keep() -> None:
    init = [sharing("i"), made.container("s", cpu=1, sidecar=True), sharing("j"), own("k", 2)]
    state = served(policy(), made.pod("p", sharing("c"), init=init, level=FOUR))
    assert held(state) == {"i": "4-7", "s": "4", "j": "5-7", "k": "5-6", "c": "5-7"}


def test_the_picker_divides_by_its_options() -> None:
    pod = made.pod("p", own("a", 2), sharing("b"), level=FOUR)
    assert held(served(policy(SMT), pod)) == {"a": "4,12", "b": "5,13"}
    assert held(served(policy(SMT, ACROSS_CORES), pod)) == {"a": "4-5", "b": "6-7"}


def test_what_cannot_be_divided_is_reported_by_the_container_that_fell_short() -> None:
    pod = demands.of(made.pod("p", own("a", 3), own("b", 2), level=FOUR), MANAGED)
    _, refused = policy().allocate_pod(policy().initial(), pod, None)
    assert refused is not None
    assert refused.error == "not enough cpus available to satisfy request: requested=2, available=1"


@pytest.mark.parametrize(
    "reading, level",
    [
        (Reading(), FOUR),
        (MANAGED, {"cpu": "2500m", "memory": "1Gi"}),
        (MANAGED, {"cpu": 4}),
    ],
    ids=["gate off", "a fraction", "not guaranteed"],
)
def test_a_pod_whose_budget_does_not_count_is_left_alone(reading: Reading, level: dict[str, Any]) -> None:
    manager, pod = policy(), demands.of(made.pod("p", sharing("a"), level=level), reading)
    assert manager.pod_hints(manager.initial(), pod) is None
    assert manager.allocate_pod(manager.initial(), pod, None) == (manager.initial(), None)


def test_with_the_gate_off_not_even_its_containers_are_served() -> None:
    manager, pod = policy(), demands.of(made.pod("p", own("a", 2), level=FOUR), Reading())
    assert manager.container_hints(manager.initial(), pod, pod.containers[0]) is None
    assert manager.allocate(manager.initial(), pod, pod.containers[0], None) == (manager.initial(), None)


def test_by_container_only_those_with_their_own_are_served() -> None:
    manager, pod = policy(), demands.of(made.pod("p", own("a", 2), sharing("b"), level=FOUR), MANAGED)
    state = manager.initial()
    for container in pod.containers:
        state, _ = manager.allocate(state, pod, container, 0b10)
    assert (held(state), state.pods) == ({"a": "4-5"}, {})


def test_a_pod_without_sharers_is_offered_its_zones_again() -> None:
    manager, pod = policy(), made.pod("p", own("a", 2), own("b", 2), level=FOUR)
    hints = manager.pod_hints(served(manager, pod), demands.of(pod, MANAGED))
    assert hints == {"cpu": HintList((0b10, 0b11), frozenset({0b10}))}


# (containers, init containers, whether those that share would find nothing left of four CPUs)
POOLS = {
    "init containers hand on": ((sharing("c"),), (own("i", 4),), False),
    "an init container beside a sidecar that leaves some": (
        (own("c"),),
        (made.container("s", cpu=3, sidecar=True), sharing("i")),
        False,
    ),
    "an init container beside a sidecar that has all": (
        (own("c"),),
        (made.container("s", cpu=4, sidecar=True), sharing("i")),
        True,
    ),
    "an init container before that sidecar": (
        (own("c"),),
        (sharing("i"), made.container("s", cpu=4, sidecar=True)),
        False,
    ),
    "apps beside apps that have all": ((own("c", 2), own("d", 2), sharing("e")), (), True),
    "nobody shares": ((own("c", 2), own("d", 2)), (), False),
}


@pytest.mark.parametrize("apps, init, empty", POOLS.values(), ids=POOLS)
def test_no_zones_are_offered_where_sharers_would_find_nothing(
    apps: tuple[Container, ...], init: tuple[Container, ...], empty: bool
) -> None:
    manager, pod = policy(), demands.of(made.pod("p", *apps, init=init, level=FOUR), MANAGED)
    hints = manager.pod_hints(manager.initial(), pod)
    assert hints == {"cpu": HintList() if empty else HintList((0b10, 0b11), frozenset({0b10}))}


def test_collection_gives_a_pod_back_with_its_last_container() -> None:
    manager = policy()
    state = served(manager, made.pod("p", own("a", 2), sharing("b"), level=FOUR))
    assert manager.collect(state, {"p": {"a"}}).default == state.default
    assert manager.collect(state, {}) == manager.initial()
