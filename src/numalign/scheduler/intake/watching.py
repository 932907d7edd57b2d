"""The informers: one per resource, all on one client.

`main` makes them and runs them as tasks, on the leader and on standby replicas, so that a new leader knows the
cluster. Pods are watched until they are deleted, and not only while they run: whether a pod has finished, was
rejected or was deleted decides what is free on its node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from numalign.api.objects import koordinatordevice
from numalign.api.objects.koordinatordevice import DeviceObject
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
from numalign.placement.rules.volumes.volumestock import Shelf
from numalign.scheduler.bind.binder import CLAIMS, VOLUMES
from numalign.scheduler.choose.plugins import Plugins
from numalign.scheduler.intake.intake import Intake
from numalign.scheduler.queue import clusterevents

T = TypeVar("T", bound=Named)
V = TypeVar("V", bound=Named)
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

DEVICES: Final = resources.of(
    f"{koordinatordevice.GROUP}/{koordinatordevice.VERSION}", "devices", "Device", DeviceObject
)
BUDGETS: Final = resources.of("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", PodDisruptionBudget)
DEVICE_CLASSES: Final = resources.of("resource.k8s.io/v1", "deviceclasses", "DeviceClass", DeviceClass)
READ_BY_PLUGINS: Final[tuple[Resource[Any], ...]] = (
    NAMESPACES,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
    BUDGETS,
)
"""Resources that plugins read, and whose changes make no pod schedulable."""
WAKING: Final[Mapping[Resource[Any], clusterevents.Resource]] = MappingProxyType(
    {
        CLASSES: clusterevents.Resource.STORAGE_CLASS,
        VOLUMES: clusterevents.Resource.PERSISTENT_VOLUME,
        CLAIMS: clusterevents.Resource.PERSISTENT_VOLUME_CLAIM,
        CSI_NODES: clusterevents.Resource.CSI_NODE,
        CSI_DRIVERS: clusterevents.Resource.CSI_DRIVER,
        CAPACITIES: clusterevents.Resource.CSI_STORAGE_CAPACITY,
        ATTACHMENTS: clusterevents.Resource.VOLUME_ATTACHMENT,
        DEVICE_CLASSES: clusterevents.Resource.DEVICE_CLASS,
    }
)
"""Resources that plugins read, and the events that their changes are for waiting pods."""
OPTIONAL: Final[tuple[Resource[Any], ...]] = (TOPOLOGIES, DEVICES, DEVICE_CLASSES)
"""Resources that a cluster may not serve."""


class Informers:
    def __init__(
        self, client: Client, intake: Intake, stock: Plugins, *, zones: bool = True, koordinator: bool = False
    ) -> None:
        """`zones`: whether a profile checks zones. `koordinator`: whether Koordinator's Device objects count."""
        self._client = client
        self._intake = intake
        self.informers: dict[str, Informer[Any]] = {}
        self._has_synced = False
        """Kept, because every question of kube-scheduler asks, and an informer that has synced stays so."""
        # Nodes come first, so that the nodes of pods and reports are known.
        self._follow(NODES, intake.node, Options(share=SharedNodes().shared))
        if zones:
            if koordinator:
                self._follow(DEVICES, intake.device)
            self._follow(TOPOLOGIES, intake.topology)
        apply = appliers(stock)
        for resource in READ_BY_PLUGINS:
            self._follow(resource, apply[resource.plural])
        for resource, event in WAKING.items():
            self._follow(resource, intake.waking(apply[resource.plural], event))
        self._follow(PODS, intake.pod, Options(share=SharedPods().shared))

    @property
    def has_synced(self) -> bool:
        if not self._has_synced:
            always = self.informers.keys() - {each.plural for each in OPTIONAL}
            self._has_synced = all(self.informers[name].has_synced for name in always)
        return self._has_synced

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
        except errors.Forbidden:
            # The right to them came with the option: an older installation has it not, and schedules all the same.
            return resource is not DEVICES
        except errors.KubeError:
            return True
        return True

    def _follow(self, resource: Resource[T], handler: Callable[[Change[T]], None], options: Options = DEFAULTS) -> None:
        handle = self._intake.guarded(resource.plural, handler)
        self.informers[resource.plural] = Informer(self._client, resource.everywhere(), handle, options)


def appliers(stock: Plugins) -> dict[str, Callable[[Change[Any]], None]]:
    """By plural name of a resource that plugins read: puts a changed object where they read it."""
    volumes = stock.volumes
    return {
        NAMESPACES.plural: lambda change: _namespace(stock, change),
        SERVICES.plural: lambda change: _service(stock, change),
        REPLICATION_CONTROLLERS.plural: _controller(stock, ReplicationController),
        REPLICA_SETS.plural: _controller(stock, ReplicaSet),
        STATEFUL_SETS.plural: _controller(stock, StatefulSet),
        BUDGETS.plural: lambda change: _budget(stock, change),
        CLASSES.plural: lambda change: _shelve(volumes.classes, change),
        VOLUMES.plural: lambda change: _shelve(volumes.volumes, change),
        CLAIMS.plural: lambda change: _shelve(volumes.claims, change),
        CSI_NODES.plural: lambda change: _shelve(volumes.nodes, change),
        CSI_DRIVERS.plural: lambda change: _shelve(volumes.drivers, change),
        CAPACITIES.plural: lambda change: _shelve(volumes.capacities, change),
        ATTACHMENTS.plural: lambda change: _shelve(volumes.attachments, change),
        DEVICE_CLASSES.plural: lambda change: _shelve(stock.device_classes, change),
    }


def _shelve(shelf: Shelf[V], change: Change[V]) -> None:
    if change.new is not None:
        shelf.put(change.new)
    elif change.old is not None:
        shelf.drop(change.old.metadata.full_name)


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
