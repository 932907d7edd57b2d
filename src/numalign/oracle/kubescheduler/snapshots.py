"""Builds the state that numalign's rules read from the cluster of a case: nodes, pods, storage, namespaces, owners.

`stages` builds the rules on it. Objects are added in the order of the case, as the real scheduler receives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from numalign.api.decode import decode
from numalign.api.decode.structs import Wire
from numalign.api.objects.node import Node
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
from numalign.api.objects.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.pods.namespaces import Namespaces
from numalign.placement.rules.pods.owners import Controller, Owners
from numalign.placement.rules.volumes.volumestock import VolumeStock

Raw = Mapping[str, Any]
T = TypeVar("T", bound=Wire)


class Seen(Struct, frozen=True):
    """The state that the rules read."""

    world: World
    stock: VolumeStock
    namespaces: Namespaces
    owners: Owners


def read(snapshot: Raw) -> Seen:
    seen = Seen(World(), VolumeStock(), Namespaces(), Owners())
    for namespace in _each(Namespace, snapshot, "namespaces"):
        seen.namespaces.put(namespace.metadata.name, namespace.metadata.labels)
    for service in _each(Service, snapshot, "services"):
        seen.owners.put_service(service)
    for controller in _controllers(snapshot):
        seen.owners.put_controller(controller)
    _stock(seen.stock, snapshot)
    _populate(seen.world, snapshot)
    return seen


def _controllers(snapshot: Raw) -> Iterator[Controller]:
    yield from _each(ReplicationController, snapshot, "replicationControllers")
    yield from _each(ReplicaSet, snapshot, "replicaSets")
    yield from _each(StatefulSet, snapshot, "statefulSets")


def _stock(stock: VolumeStock, snapshot: Raw) -> None:
    for volume in _each(PersistentVolume, snapshot, "persistentVolumes"):
        stock.volumes.put(volume)
    for claim in _each(PersistentVolumeClaim, snapshot, "persistentVolumeClaims"):
        stock.claims.put(claim)
    for storage_class in _each(StorageClass, snapshot, "storageClasses"):
        stock.classes.put(storage_class)
    for node in _each(CSINode, snapshot, "csiNodes"):
        stock.nodes.put(node)
    for driver in _each(CSIDriver, snapshot, "csiDrivers"):
        stock.drivers.put(driver)
    for capacity in _each(CSIStorageCapacity, snapshot, "csiStorageCapacities"):
        stock.capacities.put(capacity)
    for attachment in _each(VolumeAttachment, snapshot, "volumeAttachments"):
        stock.attachments.put(attachment)


def _populate(world: World, snapshot: Raw) -> None:
    """Add nodes and their pods. Pods on missing nodes get rows without a node."""
    rows: dict[str, int] = {}
    for node in _each(Node, snapshot, "nodes"):
        row = rows.setdefault(node.metadata.name, len(rows))
        world.put_node(row, node)
    for pod in _each(Pod, snapshot, "pods"):
        if pod.spec.node_name and not pod.status.is_finished:
            world.put_pod(pod.metadata.uid, rows.setdefault(pod.spec.node_name, len(rows)), pod)


def _each(kind: type[T], snapshot: Raw, field: str) -> list[T]:
    return [decode.decode(kind, raw) for raw in snapshot.get(field) or ()]
