"""Generates storage: classes, volumes, CSI node objects, and attachments."""

from __future__ import annotations

from random import Random
from typing import Final

from numalign.oracle.generate.draws import chance, some, weighted
from numalign.oracle.kubescheduler.generate import words
from numalign.oracle.kubescheduler.generate.words import Object

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
                        {"key": words.ZONE, "values": some(rng, words.ZONES, 0.6) or [words.ZONES[0]]}
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
        made[words.ZONE if chance(rng, 0.7) else words.OLD_ZONE] = "__".join(
            some(rng, words.ZONES, 0.5) or [words.ZONES[0]]
        )
    if chance(rng, 0.1):
        made[words.REGION if chance(rng, 0.7) else words.OLD_REGION] = rng.choice(words.REGIONS)
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
    key, values = (words.ZONE, words.ZONES) if by == "zone" else (words.HOSTNAME, names)
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
        topologies: list[Object | None] = [{"matchLabels": {words.ZONE: zone}} for zone in some(rng, words.ZONES, 0.8)]
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
