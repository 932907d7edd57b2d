"""Generates persistent volume claims, bound to volumes or pending, and the volumes that pods name."""

from __future__ import annotations

from random import Random
from typing import Final

from numalign.oracle.generate.draws import chance, some, weighted
from numalign.oracle.kubescheduler.generate import storage
from numalign.oracle.kubescheduler.generate.words import Object

BOUND: Final = "pv.kubernetes.io/bind-completed"
SELECTED: Final = "volume.kubernetes.io/selected-node"
LONG_AGO: Final = "2026-01-01T00:00:00Z"


def claim(rng: Random, name: str, namespace: str, volumes: list[Object], names: list[str]) -> Object:
    """A claim that is to be bound takes a free volume and marks it as taken."""
    metadata: Object = {
        "name": name,
        "namespace": namespace,
        "uid": f"claim-{namespace}-{name}",
        "resourceVersion": "1",
    }
    made: Object = {"metadata": metadata, "spec": _wish(rng), "status": {"phase": "Pending"}}
    free = [each for each in volumes if "claimRef" not in each["spec"]]
    if free and chance(rng, 0.4):
        _bind(rng, made, rng.choice(free))
    elif chance(rng, 0.1):
        metadata["annotations"] = {SELECTED: rng.choice(names)}
    if "storageClassName" in made["spec"] and chance(rng, 0.02):
        # Without a class in the spec as well, kube-scheduler panics when it scores.
        metadata.setdefault("annotations", {})["volume.beta.kubernetes.io/storage-class"] = rng.choice(storage.CLASSES)
    if chance(rng, 0.03):
        metadata["deletionTimestamp"] = LONG_AGO
        metadata["finalizers"] = ["kubernetes.io/pvc-protection"]
    if chance(rng, 0.03):
        made["status"]["phase"] = "Lost"
        made["spec"].setdefault("volumeName", "gone")
    return made


def _wish(rng: Random) -> Object:
    size = rng.choice(storage.SIZES) if chance(rng, 0.7) else f"{1024 * rng.choice((1, 5)) + rng.randint(0, 9)}Mi"
    spec: Object = {
        "accessModes": ["ReadWriteOncePod"]
        if chance(rng, 0.15)
        else (some(rng, storage.MODES, 0.2) or ["ReadWriteOnce"]),
        "resources": {"requests": {"storage": size}},
        "volumeMode": "Filesystem" if chance(rng, 0.93) else "Block",
    }
    storage_class = weighted(rng, {"fast": 6.0, "local": 3.0, "slow": 2.0, "ebs": 2.0, "": 0.7, "missing": 0.3})
    if storage_class or chance(rng, 0.5):
        spec["storageClassName"] = storage_class
    if chance(rng, 0.05):
        spec["volumeAttributesClassName"] = "gold"
    if chance(rng, 0.1):
        spec["selector"] = {"matchLabels": {"kind": rng.choice(("gold", "silver"))}}
    return spec


def _bind(rng: Random, made: Object, volume: Object) -> None:
    """Bound completely or in part; rarely to a volume that does not exist."""
    metadata, spec = made["metadata"], made["spec"]
    spec["volumeName"] = volume["metadata"]["name"] if chance(rng, 0.95) else "gone"
    style = weighted(rng, {"whole": 8.0, "half": 1.0, "reserved": 1.0})
    if style == "reserved":
        del spec["volumeName"]
    if style == "whole":
        metadata["annotations"] = {BOUND: "yes"}
        made["status"]["phase"] = volume["status"]["phase"] = "Bound"
    volume["spec"]["claimRef"] = {
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        **({"uid": metadata["uid"]} if style != "reserved" or chance(rng, 0.5) else {}),
    }


def of_pod(rng: Random, namespace: str, claims: list[Object]) -> list[Object]:
    count = weighted(rng, {1: 8.0, 2: 3.0, 3: 1.0})
    return [{"name": f"v{number}", **_volume(rng, namespace, claims)} for number in range(count)]


def _volume(rng: Random, namespace: str, claims: list[Object]) -> Object:
    own = [each["metadata"]["name"] for each in claims if each["metadata"]["namespace"] == namespace]
    kind = weighted(rng, {"claim": 12.0 if own else 0.5, "ephemeral": 0.7, "disk": 2.5, "image": 0.7, "other": 1.0})
    if kind == "claim":
        return {"persistentVolumeClaim": {"claimName": rng.choice(own) if own and chance(rng, 0.97) else "missing"}}
    if kind == "ephemeral":
        return {"ephemeral": {"volumeClaimTemplate": {"spec": _wish(rng)}}}
    if kind == "image":
        return {"image": {"reference": rng.choice(("db", "registry.example/web:v1"))}}
    if kind == "other":
        return rng.choice(({"emptyDir": {}}, {"csi": {"driver": storage.FAST}}))
    return _disk(rng)


def _disk(rng: Random) -> Object:
    read_only = {"readOnly": True} if chance(rng, 0.4) else {}
    return rng.choice(
        (
            {"gcePersistentDisk": {"pdName": rng.choice(("d1", "d2")), **read_only}},
            storage.IN_TREE[rng.choice(list(storage.IN_TREE)[2:])](rng.randint(0, 1)),
            {"awsElasticBlockStore": {"volumeID": rng.choice(("vol-0", "vol-1", "vol-9")), **read_only}},
            {"iscsi": {"targetPortal": "10.0.0.1", "iqn": rng.choice(("iqn-1", "iqn-2")), "lun": 0, **read_only}},
            {
                "rbd": {
                    "monitors": some(rng, ("m1", "m2", "m3"), 0.6) or ["m1"],
                    "image": "i1",
                    "pool": "p1",
                    **read_only,
                }
            },
        )
    )


def of_ephemeral(rng: Random, pod: Object, volumes: list[Object], names: list[str]) -> list[Object]:
    """The claims of the pod's ephemeral volumes; some are missing, some have another owner."""
    metadata, made = pod["metadata"], []
    for each in pod["spec"].get("volumes", ()):
        if "ephemeral" not in each or chance(rng, 0.25):
            continue
        found = claim(rng, f"{metadata['name']}-{each['name']}", metadata["namespace"], volumes, names)
        if chance(rng, 0.95):
            owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
            found["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        made.append(found)
    return made
