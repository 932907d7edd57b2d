"""The request and the response of POST /v1/capacity, which `numalign capacity` prints, too.

`service` reads requests and makes responses. Pods, nodes and reports inside are ordinary objects of the Kubernetes API.
Nodes with the same answer are listed together."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from numalign.api.decode.structs import Int32, Wire
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod, PodSpec, ResourceList
from numalign.api.objects.selectors import LabelSelector

BoundName = Literal["exact", "at-least", "at-most", "unknown"]


class ShapeRequest(Wire, frozen=True):
    """A kind of pod: a whole Pod, its spec, or the amounts that its only container requests."""

    name: str = ""
    pod: Pod | None = None
    spec: PodSpec | None = None
    requests: ResourceList = field(default_factory=dict)
    """They are the limits, too, so that the pod is Guaranteed."""
    replicas: Int32 = 1
    """How many pods of the kind all-or-nothing requests are about."""


class NodeChoice(Wire, frozen=True):
    """Which nodes are asked; both given: nodes that are named and match."""

    names: tuple[str, ...] | None = None
    selector: LabelSelector | None = None


class TemplateRequest(Wire, frozen=True):
    """A node that does not exist: a machine preset with a kubelet configuration, an instance type of which the cluster
    has a node, or a report with its Node."""

    name: str = ""
    machine: str = ""
    kubelet: dict[str, Any] = field(default_factory=dict)
    """Fields of a KubeletConfiguration; those that are missing have the kubelet's defaults."""
    instance_type: str = ""
    topology: NodeResourceTopology | None = None
    node: Node | None = None


class CapacityRequest(Wire, frozen=True):
    shapes: tuple[ShapeRequest, ...] = ()
    nodes: NodeChoice | None = None
    """None: all nodes, or none where templates are given."""
    templates: tuple[TemplateRequest, ...] = ()
    all_or_nothing: bool = False
    summary: bool = False
    """Whether the answers of single nodes are left out."""


class ZonePods(Wire, frozen=True, omit_defaults=False):
    zone: int
    pods: int
    """Pods that have everything they ask in this zone."""


class NodeCapacity(Wire, frozen=True):
    """Nodes with the same answer."""

    nodes: tuple[str, ...]
    count: int = field(default=0)
    """Of each node."""
    bound: BoundName = "exact"
    zones: tuple[ZonePods, ...] = ()
    across_zones: int = 0
    """Pods that are aligned to several zones, or to none."""
    reason: str = ""
    """Why the next pod does not fit."""


class ShapeCapacity(Wire, frozen=True, omit_defaults=False):
    name: str
    count: int
    """Of all nodes together."""
    bound: BoundName
    roomy_nodes: int
    """Nodes that admit at least one."""
    nodes: tuple[NodeCapacity, ...] = ()
    templates: tuple[NodeCapacity, ...] = ()
    """They are not part of the count."""


class PlacedPods(Wire, frozen=True, omit_defaults=False):
    node: str
    shape: str
    pods: int


class TogetherAnswer(Wire, frozen=True, omit_defaults=False):
    """Whether all pods find room at the same time, in whatever order they arrive."""

    fits: Literal["yes", "no", "unknown"]
    placed: tuple[PlacedPods, ...] = ()
    missing: dict[str, int] = field(default_factory=dict)
    """By shape, the pods that found no room."""
    message: str = ""


class CapacityResponse(Wire, frozen=True):
    shapes: tuple[ShapeCapacity, ...]
    all_or_nothing: TogetherAnswer | None = None
    notes: tuple[str, ...] = ()
    """What the answers are based on, where that is not the node's own report."""
