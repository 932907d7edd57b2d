"""Why a pod is not ready, from what its status says. Pure.

The deployer says it of the pods that it waits for, the operator of its operands, and the doctor of agents and
schedulers. The status has the cause of most troubles: an image that cannot be pulled, a program that ends (containers
of ours keep the end of their log for that), a pod that fits on no node. A pod that is still being started has no
trouble yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import field

from numalign.api.decode.structs import Wire
from numalign.api.objects.pod import ContainerState, ContainerStatus, ContainerTerminated, Pod, PodStatus
from numalign.kube import resources
from numalign.kube.request import Selection
from numalign.kube.resources import Resource


class Waiting(Wire, frozen=True):
    reason: str = ""
    message: str = ""


class Ended(ContainerTerminated, frozen=True):
    message: str = ""


class State(ContainerState, frozen=True):
    waiting: Waiting | None = None
    terminated: Ended | None = None


class Container(ContainerStatus, frozen=True):
    image: str = ""
    state: State = State()
    last_state: State = State()


class Status(PodStatus, frozen=True):
    init_container_statuses: tuple[Container, ...] = ()
    container_statuses: tuple[Container, ...] = ()


class WatchedPod(Pod, frozen=True):
    """A pod with the parts of its status that tell of troubles."""

    status: Status = field(default_factory=Status)


PODS: Final[Resource[WatchedPod]] = resources.of("v1", "pods", "Pod", WatchedPod)

STARTING: Final = ("", "ContainerCreating", "PodInitializing")
NO_IMAGE: Final = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
PULLED_IN_VAIN: Final = "ErrImagePull: "
"""Before the cause, in the message of a kubelet that pauses before it pulls again."""
QUOTED: Final = 240
"""Characters of a message, at most."""


def its_pods(workload: dict[str, Any]) -> Selection:
    """The pods of a Deployment or DaemonSet."""
    labels = workload["spec"]["selector"].get("matchLabels") or {}
    return Selection(labels=",".join(f"{key}={value}" for key, value in sorted(labels.items())))


def trouble(pod: WatchedPod) -> str:
    """Empty for a pod that is ready, that ends, or that has no trouble yet."""
    status = pod.status
    conditions = {each.type: each for each in status.conditions}
    ready, scheduled = conditions.get("Ready"), conditions.get("PodScheduled")
    if pod.metadata.deletion_timestamp or (ready is not None and ready.status == "True"):
        return ""
    if status.phase == "Failed":
        return _sentence("failed", status.reason, status.message)
    if not pod.spec.node_name and scheduled is not None and scheduled.status == "False":
        return _sentence("is on no node", scheduled.reason, scheduled.message)
    containers = (*status.init_container_statuses, *status.container_statuses)
    return next(filter(None, map(_of_container, containers)), "")


def _of_container(container: Container) -> str:
    name, waiting = f"container {container.name}", container.state.waiting
    ended = container.state.terminated or container.last_state.terminated
    if waiting is not None and waiting.reason in NO_IMAGE:
        cause = waiting.message.partition(PULLED_IN_VAIN)[2] or waiting.message
        return _sentence(f"{name} has no image {container.image}", cause)
    if container.ready:
        return ""
    if ended is not None and ended.exit_code:
        # The last line of a log says why a program ended.
        last = ended.message.strip().rpartition("\n")[2]
        return _sentence(f"{name} ended with code {ended.exit_code}", last or ended.reason)
    if waiting is not None and waiting.reason not in STARTING:
        return _sentence(f"{name} does not start", waiting.reason, waiting.message)
    return ""


def _sentence(*parts: str) -> str:
    """On one line; parts that say nothing are left out."""
    lines = (" ".join(each.split()) for each in parts)
    return ": ".join(line[:QUOTED] + "..." * (len(line) > QUOTED) for line in lines if line)


def troubles(pods: Iterable[WatchedPod]) -> str:
    """Of the pods of one workload: the first one, and how many more have any. Empty: none."""
    found = [f"pod {pod.metadata.name}: {words}" for pod in pods if (words := trouble(pod))]
    more = f" (and {len(found) - 1} more of its pods)" if len(found) > 1 else ""
    return f"{found[0]}{more}" if found else ""


def refused(message: str) -> str:
    """Of a workload whose pods an admission rule refuses, in the words of its controller."""
    # Before it stands the name of the pod, another one at every attempt.
    return _sentence("no pod can be created", message.partition(" is forbidden: ")[2] or message)
