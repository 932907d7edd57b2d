"""Generates storage: classes, volumes, claims, CSI node objects, attachments, and the volumes that pods name."""

from random import Random
from typing import Final

from numalign.oracle.harness.draws import chance, some, weighted
from numalign.oracle.kubescheduler.generate import nodes
from numalign.oracle.kubescheduler.generate.nodes import Object

FAST: Final = "fast.example"
SLOW: Final = "slow.example"
EBS: Final = "ebs.csi.aws.com"
DRIVERS: Final = (FAST, SLOW, EBS)
CLASSES: Final = ("fast", "slow", "local", "ebs")
SIZES: Final = ("1Gi", "5Gi", "10Gi", "10737418241")
IN_TREE: Final = {
    "kubernetes.io/aws-ebs": lambda number: {"awsElasticBlockStore": {"volumeID": f"vol-{number}"}},
    "kubernetes.io/gce-pd": lambda number: {"gcePersistentDisk": {"pdName": f"disk-{number}"}},
    "kubernetes.io/cinder": lambda number: {"cinder": {"volumeID": f"cinder-{number}"}},
    "kubernetes.io/azure-disk": lambda number: {"azureDisk": {"diskName": f"azure-{number}", "diskURI": f"/{number}"}},
    "kubernetes.io/azure-file": lambda number: {"azureFile": {"secretName": "s", "shareName": f"share-{number}"}},
    "kubernetes.io/vsphere-volume": lambda number: {"vsphereVolume": {"volumePath": f"[ds] {number}"}},
    "kubernetes.io/portworx-volume": lambda number: {"portworxVolume": {"volumeID": f"px-{number}"}},
}
"""Volume plugins that were once part of Kubernetes, and their volumes."""
MODES: Final = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany")
WAIT: Final = "WaitForFirstConsumer"


def classes(rng: Random) -> list[Object]:
    made = [
        _class("fast", FAST, WAIT if chance(rng, 0.95) else "Immediate"),
        _class("slow", SLOW, "Immediate" if chance(rng, 0.7) else WAIT),
        _class("local", "kubernetes.io/no-provisioner", WAIT),
        _class("ebs", "kubernetes.io/aws-ebs", WAIT if chance(rng, 0.7) else "Immediate"),
    ]
    for each in made:
        if chance(rng, 0.25):
            each["allowedTopologies"] = [
                {
                    "matchLabelExpressions": [
                        {"key": nodes.ZONE, "values": some(rng, nodes.ZONES, 0.6) or [nodes.ZONES[0]]}
                    ]
                }
            ]
    return [each for each in made if chance(rng, 0.95)]


def _class(name: str, provisioner: str, mode: str) -> Object:
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}


def volume(rng: Random, number: int, names: list[str]) -> Object:
    """An unbound volume, which a claim may bind. Sizes differ, because kube-scheduler picks any of two equal
    volumes."""
    name, storage_class = f"pv{number}", rng.choice(("fast", "fast", *CLASSES, ""))
    spec: Object = {
        "capacity": {"storage": f"{rng.choice((1, 5, 10, 20)) * 1024 + number}Mi"},
        "accessModes": some(rng, MODES, 0.8) or ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem" if chance(rng, 0.9) else "Block",
        **({"storageClassName": storage_class} if storage_class else {}),
        **_source(rng, storage_class, number),
    }
    if affinity := _node_affinity(rng, names):
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [affinity]}}
    metadata: Object = {"name": name, "uid": f"pv-{number}", "resourceVersion": "1"}
    if chance(rng, 0.03):
        spec["volumeAttributesClassName"] = "gold"
    if chance(rng, 0.03):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if labels := _labels(rng):
        metadata["labels"] = labels
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Available" if chance(rng, 0.9) else "Released"}}


def _labels(rng: Random) -> dict[str, str]:
    made: dict[str, str] = {}
    if chance(rng, 0.3):
        made[nodes.ZONE if chance(rng, 0.7) else nodes.OLD_ZONE] = "__".join(
            some(rng, nodes.ZONES, 0.5) or [nodes.ZONES[0]]
        )
    if chance(rng, 0.1):
        made[nodes.REGION if chance(rng, 0.7) else nodes.OLD_REGION] = rng.choice(nodes.REGIONS)
    if chance(rng, 0.3):
        made["kind"] = rng.choice(("gold", "silver"))
    return made


def _source(rng: Random, storage_class: str, number: int) -> Object:
    if storage_class == "ebs" and chance(rng, 0.7):
        return IN_TREE["kubernetes.io/aws-ebs"](number)
    if chance(rng, 0.15):
        return IN_TREE[rng.choice(list(IN_TREE))](number)
    if storage_class == "local" or chance(rng, 0.2):
        return {"local": {"path": f"/mnt/{number}"}}
    driver = {"fast": FAST, "slow": SLOW, "ebs": EBS}.get(storage_class) or rng.choice(DRIVERS)
    return {"csi": {"driver": driver, "volumeHandle": f"handle-{number if chance(rng, 0.9) else 0}"}}


def _node_affinity(rng: Random, names: list[str]) -> Object | None:
    by = weighted(rng, {"none": 6.0, "zone": 3.0, "host": 2.0})
    if by == "none":
        return None
    key, values = (nodes.ZONE, nodes.ZONES) if by == "zone" else (nodes.HOSTNAME, names)
    return {"matchExpressions": [{"key": key, "operator": "In", "values": some(rng, values, 0.5) or [values[0]]}]}


def csi_node(rng: Random, name: str) -> Object:
    drivers = [_driver_on_node(rng, driver, name) for driver in some(rng, (*DRIVERS, "pd.csi.storage.gke.io"), 0.7)]
    metadata: Object = {"name": name}
    if migrated := some(rng, list(IN_TREE), 0.6):
        metadata["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(migrated)}
    return {"metadata": metadata, "spec": {"drivers": drivers}}


def _driver_on_node(rng: Random, driver: str, node: str) -> Object:
    made: Object = {"name": driver, "nodeID": node}
    if chance(rng, 0.7):
        made["allocatable"] = {"count": rng.choice((0, 1, 1, 2, 3, 20))} if chance(rng, 0.95) else {}
    return made


def csi_driver(rng: Random, name: str) -> Object:
    spec: Object = {"storageCapacity": chance(rng, 0.6)}
    if chance(rng, 0.3):
        spec["preventPodSchedulingIfMissing"] = chance(rng, 0.7)
    return {"metadata": {"name": name}, "spec": spec}


def capacities(rng: Random) -> list[Object]:
    """At most one per node and class, because kube-scheduler picks any of several that fit."""
    made: list[Object] = []
    for storage_class in some(rng, CLASSES, 0.75):
        topologies: list[Object | None] = [{"matchLabels": {nodes.ZONE: zone}} for zone in some(rng, nodes.ZONES, 0.8)]
        if chance(rng, 0.2):
            topologies = [rng.choice(({}, None))]
        made += [_capacity(rng, f"{storage_class}-{number}", topology) for number, topology in enumerate(topologies)]
    return made


def _capacity(rng: Random, name: str, topology: Object | None) -> Object:
    made: Object = {"metadata": {"name": name, "namespace": "default"}, "storageClassName": name.split("-")[0]}
    if topology is not None:
        made["nodeTopology"] = topology
    # With a maximum volume size but no capacity, kube-scheduler panics when it scores.
    if chance(rng, 0.95):
        made["capacity"] = rng.choice(("2Gi", "20Gi", "35Gi", "500Mi"))
    if "capacity" in made and chance(rng, 0.3):
        made["maximumVolumeSize"] = rng.choice(("1Gi", "4Gi", "100Gi"))
    return made


def attachment(rng: Random, number: int, volumes: list[Object], names: list[str]) -> Object:
    picked = rng.choice(volumes)
    driver = picked["spec"].get("csi", {}).get("driver", EBS)
    return {
        "metadata": {"name": f"attachment-{number}"},
        "spec": {
            "attacher": driver if chance(rng, 0.95) else SLOW,
            "nodeName": rng.choice(names),
            "source": {"persistentVolumeName": picked["metadata"]["name"] if chance(rng, 0.95) else "gone"},
        },
        "status": {"attached": True},
    }


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
        metadata.setdefault("annotations", {})["volume.beta.kubernetes.io/storage-class"] = rng.choice(CLASSES)
    if chance(rng, 0.03):
        metadata["deletionTimestamp"] = LONG_AGO
        metadata["finalizers"] = ["kubernetes.io/pvc-protection"]
    if chance(rng, 0.03):
        made["status"]["phase"] = "Lost"
        made["spec"].setdefault("volumeName", "gone")
    return made


def _wish(rng: Random) -> Object:
    size = rng.choice(SIZES) if chance(rng, 0.7) else f"{1024 * rng.choice((1, 5)) + rng.randint(0, 9)}Mi"
    spec: Object = {
        "accessModes": ["ReadWriteOncePod"] if chance(rng, 0.15) else (some(rng, MODES, 0.2) or ["ReadWriteOnce"]),
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
        return rng.choice(({"emptyDir": {}}, {"csi": {"driver": FAST}}))
    return _disk(rng)


def _disk(rng: Random) -> Object:
    read_only = {"readOnly": True} if chance(rng, 0.4) else {}
    return rng.choice(
        (
            {"gcePersistentDisk": {"pdName": rng.choice(("d1", "d2")), **read_only}},
            IN_TREE[rng.choice(list(IN_TREE)[2:])](rng.randint(0, 1)),
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
