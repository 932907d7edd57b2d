"""A pod's way through the managers: who is asked in which order, what is stored, and who collects when."""

from contextlib import suppress
from typing import Any

import pytest

from numalign.api.objects.pod import Pod
from numalign.kubelet import admission, demand
from numalign.kubelet.admission import Refused, Walk
from numalign.kubelet.demand import PodDemand
from numalign.kubelet.settings import TopologyPolicy
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager.hints import Hint
from tests.unit.kubelet import made, runs

GATE = {"PodLevelResourceManagers": True}
ANY, ZONE_0, ZONE_1, BOTH = Hint(None, False), Hint(0b01, True), Hint(0b10, True), Hint(0b11, True)


def read(kubelet: Kubelet, pod: Pod) -> PodDemand:
    return demand.of(pod, kubelet.reading)


def walked(kubelet: Kubelet, pod: Pod, state: KubeletState | None = None) -> Walk:
    """The walk of a pod, as far as it goes."""
    walk = Walk(kubelet, (state or kubelet.initial()).with_pod(pod))
    with suppress(Refused):
        walk.pod(read(kubelet, pod))
    return walk


def affinities(walk: Walk) -> dict[str, Hint]:
    return dict(walk.state.affinities.get("p", {}))


THREE = made.pod("p", made.container("c", 1, nic=1), made.container("d", 1), init=[made.container("i", 1)])


@pytest.mark.parametrize("scope", ["container", "pod"])
def test_devices_are_asked_before_cpus_and_cpus_before_memory(scope: str) -> None:
    alignments = walked(made.kubelet(scope=scope, memory=True), THREE).alignments
    named = next(each for each in alignments if each.container in ("c", ""))
    assert list(named.offered) == [made.NIC, "cpu", "memory"]


SCOPES: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "container": ({"scope": "container"}, ["i", "c", "d"], ["i", "c", "d"]),
    "pod": ({"scope": "pod"}, [""], ["i", "c", "d"]),
    "none": ({"policy": "none"}, [], []),
    "none, whatever the scope": ({"policy": "none", "scope": "pod"}, [], []),
}


@pytest.mark.parametrize("chosen, merged, stored", SCOPES.values(), ids=SCOPES)
def test_what_is_merged_and_for_whom_the_hint_is_stored(
    chosen: dict[str, Any], merged: list[str], stored: list[str]
) -> None:
    walk = walked(made.kubelet(**chosen), THREE)
    assert [each.container for each in walk.alignments] == merged
    assert list(affinities(walk)) == stored


def test_by_container_each_one_is_aligned_to_what_the_earlier_ones_left() -> None:
    walk = walked(made.kubelet(), made.pod("p", *(made.container(name, 2) for name in "abc")))
    assert affinities(walk) == {"a": ZONE_0, "b": ZONE_1, "c": ZONE_1}


def test_as_a_whole_all_containers_are_aligned_to_one_hint() -> None:
    walk = walked(made.kubelet(scope="pod"), made.pod("p", *(made.container(name, 2) for name in "ab")))
    assert affinities(walk) == {"a": ZONE_1, "b": ZONE_1}


def test_by_container_an_app_follows_the_init_container_whose_cpus_it_takes_over() -> None:
    pod = made.pod("p", made.container("c", 4), init=[made.container("i", 2)])
    walk = walked(made.kubelet(), pod, runs.admitted(made.kubelet(), made.pod("q", made.container(cpu=2))))
    assert affinities(walk) == {"i": ZONE_1, "c": ZONE_1}


POLICIES: dict[str, tuple[TopologyPolicy, int, int, Hint | None]] = {
    "best-effort takes what is not preferred": ("best-effort", 2, 4, Hint(0b11, False)),
    "restricted does not": ("restricted", 2, 4, None),
    "restricted takes two zones where one is too small": ("restricted", 2, 5, BOTH),
    "single-numa-node does not": ("single-numa-node", 2, 5, None),
    "a single zone that is the whole machine is any zone": ("single-numa-node", 1, 2, Hint(None, True)),
    "but not under restricted": ("restricted", 1, 2, ZONE_0),
}


@pytest.mark.parametrize("policy, zones, cpus, hint", POLICIES.values(), ids=POLICIES)
def test_the_hint_that_the_policy_settles_on(policy: TopologyPolicy, zones: int, cpus: int, hint: Hint | None) -> None:
    kubelet = made.kubelet(made.machine(zones), policy=policy, reserved_cpus="0,4" if zones == 2 else "0")
    walk = walked(kubelet, made.pod("p", made.container("c", cpus)))
    assert [each.hint for each in walk.alignments] == [hint]
    assert affinities(walk) == ({} if hint is None else {"c": hint})


def test_a_refusal_stops_the_walk_and_leaves_the_hints_stored_so_far() -> None:
    pod = made.pod("p", made.container("a", 2), made.container("b", 8), made.container("c", 1))
    walk = walked(made.kubelet(), pod)
    assert [(each.container, each.hint) for each in walk.alignments] == [("a", ZONE_0), ("b", None)]
    assert affinities(walk) == {"a": ZONE_0}


def test_a_failed_allocation_leaves_the_hint_of_its_container_stored() -> None:
    walk = walked(made.kubelet(memory=True), made.pod("p", made.container("c", memory="20Gi")))
    assert affinities(walk) == {"c": ZONE_0}


# Pod-level resources

OWN, SHARING = made.container("own", 2, nic=1), made.container("sharing", burstable=True, nic=1)
LEVEL = made.pod("p", OWN, SHARING, level={"cpu": 3, "memory": "2Gi"})
NO_GATE: dict[str, bool] = {}

LEVELS: dict[str, tuple[dict[str, Any], list[int], list[int]]] = {
    "gate off": ({"feature_gates": NO_GATE}, [0, 0], [1, 1]),
    "gate off, as a whole": ({"feature_gates": NO_GATE, "scope": "pod"}, [0, 0], [1, 1]),
    "by container": ({"feature_gates": GATE}, [2, 0], [1, 1]),
    "without hints": ({"feature_gates": GATE, "policy": "none", "scope": "pod"}, [2, 0], [1, 1]),
    "as a whole": ({"feature_gates": GATE, "scope": "pod"}, [2, 1], [0, 0]),
}


@pytest.mark.parametrize("chosen, cpus, nics", LEVELS.values(), ids=LEVELS)
def test_what_a_pod_with_pod_level_resources_is_given(chosen: dict[str, Any], cpus: list[int], nics: list[int]) -> None:
    placement = runs.answer(made.kubelet(memory=True, **chosen), LEVEL).placement.values()
    assert [(each.cpus or 0).bit_count() for each in placement] == cpus
    assert [len(each.devices.get(made.NIC, ())) for each in placement] == nics
    assert [bool(each.memory) for each in placement] == [count > 0 for count in cpus]


def test_served_as_a_whole_every_container_has_its_hint_before_anything_is_allocated() -> None:
    kubelet = made.kubelet(scope="pod", memory=True, feature_gates=GATE)
    pod = made.pod("p", OWN, SHARING, level={"cpu": 3, "memory": "20Gi"})
    walk = walked(kubelet, pod)
    assert affinities(walk) == {"own": ZONE_0, "sharing": ZONE_0}
    assert walk.state.memory == kubelet.initial().memory


def test_served_as_a_whole_memory_is_given_without_a_cpu_manager() -> None:
    placement = runs.answer(made.kubelet(scope="pod", cpu=False, memory=True, feature_gates=GATE), LEVEL).placement
    assert [(each.cpus, bool(each.memory)) for each in placement.values()] == [(None, True), (None, True)]


def test_served_as_a_whole_cpus_are_kept_where_memory_is_refused() -> None:
    kubelet = made.kubelet(scope="pod", memory=True, feature_gates=GATE)
    state = runs.refused(kubelet, made.pod("p", OWN, SHARING, level={"cpu": 3, "memory": "20Gi"}))
    assert state.cpu is not None
    assert state.cpu.pods["p"].bit_count() == 3


# Collection

HOLDING = made.pod("q", made.container("c", 1, nic=1))
EVERYONE = {"devices", "cpu", "memory"}


def holders(state: KubeletState) -> set[str]:
    """The managers that still know pod q."""
    held = {
        "devices": state.devices.pods,
        "cpu": state.cpu.assignments if state.cpu else {},
        "memory": state.memory.blocks if state.memory else {},
    }
    return {name for name, pods in held.items() if "q" in pods}


ASKED: dict[str, tuple[TopologyPolicy, Pod, set[str]]] = {
    "devices only where some are asked for": ("none", made.pod("p", made.container(nic=1)), set()),
    "not otherwise": ("none", made.pod("p", made.container()), {"devices"}),
    "cpus and memory for every container": ("none", made.pod("p", made.container(burstable=True)), {"devices"}),
    "nobody after devices are refused": ("none", made.pod("p", made.container(nic=9)), {"cpu", "memory"}),
    "not memory after cpus are refused": ("none", made.pod("p", made.container(cpu=9, nic=1)), {"memory"}),
    "everybody where hints are asked for": ("best-effort", made.pod("p", made.container(burstable=True)), set()),
    "even if nothing comes of it": ("restricted", made.pod("p", made.container(cpu=9)), set()),
}


@pytest.mark.parametrize("policy, pod, left", ASKED.values(), ids=ASKED)
def test_each_manager_collects_when_it_is_asked(policy: TopologyPolicy, pod: Pod, left: set[str]) -> None:
    kubelet = made.kubelet(policy=policy, memory=True)
    ended = runs.admitted(kubelet, HOLDING).without_pod("q")
    assert holders(ended) == EVERYONE
    assert holders(walked(kubelet, pod, ended).state) == left


def test_what_active_pods_hold_is_never_collected() -> None:
    kubelet = made.kubelet(memory=True)
    state = runs.admitted(kubelet, HOLDING)
    assert admission.collect(kubelet, state) == state


def test_collecting_leaves_only_what_active_pods_hold() -> None:
    kubelet = made.kubelet(memory=True)
    state = admission.collect(kubelet, runs.admitted(kubelet, HOLDING, THREE).without_pod("q"))
    assert (holders(state), list(state.devices.pods)) == (set(), ["p"])


def test_collecting_where_only_devices_are_managed() -> None:
    kubelet = made.kubelet(cpu=False)
    assert admission.collect(kubelet, runs.admitted(kubelet, HOLDING).without_pod("q")).devices.pods == {}
