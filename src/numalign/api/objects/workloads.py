"""Objects behind pods, with the fields that scheduling uses: services, controllers, namespaces, budgets, device
classes.

Informers decode them. Default spreading finds pods that belong together; pod affinity reads namespace labels;
preemption prefers victims without a PodDisruptionBudget. A DeviceClass is read only for the extended resource that it
implements (kube-scheduler spec 1.8)."""

from __future__ import annotations

from typing import Final

import msgspec

from numalign.api.decode.structs import Int32, Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.selectors import LabelSelector


class Namespace(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class PlainSelection(Wire, frozen=True):
    selector: dict[str, str] | None = None


class Selection(Wire, frozen=True):
    selector: LabelSelector | None = None


class Service(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PlainSelection = PlainSelection()


class ReplicationController(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PlainSelection = PlainSelection()


class ReplicaSet(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Selection = Selection()


class StatefulSet(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Selection = Selection()


class PodDisruptionBudgetSpec(Wire, frozen=True):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] = msgspec.field(default_factory=dict)
    """By name, pods whose eviction the API server has granted and the controller has not seen yet."""


class PodDisruptionBudget(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
"""Prefix of the resource that every class implements implicitly; the name of the class follows."""


class DeviceClassSpec(Wire, frozen=True):
    extended_resource_name: str = ""


class DeviceClass(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()
