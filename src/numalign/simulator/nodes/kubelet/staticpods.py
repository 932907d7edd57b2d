"""Static pods and their mirror pods.

`node` creates the mirror pods when its kubelet starts, and again after a mirror pod was deleted. The simulated pod is
the mirror pod: the managers know it by that uid."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.trees import Tree

MIRROR: Final = "kubernetes.io/config.mirror"
HASH: Final = "kubernetes.io/config.hash"
SEEN: Final = "kubernetes.io/config.seen"
SOURCE: Final = "kubernetes.io/config.source"


def mirror(pod: Mapping[str, Any], node: str, node_uid: str, now: str) -> Tree:
    """The mirror pod that the kubelet of this node creates for a static pod."""
    tree = trees.copied(dict(pod))
    digest = hashlib.sha256(trees.encoded([tree, node])).hexdigest()[:32]
    metadata = trees.metadata(tree)
    annotations = metadata.get("annotations") or {}
    tree["metadata"] = metadata | {
        "name": f"{metadata.get('name', '')}-{node}",
        "namespace": metadata.get("namespace") or "default",
        "annotations": annotations | {MIRROR: digest, HASH: digest, SEEN: now, SOURCE: "file"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid, "controller": True}],
    }
    spec = tree.get("spec") or {}
    tolerations = [*(spec.get("tolerations") or ()), {"operator": "Exists", "effect": "NoExecute"}]
    return {"apiVersion": "v1", "kind": "Pod", **tree, "spec": spec | {"nodeName": node, "tolerations": tolerations}}
