"""The defaults of storage: volumes, claims, classes, drivers. Which class is the default one is decided here."""

from collections.abc import Sequence
from typing import Final

from numalign.simulator.apiserver.defaults import amounts, podspecs
from numalign.simulator.apiserver.storage.resources import STORAGECLASSES
from numalign.simulator.apiserver.storage.state import Lookup
from numalign.simulator.trees import Tree

DEFAULT_MARKS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
DRIVER: Final = {"attachRequired": True, "fsGroupPolicy": "ReadWriteOnceWithFSType"}
DRIVER_FLAGS: Final = (
    "podInfoOnMount",
    "storageCapacity",
    "requiresRepublish",
    "seLinuxMount",
    "preventPodSchedulingIfMissing",
)


def claim(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    metadata, spec = tree["metadata"], tree.setdefault("spec", {})
    podspecs.complete_claim(spec)
    if old is None:
        tree["status"] = {"phase": "Pending"}
        _protect(metadata, "kubernetes.io/pvc-protection")
        if "storageClassName" not in spec and OLD_CLASS not in (metadata.get("annotations") or {}):
            default = default_class(lookup.all(STORAGECLASSES))
            spec |= {"storageClassName": default} if default else {}
    if "dataSource" in spec and "dataSourceRef" not in spec:
        spec["dataSourceRef"] = dict(spec["dataSource"])


def volume(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    spec = tree.setdefault("spec", {})
    podspecs.fill(spec, {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"})
    amounts.settle(spec, "capacity")
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")
    if old is None:
        since = tree["metadata"].get("creationTimestamp")
        tree["status"] = {"phase": "Pending", "lastPhaseTransitionTime": since}
        _protect(tree["metadata"], "kubernetes.io/pv-protection")


def storage_class(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    podspecs.fill(tree, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})


def driver(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    spec = tree.setdefault("spec", {})
    podspecs.fill(spec, DRIVER | {"volumeLifecycleModes": ["Persistent"]})
    for flag in DRIVER_FLAGS:
        spec.setdefault(flag, False)


def attachment(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    if old is None:
        tree["status"] = {"attached": False}


def capacity(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    for field in ("capacity", "maximumVolumeSize"):
        if tree.get(field) is not None:
            tree[field] = amounts.canonical(tree[field])


def default_class(classes: Sequence[Tree]) -> str:
    """The one that claims without a class get: of those marked so the youngest, then the first by name."""
    marked = [each for each in classes if _is_marked_default(each)]
    youngest = max(map(_created, marked), default="")
    return min((str(each["metadata"].get("name", "")) for each in marked if _created(each) == youngest), default="")


def _is_marked_default(tree: Tree) -> bool:
    annotations = tree["metadata"].get("annotations") or {}
    return any(annotations.get(key) == "true" for key in DEFAULT_MARKS)


def _created(tree: Tree) -> str:
    return str(tree["metadata"].get("creationTimestamp", ""))


def _protect(metadata: Tree, finalizer: str) -> None:
    finalizers = metadata.get("finalizers") or []
    metadata["finalizers"] = finalizers if finalizer in finalizers else [*finalizers, finalizer]
