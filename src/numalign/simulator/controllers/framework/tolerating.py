"""Taints and tolerations (kube-scheduler spec 1.2), for DaemonSets, node lifecycle and taint eviction."""

from collections.abc import Iterable, Sequence
from typing import Final

from numalign.simulator.trees import Tree

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
HARD: Final = (NO_SCHEDULE, NO_EXECUTE)


def tolerates(toleration: Tree, taint: Tree) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return (toleration.get("value") or "") == (taint.get("value") or "")
    return False


def untolerated(taints: Iterable[Tree], tolerations: Sequence[Tree], effects: Sequence[str] = HARD) -> Tree | None:
    """The first taint with one of the effects that no toleration matches."""
    candidates = (taint for taint in taints if taint.get("effect") in effects)
    return next((taint for taint in candidates if not any(tolerates(each, taint) for each in tolerations)), None)


def endures(taints: Sequence[Tree], tolerations: Sequence[Tree]) -> float | None:
    """Seconds that a pod may stay with these NoExecute taints; None means without limit."""
    if untolerated(taints, tolerations, (NO_EXECUTE,)) is not None:
        return 0.0
    used = [next(each for each in tolerations if tolerates(each, taint)) for taint in taints]
    limits = [max(0, each["tolerationSeconds"]) for each in used if each.get("tolerationSeconds") is not None]
    return float(min(limits)) if limits else None
