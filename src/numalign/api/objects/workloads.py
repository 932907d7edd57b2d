"""Objects that stand behind pods, as far as the stock scheduler looks at them: services, controllers, namespaces.

Informers make these through `decode`. Spreading by default finds out from them which pods belong together; pod
affinity reads the labels of namespaces.

PodDisruptionBudgets, as far as whoever evicts pods looks at them.

Informers make these through `decode`. Preemption respects budgets where it can: it prefers victims that no budget
speaks for, but evicts others if there is no other way.

The one thing of dynamic resource allocation that concerns a scheduler which does not take part in it: extended
resources that a DeviceClass stands for.

`scheduler.claims` looks up whether what a pod asks for like any other resource is a class's in truth (kube-scheduler
spec 1.8). Everything else of a class is not read.
"""

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
"""With a class's name after it, a resource that the class stands for without saying so."""


class DeviceClassSpec(Wire, frozen=True):
    extended_resource_name: str = ""


class DeviceClass(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()
