"""Node objects and plain reports in a line each, as other publishers write them."""

from __future__ import annotations

from numalign.api.decode import quantity
from numalign.api.nrt.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeInfo, NodeStatus
from tests.nodes import NIC


def worker(version: str = "v1.37.2", **capacity: str | int) -> Node:
    amounts = {name.replace("nic", NIC): quantity.parse(amount) for name, amount in capacity.items()}
    return Node(
        metadata=ObjectMeta(name="worker-7"),
        status=NodeStatus(capacity=amounts, node_info=NodeInfo(kubelet_version=version)),
    )


def zones(*cpus: tuple[int, int, int], **more: tuple[int, int, int]) -> NodeTopology:
    """A report that lists these amounts of cpu, one zone each, and the same of other resources in every zone."""
    others = {name.replace("nic", NIC): Amounts(*amounts) for name, amounts in more.items()}
    listed = tuple(Zone(id=place, resources={"cpu": Amounts(*each)} | others) for place, each in enumerate(cpus))
    return NodeTopology(node="worker-7", manager=TopologyManager("restricted"), zones=listed)
