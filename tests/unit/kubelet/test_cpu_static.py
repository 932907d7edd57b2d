"""The static CPU policy: who gets which CPUs, and how they are given back (kubelet spec 5.1 to 5.4)."""

from typing import Any

import pytest

from numalign.api.decode import cpuset
from numalign.api.objects.pod import Pod
from numalign.kubelet import demand as demands
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.cpu.static import (
    ACROSS_CORES,
    ACROSS_NUMA,
    ALIGN_BY_SOCKET,
    ALIGN_UNCORE,
    FULL_PCPUS_ONLY,
    StaticCPUs,
)
from numalign.kubelet.demand import PodDemand, Reading
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import SMT_ALIGNMENT, UNEXPECTED, Refusal
from numalign.kubelet.versions import Minor
from tests.unit.kubelet import made

PLAIN = made.machine()
SMT = made.machine(threads=2)
L3 = made.machine(zones=1, cores=8, threads=2, uncores=2)
QUARTERS = made.machine(zones=4, cores=2, threads=2, sockets=2)  # zone 0: 0-1,8-9, socket 0: 0-3,8-11
ANY, ZONE_0, ZONE_1 = None, 0b01, 0b10

# (machine, options, affinity, CPUs, what the container gets); CPU 0 is reserved.
GIVEN = {
    "anywhere": (PLAIN, (), ANY, 4, "4-7"),
    "in the zone of the affinity": (PLAIN, (), ZONE_0, 2, "1-2"),
    "all of that zone and the rest elsewhere": (PLAIN, (), ZONE_0, 4, "1-4"),
    "elsewhere where the affinity has no CPUs": (made.machine(cores=(4, 0), sockets=1), (), ZONE_1, 2, "1-2"),
    "all but the reserved": (PLAIN, (), 0b11, 7, "1-7"),
    "from the zone alone, then anywhere": (QUARTERS, (), ZONE_0, 6, "1-3,8-10"),
    "from the whole socket": (QUARTERS, (ALIGN_BY_SOCKET,), ZONE_0, 6, "1-3,9-11"),
    "whole cores": (SMT, (FULL_PCPUS_ONLY,), ZONE_0, 2, "1,9"),
    "every whole core": (SMT, (FULL_PCPUS_ONLY,), ANY, 14, "1-7,9-15"),
}

# (machine, options, minor, free CPUs, CPUs, what is picked)
PICKERS = {
    "packed": (SMT, (), 38, "0-15", 3, "0-1,8"),
    "over cores": (SMT, (ACROSS_CORES,), 38, "0-15", 3, "0-2"),
    "in an L3 group": (L3, (ALIGN_UNCORE,), 38, "1-15", 4, "4-5,12-13"),
    "over zones": (SMT, (ACROSS_NUMA,), 38, "0-15", 10, "0-2,4-6,8-9,12-13"),
    "over zones in whole cores": (SMT, (ACROSS_NUMA, FULL_PCPUS_ONLY), 38, "0-15", 10, "0-2,4-5,8-10,12-13"),
    "over zones of one socket": (QUARTERS, (ACROSS_NUMA, ALIGN_BY_SOCKET), 37, "1-3,5-15", 6, "1-3,8-10"),
    "over zones of any socket": (QUARTERS, (ACROSS_NUMA, ALIGN_BY_SOCKET), 36, "1-3,5-15", 6, "2-3,6-7,10,14"),
}

# (affinity, CPUs, requested and available of the run that fell short)
SHORT = {
    "anywhere": (ANY, 8, 8, 7),
    "the rest after one zone": (ZONE_0, 8, 5, 4),
    "the rest after the other": (ZONE_1, 9, 5, 3),
    "the rest after all zones": (0b11, 8, 1, 0),
}

UNALIGNED = {
    "half a core": (3, "requested 3 cpus not multiple cpus per core = 2"),
    "half a core, of more than there is": (17, "requested 17 cpus not multiple cpus per core = 2"),
    "the core of the reserved CPU": (
        16,
        "not enough free physical CPUs: available physical CPUs = 14, requested CPUs = 16, CPUs per core = 2",
    ),
}

# (containers of one pod, all aligned to zone 1, what they get)
TOGETHER = {
    "apps never overlap": ({"c": ("app", 2), "d": ("app", 2)}, {"c": "4-5", "d": "6-7"}),
    "init containers overlap each other": (
        {"a": ("init", 4), "b": ("init", 2), "c": ("app", 1)},
        {"a": "4-7", "b": "4-5", "c": "4"},
    ),
    "apps share out what init containers had": (
        {"a": ("init", 4), "c": ("app", 2), "d": ("app", 2)},
        {"a": "4-7", "c": "4-5", "d": "6-7"},
    ),
    "a sidecar takes and keeps": (
        {"a": ("init", 4), "s": ("sidecar", 2), "c": ("app", 2), "d": ("app", 1)},
        {"a": "4-7", "s": "4-5", "c": "6-7", "d": "1"},
    ),
    "an init container goes beside an earlier sidecar": (
        {"s": ("sidecar", 2), "a": ("init", 2), "c": ("app", 2)},
        {"s": "4-5", "a": "6-7", "c": "6-7"},
    ),
}


def policy(on: Machine = PLAIN, *options: str, **settings: Any) -> StaticCPUs:
    gates = {"CPUManagerPolicyAlphaOptions": True}
    chosen = dict.fromkeys(options, "true")
    manager = made.kubelet(on, cpu_options=chosen, feature_gates=gates, **settings).cpu
    assert manager is not None
    return manager


def read(pod: Pod) -> PodDemand:
    return demands.of(pod, Reading())


def asking(cpus: int | str, name: str = "p") -> PodDemand:
    return read(made.pod(name, made.container(cpu=cpus)))


def served(manager: StaticCPUs, pod: PodDemand, affinity: int | None = ANY, state: CPUState | None = None) -> CPUState:
    state = state or manager.initial()
    for container in pod.containers:
        state, refused = manager.allocate(state, pod, container, affinity)
        assert refused is None, refused
    return state


def refusal(manager: StaticCPUs, pod: PodDemand, affinity: int | None = ANY, state: CPUState | None = None) -> Refusal:
    before = state or manager.initial()
    after, refused = manager.allocate(before, pod, pod.containers[-1], affinity)
    assert refused is not None
    assert after == before
    return refused


def held(state: CPUState, uid: str = "p") -> dict[str, str]:
    return {name: cpuset.text(cpus) for name, cpus in state.assignments.get(uid, {}).items()}


def several(containers: dict[str, tuple[str, int]]) -> PodDemand:
    made_of = {
        name: made.container(name, cpu=cpus, sidecar=role == "sidecar") for name, (role, cpus) in containers.items()
    }
    apps = [made_of[name] for name, (role, _) in containers.items() if role == "app"]
    return read(made.pod("p", *apps, init=[each for each in made_of.values() if each not in apps]))


@pytest.mark.parametrize("options, shared", [((), "0-7"), (("strict-cpu-reservation",), "1-7")])
def test_reserved_cpus_are_shared_unless_reserved_strictly(options: tuple[str, ...], shared: str) -> None:
    manager = policy(PLAIN, *options)
    assert cpuset.text(manager.initial().default) == shared
    assert cpuset.text(manager.available(manager.initial())) == cpuset.text(manager.allocatable) == "1-7"


@pytest.mark.parametrize("machine, options, affinity, cpus, expected", GIVEN.values(), ids=GIVEN)
def test_a_container_gets_its_cpus(
    machine: Machine, options: tuple[str, ...], affinity: int | None, cpus: int, expected: str
) -> None:
    manager = policy(machine, *options)
    state = served(manager, asking(cpus), affinity)
    assert held(state) == {"c": expected}
    assert state.default == manager.topology.cpus & ~cpuset.parse(expected)


@pytest.mark.parametrize("machine, options, minor, free, cpus, expected", PICKERS.values(), ids=PICKERS)
def test_options_choose_the_picker(
    machine: Machine, options: tuple[str, ...], minor: int, free: str, cpus: int, expected: str
) -> None:
    manager = policy(machine, *options, minor=Minor(1, minor))
    assert cpuset.text(manager.take(cpuset.parse(free), cpus)) == expected


@pytest.mark.parametrize("container", [made.container(cpu="1500m"), made.container(cpu=2, burstable=True)])
def test_a_fraction_or_another_class_shares(container: Any) -> None:
    manager = policy()
    assert served(manager, read(made.pod("p", container)), ZONE_0) == manager.initial()


@pytest.mark.parametrize("affinity, cpus, requested, available", SHORT.values(), ids=SHORT)
def test_a_shortage_is_reported_by_the_run_that_met_it(
    affinity: int | None, cpus: int, requested: int, available: int
) -> None:
    refused = refusal(policy(), asking(cpus), affinity)
    text = f"not enough cpus available to satisfy request: requested={requested}, available={available}"
    assert (refused.error, refused.reason) == (text, UNEXPECTED)


@pytest.mark.parametrize("cpus, expected", UNALIGNED.values(), ids=UNALIGNED)
def test_whole_cores_only(cpus: int, expected: str) -> None:
    refused = refusal(policy(SMT, FULL_PCPUS_ONLY), asking(cpus))
    assert (refused.error, refused.reason) == (f"SMT Alignment Error: {expected}", SMT_ALIGNMENT)


def test_whole_cores_that_init_containers_left_are_not_counted() -> None:
    manager = policy(SMT, FULL_PCPUS_ONLY)
    pod = several({"a": ("init", 14), "c": ("app", 2)})
    state, _ = manager.allocate(manager.initial(), pod, pod.containers[0], ANY)
    assert "available physical CPUs = 0, requested CPUs = 2" in refusal(manager, pod, ANY, state).error


@pytest.mark.parametrize("minor, spared", [(36, False), (37, True)], ids=["1.36", "1.37"])
def test_what_is_assigned_already_is_spared_the_check_for_whole_cores(minor: int, spared: bool) -> None:
    manager = policy(SMT, FULL_PCPUS_ONLY, minor=Minor(1, minor))
    full = served(manager, asking(14))
    state, refused = manager.allocate(full, asking(14), asking(14).containers[0], ZONE_0)
    assert (refused is None) is spared
    assert state.assignments == full.assignments


@pytest.mark.parametrize("cpus", [4, 2], ids=["same size", "another size"])
def test_what_is_assigned_already_stays(cpus: int) -> None:
    manager = policy()
    state = served(manager, asking(4), ZONE_1)
    assert held(served(manager, asking(cpus), ZONE_0, state)) == {"c": "4-7"}


@pytest.mark.parametrize("containers, expected", TOGETHER.values(), ids=TOGETHER)
def test_containers_of_a_pod(containers: dict[str, tuple[str, int]], expected: dict[str, str]) -> None:
    assert held(served(policy(), several(containers), ZONE_1)) == expected


def test_an_init_container_that_is_met_again_leaves_its_cpus_again() -> None:
    manager, pod = policy(), several({"a": ("init", 4), "c": ("app", 2)})
    forgotten = CPUState(default=cpuset.parse("0-3"), assignments={"p": {"a": cpuset.parse("4-7")}})
    assert held(served(manager, pod, ZONE_1, forgotten)) == {"a": "4-7", "c": "4-5"}


def test_another_pod_makes_what_was_left_unusable() -> None:
    manager, pod = policy(), several({"a": ("init", 4), "c": ("app", 4)})
    state, _ = manager.allocate(manager.initial(), pod, pod.containers[0], ZONE_1)
    state = served(manager, asking(1, "q"), ZONE_0, state)
    assert state.reusable("p") == 0
    assert refusal(manager, pod, ZONE_1, state).error.endswith("requested=4, available=2")


def test_a_container_gives_back_what_no_sibling_holds() -> None:
    manager = policy()
    state = served(manager, several({"a": ("init", 4), "c": ("app", 2)}), ZONE_1)
    without_init = manager.remove(state, "p", "a")
    assert (cpuset.text(without_init.default), held(without_init)) == ("0-3,6-7", {"c": "4-5"})
    assert manager.remove(without_init, "p", "c").default == manager.initial().default


@pytest.mark.parametrize("uid, name", [("p", "other"), ("q", "c")])
def test_removing_what_holds_nothing_changes_nothing(uid: str, name: str) -> None:
    manager = policy()
    state = served(manager, asking(2))
    assert manager.remove(state, uid, name) == state


def test_collection_keeps_containers_of_active_pods_only() -> None:
    manager = policy()
    state = served(manager, several({"c": ("app", 1), "d": ("app", 1)}), ZONE_0)
    state = served(manager, asking(2, "q"), ZONE_1, state)
    left = manager.collect(state, {"p": {"c"}, "r": {"c"}})
    assert (held(left), held(left, "q"), cpuset.text(left.default)) == ({"c": "1"}, {}, "0,2-7")
    assert manager.collect(state, {"p": {"c", "d"}, "q": {"c"}}) == state
