"""Label selectors, node selectors, taints and tolerations of objects in the embedded API server.

Controllers of workloads, budgets, claims and nodes call it. `api.objects` has the rules; this module applies them to
JSON objects. Selectors in query strings belong to the API server."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from numalign.api.decode.decode import decode
from numalign.api.objects import nodematching, selectors
from numalign.api.objects.pod import PodSpec, Toleration
from numalign.api.objects.selectors import LabelSelector
from numalign.simulator.trees import Tree

Labels = Mapping[str, str]
Selects = Callable[[Labels], bool]

NAME_FIELD: Final = nodematching.NAME_FIELD


def selector(written: Tree | None) -> Selects:
    """The selector of a workload. An absent or empty one selects nothing."""
    found = decode(LabelSelector, written or {})
    return partial(selectors.matches, None if found.is_empty else found)


def everything_if_empty(written: Tree | None) -> Selects:
    """The selector of a disruption budget. `{}` selects all pods of the namespace, an absent one none."""
    return partial(selectors.matches, None if written is None else decode(LabelSelector, written))


def node_matches(spec: Tree, node: Tree) -> bool:
    """Whether nodeSelector and required node affinity of a pod's spec let it onto the node."""
    metadata = node["metadata"]
    pod = decode(PodSpec, {name: spec[name] for name in ("nodeSelector", "affinity") if spec.get(name)})
    return nodematching.allows(pod.node_selector, pod.affinity, metadata["name"], metadata.get("labels") or {})


def required_affinity(spec: Tree) -> Tree | None:
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required: Tree | None = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required


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
