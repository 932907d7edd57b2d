"""Objects that only travel between us and the API server: its answers, and what is posted to subresources.

`client`, `lease` and `events` make and read them. Pods, nodes and topology reports are in `numalign.api`."""

from typing import Any, Final

from numalign.api.decode.structs import Int32, Wire
from numalign.api.objects.meta import ObjectMeta


class Cause(Wire, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class Details(Wire, frozen=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: Int32 = 0


class Status(Wire, frozen=True):
    """The server's answer to a failed call, and to successful bindings, evictions and some deletions."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    details: Details = Details()
    code: Int32 = 0


class NodeTarget(Wire, frozen=True, omit_defaults=False):
    name: str
    kind: str = "Node"
    api_version: str = "v1"


class Binding(Wire, frozen=True, omit_defaults=False):
    metadata: ObjectMeta
    target: NodeTarget
    kind: str = "Binding"
    api_version: str = "v1"


class Preconditions(Wire, frozen=True):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Wire, frozen=True):
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    preconditions: Preconditions | None = None


PLAIN_DELETION: Final = DeleteOptions()


class Eviction(Wire, frozen=True, omit_defaults=False):
    metadata: ObjectMeta
    delete_options: DeleteOptions = PLAIN_DELETION
    kind: str = "Eviction"
    api_version: str = "policy/v1"


class ScaleSpec(Wire, frozen=True, omit_defaults=False):
    replicas: Int32 = 0


class ScaleStatus(Wire, frozen=True):
    replicas: Int32 = 0
    selector: str = ""


class Scale(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class LeaseSpec(Wire, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: Int32 | None = None


class Lease(Wire, frozen=True, omit_defaults=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
    kind: str = "Lease"
    api_version: str = "coordination.k8s.io/v1"


class ObjectReference(Wire, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class EventSeries(Wire, frozen=True, omit_defaults=False):
    count: Int32 = 0
    last_observed_time: str = ""


class Event(Wire, frozen=True):
    """Of events.k8s.io/v1."""

    metadata: ObjectMeta = ObjectMeta()
    event_time: str | None = None
    type: str = ""
    reason: str = ""
    action: str = ""
    note: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""


Document = dict[str, Any]
"""An untyped body: a patch, or an applied configuration."""
