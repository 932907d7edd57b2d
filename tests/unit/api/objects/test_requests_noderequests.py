"""What a pod counts for on its node: the larger of what was asked, allocated and in force."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects import requests
from numalign.api.objects.pod import Pod

INFEASIBLE = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
DEFERRED = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}


def container(name: str, cpu: str | None, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {} if cpu is None else {"cpu": cpu}}} | more


def status(name: str, allocated: str | None = None, in_force: str | None = None) -> dict[str, Any]:
    said = {"allocatedResources": {"cpu": allocated}} if allocated else {}
    return {"name": name} | said | ({"resources": {"requests": {"cpu": in_force}}} if in_force else {})


def pod(*containers: dict[str, Any], **parts: Any) -> Pod:
    spec = {"containers": list(containers)} | parts.get("spec", {})
    return decode.decode(Pod, {"spec": spec, "status": parts.get("status", {})})


def resized(asked: str, allocated: str | None, in_force: str | None, more: dict[str, Any] | None = None) -> Pod:
    statuses = {"containerStatuses": [status("a", allocated, in_force)]}
    return pod(container("a", asked), status=statuses | (more or {}))


@pytest.mark.parametrize(
    "subject, cpu",
    [
        pytest.param(resized("2", None, None), 2, id="nothing reported"),
        pytest.param(resized("2", "2", "2"), 2, id="nothing going on"),
        pytest.param(resized("3", "2", "2"), 3, id="growing: charged at once"),
        pytest.param(resized("1", "2", "2"), 2, id="shrinking: held until it is in force"),
        pytest.param(resized("1", "1", "2"), 2, id="shrinking: allocated but not in force"),
        pytest.param(resized("1", "1", "1"), 1, id="shrunk"),
        pytest.param(resized("1", "3", None), 3, id="allocated alone"),
        pytest.param(resized("9", "2", "2", DEFERRED), 9, id="growing later"),
        pytest.param(resized("9", "2", "3", INFEASIBLE), 3, id="a wish that the node refused"),
        pytest.param(resized("9", "9", "9", INFEASIBLE), 9, id="refused, but held"),
        pytest.param(resized("9", None, None, INFEASIBLE), 0, id="refused, and nothing held"),
    ],
)
def test_a_resize_counts_by_its_largest_side(subject: Pod, cpu: int) -> None:
    """Kube-scheduler spec 2.2."""
    held = requests.assigned(subject).get("cpu")
    assert (held.value if held else 0) == cpu


def test_sums_are_compared_not_containers() -> None:
    """Two containers that trade a CPU hold no more than before."""
    statuses = [status("a", "3", "3"), status("b", "1", "1")]
    trading = pod(container("a", "1"), container("b", "3"), status={"containerStatuses": statuses})
    assert requests.assigned(trading)["cpu"].value == 4


def test_sidecars_and_init_containers_are_looked_up_among_their_own_statuses() -> None:
    spec = {"initContainers": [container("s", "1", restartPolicy="Always"), container("i", "2")]}
    statuses = {"initContainerStatuses": [status("s", "2", "2")], "containerStatuses": [status("a", "1", "1")]}
    assert requests.assigned(pod(container("a", "1"), spec=spec, status=statuses))["cpu"].value == 4


def test_the_kubelets_sums_over_the_pod_replace_those_over_containers() -> None:
    sums = {"allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "6"}}}
    statuses = {"containerStatuses": [status("a", "9", "9")]}
    assert requests.assigned(pod(container("a", "1"), status=statuses | sums))["cpu"].value == 6


@pytest.mark.parametrize("more, cpu", [({}, 8), (INFEASIBLE, 6)], ids=["asked for", "asked for in vain"])
def test_amounts_for_the_pod_as_a_whole_count_by_their_largest_side(more: dict[str, Any], cpu: int) -> None:
    spec = {"resources": {"requests": {"cpu": "8"}}, "overhead": {"cpu": "1"}}
    sums = {"allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "6"}}}
    assert requests.assigned(pod(container("a", "1"), spec=spec, status=sums | more))["cpu"].value == cpu + 1


def scored(subject: Pod) -> tuple[int, int]:
    amounts = requests.scored(subject, requests.assigned(subject))
    return amounts["cpu"].milli, amounts["memory"].value >> 20


@pytest.mark.parametrize(
    "subject, cpu, memory",
    [
        pytest.param(pod(container("a", None)), 100, 200, id="a silent container"),
        pytest.param(pod(container("a", None), container("b", "1")), 1100, 400, id="one of two is silent"),
        pytest.param(pod(container("a", "0")), 0, 200, id="nothing said aloud stays nothing"),
        pytest.param(pod(container("a", "1"), spec={"overhead": {"cpu": "1"}}), 2000, 200, id="overhead on top"),
        pytest.param(
            pod(container("a", "1"), spec={"resources": {"requests": {"cpu": "3"}}}), 3000, 200, id="of the pod"
        ),
        pytest.param(
            pod(container("a", None), container("b", None), spec={"resources": {"requests": {"memory": "1Mi"}}}),
            200,
            1,
            id="of the pod in part",
        ),
    ],
)
def test_silent_containers_count_for_something_in_scores(subject: Pod, cpu: int, memory: int) -> None:
    """Kube-scheduler spec 2.3."""
    assert scored(subject) == (cpu, memory)


def test_a_container_whose_status_is_silent_counts_for_something_too() -> None:
    said = {"name": "a", "allocatedResources": {"memory": "1Mi"}}
    subject = pod({"name": "a", "resources": {"requests": {"memory": "1Mi"}}}, status={"containerStatuses": [said]})
    assert scored(subject) == (100, 1)


def test_a_waiting_pods_score_leaves_out_amounts_for_the_pod_as_a_whole() -> None:
    spec = {"resources": {"requests": {"cpu": "8"}}, "overhead": {"cpu": "1"}}
    amounts = requests.unplaced(pod(container("a", None), spec=spec), requests.LEAST)
    assert amounts["cpu"].milli == 1100
