"""Pods and pod templates as workload controllers need them. Pure; objects are read only.

Answers whether a pod is active, ready or available, orders pods for deletion, and creates pods from a template.
Deployments and DaemonSets recognise pods of the current template by its hash. The hash differs from the one of
kube-controller-manager, which hashes the memory of a Go struct."""

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from numalign.api.objects.pod import FINISHED
from numalign.simulator import clock
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.controllers.framework import conditions, owners
from numalign.simulator.trees import Tree

MOST_AT_ONCE: Final = 500
"""Number of pods that a controller creates or deletes per reconciliation."""
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
LONGEST_PREFIX: Final = 253


def phase(pod: Tree) -> str:
    found: str = (pod.get("status") or {}).get("phase") or "Pending"
    return found


def is_finished(pod: Tree) -> bool:
    return phase(pod) in FINISHED


def is_terminating(pod: Tree) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_active(pod: Tree) -> bool:
    """Whether the pod counts as a replica: it runs or will run."""
    return not is_finished(pod) and not is_terminating(pod)


def is_ready(pod: Tree) -> bool:
    return conditions.is_true(pod, "Ready")


def is_available(pod: Tree, min_ready: int, now: datetime) -> bool:
    return unavailable_for(pod, min_ready, now) == 0


def unavailable_for(pod: Tree, min_ready: int, now: datetime) -> float:
    """Seconds until the pod has been ready for `min_ready` seconds; 0 if it has, infinite if it is not ready."""
    if not is_ready(pod):
        return math.inf
    return max(0.0, min_ready - ready_for(pod, now)) if min_ready else 0.0


def ready_for(pod: Tree, now: datetime) -> float:
    ready = conditions.find(conditions.listed(pod), "Ready") or {}
    return clock.seconds_since(ready.get("lastTransitionTime"), now) or 0.0


def restarts(pod: Tree) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((status.get("restartCount", 0) for status in statuses), default=0)


def victims(active: Sequence[Tree], count: int, now: datetime) -> list[Tree]:
    """The pods to delete first, in the order of kube-controller-manager's ActivePodsWithRanks."""
    if count <= 0:
        return []
    crowded = Counter(pod["spec"].get("nodeName", "") for pod in active if is_ready(pod))

    def dispensable(pod: Tree) -> tuple[object, ...]:
        node, ready = pod["spec"].get("nodeName", ""), is_ready(pod)
        return (
            bool(node),
            PHASES.get(phase(pod), 0),
            ready,
            _cost(pod),
            -crowded[node],
            _doubling(ready_for(pod, now)) if ready else 0,
            -restarts(pod),
            _doubling(clock.seconds_since(pod["metadata"].get("creationTimestamp"), now) or 0.0),
            pod["metadata"].get("uid", ""),
        )

    return sorted(active, key=dispensable)[:count]


def _cost(pod: Tree) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _doubling(seconds: float) -> int:
    # Ages are compared by powers of two, so that pods of similar age rank equally.
    return int(math.log2(seconds * 1e9)) if seconds > 0 else -1


def made(resource: Resource, owner: Tree, template: Tree, prefix: str = "") -> Tree:
    """A pod of the template with an owner reference to its controller."""
    metadata = template.get("metadata") or {}
    kept = {key: metadata[key] for key in ("labels", "annotations", "finalizers") if metadata.get(key)}
    name = (prefix or owner["metadata"]["name"] + "-")[:LONGEST_PREFIX]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": kept
        | {
            "generateName": name,
            "namespace": owner["metadata"]["namespace"],
            "ownerReferences": [owners.reference(resource, owner)],
        },
        "spec": template.get("spec") or {},
    }


def oldest_first(trees: Iterable[Tree]) -> list[Tree]:
    return sorted(trees, key=lambda tree: (tree["metadata"].get("creationTimestamp") or "", tree["metadata"]["name"]))


HASH_LABEL: Final = "pod-template-hash"
SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels, so that no hash is a word."""


def digest(template: Tree, collisions: int = 0) -> str:
    written = msgspec.json.encode([unhashed(template), collisions], order="deterministic")
    return "".join(SAFE[ord(digit) % len(SAFE)] for digit in str(zlib.crc32(written)))


def same(left: Tree, right: Tree) -> bool:
    return unhashed(left) == unhashed(right)


def hashed(template: Tree, digest: str, label: str = HASH_LABEL) -> Tree:
    metadata = template.get("metadata") or {}
    return template | {"metadata": metadata | {"labels": (metadata.get("labels") or {}) | {label: digest}}}


def unhashed(template: Tree) -> Tree:
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    # Templates carry it or not, and it has no meaning there.
    rest = {key: value for key, value in metadata.items() if key not in ("labels", "creationTimestamp")}
    return template | {"metadata": rest | ({"labels": labels} if labels else {})}
