"""Taints of nodes beside the tolerations of pods, as objects of the embedded API server.

Daemon sets and taint eviction call this; `nodematching` has the rule."""

from collections.abc import Iterable, Sequence
from typing import Final

from numalign.api.decode.decode import decode
from numalign.api.objects import nodematching
from numalign.api.objects.pod import Toleration
from numalign.simulator.trees import Tree

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
HARD: Final = (NO_SCHEDULE, NO_EXECUTE)


def untolerated(taints: Iterable[Tree], tolerations: Sequence[Tree], effects: Sequence[str] = HARD) -> Tree | None:
    """The first taint that keeps the pod off."""
    candidates = [taint for taint in taints if taint.get("effect") in effects]
    own = _decoded(tolerations) if candidates else ()
    return next((taint for taint in candidates if _tolerating(taint, own) is None), None)


def endures(taints: Sequence[Tree], tolerations: Sequence[Tree]) -> float | None:
    """Seconds that a pod may stay under these NoExecute taints; None: for ever."""
    own = _decoded(tolerations)
    used = [_tolerating(taint, own) for taint in taints]
    limits = [0 if each is None else each.toleration_seconds for each in used]
    return min((float(max(0, limit)) for limit in limits if limit is not None), default=None)


def _decoded(tolerations: Sequence[Tree]) -> tuple[Toleration, ...]:
    return tuple(decode(Toleration, each) for each in tolerations)


def _tolerating(taint: Tree, tolerations: Sequence[Toleration]) -> Toleration | None:
    """The first toleration that tolerates the taint."""
    key, value, effect = taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""
    return next((each for each in tolerations if nodematching.tolerates(each, key, value, effect)), None)
