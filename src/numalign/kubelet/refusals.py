"""The three ways in which an answer is not a placement.

The kubelet rejects a pod (`Refusal`, with its reason and message), refuses to start (`StartRefusal`), or would do
something that has no answer in time: enumerate billions of masks, loop for ever, or crash (`Undecided`). The last one
is the model's own: it names what the kubelet would do, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass

from numalign.api.objects.pod import Pod

UNEXPECTED = "UnexpectedAdmissionError"
TOPOLOGY_AFFINITY = "TopologyAffinityError"
SMT_ALIGNMENT = "SMTAlignmentError"
EMPTY_POD_SHARED_POOL = "EmptyPodSharedPoolError"
OF_RESOURCES = frozenset({TOPOLOGY_AFFINITY, UNEXPECTED, SMT_ALIGNMENT})
"""What kubelets write into the status of a pod that they do not admit, where resources are the matter."""
OUT_OF = "OutOf"


def is_rejection(pod: Pod) -> bool:
    """Whether its node did not admit it for want of resources; a pod that ran and failed has started."""
    reason = pod.status.reason
    is_of_resources = reason in OF_RESOURCES or reason.startswith(OUT_OF)
    return pod.status.phase == "Failed" and is_of_resources and not pod.has_started


@dataclass(eq=False)
class Refusal(Exception):
    """A manager cannot allocate. `error` is its text; the pod's message is made from it by `pod_message`."""

    error: str
    reason: str = UNEXPECTED

    def __str__(self) -> str:
        return self.error

    @property
    def pod_message(self) -> str:
        """Errors without a type of their own are wrapped before they reach the pod's status (kubelet spec 3.7)."""
        return f"Allocate failed due to {self.error}, which is unexpected" if self.reason == UNEXPECTED else self.error


@dataclass(eq=False)
class StartRefusal(Exception):
    """The kubelet would not start with this machine, configuration or checkpoint. `manager` is the one that refused."""

    manager: str
    error: str

    def __str__(self) -> str:
        return f"{self.manager}: {self.error}"


@dataclass(eq=False)
class Undecided(Exception):
    """No answer: `why` names what the kubelet would do, `count` estimates the number of steps."""

    why: str
    count: int | None = None

    def __str__(self) -> str:
        return self.why if self.count is None else f"{self.why} (about {self.count:.2g} steps)"
