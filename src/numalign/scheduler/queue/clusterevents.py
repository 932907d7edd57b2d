"""Cluster events: what happened to which kind of object, in the terms in which plugins register for events.

`intake` makes them from changes of objects; `wakeups` matches them with what plugins wait for. Labels are those of
kube-scheduler's metrics (kube-scheduler spec 3.5, 6.6)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntFlag, StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from numalign.api.objects import requests
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.placement.decisions import Wake


class Resource(StrEnum):
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    TARGET_POD = "TargetPod"
    """The waiting pod itself."""
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    ZONES = "NumaZones"
    """Not an API object: a change of a node's zones in the engine."""
    ANY = "*"


class Action(IntFlag):
    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_SCALE_UP = 1024
    UPDATE_POD_TOLERATION = 2048
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 4096
    UPDATE = 8191 - 3
    ALL = 8191


class ClusterEvent(Struct, frozen=True):
    resource: Resource
    action: Action
    name: str = ""
    """The label in metrics, if it is not made of resource and action."""

    @property
    def label(self) -> str:
        return self.name or f"{self.resource}{_camel(self.action)}"

    @property
    def is_anything(self) -> bool:
        return self.resource is Resource.ANY


class ObjectChange(Struct, frozen=True):
    """An event with the object before and after; None: the object was created or deleted."""

    event: ClusterEvent
    old: object = None
    new: object = None
    uid: str = ""
    """The uid of the only pod that the event concerns; empty: it concerns all pending pods."""


ATTEMPT_FAILED: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POPPED_EARLY: Final = "PopFromBackoffQ"

POD_ADDED: Final = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)
ASSIGNED_POD_DELETED: Final = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
FORCED: Final = ClusterEvent(Resource.ANY, Action.ALL, "ForceActivate")
TIMED_OUT: Final = ClusterEvent(Resource.ANY, Action.ALL, "UnschedulableTimeout")


def zones(wake: Wake) -> ObjectChange:
    """The event for an improvement of a node's zones."""
    return ObjectChange(ClusterEvent(Resource.ZONES, Action.UPDATE, f"NumaZones{wake.cause.title()}"), new=wake)


def pod_changes(old: Pod, new: Pod, resource: Resource) -> tuple[ClusterEvent, ...]:
    """The events for a changed pod. A change that no plugin registers for is a plain update."""
    return tuple(ClusterEvent(resource, action) for action in _pod_actions(old, new)) or (
        ClusterEvent(resource, Action.UPDATE),
    )


def node_changes(old: Node, new: Node) -> tuple[ClusterEvent, ...]:
    """The events for a changed node that can make pods schedulable; none for a heartbeat."""
    return tuple(ClusterEvent(Resource.NODE, action) for action in _node_actions(old, new))


def _pod_actions(old: Pod, new: Pod) -> Iterator[Action]:
    if old.metadata.labels != new.metadata.labels:
        yield Action.UPDATE_POD_LABEL
    before, after = requests.assigned(old), requests.assigned(new)
    if any(name not in after or after[name] < amount for name, amount in before.items()):
        yield Action.UPDATE_POD_SCALE_DOWN
    if any(name not in before or before[name] < amount for name, amount in after.items()):
        yield Action.UPDATE_POD_SCALE_UP
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        yield Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    # The API server allows tolerations only to be added, so a different number means a change.
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        yield Action.UPDATE_POD_TOLERATION


def _node_actions(old: Node, new: Node) -> Iterator[Action]:
    if old.status.allocatable != new.status.allocatable:
        yield Action.UPDATE_NODE_ALLOCATABLE
    if old.metadata.labels != new.metadata.labels:
        yield Action.UPDATE_NODE_LABEL
    # A node that is uncordoned counts as one whose taints changed; there is no action of its own for it.
    if old.spec.taints != new.spec.taints or (old.spec.unschedulable and not new.spec.unschedulable):
        yield Action.UPDATE_NODE_TAINT
    if _conditions(old) != _conditions(new):
        yield Action.UPDATE_NODE_CONDITION
    if old.metadata.annotations != new.metadata.annotations:
        yield Action.UPDATE_NODE_ANNOTATION
    if old.status.declared_features != new.status.declared_features:
        yield Action.UPDATE_NODE_DECLARED_FEATURE


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


@lru_cache(maxsize=64)
def _camel(action: Action) -> str:
    return "".join(word.title() for word in (action.name or "").split("_"))
