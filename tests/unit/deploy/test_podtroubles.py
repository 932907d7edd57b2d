"""What is said about pods that do not become ready. The statuses are those that kubelets of 1.37 write."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numalign.api.decode import decode
from numalign.deploy import podtroubles
from numalign.deploy.podtroubles import WatchedPod

IMAGE = "localhost/numalign/agent:0.1.0"
CAUSE = f'failed to pull and unpack image "{IMAGE}": failed to resolve: dial tcp [::1]:443: connection refused'
LOG = "2026-11-19T03:00:00Z I starts\nnumalign: Kubelet /var/lib/kubelet/config.yaml: cannot be read\n"


def pod(*containers: dict[str, Any], phase: str = "Pending", **status: Any) -> WatchedPod:
    tree = {
        "metadata": {"name": "agent-1", "namespace": "numalign-system"},
        "spec": {"nodeName": "" if "conditions" in status else "node-0"},
        "status": {"phase": phase, "containerStatuses": list(containers), **status},
    }
    return decode.decode(WatchedPod, msgspec.json.encode(tree))


def container(state: dict[str, Any], last: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "agent", "image": IMAGE, "state": state, "lastState": last or {}, **more}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def ended(code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message}}


BACK_OFF = waiting("CrashLoopBackOff", "back-off 40s restarting failed container=agent pod=agent-1")
UNPLACED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}

CASES: dict[str, tuple[WatchedPod, str]] = {
    "an image that cannot be pulled": (
        pod(container(waiting("ErrImagePull", CAUSE))),
        f"container agent has no image {IMAGE}: {CAUSE}",
    ),
    "the same between two attempts": (
        pod(container(waiting("ImagePullBackOff", f'Back-off pulling image "{IMAGE}": ErrImagePull: {CAUSE}'))),
        f"container agent has no image {IMAGE}: {CAUSE}",
    ),
    "a crash, in the words of the program": (
        pod(container(BACK_OFF, ended(1, LOG), restartCount=3), phase="Running"),
        "container agent ended with code 1: numalign: Kubelet /var/lib/kubelet/config.yaml: cannot be read",
    ),
    "a crash without a word": (
        pod(container(ended(137, reason="OOMKilled")), phase="Running"),
        "container agent ended with code 137: OOMKilled",
    ),
    "a program that ends and should not": (
        pod(container(BACK_OFF, ended(0, reason="Completed"), restartCount=3), phase="Running"),
        "container agent does not start: CrashLoopBackOff: back-off 40s restarting failed container=agent pod=agent-1",
    ),
    "a container that cannot be made": (
        pod(container(waiting("CreateContainerConfigError", 'secret "tls"\n not found'))),
        'container agent does not start: CreateContainerConfigError: secret "tls" not found',
    ),
    "no node": (pod(conditions=[UNPLACED]), "is on no node: Unschedulable: 0/3 nodes are available"),
    "rejected by the kubelet": (
        pod(phase="Failed", reason="TopologyAffinityError", message="Resources cannot be allocated"),
        "failed: TopologyAffinityError: Resources cannot be allocated",
    ),
    "an init container": (
        pod(container({}), initContainerStatuses=[{**container(ended(2, "no disk")), "name": "first"}]),
        "container first ended with code 2: no disk",
    ),
    "a long message": (
        pod(container(waiting("RunContainerError", "x" * 1000))),
        f"container agent does not start: RunContainerError: {'x' * podtroubles.QUOTED}...",
    ),
    "still starting": (pod(container(waiting("ContainerCreating"))), ""),
    "no status yet": (pod(), ""),
    "running, and its probe does not succeed yet": (pod(container({"running": {}}), phase="Running"), ""),
    "ready again after a crash": (
        pod(container({"running": {}}, ended(1)), phase="Running", conditions=[{"type": "Ready", "status": "True"}]),
        "",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_status_is_put_into_words(name: str) -> None:
    found, words = CASES[name]
    assert podtroubles.trouble(found) == words


def test_the_first_pod_stands_for_all_and_those_without_trouble_do_not_count() -> None:
    ill, well = CASES["no node"][0], CASES["still starting"][0]
    alone = "pod agent-1: is on no node: Unschedulable: 0/3 nodes are available"
    assert podtroubles.troubles([well, ill, well]) == alone
    assert podtroubles.troubles([ill, well, ill, ill]) == f"{alone} (and 2 more of its pods)"
    assert podtroubles.troubles([well]) == ""
