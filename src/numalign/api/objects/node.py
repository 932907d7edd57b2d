"""Nodes, with the fields that scheduling uses.

Informers and the command line decode them; the scheduling rules and the placement columns read them."""

from typing import Any

import msgspec

from numalign.api.decode.structs import Int64, Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import ResourceList


class Taint(Wire, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(Wire, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class NodeAddress(Wire, frozen=True):
    type: str = ""
    address: str = ""


class ContainerImage(Wire, frozen=True):
    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeInfo(Wire, frozen=True):
    kubelet_version: str = ""
    kernel_version: str = ""
    container_runtime_version: str = ""
    operating_system: str = ""
    architecture: str = ""
    os_image: str = ""
    boot_id: str = msgspec.field(default="", name="bootID")


class NodeStatus(Wire, frozen=True):
    capacity: ResourceList = msgspec.field(default_factory=dict)
    allocatable: ResourceList = msgspec.field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeInfo = NodeInfo()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> NodeCondition | None:
        """The condition; None: the kubelet has written none yet."""
        return next((each for each in self.status.conditions if each.type == "Ready"), None)

    @property
    def is_ready(self) -> bool:
        """A Node without the condition was not written by a kubelet, and counts as Ready."""
        condition = self.ready
        return condition is None or condition.status == "True"

    @property
    def allocatable(self) -> ResourceList:
        """Resources for pods; defaults to the capacity, as in the API server."""
        return self.status.allocatable or self.status.capacity


def without_taint(node: Node, key: str) -> dict[str, Any] | None:
    """The merge patch that removes the taint from the Node as it was read; None: it does not have the taint.

    The list of taints is written as a whole: with another resource version the API server refuses the patch."""
    left = [taint for taint in node.spec.taints if taint.key != key]
    if len(left) == len(node.spec.taints):
        return None
    return {
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "spec": {"taints": msgspec.to_builtins(left) or None},
    }
