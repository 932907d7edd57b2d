"""Pods are read from the wire with everything that scheduling and admission look at."""

import pytest
from msgspec import structs

from numalign.api.decode import decode, quantity
from numalign.api.objects import pod

WRITTEN = b"""{
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "web", "namespace": "default", "uid": "u"},
  "spec": {
    "initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}],
    "containers": [{
      "name": "main", "image": "example.com/web:1", "env": [{"name": "A", "value": "1"}],
      "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"},
                {"containerPort": 81}],
      "resources": {"requests": {"cpu": 2, "memory": "1Gi"}, "limits": {"cpu": 2.5, "example.com/nic": "1"}}
    }],
    "nodeName": "worker-7", "schedulerName": "numalign", "priority": 7, "priorityClassName": "high",
    "preemptionPolicy": "Never", "nodeSelector": {"disk": "ssd"}, "runtimeClassName": "kata", "hostNetwork": true,
    "overhead": {"memory": "120Mi"}, "resources": {"limits": {"cpu": "4"}},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
    "schedulingGates": [{"name": "quota"}], "terminationGracePeriodSeconds": 5, "volumes": [{"name": "v"}]
  },
  "status": {
    "phase": "Failed", "reason": "TopologyAffinityError", "message": "Pod was rejected", "qosClass": "Burstable",
    "nominatedNodeName": "worker-8", "startTime": "2026-11-01T10:00:00Z",
    "conditions": [{"type": "PodScheduled", "status": "True", "lastProbeTime": null}],
    "containerStatuses": [{"name": "main", "ready": true, "started": true, "restartCount": 1,
                           "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "2"}}}]
  }
}"""


def read() -> pod.Pod:
    return decode.decode(pod.Pod, WRITTEN)


def test_containers() -> None:
    (main,) = read().spec.containers
    assert (main.name, main.image, main.is_sidecar) == ("main", "example.com/web:1", False)
    assert main.resources.requests == {"cpu": quantity.parse("2"), "memory": quantity.parse("1Gi")}
    assert main.resources.limits == {"cpu": quantity.parse("2500m"), "example.com/nic": quantity.parse("1")}
    assert main.ports == (
        pod.ContainerPort(container_port=80, host_port=8080, host_ip="10.0.0.1", protocol="UDP"),
        pod.ContainerPort(container_port=81, protocol="TCP"),
    )


def test_where_and_how_it_is_to_be_scheduled() -> None:
    spec = read().spec
    assert (spec.node_name, spec.scheduler_name, spec.node_selector) == ("worker-7", "numalign", {"disk": "ssd"})
    assert (spec.priority, spec.priority_class_name, spec.preemption_policy) == (7, "high", "Never")
    assert (spec.runtime_class_name, spec.host_network, spec.termination_grace_period_seconds) == ("kata", True, 5)
    assert spec.scheduling_gates == (pod.SchedulingGate(name="quota"),)
    assert spec.tolerations == (
        pod.Toleration(key="gpu", operator="Exists", effect="NoExecute", toleration_seconds=300),
    )


def test_amounts_of_the_pod_as_a_whole() -> None:
    spec = read().spec
    assert spec.overhead == {"memory": quantity.parse("120Mi")}
    assert spec.resources.limits == {"cpu": quantity.parse("4")}


def test_status() -> None:
    status = read().status
    assert (status.phase, status.reason, status.message) == ("Failed", "TopologyAffinityError", "Pod was rejected")
    assert (status.qos_class, status.nominated_node_name) == ("Burstable", "worker-8")
    assert status.conditions == (pod.PodCondition(type="PodScheduled", status="True"),)
    (main,) = status.container_statuses
    assert (main.name, main.ready, main.started, main.restart_count) == ("main", True, True, 1)
    assert main.allocated_resources == main.resources.requests == {"cpu": quantity.parse("2")}


def test_the_kubelet_walks_init_containers_first() -> None:
    assert [container.name for container in read().in_admission_order()] == ["setup", "proxy", "main"]


def test_sidecars_are_init_containers_that_always_restart() -> None:
    assert [container.is_sidecar for container in read().spec.init_containers] == [False, True]


def test_an_empty_pod_has_what_the_api_server_would_default() -> None:
    spec = decode.decode(pod.Pod, b"{}").spec
    assert (spec.scheduler_name, spec.preemption_policy) == ("default-scheduler", "PreemptLowerPriority")
    assert (spec.restart_policy, spec.termination_grace_period_seconds, spec.priority) == ("Always", 30, 0)


STATES: dict[str, tuple[str, bool]] = {
    "nothing said": ("{}", False),
    "waiting": ('{"state": {"waiting": {"reason": "PodInitializing"}}}', False),
    "running": ('{"state": {"running": {"startedAt": "2026-11-01T10:00:00Z"}}}', True),
    "terminated": ('{"state": {"terminated": {"exitCode": 1, "reason": "Error"}}}', True),
    "started": ('{"started": true}', True),
    "waiting to be restarted": ('{"restartCount": 1, "state": {"waiting": {}}}', True),
    "an odd null": ('{"state": {"running": null}, "started": null}', False),
}


@pytest.mark.parametrize("written, started", STATES.values(), ids=STATES)
def test_a_container_has_started_when_it_runs_or_ran(written: str, started: bool) -> None:
    status = decode.decode(pod.ContainerStatus, written)
    assert status.has_started is started
    one = pod.Pod(status=pod.PodStatus(init_container_statuses=(status,)))
    assert one.has_started is started


def test_a_running_pod_has_started_regardless_of_its_containers() -> None:
    assert pod.Pod(status=pod.PodStatus(phase="Running")).has_started


DONE = '{"terminated": {"exitCode": 0}}'
STOPPED: dict[str, tuple[str, bool]] = {
    "all terminated": (f'[{{"name": "main", "state": {DONE}}}, {{"name": "proxy", "state": {DONE}}}]', True),
    "a sidecar is not": (f'[{{"name": "main", "state": {DONE}}}]', False),
    "nothing said": ("[]", False),
    "an init container runs": (
        f'[{{"name": "main", "state": {DONE}}}, {{"name": "proxy", "state": {DONE}}},'
        ' {"name": "setup", "state": {"running": {}}}]',
        False,
    ),
}


@pytest.mark.parametrize("statuses, stopped", STOPPED.values(), ids=STOPPED)
def test_a_pod_has_stopped_when_everything_that_lasts_has_terminated(statuses: str, stopped: bool) -> None:
    status = decode.decode(pod.PodStatus, f'{{"phase": "Running", "containerStatuses": {statuses}}}')
    assert structs.replace(read(), status=status).has_stopped is stopped


@pytest.mark.parametrize(
    "phase, finished", [("Succeeded", True), ("Failed", True), ("Running", False), ("Unknown", False), ("", False)]
)
def test_a_finished_pod_never_runs_again(phase: str, finished: bool) -> None:
    status = pod.PodStatus(phase=phase)
    assert (status.is_finished, pod.Pod(status=status).has_stopped) == (finished, finished)
