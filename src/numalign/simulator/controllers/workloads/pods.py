"""Pods as the workload controllers look at them: do they count, are they ready, which goes first, how one is made.

Pure; trees are read only.

Pod templates: whether two are the same, and the short hash that names one.

Deployments and daemon sets tell old pods from new ones by it. The hash is our own: the real one is made of the memory
of a Go struct; it only has to be short, stable and fit for a label.
"""

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from numalign.api.objects.pod import FINISHED
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.controllers.framework import conditions, moments, owners
from numalign.simulator.trees import Tree

MOST_AT_ONCE: Final = 500
"""Pods that a controller creates or deletes in one go."""
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
    """It runs or will run: what a replica is."""
    return not is_finished(pod) and not is_terminating(pod)


def is_ready(pod: Tree) -> bool:
    return conditions.is_true(pod, "Ready")


def is_available(pod: Tree, min_ready: int, now: datetime) -> bool:
    return unavailable_for(pod, min_ready, now) == 0


def unavailable_for(pod: Tree, min_ready: int, now: datetime) -> float:
    """Seconds until it has been ready long enough; 0 if it has, infinite if it is not ready."""
    if not is_ready(pod):
        return math.inf
    return max(0.0, min_ready - ready_for(pod, now)) if min_ready else 0.0


def ready_for(pod: Tree, now: datetime) -> float:
    ready = conditions.find(conditions.listed(pod), "Ready") or {}
    return moments.since(ready.get("lastTransitionTime"), now) or 0.0


def restarts(pod: Tree) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((status.get("restartCount", 0) for status in statuses), default=0)


def victims(active: Sequence[Tree], count: int, now: datetime) -> list[Tree]:
    """The pods to go first when there are too many: those that serve least, then those that came last."""
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
            _doubling(moments.since(pod["metadata"].get("creationTimestamp"), now) or 0.0),
            pod["metadata"].get("uid", ""),
        )

    return sorted(active, key=dispensable)[:count]


def _cost(pod: Tree) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _doubling(seconds: float) -> int:
    # Ages count by their power of two, so that pods of about one age are alike.
    return int(math.log2(seconds * 1e9)) if seconds > 0 else -1


def made(resource: Resource, owner: Tree, template: Tree, prefix: str = "") -> Tree:
    """A pod of the template, owned by its controller."""
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
"""No vowels, so that no hash is ever a word."""


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
    # The API fills this in or not; it never means anything in a template.
    rest = {key: value for key, value in metadata.items() if key not in ("labels", "creationTimestamp")}
    return template | {"metadata": rest | ({"labels": labels} if labels else {})}
