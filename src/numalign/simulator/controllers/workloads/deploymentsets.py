"""A deployment's replica sets: which is the newest, how large each may be, how one is made, resized or cleared away.

`deployments` decides what to do and calls these to have it written down as actions."""

from collections.abc import Sequence
from typing import Final

from numalign.simulator.apiserver.storage.resources import DEPLOYMENTS, REPLICASETS
from numalign.simulator.controllers.framework import owners
from numalign.simulator.controllers.framework.actions import Action, Create, Note, Remove, Update
from numalign.simulator.controllers.workloads import pods, replicasets, revisions, rollouts
from numalign.simulator.controllers.workloads.rollouts import Limits, Size
from numalign.simulator.trees import Tree

LONGEST_NAME: Final = 253
KEEPS_ALL: Final = 2**31 - 1


def is_recreated(deployment: Tree) -> bool:
    return (deployment["spec"].get("strategy") or {}).get("type") == "Recreate"


def bounds(deployment: Tree) -> Limits:
    replicas = replicasets.replicas(deployment)
    if is_recreated(deployment):
        return Limits(replicas, 0, 0)
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    return rollouts.limits(replicas, rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%"))


def newest(deployment: Tree, sets: Sequence[Tree]) -> Tree | None:
    """The replica set of the present template, the oldest one if there are several."""
    template = deployment["spec"]["template"]
    return next((each for each in sets if pods.same(each["spec"]["template"], template)), None)


def is_saturated(deployment: Tree, new: Tree) -> bool:
    wanted = replicasets.replicas(deployment)
    available = (new.get("status") or {}).get("availableReplicas", 0)
    return bool(replicasets.replicas(new) == wanted == revisions.number(new, revisions.DESIRED) == available)


def size(replicaset: Tree) -> Size:
    available = (replicaset.get("status") or {}).get("availableReplicas", 0)
    limit = revisions.number(replicaset, revisions.MOST) or 0
    return Size(replicaset["metadata"]["name"], replicasets.replicas(replicaset), available, limit)


def first(deployment: Tree, old: Sequence[Tree], replicas: int) -> Tree:
    """A replica set of the present template, as it is created."""
    spec, metadata = deployment["spec"], deployment["metadata"]
    digest = pods.digest(spec["template"], _collisions(deployment, old))
    template = pods.hashed(spec["template"], digest)
    selector = dict(spec.get("selector") or {})
    selector["matchLabels"] = (selector.get("matchLabels") or {}) | {pods.HASH_LABEL: digest}
    bare: Tree = {"metadata": {"annotations": {}}}
    sizes = revisions.sizes(replicasets.replicas(deployment), bounds(deployment).most)
    return {
        "apiVersion": REPLICASETS.api_version,
        "kind": REPLICASETS.kind,
        "metadata": {
            "name": f"{metadata['name'][: LONGEST_NAME - len(digest) - 1]}-{digest}",
            "namespace": metadata["namespace"],
            "labels": template["metadata"]["labels"],
            "annotations": revisions.inherited(deployment, bare, revisions.following(old)) | sizes,
            "ownerReferences": [owners.reference(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": replicasets.min_ready(deployment),
            "selector": selector,
            "template": template,
        },
    }


def _collisions(deployment: Tree, old: Sequence[Tree]) -> int:
    """Different templates of one hash: counted on until the name is free among the deployment's own."""
    taken = {(each["metadata"].get("labels") or {}).get(pods.HASH_LABEL) for each in old}
    collisions = 0
    while pods.digest(deployment["spec"]["template"], collisions) in taken:
        collisions += 1
    return collisions


def made(deployment: Tree, old: Sequence[Tree], replicas: int) -> list[Action]:
    replicaset = first(deployment, old, replicas)
    name = replicaset["metadata"]["name"]
    told = Note(deployment, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {replicas}")
    return [Create(REPLICASETS, replicaset), *([told] if replicas else [])]


def resized(deployment: Tree, sets: Sequence[Tree], scales: rollouts.Scales) -> list[Action]:
    sizes = revisions.sizes(replicasets.replicas(deployment), bounds(deployment).most)
    changes: list[Action] = []
    for each in sets:
        name, before = each["metadata"]["name"], replicasets.replicas(each)
        after = scales.get(name, before)
        if name not in scales or (after == before and sizes.items() <= revisions.annotations(each).items()):
            continue
        metadata = each["metadata"] | {"annotations": revisions.annotations(each) | sizes}
        changes.append(Update(REPLICASETS, each | {"metadata": metadata, "spec": each["spec"] | {"replicas": after}}))
        if after != before:
            text = f"Scaled {'up' if after > before else 'down'} replica set {name} from {before} to {after}"
            changes.append(Note(deployment, "ScalingReplicaSet", text))
    return changes


def tidied(deployment: Tree, old: Sequence[Tree]) -> list[Action]:
    """Of the empty old replica sets, the oldest revisions above the limit go."""
    limit = deployment["spec"].get("revisionHistoryLimit", 10)
    kept = [each for each in old if not each["metadata"].get("deletionTimestamp")]
    spare = len(kept) - limit
    if limit == KEEPS_ALL or spare <= 0:
        return []
    oldest = sorted(kept, key=revisions.revision)[:spare]
    return [Remove(REPLICASETS, each) for each in oldest if _is_empty(each)]


def _is_empty(replicaset: Tree) -> bool:
    status = replicaset.get("status") or {}
    seen = status.get("observedGeneration", 0) >= replicaset["metadata"].get("generation", 0)
    return seen and not status.get("replicas", 0) and not replicasets.replicas(replicaset)
