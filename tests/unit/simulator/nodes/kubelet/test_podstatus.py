from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.simulator.nodes.kubelet import podstatus
from numalign.simulator.nodes.kubelet.podlife import PodLife
from numalign.simulator.nodes.kubelet.podstatus import StatusContext
from numalign.simulator.nodes.workloads import ContainerBehaviour
from numalign.simulator.trees import Tree
from tests.unit.simulator.nodes import stage

FOREIGN = {"type": "example.com/checked", "status": "True"}


def pod(**spec: Any) -> Pod:
    tree = stage.pod("web", **spec)
    tree["metadata"]["uid"] = "u-1"
    return decode.decode(Pod, tree)


def context(now: float) -> StatusContext:
    return StatusContext("172.16.0.1", "10.0.0.2", now, lambda moment: f"T{moment:g}")


def status(life: PodLife, now: float, before: Tree | None = None) -> Tree:
    life.advance(now)
    return podstatus.of(life, before or {}, context(now))


def life(run: ContainerBehaviour = ContainerBehaviour(), **spec: Any) -> PodLife:  # noqa: B008
    return PodLife(pod(**spec), 1.0, lambda pod, container, attempt: run)


def test_a_pod_that_was_admitted_waits_for_its_containers() -> None:
    told = status(life(), 0.0)
    assert (told["phase"], told["qosClass"], told["startTime"]) == ("Pending", "Guaranteed", "T0")
    assert told["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert "podIP" not in told


def test_a_running_pod_is_ready_and_has_addresses() -> None:
    told = status(life(), 1.0)
    assert (told["phase"], told["podIP"], told["hostIP"]) == ("Running", "10.0.0.2", "172.16.0.1")
    assert set(stage.conditions({"status": told}).values()) == {"True"}
    assert told["containerStatuses"][0]["state"] == {"running": {"startedAt": "T1"}}


def test_a_pod_on_the_host_network_has_the_hosts_address() -> None:
    assert status(life(hostNetwork=True), 1.0)["podIPs"] == [{"ip": "172.16.0.1"}]


def test_conditions_are_in_the_kubelets_order_behind_those_of_others() -> None:
    told = status(life(), 1.0, {"conditions": [FOREIGN, {"type": "PodScheduled", "status": "True"}]})
    assert list(stage.conditions({"status": told})) == ["example.com/checked", *podstatus.KUBELETS_OWN]


def test_a_condition_that_did_not_change_keeps_its_time() -> None:
    one = life()
    first = status(one, 1.0)
    second = status(one, 9.0, first)
    assert {each["lastTransitionTime"] for each in second["conditions"]} == {"T1"}
    assert second["startTime"] == "T1"


def test_what_others_wrote_into_the_status_stays() -> None:
    assert status(life(), 1.0, {"nominatedNodeName": "n9"})["nominatedNodeName"] == "n9"


def test_while_init_containers_run_the_pod_is_not_initialised() -> None:
    one = life(ContainerBehaviour(10), initContainers=[stage.container("init")])
    told = status(one, 1.0)
    [condition] = [each for each in told["conditions"] if each["type"] == "Initialized"]
    assert (condition["reason"], condition["message"]) == (
        "ContainersNotInitialized",
        "containers with incomplete status: [init]",
    )
    assert told["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_an_init_container_that_is_done_counts_as_ready() -> None:
    one = life(ContainerBehaviour(2), initContainers=[stage.container("init")])
    one.advance(1.0)
    told = status(one, 3.0)
    assert [each["ready"] for each in told["initContainerStatuses"]] == [True]
    assert told["initContainerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"


@pytest.mark.parametrize("code, phase, why", [(0, "Succeeded", "PodCompleted"), (3, "Failed", "PodFailed")])
def test_a_pod_that_ended_says_how(code: int, phase: str, why: str) -> None:
    one = life(ContainerBehaviour(2, code), restartPolicy="Never")
    one.advance(1.0)
    told = status(one, 3.0)
    terminated = told["containerStatuses"][0]["state"]["terminated"]
    assert (told["phase"], terminated["exitCode"], terminated["finishedAt"]) == (phase, code, "T3")
    assert {each.get("reason") for each in told["conditions"] if each["type"] == "Ready"} == {why}


def test_a_crash_loop_is_told_as_one() -> None:
    one = life(ContainerBehaviour(0, 1))
    told = status(one, 1.0)
    [container] = told["containerStatuses"]
    assert container["state"]["waiting"] == {
        "reason": "CrashLoopBackOff",
        "message": "back-off 10s restarting failed container=main pod=web_default(u-1)",
    }
    assert (container["lastState"]["terminated"]["exitCode"], container["restartCount"]) == (1, 1)


def test_each_run_of_a_container_has_an_id_of_its_own() -> None:
    one = life(ContainerBehaviour(2))
    first = status(one, 1.0)["containerStatuses"][0]["containerID"]
    [again] = status(one, 3.0)["containerStatuses"]
    assert again["lastState"]["terminated"]["containerID"] == first != again["containerID"]


def test_a_container_tells_what_it_was_given() -> None:
    [container] = status(life(), 1.0)["containerStatuses"]
    assert container["allocatedResources"] == container["resources"]["requests"] == {"cpu": "4", "memory": "1Gi"}


def test_a_refused_pod_keeps_none_of_the_kubelets_conditions() -> None:
    before = {"conditions": [FOREIGN, {"type": "PodScheduled", "status": "True"}]}
    assert podstatus.rejected(pod(), before, "OutOfcpu", "too much", "T5") == {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "Pod was rejected: too much",
        "qosClass": "Guaranteed",
        "startTime": "T5",
        "conditions": [FOREIGN],
    }


def test_a_workload_that_cannot_be_understood_says_so() -> None:
    one = life(ContainerBehaviour(0, 128, "bad annotation"), restartPolicy="Never")
    told = status(one, 1.0)["containerStatuses"][0]["state"]["terminated"]
    assert (told["reason"], told["message"]) == ("ContainerCannotRun", "bad annotation")


def test_a_pod_deleted_before_it_ran_has_containers_of_unknown_fate() -> None:
    one = life()
    one.stop(0.5, killed=False)
    told = status(one, 0.5)["containerStatuses"][0]["state"]["terminated"]
    assert (told["reason"], told["exitCode"]) == ("ContainerStatusUnknown", 137)
