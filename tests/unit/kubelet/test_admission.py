"""What the kubelet answers, in its own words, in which order it objects, and what a refused pod leaves behind."""

from typing import Any

import pytest

from numalign.api.decode import cpuset
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet.admission import SLOW, Outcome
from numalign.kubelet.memory.state import Block
from numalign.kubelet.refusals import Refusal, StartRefusal, Undecided
from numalign.kubelet.settings import TopologyPolicy
from numalign.kubelet.start import Kubelet
from numalign.kubelet.topologymanager.hints import Hint
from tests.unit.kubelet import made, runs

GIB = 1 << 30
GATE = {"PodLevelResourceManagers": True}
LEVEL = {"cpu": 3, "memory": "2Gi"}

UNALIGNED = "Resources cannot be allocated with Topology locality"
WHOLE = "Pod Scope pod with pod-level resources failed admission "
UNSHARED = (
    "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers"
)


def unexpected(error: str) -> tuple[str, str]:
    return "UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected"


def pod(**amounts: Any) -> Pod:
    return made.pod("p", made.container("c", **amounts))


def level() -> Pod:
    return made.pod("p", made.container("c", cpu=3), made.container("d", burstable=True), level=LEVEL)


SMT = made.machine(threads=2)
CORES = {"full-pcpus-only": "true"}

REASONS = {
    "not aligned, by container": (made.kubelet(), pod(cpu=8), ("TopologyAffinityError", UNALIGNED), "c"),
    "not aligned, as a whole": (made.kubelet(scope="pod"), pod(cpu=8), ("TopologyAffinityError", UNALIGNED), ""),
    "pod-level, by container": (
        made.kubelet(made.machine(cores=2), feature_gates=GATE, policy="single-numa-node"),
        level(),
        ("TopologyAffinityError", WHOLE + "with a container-level topology manager"),
        "c",
    ),
    "pod-level, as a whole": (
        made.kubelet(made.machine(cores=2), feature_gates=GATE, policy="single-numa-node", scope="pod"),
        level(),
        ("TopologyAffinityError", WHOLE + "under pod-scope topology manager"),
        "",
    ),
    "an empty shared pool under best-effort": (
        made.kubelet(feature_gates=GATE, policy="best-effort", scope="pod"),
        level(),
        ("EmptyPodSharedPoolError", UNSHARED),
        "",
    ),
    "half a core": (
        made.kubelet(SMT, cpu_options=CORES),
        pod(cpu=3),
        ("SMTAlignmentError", "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"),
        "c",
    ),
    "memory that fits nowhere": (
        made.kubelet(memory=True),
        pod(memory="20Gi"),
        unexpected("[memorymanager] failed to find NUMA nodes to extend the current topology hint"),
        "c",
    ),
}


@pytest.mark.parametrize("kubelet, asked, reason, container", REASONS.values(), ids=REASONS)
def test_a_refusal_has_the_kubelets_own_reason_and_message(
    kubelet: Kubelet, asked: Pod, reason: tuple[str, str], container: str
) -> None:
    outcome = runs.answer(kubelet, asked)
    assert (outcome.verdict, outcome.admitted) == ("rejected", False)
    assert ((outcome.reason, outcome.message), outcome.container) == (reason, container)


SHORTAGES = {
    "devices": (pod(nic=5), ("Requested: 5, Available: 4", "Requested: 5, Available: 4")),
    # Memory aligns the container to zone 0, whose three CPUs are taken first: what fails is the request for the rest.
    "cpus": (pod(cpu=8), ("requested=5, available=4", "requested=8, available=7")),
    "memory": (pod(memory="20Gi"), ("extend the current topology hint", "failed to get the default NUMA affinity")),
    "half a core": (pod(cpu=3), ("requested 3 cpus not multiple", "requested 3 cpus not multiple")),
}


@pytest.mark.parametrize("asked, texts", SHORTAGES.values(), ids=SHORTAGES)
@pytest.mark.parametrize("policy, place", [("best-effort", 0), ("none", 1)])
def test_policies_that_admit_any_alignment_still_refuse_a_shortage(
    asked: Pod, texts: tuple[str, str], policy: TopologyPolicy, place: int
) -> None:
    smt = "multiple" in texts[0]
    kubelet = made.kubelet(SMT if smt else None, policy=policy, memory=True, cpu_options=CORES if smt else {})
    assert texts[place] in runs.refusal(kubelet, asked)[1]


ORDER = {
    "devices first": (pod(nic=5, cpu=8, memory="20Gi"), "UnexpectedAdmissionError", "devices unavailable"),
    "then cpus": (pod(nic=1, cpu=8, memory="20Gi"), "UnexpectedAdmissionError", "not enough cpus available"),
    "then memory": (pod(nic=1, cpu=2, memory="20Gi"), "UnexpectedAdmissionError", "[memorymanager]"),
    "then the node's totals": (made.pod("p", made.container(cpu=8, memory="20Gi", burstable=True)), "OutOfcpu", "cpu,"),
}


@pytest.mark.parametrize("asked, reason, text", ORDER.values(), ids=ORDER)
def test_of_several_shortages_the_first_is_reported(asked: Pod, reason: str, text: str) -> None:
    result = runs.refusal(made.kubelet(policy="best-effort", memory=True), asked)
    assert (result[0], text in result[1]) == (reason, True)


def test_alignment_is_refused_before_any_shortage_is_found_out() -> None:
    assert runs.refusal(made.kubelet(memory=True), pod(nic=5, cpu=8, memory="20Gi"))[1] == UNALIGNED


# No rollback

TWO = made.pod("p", made.container("c", cpu=2, nic=1), made.container("d", cpu=8))


@pytest.mark.parametrize("policy", ["restricted", "best-effort", "none"])
def test_a_refused_pod_keeps_what_its_earlier_containers_got(policy: TopologyPolicy) -> None:
    kubelet = made.kubelet(policy=policy, memory=True)
    state = runs.refused(kubelet, TWO)
    assert state.cpu is not None
    assert state.memory is not None
    assert (list(state.active), list(state.cpu.assignments["p"]), list(state.memory.blocks["p"])) == ([], ["c"], ["c"])
    assert list(state.devices.pods["p"]) == ["c"]


def test_and_what_managers_before_the_refusing_one_gave_to_the_container() -> None:
    state = runs.refused(made.kubelet(policy="best-effort"), pod(nic=1, cpu=8))
    assert len(state.devices.held("p", "c")[made.NIC]) == 1


def test_a_pod_refused_for_the_nodes_totals_has_been_given_everything() -> None:
    kubelet = made.kubelet()
    before = runs.admitted(kubelet, made.pod("q", made.container(cpu=6, burstable=True)))
    state = runs.refused(kubelet, pod(cpu=2, nic=1), before)
    assert state.cpu is not None
    assert (list(state.active), list(state.cpu.assignments)) == (["q"], ["p"])
    assert state.devices.held_by_pod("p", made.NIC)


@pytest.mark.parametrize("policy", ["restricted", "none"])
def test_the_next_admission_begins_by_collecting_it(policy: TopologyPolicy) -> None:
    kubelet = made.kubelet(policy=policy, memory=True)
    state = runs.refused(kubelet, TWO)
    state = runs.admitted(kubelet, made.pod("q", made.container(cpu=7, nic=4, memory="15Gi")), after=state)
    assert state.cpu is not None
    assert (list(state.cpu.assignments), list(state.devices.pods)) == (["q"], ["q"])


# Undecided

PAGES: dict[str, Any] = {"hugepages-2Mi": "2Mi"}
HUGE = made.machine(hugepages={"2Mi": [4, None]})


def test_where_the_kubelet_would_crash_there_is_no_verdict_and_nothing_changes() -> None:
    kubelet = made.kubelet(HUGE, memory=True)
    before = runs.admitted(kubelet, made.pod("q", made.container(cpu=1)))
    crashing = made.pod("p", made.container("c", cpu=1), made.container("d", **PAGES))
    state, outcome = admission.admit(kubelet, before, crashing)
    assert (outcome.verdict, outcome.reason, state) == ("undecided", "", before)
    assert outcome.message == "the kubelet crashes on a request for hugepages-2Mi, which some zone does not report"


# The result of an admitted pod


def test_an_admitted_pod_learns_where_each_container_sits() -> None:
    placed = runs.answer(made.kubelet(memory=True), pod(cpu=4, memory="2Gi", nic=1)).placement["c"]
    assert placed.affinity == Hint(0b10, True)
    assert cpuset.text(placed.cpus or 0) == "4-7"
    assert placed.memory == (Block("memory", 0b10, 2 * GIB),)
    assert placed.devices[made.NIC] < {"nic-2", "nic-3"}
    assert (placed.cpu_isolation, placed.memory_isolation) == ("container", "container")


def test_a_container_that_is_not_pinned_runs_on_the_shared_cpus() -> None:
    placed = runs.answer(made.kubelet(memory=True), made.pod("p", made.container(burstable=True))).placement["c"]
    assert (placed.affinity, placed.cpus, placed.memory, placed.devices) == (Hint(0b11, True), None, (), {})
    assert (placed.cpu_isolation, placed.memory_isolation) == ("host", "host")


def test_without_managers_nothing_is_pinned() -> None:
    placed = runs.answer(made.kubelet(policy="none", cpu=False), pod(cpu=2)).placement["c"]
    assert (placed.affinity, placed.cpus, placed.memory) == (Hint(None, False), None, ())


def test_containers_that_share_a_pods_budget_are_isolated_as_a_pod() -> None:
    kubelet = made.kubelet(scope="pod", memory=True, feature_gates=GATE)
    asked = made.pod("p", made.container("c", cpu=2), made.container("d", burstable=True), level=LEVEL)
    placement = runs.answer(kubelet, asked).placement
    isolations = [(each.cpu_isolation, each.memory_isolation) for each in placement.values()]
    assert isolations == [("container", "container"), ("pod", "pod")]


STEPS: dict[str, tuple[dict[str, Any], Pod, int]] = {
    "three sets of zones for cpus": ({}, pod(cpu=2), 3),
    "times three for devices": ({}, pod(cpu=2, nic=1), 9),
    "times three for memory, which are looked for first": ({"memory": True}, pod(cpu=2), 12),
    "once for each container": ({}, made.pod("p", made.container("a", 1), made.container("b", 1)), 6),
    "once for the pod": ({"scope": "pod"}, made.pod("p", made.container("a", 1), made.container("b", 1)), 3),
    "without hints memory is looked for at allocation": ({"policy": "none", "memory": True}, pod(cpu=2), 3),
    "nothing to go through": ({"policy": "none"}, pod(cpu=2), 0),
}


@pytest.mark.parametrize("chosen, asked, steps", STEPS.values(), ids=STEPS)
def test_the_steps_that_the_kubelet_goes_through_are_counted(chosen: dict[str, Any], asked: Pod, steps: int) -> None:
    assert runs.answer(made.kubelet(**chosen), asked).steps == steps


@pytest.mark.parametrize("steps, slow", [(SLOW - 1, False), (SLOW, True)])
def test_an_answer_that_takes_the_kubelet_minutes_is_slow(steps: int, slow: bool) -> None:
    assert Outcome(verdict="admitted", steps=steps).slow is slow


TEXTS = {
    "a refusal": (Refusal("too bad"), "too bad"),
    "a start refusal names the manager": (StartRefusal("cpumanager", "too bad"), "cpumanager: too bad"),
    "undecided": (Undecided("it spins"), "it spins"),
    "undecided with a count": (Undecided("it enumerates", 17179869183), "it enumerates (about 1.7e+10 steps)"),
}


@pytest.mark.parametrize("error, text", TEXTS.values(), ids=TEXTS)
def test_how_the_ways_to_have_no_placement_read(error: Exception, text: str) -> None:
    assert str(error) == text
