"""The informers: one per resource, all on one client.

`main` makes them and runs them as tasks, on the leader and on standby replicas, so that a new leader knows the
cluster. Pods are watched until they are deleted, and not only while they run: whether a pod has finished, was
rejected or was deleted decides what is free on its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from numalign.api.objects.sharing import SharedNodes, SharedPods
from numalign.api.objects.volumes import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from numalign.api.objects.workloads import (
    DeviceClass,
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.request import Selection
from numalign.kube.resources import NODES, PODS, TOPOLOGIES, Named, Resource
from numalign.kube.watch.informer import DEFAULTS, Informer, Options
from numalign.kube.watch.store import Change
from numalign.placement.rules.volumes.volumestock import VolumeStock
from numalign.scheduler.bind.binder import CLAIMS, VOLUMES
from numalign.scheduler.choose.plugins import Plugins
from numalign.scheduler.intake.intake import Intake
from numalign.scheduler.queue import clusterevents

T = TypeVar("T", bound=Named)
C = TypeVar("C", ReplicationController, ReplicaSet, StatefulSet)

NAMESPACES: Final = resources.of("v1", "namespaces", "Namespace", Namespace)
SERVICES: Final = resources.of("v1", "services", "Service", Service)
REPLICATION_CONTROLLERS: Final = resources.of(
    "v1", "replicationcontrollers", "ReplicationController", ReplicationController
)
REPLICA_SETS: Final = resources.of("apps/v1", "replicasets", "ReplicaSet", ReplicaSet)
STATEFUL_SETS: Final = resources.of("apps/v1", "statefulsets", "StatefulSet", StatefulSet)
CLASSES: Final = resources.of("storage.k8s.io/v1", "storageclasses", "StorageClass", StorageClass)
CSI_NODES: Final = resources.of("storage.k8s.io/v1", "csinodes", "CSINode", CSINode)
CSI_DRIVERS: Final = resources.of("storage.k8s.io/v1", "csidrivers", "CSIDriver", CSIDriver)
CAPACITIES: Final = resources.of("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity", CSIStorageCapacity)
ATTACHMENTS: Final = resources.of("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", VolumeAttachment)

BUDGETS: Final = resources.of("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", PodDisruptionBudget)
DEVICE_CLASSES: Final = resources.of("resource.k8s.io/v1", "deviceclasses", "DeviceClass", DeviceClass)
OPTIONAL: Final[tuple[Resource[Any], ...]] = (TOPOLOGIES, DEVICE_CLASSES)
"""Resources that a cluster may not serve."""


class Informers:
    def __init__(self, client: Client, intake: Intake, stock: Plugins, *, zones: bool = True) -> None:
        """`zones`: whether a profile checks zones."""
        self._client = client
        self._intake = intake
        self.informers: dict[str, Informer[Any]] = {}
        # Nodes come first, so that the nodes of pods and reports are known.
        self._follow(NODES, intake.node, Options(share=SharedNodes().shared))
        if zones:
            self._follow(TOPOLOGIES, intake.topology)
        self._follow(NAMESPACES, lambda change: _namespace(stock, change))
        self._follow(SERVICES, lambda change: _service(stock, change))
        self._follow(REPLICATION_CONTROLLERS, _controller(stock, ReplicationController))
        self._follow(REPLICA_SETS, _controller(stock, ReplicaSet))
        self._follow(STATEFUL_SETS, _controller(stock, StatefulSet))
        self._follow(BUDGETS, lambda change: _budget(stock, change))
        self._follow_volumes(stock.volumes)
        self._follow(DEVICE_CLASSES, intake.shelved(stock.device_classes, clusterevents.Resource.DEVICE_CLASS))
        self._follow(PODS, intake.pod, Options(share=SharedPods().shared))

    @property
    def has_synced(self) -> bool:
        always = self.informers.keys() - {each.plural for each in OPTIONAL}
        return all(self.informers[name].has_synced for name in always)

    async def synced(self) -> None:
        """Waits until every informer has processed its first list."""
        optional = [each for each in OPTIONAL if each.plural in self.informers]
        missing = [each.plural for each in optional if not await self._is_served(each)]
        for name, informer in self.informers.items():
            if name not in missing:
                await informer.synced()

    async def caught_up(self) -> None:
        """Waits until the pods are as current as the API server's.

        The last bindings of the former leader may not have arrived yet, and their resources are in use."""
        await self.informers[PODS.plural].relisted()

    async def _is_served(self, resource: Resource[Any]) -> bool:
        """Whether the cluster serves the resource. If unknown, yes: waiting is better than placing without the data."""
        try:
            await anext(self._client.pages(resource.everywhere(), Selection(), 1))
        except errors.NotFound:
            return False
        except errors.KubeError:
            return True
        return True

    def _follow_volumes(self, stock: VolumeStock) -> None:
        shelved, events = self._intake.shelved, clusterevents.Resource
        self._follow(CLASSES, shelved(stock.classes, events.STORAGE_CLASS))
        self._follow(VOLUMES, shelved(stock.volumes, events.PERSISTENT_VOLUME))
        self._follow(CLAIMS, shelved(stock.claims, events.PERSISTENT_VOLUME_CLAIM))
        self._follow(CSI_NODES, shelved(stock.nodes, events.CSI_NODE))
        self._follow(CSI_DRIVERS, shelved(stock.drivers, events.CSI_DRIVER))
        self._follow(CAPACITIES, shelved(stock.capacities, events.CSI_STORAGE_CAPACITY))
        self._follow(ATTACHMENTS, shelved(stock.attachments, events.VOLUME_ATTACHMENT))

    def _follow(self, resource: Resource[T], handler: Callable[[Change[T]], None], options: Options = DEFAULTS) -> None:
        handle = self._intake.guarded(resource.plural, handler)
        self.informers[resource.plural] = Informer(self._client, resource.everywhere(), handle, options)


def _namespace(stock: Plugins, change: Change[Namespace]) -> None:
    if change.new is not None:
        stock.namespaces.put(change.new.metadata.name, change.new.metadata.labels)
    elif change.old is not None:
        stock.namespaces.drop(change.old.metadata.name)


def _service(stock: Plugins, change: Change[Service]) -> None:
    if change.new is not None:
        stock.owners.put_service(change.new)
    elif change.old is not None:
        stock.owners.drop_service(change.old.metadata.namespace, change.old.metadata.name)


def _budget(stock: Plugins, change: Change[PodDisruptionBudget]) -> None:
    if change.new is not None:
        stock.budgets.put(change.new)
    elif change.old is not None:
        stock.budgets.drop(change.old.metadata.namespace, change.old.metadata.name)


def _controller(stock: Plugins, kind: type[C]) -> Callable[[Change[C]], None]:
    def handle(change: Change[C]) -> None:
        if change.new is not None:
            stock.owners.put_controller(change.new)
        elif change.old is not None:
            stock.owners.drop_controller(kind, change.old.metadata.namespace, change.old.metadata.name)

    return handle
