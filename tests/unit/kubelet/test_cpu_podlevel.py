"""CPUs of pods with pod-level resources: one allocation for the pod, divided among its containers (spec 10.3)."""

from collections.abc import Mapping

import pytest

from numalign.api.decode import cpuset
from numalign.api.objects.pod import Container, Pod
from numalign.kubelet import demand as demands
from numalign.kubelet.cpu import static
from numalign.kubelet.cpu import static as cpu_start
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.cpu.static import StaticCPUs
from numalign.kubelet.demand import PodDemand, Reading
from numalign.kubelet.refusals import EMPTY_POD_SHARED_POOL, SMT_ALIGNMENT
from tests.nodes import guaranteed, machine, pod, settings, sidecar, spelled

# CPUs 0-7 and 8-15; 0 is reserved.
HARDWARE = machine(cores=8)
BUDGET: Mapping[str, str | int] = {"cpu": 4, "memory": "4Gi"}


def policy(**options: str) -> StaticCPUs:
    named = {name.replace("_", "-"): text for name, text in options.items()}
    started = cpu_start.start_cpu_manager(HARDWARE, settings(HARDWARE, cpu_options=named))
    assert started is not None
    return started


def demand(given: Pod) -> PodDemand:
    return demands.of(given, Reading(pod_level_managers=True))


def shares(name: str) -> Container:
    return Container(name=name)


DIVIDED: dict[str, tuple[Pod, dict[str, str]]] = {
    "one container that has all": (pod("p", guaranteed("a", 4), whole=BUDGET), {"a": "8-11"}),
    "the rest is shared": (
        pod("p", guaranteed("a", 1), shares("b"), shares("c"), whole=BUDGET),
        {"a": "8", "b": "9-11", "c": "9-11"},
    ),
    "a sidecar keeps its own": (
        pod("p", shares("a"), init=[sidecar(guaranteed("s", 2))], whole=BUDGET),
        {"s": "8-9", "a": "10-11"},
    ),
    "a sidecar that shares is in the common rest": (
        pod("p", guaranteed("a", 1), init=[sidecar(shares("s"))], whole=BUDGET),
        {"s": "9-11", "a": "8"},
    ),
    "an init container has all but what sidecars before it keep": (
        pod("p", shares("a"), init=[shares("i"), sidecar(guaranteed("s", 1)), shares("j")], whole=BUDGET),
        {"i": "8-11", "s": "8", "j": "9-11", "a": "9-11"},
    ),
    "an init container with its own leaves nothing behind": (
        pod("p", guaranteed("a", 2), shares("b"), init=[guaranteed("i", 3)], whole=BUDGET),
        {"i": "8-10", "a": "8-9", "b": "10-11"},
    ),
}


@pytest.mark.parametrize("given, expected", DIVIDED.values(), ids=DIVIDED)
def test_the_pods_cpus_are_divided_among_its_containers(given: Pod, expected: dict[str, str]) -> None:
    cpus = policy()
    state, refusal = cpus.allocate_pod(cpus.initial(), demand(given), 0b10)
    assert refusal is None
    assert {name: cpuset.text(held) for name, held in state.assignments["p"].items()} == expected
    assert (cpuset.text(state.pods["p"]), cpuset.text(state.default)) == ("8-11", "0-7,12-15")


NO_ROOM = {
    "init containers": (
        pod("p", guaranteed("a", 1), init=[sidecar(guaranteed("s", 4)), shares("i")], whole=BUDGET),
        "pod rejected, pod has shared init containers but no cpus available for them",
    ),
    "apps": (
        pod("p", guaranteed("a", 4), shares("b"), whole=BUDGET),
        "pod rejected, sum of exclusive container cpu requests equals pod budget, "
        "leaving no cpus for shared containers",
    ),
    "sidecars": (
        pod("p", guaranteed("a", 4), init=[sidecar(shares("s"))], whole=BUDGET),
        "pod rejected, sum of exclusive container cpu requests equals pod budget, "
        "leaving no cpus for shared containers",
    ),
}


@pytest.mark.parametrize("given, text", NO_ROOM.values(), ids=NO_ROOM)
def test_containers_that_share_need_something_to_share(given: Pod, text: str) -> None:
    cpus = policy()
    assert static.empty_shared_pool(demand(given)) == text
    state, refusal = cpus.allocate_pod(cpus.initial(), demand(given), None)
    assert refusal is not None
    assert (refusal.error, refusal.reason, state) == (text, EMPTY_POD_SHARED_POOL, cpus.initial())
    assert spelled((cpus.pod_hints(cpus.initial(), demand(given)) or {})["cpu"]) == []


def test_init_containers_with_all_the_cpus_leave_enough_for_those_after_them() -> None:
    given = pod("p", shares("a"), init=[guaranteed("i", 4)], whole=BUDGET)
    assert static.empty_shared_pool(demand(given)) is None


def test_hints_ask_for_the_budget() -> None:
    cpus, wide = policy(), pod("p", guaranteed("a", 1), shares("b"), whole={"cpu": 12, "memory": "1Gi"})
    assert spelled((cpus.pod_hints(cpus.initial(), demand(wide)) or {})["cpu"]) == [((0, 1), True)]


def test_a_budget_of_fractions_gets_nothing() -> None:
    cpus, given = policy(), demand(pod("p", shares("a"), whole={"cpu": "2500m", "memory": "1Gi"}))
    assert cpus.pod_hints(cpus.initial(), given) is None
    assert cpus.allocate_pod(cpus.initial(), given, None) == (cpus.initial(), None)


def test_whole_cores_are_asked_for_the_budget() -> None:
    cpus = cpu_start.start_cpu_manager(
        machine(threads=2), settings(machine(threads=2), cpu_options={"full-pcpus-only": "true"})
    )
    assert cpus is not None
    given = demand(pod("p", guaranteed("a", 2), shares("b"), whole={"cpu": 3, "memory": "1Gi"}))
    _, refusal = cpus.allocate_pod(cpus.initial(), given, None)
    assert refusal is not None
    assert refusal.reason == SMT_ALIGNMENT


def test_cpus_that_cannot_be_divided_are_lost() -> None:
    cpus, given = policy(), demand(pod("p", guaranteed("a", 3), guaranteed("b", 3), whole=BUDGET))
    state, refusal = cpus.allocate_pod(cpus.initial(), given, 0b10)
    assert refusal is not None
    assert (cpuset.text(state.pods["p"]), state.assignments) == ("8-11", {})
    assert cpus.collect(state, {}) == state


def test_a_second_allocation_takes_more_cpus_and_forgets_the_first_ones() -> None:
    cpus, given = policy(), demand(pod("p", guaranteed("a", 4), whole=BUDGET))
    once, _ = cpus.allocate_pod(cpus.initial(), given, 0b10)
    twice, _ = cpus.allocate_pod(once, given, 0b10)
    assert (cpuset.text(twice.pods["p"]), cpuset.text(twice.default)) == ("12-15", "0-7")


def test_everything_comes_back_with_the_last_container() -> None:
    cpus, given = policy(), demand(pod("p", guaranteed("a", 1), shares("b"), whole=BUDGET))
    state, _ = cpus.allocate_pod(cpus.initial(), given, None)
    without = cpus.remove(state, "p", "a")
    assert without.default == state.default
    assert cpus.remove(without, "p", "b") == CPUState(cpus.initial().default)


def test_containers_that_share_do_not_have_the_number_of_cpus_they_asked_for() -> None:
    """So a pod with such a container cannot be aligned again after a restart."""
    cpus, given = policy(), demand(pod("p", guaranteed("a", 1), shares("b"), whole=BUDGET))
    state, _ = cpus.allocate_pod(cpus.initial(), given, None)
    assert spelled((cpus.pod_hints(state, given) or {})["cpu"]) == []
