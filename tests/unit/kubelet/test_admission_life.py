"""After admission: containers start, pods end, the kubelet restarts and admits its pods again, devices come late."""

import pytest

from numalign.api.decode import cpuset
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission, start
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager.hints import Hint
from tests.unit.kubelet import made, runs

GIB = 1 << 30
GATE = {"PodLevelResourceManagers": True}
INIT = [made.container("i", 1, "2Gi"), made.container("s", 1, "1Gi", sidecar=True), made.container("j", 1, "4Gi")]
GREEDY = made.pod("q", made.container("c", 1, burstable=True, nic=4))
POD = made.pod("p", made.container("c", 1, "1Gi"), made.container("d", 1, "1Gi"), init=INIT)


def cpus(state: KubeletState) -> dict[str, dict[str, str]]:
    assert state.cpu is not None
    return {
        uid: {name: cpuset.text(each) for name, each in held.items()} for uid, held in state.cpu.assignments.items()
    }


def blocks(state: KubeletState, uid: str = "p") -> dict[str, int]:
    """Recorded memory by container, in GiB."""
    assert state.memory is not None
    return {name: sum(block.size for block in held) // GIB for name, held in state.memory.blocks.get(uid, {}).items()}


def free(state: KubeletState) -> int:
    """Free memory of the node, in GiB."""
    assert state.memory is not None
    return sum(zone.tables["memory"].free for zone in state.memory.zones.values()) // GIB


# Containers start

STARTED = {
    "the first init container": ("i", ["i", "s", "j", "c", "d"]),
    "a sidecar": ("s", ["s", "j", "c", "d"]),
    "the last init container": ("j", ["s", "j", "c", "d"]),
    "an app container": ("c", ["s", "c", "d"]),
    "another app container": ("d", ["s", "c", "d"]),
}


@pytest.mark.parametrize("container, left", STARTED.values(), ids=STARTED)
def test_a_container_that_starts_gives_back_the_memory_of_init_containers_before_it(
    container: str, left: list[str]
) -> None:
    kubelet = made.kubelet(memory=True)
    state = admission.container_started(kubelet, runs.admitted(kubelet, POD), "p", container)
    assert list(blocks(state)) == left


def test_once_all_have_started_only_what_runs_is_charged() -> None:
    kubelet = made.kubelet(memory=True)
    state = admission.started(kubelet, runs.admitted(kubelet, POD), "p")
    assert (blocks(state), free(state)) == ({"s": 1, "c": 1, "d": 1}, 15 - 3)


def test_starting_changes_neither_cpus_nor_devices() -> None:
    kubelet = made.kubelet(memory=True)
    before = runs.admitted(kubelet, POD)
    after = admission.started(kubelet, before, "p")
    assert (after.cpu, after.devices, after.affinities) == (before.cpu, before.devices, before.affinities)


def test_without_a_memory_manager_starting_changes_nothing() -> None:
    kubelet = made.kubelet()
    before = runs.admitted(kubelet, POD)
    assert admission.started(kubelet, before, "p") == before


def test_a_pod_served_as_a_whole_keeps_its_memory_while_a_container_is_left() -> None:
    kubelet = made.kubelet(scope="pod", memory=True, feature_gates=GATE)
    level = made.pod("p", made.container("c", 1, "1Gi"), init=INIT[:1], level={"cpu": 2, "memory": "2Gi"})
    before = runs.admitted(kubelet, level)
    after = admission.started(kubelet, before, "p")
    assert (list(blocks(before)), list(blocks(after))) == (["i", "c"], ["c"])
    assert free(before) == free(after) == 15 - 2


# Pods end


def test_a_pod_that_ends_frees_its_resources_for_the_next_admission() -> None:
    kubelet = made.kubelet(memory=True)
    large = made.container(cpu=4, memory="8Gi", nic=2)
    state = runs.admitted(kubelet, made.pod("p", large))
    assert not runs.answer(kubelet, made.pod("q", large), state).admitted
    state = runs.admitted(kubelet, made.pod("q", large), after=state.without_pod("p"))
    assert (cpus(state), list(state.active)) == ({"q": {"c": "4-7"}}, ["q"])


def test_a_pod_served_as_a_whole_gives_everything_back_when_it_ends() -> None:
    kubelet = made.kubelet(scope="pod", memory=True, feature_gates=GATE)
    level = made.pod("p", made.container("c", burstable=True), level={"cpu": 4, "memory": "2Gi"})
    state = admission.collect(kubelet, runs.admitted(kubelet, level).without_pod("p"))
    assert (state.cpu, state.memory) == (kubelet.initial().cpu, kubelet.initial().memory)


# The kubelet restarts


def test_a_restart_keeps_checkpoints_and_forgets_hints_and_leftovers() -> None:
    kubelet = made.kubelet(memory=True)
    before = runs.admitted(kubelet, made.pod("p", made.container("c", 1, nic=1), init=[made.container("i", 2, nic=2)]))
    after = start.restart(kubelet, before)
    assert (cpus(after), blocks(after), after.devices.pods) == (cpus(before), blocks(before), before.devices.pods)
    assert (list(after.active), after.affinities) == (["p"], {})
    assert (after.devices.reusable("p", made.NIC), after.cpu and after.cpu.reusable("p")) == (frozenset(), 0)


def test_a_restart_without_managers_has_only_devices_to_keep() -> None:
    kubelet = made.kubelet(cpu=False)
    before = runs.admitted(kubelet, made.pod("p", made.container(nic=1)))
    after = start.restart(kubelet, before)
    assert (after.cpu, after.memory, after.devices.pods) == (None, None, before.devices.pods)


@pytest.mark.parametrize("scope", ["container", "pod"])
def test_pods_admitted_again_get_what_they_had(scope: str) -> None:
    kubelet = made.kubelet(scope=scope, memory=True)
    pods = [made.pod(name, made.container("c", 1, nic=1), made.container("d", 1)) for name in "pq"]
    before = runs.admitted(kubelet, *pods)
    after = runs.admitted(kubelet, *pods, after=start.restart(kubelet, before))
    assert (cpus(after), after.devices.pods, after.affinities) == (cpus(before), before.devices.pods, before.affinities)
    assert (list(after.active), after.memory and after.memory.zones) == (
        ["p", "q"],
        before.memory and before.memory.zones,
    )


def test_a_pod_admitted_again_does_not_compete_with_itself() -> None:
    kubelet = made.kubelet()
    pod = made.pod("p", made.container(cpu=4))
    assert runs.refusal(kubelet, pod, start.restart(kubelet, runs.admitted(kubelet, pod))) == ("", "")


def test_cpus_that_span_more_zones_than_needed_are_refused_after_the_policy_became_stricter() -> None:
    machine = made.machine()
    loose, strict = (made.kubelet(machine, policy=each, reserved_cpus="0,4") for each in ("best-effort", "restricted"))
    pod = made.pod("p", made.container(cpu=4))
    state = start.restart(strict, runs.admitted(loose, pod))
    assert admission.align(strict, state, pod)[1].reason == "TopologyAffinityError"


def test_memory_of_init_containers_that_ended_is_charged_again() -> None:
    kubelet = made.kubelet(memory=True)
    pod = made.pod("p", made.container("c", 1, "1Gi"), init=[made.container("i", 1, "3Gi")])
    started = admission.started(kubelet, runs.admitted(kubelet, pod), "p")
    again, outcome = admission.align(kubelet, start.restart(kubelet, started), pod)
    assert (outcome.admitted, blocks(started), blocks(again)) == (True, {"c": 1}, {"c": 1, "i": 3})
    assert (free(started), free(again)) == (14, 11)


def test_devices_of_pods_that_ended_before_a_restart_are_collected_at_the_next_admission() -> None:
    kubelet = made.kubelet()
    restarted = start.restart(kubelet, runs.admitted(kubelet, GREEDY).without_pod("q"))
    assert list(restarted.devices.pods) == ["q"]
    assert list(
        runs.admitted(kubelet, made.pod("p", made.container(burstable=True, nic=4)), after=restarted).devices.pods
    ) == ["p"]


def test_a_pod_whose_device_turned_unhealthy_is_refused_when_admitted_again() -> None:
    pod = made.pod("p", made.container("c", 1, nic=1))
    state = runs.admitted(made.kubelet(), pod)
    ill = made.kubelet(runs.plugin(made.machine(), unhealthy=state.devices.held("p", "c")[made.NIC]))
    assert "previously allocated devices are no longer healthy" in runs.refusal(ill, pod, start.restart(ill, state))[1]


def level(*containers: str) -> Pod:
    sharing = [made.container(name, 2, "1Gi", burstable=name == "shared") for name in containers]
    return made.pod("p", *sharing, level={"cpu": 3 if "shared" in containers else 2, "memory": "2Gi"})


def whole(policy: str = "restricted") -> Kubelet:
    return made.kubelet(policy=policy, scope="pod", feature_gates=GATE)


def test_a_pod_served_as_a_whole_that_shares_cpus_is_refused_when_admitted_again() -> None:
    kubelet, pod = whole(), level("own", "shared")
    outcome = admission.align(kubelet, start.restart(kubelet, runs.admitted(kubelet, pod)), pod)[1]
    assert (outcome.reason, outcome.container) == ("TopologyAffinityError", "")


def test_a_pod_served_as_a_whole_is_allocated_twice_and_the_next_restart_fails() -> None:
    kubelet, pod = whole("best-effort"), level("own")
    state = runs.admitted(kubelet, pod)
    again, outcome = admission.align(kubelet, start.restart(kubelet, state), pod)
    assert (outcome.admitted, cpus(state), cpus(again)) == (True, {"p": {"own": "1-2"}}, {"p": {"own": "3-4"}})
    with pytest.raises(StartRefusal, match='available CPUs "0-7" doesn\'t match with CPUs in state "0,3-7"'):
        start.restart(kubelet, again)


# Devices that come late

LATE = made.pod("p", made.container("c", 4, nic=2), level={"cpu": 4, "memory": "2Gi"})


def test_a_pod_served_as_a_whole_gets_its_devices_when_its_containers_start() -> None:
    kubelet = whole()
    state = runs.admitted(kubelet, LATE)
    assert (state.devices.pods, state.affinity("p", "c")) == ({}, Hint(0b10, True))
    state, refusal = admission.late_devices(kubelet, state, "p", "c")
    assert (refusal, state.devices.held("p", "c")) == (None, {made.NIC: frozenset({"nic-2", "nic-3"})})


def ailing(*nics: str) -> Kubelet:
    """A kubelet that serves pods as a whole, some of whose NICs have turned unhealthy."""
    return made.kubelet(runs.plugin(made.machine(), unhealthy=nics), scope="pod", feature_gates=GATE)


def test_by_then_too_few_may_be_left_in_the_zone_and_others_are_taken() -> None:
    state, refusal = admission.late_devices(ailing("nic-2"), runs.admitted(whole(), LATE), "p", "c")
    held = state.devices.held("p", "c")[made.NIC]
    assert (refusal, len(held), "nic-3" in held) == (None, 2, True)


def test_by_then_too_few_may_be_left_at_all() -> None:
    state, refusal = admission.late_devices(ailing("nic-1", "nic-2", "nic-3"), runs.admitted(whole(), LATE), "p", "c")
    assert str(refusal) == f"requested number of devices unavailable for {made.NIC}. Requested: 2, Available: 1"
    assert state.devices.pods == {}


def test_a_container_that_has_its_devices_gets_no_others() -> None:
    kubelet = made.kubelet()
    state = runs.admitted(kubelet, made.pod("p", made.container("c", 1, nic=2)))
    assert admission.late_devices(kubelet, state, "p", "c")[0].devices.pods == state.devices.pods


def test_late_devices_may_come_from_a_pod_that_was_refused() -> None:
    kubelet = whole()
    state = runs.refused(kubelet, GREEDY, runs.admitted(kubelet, LATE))
    assert len(state.devices.held("q", "c")[made.NIC]) == 4
    assert admission.late_devices(kubelet, state, "p", "c")[1] is None


def test_a_container_that_has_its_devices_starts_again_even_if_one_turned_unhealthy() -> None:
    pod = made.pod("p", made.container("c", 1, nic=1))
    state = runs.admitted(made.kubelet(), pod)
    ill = made.kubelet(runs.plugin(made.machine(), unhealthy=state.devices.held("p", "c")[made.NIC]))
    assert admission.late_devices(ill, state, "p", "c")[1] is None
