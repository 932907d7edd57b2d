"""What can happen to the engine, as a closed set of facts.

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
    """The object as it was published, for the reference flavour, which reads it its own way."""


class ReportRepeated(Struct, frozen=True):
    """A node's report came once more and says what the last one said, but for its metadata."""

    node: str
    written: NodeResourceTopology


class ReportGone(Struct, frozen=True):
    node: str
    now: float


class PodSeen(Struct, frozen=True):
    """A pod that has a node was added or changed: ours, somebody else's, or a static one."""

    pod: Pod
    now: float
    forecast: Forecast | None = None
    """Where its containers were to go when it was bound, if a scheduler like us did that and left a note."""


class PodAssumed(Struct, frozen=True):
    """A pod that the scheduler assigned to the node in its spec without asking for zones; it is not bound yet."""

    pod: Pod
    now: float


class PodGone(Struct, frozen=True):
    """A pod's object was deleted; the last state of it that was seen."""

    pod: Pod
    now: float


class PodBound(Struct, frozen=True):
    """The API server took a decision of ours; the pod may not have been seen on its node yet."""

    uid: str


class BindFailed(Struct, frozen=True):
    """A decision of ours did not come about."""

    uid: str


class Tick(Struct, frozen=True):
    """Time passed: charges that only wait for it may end."""

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
