"""The facts that the engine accepts, as a closed set.

`Engine.apply` is the only consumer; `scheduler.cluster` makes them of what informers and the binder saw. A failure is a
new fact, never a callback. Time enters as `now`, in seconds of any steady clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod

Forecast = Mapping[str, Sequence[tuple[int, ...]]]
"""By container, sets of zones (real ids) of which the kubelet was to choose one."""


class NodeSeen(Struct, frozen=True):
    """A node was added or changed."""

    node: Node


class NodeGone(Struct, frozen=True):
    name: str


class ReportSeen(Struct, frozen=True):
    """A node's topology report was added or changed."""

    topology: NodeTopology
    now: float
    written: NodeResourceTopology | None = None
    """The object as it was published, for the reference flavour, which reads it as the Go plugin does."""


class ReportRepeated(Struct, frozen=True):
    """A node's report was updated without a change, except for its metadata."""

    node: str
    written: NodeResourceTopology


class ReportGone(Struct, frozen=True):
    node: str
    now: float


class PodSeen(Struct, frozen=True):
    """A pod that has a node was added or changed, no matter which scheduler bound it; static pods included."""

    pod: Pod
    now: float
    forecast: Forecast | None = None
    """The zones that the scheduler which bound the pod predicted, if it wrote the placement annotation."""


class PodAssumed(Struct, frozen=True):
    """A pod that the scheduler assigned to the node in its spec without asking for zones; it is not bound yet."""

    pod: Pod
    now: float


class PodGone(Struct, frozen=True):
    """A pod's object was deleted; `pod` is its last state."""

    pod: Pod
    now: float


class PodBound(Struct, frozen=True):
    """The API server accepted a Binding; the watch may not have shown it yet."""

    uid: str


class BindFailed(Struct, frozen=True):
    """A decision of this scheduler was not carried out."""

    uid: str


class Tick(Struct, frozen=True):
    """Time passed; charges with a deadline may end."""

    now: float


Fact = (
    NodeSeen
    | NodeGone
    | ReportSeen
    | ReportRepeated
    | ReportGone
    | PodSeen
    | PodAssumed
    | PodGone
    | PodBound
    | BindFailed
    | Tick
)
