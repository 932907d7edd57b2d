"""Volumes, claims and drivers in a few words, beside nodes in zones: for the tests of the volume rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numalign.api.decode import decode
from numalign.api.objects import volumes
from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from numalign.api.schedulerconfig.pluginargs import VolumeBindingArgs
from numalign.placement.rules.volumes.nodevolumelimits import NodeVolumeLimits
from numalign.placement.rules.volumes.volumebinding import VolumeBinding
from numalign.placement.rules.volumes.volumerestrictions import VolumeRestrictions
from numalign.placement.rules.volumes.volumestock import Shelf
from numalign.placement.rules.volumes.volumezone import VolumeZone
from tests.unit.placement.rules import worlds
from tests.unit.placement.rules.surroundings import Surroundings

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


class Store:
    """A world with the nodes a, b and c, each in a zone of its name, and storage."""

    def __init__(self, *things: Any, pods: Mapping[str, Sequence[Pod]] | None = None, nodes: str = "abc") -> None:
        self.world = worlds.world([worlds.node(name, labels={HOST: name, ZONE: name}) for name in nodes], pods)
        self.around = Surroundings(self.world)
        self.stock = self.around.stock
        self.put(*things)

    def put(self, *things: Any) -> None:
        for thing in things:
            self.shelf(type(thing)).put(thing)

    def shelf(self, kind: type) -> Shelf[Any]:
        stock = self.stock
        shelves: dict[type, Shelf[Any]] = {PersistentVolume: stock.volumes, PersistentVolumeClaim: stock.claims}
        shelves |= {StorageClass: stock.classes, CSINode: stock.nodes, CSIDriver: stock.drivers}
        return (shelves | {CSIStorageCapacity: stock.capacities, VolumeAttachment: stock.attachments})[kind]

    def binding(self, **args: Any) -> VolumeBinding:
        return VolumeBinding(self.stock, decode.decode(VolumeBindingArgs, args))

    def zone(self) -> VolumeZone:
        return VolumeZone(self.stock)

    def restrictions(self) -> VolumeRestrictions:
        return VolumeRestrictions(self.stock, self.around.users)

    def limits(self) -> NodeVolumeLimits:
        return NodeVolumeLimits(self.stock, self.around.attached)


def pod(*claims: str, name: str = "pod", namespace: str = "default", **spec: Any) -> Pod:
    """A pod with a volume for each claim, and those of the spec."""
    used = [{"name": f"v{number}", "persistentVolumeClaim": {"claimName": c}} for number, c in enumerate(claims)]
    metadata = {"name": name, "uid": name, "namespace": namespace}
    return decode.decode(Pod, {"metadata": metadata, "spec": {"volumes": [*used, *spec.pop("volumes", ())]} | spec})


def volume(name: str, size: str = "10Gi", *, node: str | None = None, **fields: Any) -> PersistentVolume:
    """Free, of the class local, and within reach of one node or of all."""
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    if node is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [among(HOST, node)]}]}}
    metadata = {"name": name, "resourceVersion": "1"} | fields.pop("metadata", {})
    status = {"phase": fields.pop("phase", volumes.AVAILABLE)}
    return decode.decode(PersistentVolume, {"metadata": metadata, "spec": spec | fields, "status": status})


def claim(name: str, size: str = "5Gi", *, bound: str = "", **fields: Any) -> PersistentVolumeClaim:
    """Waiting, of the class local; or bound to a volume."""
    spec = {"resources": {"requests": {"storage": size}}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    status = {"phase": fields.pop("phase", "Bound" if bound else "Pending")}
    if bound:
        spec["volumeName"], metadata["annotations"] = bound, {volumes.BIND_COMPLETED: "yes"}
    metadata |= fields.pop("metadata", {})
    return decode.decode(PersistentVolumeClaim, {"metadata": metadata, "spec": spec | fields, "status": status})


def storage_class(
    name: str = "local", provisioner: str = "kubernetes.io/no-provisioner", **fields: Any
) -> StorageClass:
    written = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    return decode.decode(StorageClass, written | fields)


def csi_node(name: str, *, migrated: str = "", **limits: int | None) -> CSINode:
    """Drivers by name, an underscore for a dot, with the number of volumes they can attach."""
    drivers = [
        {"name": driver.replace("_", "."), "allocatable": {} if limit is None else {"count": limit}}
        for driver, limit in limits.items()
    ]
    annotations = {volumes.MIGRATED_PLUGINS: migrated}
    return decode.decode(
        CSINode, {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}
    )


def csi_driver(name: str, **spec: Any) -> CSIDriver:
    return decode.decode(CSIDriver, {"metadata": {"name": name}, "spec": spec})


def space(name: str, capacity: str, *, zone: str | None = None, **fields: Any) -> CSIStorageCapacity:
    """Of the class fast, for one zone or for all nodes."""
    topology = {} if zone is None else {"matchLabels": {ZONE: zone}}
    written = {"metadata": {"name": name}, "storageClassName": "fast", "capacity": capacity, "nodeTopology": topology}
    return decode.decode(CSIStorageCapacity, written | fields)


def attachment(name: str, node: str, volume: str, attacher: str = "csi.example") -> VolumeAttachment:
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return decode.decode(VolumeAttachment, {"metadata": {"name": name}, "spec": spec})


def ephemeral(name: str) -> dict[str, Any]:
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {}}}


def owned(by: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": "Pod", "name": by, "uid": by, "controller": True}]}


def among(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}
