"""The walk from a Pending pod to its cause, in the order in which the pieces depend on each other.

`numalign doctor POD` calls `steps` with a diagnosis and prints the scheduler's own explanation after the last step. A
step names the checks that could have found something; it is in order if none of them did."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.deploy.doctor.diagnosis import Diagnosis, Finding
from numalign.deploy.doctor.observed import Observed

STEPS: Final = (
    (
        "NodeResourceTopology is defined",
        ("crd-missing", "crd-old", "crd-foreign", "crd-not-established"),
    ),
    (
        "a scheduler serves the pod's schedulerName",
        ("scheduler-unserved", "scheduler-profile-collision", "scheduler-lease-collision", "scheduler-leaderless"),
    ),
    (
        "every node has a current report",
        (
            "publisher-missing",
            "report-missing",
            "report-stale",
            "report-without-zones",
            "report-two-publishers",
            "report-contradicts-kubelet",
        ),
    ),
    (
        "kubelets align CPUs, memory and devices",
        (
            "topology-policy-none",
            "cpu-manager-not-static",
            "memory-manager-off",
            "devices-without-zone",
            "hugepages-unreserved",
        ),
    ),
    (
        "the scheduler runs, and may do what it has to",
        ("scheduler-unavailable", "scheduler-config-invalid", "scheduler-without-election", "rbac-short"),
    ),
    (
        "agents run on all nodes",
        ("agent-not-on-node", "agent-not-tolerating", "agent-not-ready", "startup-taint-left", "publishers-overlap"),
    ),
)


class WalkStep(Struct, frozen=True, kw_only=True):
    title: str
    says: str
    findings: tuple[Finding, ...] = ()
    skipped: tuple[str, ...] = ()
    """Checks that could not run."""
    is_open: bool = False
    """Nothing is wrong yet, and nothing shows that all is well: the pod is too young."""


def steps(observed: Observed, diagnosis: Diagnosis, pod: Pod) -> tuple[WalkStep, ...]:
    return tuple(_step(observed, diagnosis, pod, *each) for each in STEPS)


def _step(observed: Observed, diagnosis: Diagnosis, pod: Pod, title: str, ids: tuple[str, ...]) -> WalkStep:
    findings = tuple(each for each in diagnosis.findings if each.check in ids and _concerns(each, pod))
    skipped = tuple(each for each in ids if each in diagnosis.skipped)
    is_open = ids[0] == "scheduler-unserved" and not findings and not pod.spec.node_name and not _decision(pod)
    says = _says(observed, diagnosis, pod, ids[0])
    return WalkStep(title=title, says=says, findings=findings, skipped=skipped, is_open=is_open)


def _decision(pod: Pod) -> str:
    """The reason that a scheduler gave for the pod."""
    return next((each.reason for each in pod.status.conditions if each.type == "PodScheduled"), "")


def _concerns(finding: Finding, pod: Pod) -> bool:
    """A finding about names or pods counts only if the pod is meant."""
    name = f"scheduler name {pod.spec.scheduler_name}"
    if any(each.startswith("scheduler name ") for each in finding.where):
        return name in finding.where
    if any(each.startswith("Pod ") for each in finding.where):
        return f"Pod {pod.metadata.full_name}" in finding.where
    return True


def _says(observed: Observed, diagnosis: Diagnosis, pod: Pod, first: str) -> str:
    match first:
        case "scheduler-unserved":
            reason = _decision(pod)
            looked = f"it says {reason}" if reason else "it has said nothing of the pod"
            return f"{pod.spec.scheduler_name}; {looked}" if not pod.spec.node_name else pod.spec.scheduler_name
        case "publisher-missing":
            return f"{len(observed.reports)} reports, {diagnosis.nodes} nodes for pods"
    return ""
