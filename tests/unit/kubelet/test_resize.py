"""May a running pod have other amounts? Which checks come first, how each minor words it, and what stays as it was."""

from typing import Any

import pytest

from numalign.api.pod import Container, Pod
from numalign.kubelet import admission
from numalign.kubelet.admission import Outcome
from numalign.kubelet.hints import Hint
from numalign.kubelet.resize import resize
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.versions import Minor
from tests.unit.kubelet import made, runs

GIB = 1 << 30
CPU = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
MEMORY = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'
MINORS = [Minor(1, minor) for minor in range(34, 39)]


def pod(*args: Any, **amounts: Any) -> Pod:
    return made.pod("p", made.container("c", *args, **amounts))


def told(kubelet: Kubelet, state: KubeletState, wanted: Pod) -> tuple[str, str]:
    outcome = resize(kubelet, state, wanted)[1]
    return outcome.reason, outcome.message


def resized(kubelet: Kubelet, before: Pod, wanted: Pod) -> tuple[str, str]:
    return told(kubelet, runs.admitted(kubelet, before), wanted)


EXCLUSIVE_CPUS = {"InPlacePodVerticalScalingExclusiveCPUs": True}
EXCLUSIVE_MEMORY = {"InPlacePodVerticalScalingExclusiveMemory": True}

STATIC: dict[str, tuple[dict[str, Any], Pod, str]] = {
    "cpus": ({}, pod(3), CPU),
    "a fraction of a cpu": ({}, pod("1500m"), CPU),
    "fewer cpus": ({}, pod(1), CPU),
    "memory": ({}, pod(2, "2Gi"), MEMORY),
    "cpus are named first": ({}, pod(3, "2Gi"), CPU),
    "nothing changes": ({}, pod(2), ""),
    "the same amount, written otherwise": ({}, pod("2000m", "1024Mi"), ""),
    "cpus without a static policy": ({"cpu": False}, pod(3), ""),
    "memory without a static policy": ({"memory": False}, pod(2, "2Gi"), ""),
    "cpus with their gate": ({"feature_gates": EXCLUSIVE_CPUS}, pod(3), ""),
    "memory with its gate": ({"feature_gates": EXCLUSIVE_MEMORY}, pod(2, "2Gi"), ""),
    "each gate lifts its own check": ({"feature_gates": EXCLUSIVE_CPUS}, pod(3, "2Gi"), MEMORY),
    "the topology manager does not matter": ({"policy": "none"}, pod(3), CPU),
}


@pytest.mark.parametrize("chosen, wanted, text", STATIC.values(), ids=STATIC)
def test_a_guaranteed_pod_beside_static_policies(chosen: dict[str, Any], wanted: Pod, text: str) -> None:
    kubelet = made.kubelet(**{"memory": True} | chosen)
    assert resized(kubelet, pod(2), wanted) == (("Infeasible", text) if text else ("", ""))


def test_other_classes_are_resized_beside_static_policies() -> None:
    kubelet = made.kubelet(memory=True)
    assert resized(kubelet, pod(2, burstable=True), pod(3, "2Gi", burstable=True)) == ("", "")


@pytest.mark.parametrize("minor", MINORS, ids=str)
@pytest.mark.parametrize("wanted, text", [(pod(3), CPU), (pod(2, "2Gi"), MEMORY)], ids=["cpu", "memory"])
def test_all_minors_refuse_it_in_the_same_words(minor: Minor, wanted: Pod, text: str) -> None:
    assert resized(made.kubelet(memory=True, minor=minor), pod(2), wanted) == ("Infeasible", text)


def beside(init: Container) -> Pod:
    return made.pod("p", made.container("c"), init=[init])


SIDECARS = [made.container("i", cpu, sidecar=True) for cpu in (1, 2)]
PLAIN = [made.container("i", cpu) for cpu in (1, 2)]
CONTAINERS: dict[str, tuple[list[Container], Minor, dict[str, bool], bool]] = {
    "a sidecar": (SIDECARS, Minor(1, 35), {}, True),
    "an init container until 1.35": (PLAIN, Minor(1, 35), {}, False),
    "an init container since 1.36": (PLAIN, Minor(1, 36), {}, True),
    "an init container with the gate off": (
        PLAIN,
        Minor(1, 36),
        {"InPlacePodVerticalScalingInitContainers": False},
        False,
    ),
}


@pytest.mark.parametrize("init, minor, gates, counts", CONTAINERS.values(), ids=CONTAINERS)
def test_containers_whose_change_counts(
    init: list[Container], minor: Minor, gates: dict[str, bool], counts: bool
) -> None:
    kubelet = made.kubelet(minor=minor, feature_gates=gates)
    assert (resized(kubelet, beside(init[0]), beside(init[1]))[1] == CPU) is counts


# Beyond what the node has

CAPACITY = "Node didn't have enough capacity: {}, requested: {}, capacity: {}"
RESOURCE = "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}"

BEYOND: dict[str, tuple[Pod, tuple[str, str], tuple[str, str]]] = {
    "cpu": (
        pod(8, burstable=True),
        ("Infeasible", CAPACITY.format("cpu", 8000, 7000)),
        ("OutOfcpu", RESOURCE.format("cpu", 8000, 4000, 7000)),
    ),
    "memory": (
        pod(1, "17Gi", burstable=True),
        ("Infeasible", CAPACITY.format("memory", 17 * GIB, 16 * GIB)),
        ("OutOfmemory", RESOURCE.format("memory", 17 * GIB, GIB, 16 * GIB)),
    ),
    "both, of which memory was named first and is now second": (
        pod(8, "17Gi", burstable=True),
        ("Infeasible", CAPACITY.format("memory", 17 * GIB, 16 * GIB)),
        ("OutOfcpu", RESOURCE.format("cpu", 8000, 4000, 7000)),
    ),
    "not beyond the node, but beyond what others leave": (
        pod(4, burstable=True),
        ("Deferred", RESOURCE.format("cpu", 4000, 4000, 7000)),
        ("OutOfcpu", RESOURCE.format("cpu", 4000, 4000, 7000)),
    ),
    "within": (pod(3, "15Gi", burstable=True), ("", ""), ("", "")),
}


@pytest.mark.parametrize("wanted, until_35, since_36", BEYOND.values(), ids=BEYOND)
@pytest.mark.parametrize("minor", MINORS, ids=str)
def test_more_than_the_node_has(
    wanted: Pod, until_35: tuple[str, str], since_36: tuple[str, str], minor: Minor
) -> None:
    kubelet = made.kubelet(minor=minor)
    state = runs.admitted(kubelet, made.pod("q", made.container(cpu=4)), pod(1, burstable=True))
    assert told(kubelet, state, wanted) == (until_35 if minor < Minor(1, 36) else since_36)


def test_a_pod_does_not_compete_with_its_own_old_amounts() -> None:
    assert resized(made.kubelet(), pod(6, burstable=True), pod(7, burstable=True)) == ("", "")


# Alignment

UNALIGNED = "Resources cannot be allocated with Topology locality"
ACROSS = pod(1, burstable=True, nic=2)


def across(**chosen: Any) -> tuple[Kubelet, KubeletState]:
    """A pod whose NICs lie in two zones where one would do, taken over by a kubelet that has become stricter."""
    on = made.machine(devices={made.NIC: (0, 1, 1)})
    loose, strict = (made.kubelet(on, policy=each, **chosen) for each in ("best-effort", "restricted"))
    one, other = (made.pod(name, made.container(burstable=True, nic=1)) for name in "qr")
    return strict, runs.admitted(loose, ACROSS, after=runs.admitted(loose, one, other).without_pod("q"))


@pytest.mark.parametrize("minor", MINORS, ids=str)
@pytest.mark.parametrize("scope", ["container", "pod"])
def test_devices_that_are_not_aligned_refuse_a_resize(minor: Minor, scope: str) -> None:
    kubelet, state = across(scope=scope, minor=minor)
    reason = "Deferred" if minor < Minor(1, 36) else "TopologyAffinityError"
    assert told(kubelet, state, pod(2, burstable=True, nic=2)) == (reason, UNALIGNED)


def test_alignment_is_checked_before_the_nodes_totals() -> None:
    kubelet, state = across()
    assert told(kubelet, state, pod(99, burstable=True, nic=2)) == ("TopologyAffinityError", UNALIGNED)


# What stays and what changes


def accepted(chosen: dict[str, Any], before: Pod, wanted: Pod) -> tuple[KubeletState, KubeletState, Outcome]:
    kubelet = made.kubelet(**chosen)
    state = runs.admitted(kubelet, before)
    after, outcome = resize(kubelet, state, wanted)
    assert outcome.admitted
    return state, after, outcome


@pytest.mark.parametrize("policy", ["restricted", "none"])
def test_assignments_never_change(policy: str) -> None:
    chosen = {"policy": policy, "feature_gates": EXCLUSIVE_CPUS}
    before, after, outcome = accepted(chosen, pod(2, nic=1), pod(3, nic=1))
    assert (after.cpu, after.devices, after.memory) == (before.cpu, before.devices, before.memory)
    assert (outcome.placement["c"].cpus or 0).bit_count() == 2


def test_the_new_amounts_count_from_then_on() -> None:
    kubelet = made.kubelet()
    state, _ = resize(kubelet, runs.admitted(kubelet, pod(1, burstable=True)), pod(5, burstable=True))
    assert runs.refusal(kubelet, made.pod("q", made.container(cpu=3)), state)[0] == "OutOfcpu"


def test_the_stored_hint_is_that_of_devices_alone() -> None:
    before, after, _ = accepted({"feature_gates": EXCLUSIVE_CPUS}, pod(4), pod(3))
    assert (before.affinity("p", "c"), after.affinity("p", "c")) == (Hint(0b10, True), Hint(0b11, True))


REFUSED = {"infeasible": pod(3), "beyond the node": made.pod("q", made.container("c", 99, burstable=True))}


@pytest.mark.parametrize("wanted", REFUSED.values(), ids=REFUSED)
def test_a_refused_pod_runs_on_with_what_it_has(wanted: Pod) -> None:
    kubelet = made.kubelet()
    state = runs.admitted(kubelet, pod(2), made.pod("q", made.container("c", 1, burstable=True)))
    after, outcome = resize(kubelet, state, wanted)
    assert outcome.verdict == "rejected"
    assert (after.active, after.cpu, after.devices.pods) == (state.active, state.cpu, state.devices.pods)


def test_where_the_kubelet_would_crash_there_is_no_verdict_and_nothing_changes() -> None:
    on = made.machine(hugepages={"2Mi": [4, None]})
    kubelet = made.kubelet(on, memory=True, minor=Minor(1, 36))
    state = runs.admitted(kubelet, pod(2, burstable=True))
    after, outcome = resize(kubelet, state, pod(2, **{"hugepages-2Mi": "2Mi"}))
    assert (outcome.verdict, outcome.reason, after) == ("undecided", "", state)
    assert "the kubelet crashes on a request for hugepages-2Mi" in outcome.message


def test_leftovers_of_other_pods_are_collected_on_the_way() -> None:
    kubelet = made.kubelet()
    state = runs.admitted(kubelet, pod(1, burstable=True), made.pod("q", made.container(nic=1))).without_pod("q")
    after, _ = resize(kubelet, state, pod(2, burstable=True))
    assert (list(state.devices.pods), after) == (["q"], admission.collect(kubelet, after))
