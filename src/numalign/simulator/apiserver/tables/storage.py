"""The rows of storage: volumes, claims, classes, and what CSI drivers and nodes say about themselves."""

from datetime import datetime
from typing import Any, Final

from numalign.api.decode import quantity
from numalign.simulator.apiserver.defaults.kinds import OLD_CLASS
from numalign.simulator.apiserver.tables import columns
from numalign.simulator.apiserver.tables.columns import (
    AGE,
    NONE,
    UNSET,
    TableColumn,
    TableLayout,
    booleans,
    integers,
    items,
    name,
    named,
    part,
    wide,
)
from numalign.simulator.trees import Tree

ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def volume(tree: Tree, now: datetime) -> list[Any]:
    spec, status, claim = part(tree, "spec"), part(tree, "status"), part(part(tree, "spec"), "claimRef")
    return [
        name(tree),
        _storage(part(spec, "capacity")),
        _modes(spec),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(tree),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(tree),
        spec.get("volumeAttributesClassName", UNSET),
        status.get("reason", ""),
        columns.age(tree, now),
        spec.get("volumeMode", UNSET),
    ]


def claim(tree: Tree, now: datetime) -> list[Any]:
    spec, status = part(tree, "spec"), part(tree, "status")
    is_bound = bool(spec.get("volumeName"))
    return [
        name(tree),
        _phase(tree),
        spec.get("volumeName", ""),
        _storage(part(status, "capacity")) if is_bound else "",
        _modes(status) if is_bound else "",
        _class(tree),
        spec.get("volumeAttributesClassName", UNSET),
        columns.age(tree, now),
        spec.get("volumeMode", UNSET),
    ]


def _phase(tree: Tree) -> str:
    return "Terminating" if "deletionTimestamp" in tree["metadata"] else str(part(tree, "status").get("phase", ""))


def _storage(amounts: Tree) -> str:
    return str(quantity.parse(amounts["storage"])) if "storage" in amounts else "0"


def _modes(holder: Tree) -> str:
    modes = items(holder, "accessModes")
    return ",".join(short for mode, short in ACCESS_MODES.items() if mode in modes)


def _class(tree: Tree) -> str:
    annotations = part(tree["metadata"], "annotations")
    return str(annotations.get(OLD_CLASS) or part(tree, "spec").get("storageClassName", ""))


def storage_class(tree: Tree, now: datetime) -> list[Any]:
    return [
        name(tree),
        tree.get("provisioner", ""),
        tree.get("reclaimPolicy", "Delete"),
        tree.get("volumeBindingMode", "Immediate"),
        tree.get("allowVolumeExpansion", False),
        columns.age(tree, now),
    ]


def driver(tree: Tree, now: datetime) -> list[Any]:
    spec = part(tree, "spec")
    audiences = ",".join(str(each.get("audience", "")) for each in items(spec, "tokenRequests"))
    return [
        name(tree),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        audiences if spec.get("tokenRequests") is not None else UNSET,
        spec.get("requiresRepublish", False),
        ",".join(items(spec, "volumeLifecycleModes")) or NONE,
        columns.age(tree, now),
    ]


def attachment(tree: Tree, now: datetime) -> list[Any]:
    spec = part(tree, "spec")
    source = part(spec, "source").get("persistentVolumeName", "")
    attached = bool(part(tree, "status").get("attached"))
    return [name(tree), spec.get("attacher", ""), source, spec.get("nodeName", ""), attached, columns.age(tree, now)]


def csi_node(tree: Tree, now: datetime) -> list[Any]:
    return [name(tree), len(items(part(tree, "spec"), "drivers")), columns.age(tree, now)]


VOLUME: Final = ("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass")
CLAIM: Final = ("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass")
STORAGE: Final = "storage.k8s.io"

LAYOUTS: Final = {
    ("", "PersistentVolume"): TableLayout(
        named(*VOLUME, "VolumeAttributesClass", "Reason", AGE, *wide("VolumeMode")), volume
    ),
    ("", "PersistentVolumeClaim"): TableLayout(named(*CLAIM, AGE, *wide("VolumeMode")), claim),
    (STORAGE, "StorageClass"): TableLayout(
        named("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", AGE), storage_class
    ),
    (STORAGE, "CSIDriver"): TableLayout(
        named(
            *booleans("AttachRequired", "PodInfoOnMount", "StorageCapacity"),
            "TokenRequests",
            *booleans("RequiresRepublish"),
            "Modes",
            AGE,
        ),
        driver,
    ),
    (STORAGE, "VolumeAttachment"): TableLayout(
        named(TableColumn("Attacher", format="name"), "PV", "Node", *booleans("Attached"), AGE), attachment
    ),
    (STORAGE, "CSINode"): TableLayout(named(*integers("Drivers"), AGE), csi_node),
}
