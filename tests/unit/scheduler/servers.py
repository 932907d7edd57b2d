"""A few servers with two zones and eight GPUs, known to a cluster by node and report, and pods for them."""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.nrt import normalise
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.meta import ObjectMeta, OwnerReference
from numalign.api.objects.node import Node, NodeSpec, NodeStatus, Taint
from numalign.api.objects.pod import Pod
from numalign.kubelet import predicates, start
from numalign.kubelet.machine import presets
from numalign.kubelet.report import report
from numalign.kubelet.settings import Settings
from numalign.placement.engine import Engine
from numalign.placement.rules.clusterstate import ClusterState
from numalign.scheduler import main
from numalign.scheduler.choose import choose as choosing
from numalign.scheduler.choose.choose import Attempt, Chosen, NoNode
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.plugins import Plugins
from numalign.scheduler.profiles import Profile
from tests.unit.scheduler import waitingpods

KUBELET = start.start(
    presets.machine("gpu-8"),
    Settings(topology_policy="single-numa-node", cpu_policy="static", reserved_cpus=0b11, reserved={"cpu": 2000}),
)
GPU = "nvidia.com/gpu"


def node(name: str, *, cordoned: bool = False, taints: tuple[Taint, ...] = (), **labels: str) -> Node:
    offered = predicates.allocatable(KUBELET, KUBELET.initial())
    amounts = {resource: quantity.of(amount) for resource, amount in offered.items()}
    amounts |= {"cpu": quantity.parse(f"{offered['cpu']}m"), "pods": quantity.of(110)}
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(unschedulable=cordoned, taints=taints),
        status=NodeStatus(capacity=amounts, allocatable=amounts),
    )


def reported(name: str) -> NodeResourceTopology:
    return normalise.encode(report.of(name, KUBELET, KUBELET.initial()))


def trainer(name: str, gpus: int = 1, cpu: str = "4", **spec: Any) -> Pod:
    wants = {"cpu": cpu, "memory": "1Gi", GPU: str(gpus)}
    containers = [{"name": "main", "resources": {"requests": wants, "limits": wants}}]
    return waitingpods.pod(name, {"containers": containers, **spec})


def on(pod: Pod, node: str, **status: Any) -> Pod:
    placed = structs.replace(pod, spec=structs.replace(pod.spec, node_name=node))
    return structs.replace(placed, status=structs.replace(pod.status, **status))


def owned(pod: Pod, owner: str) -> Pod:
    """As one of a ReplicaSet's, by the set's uid."""
    controller = OwnerReference(kind="ReplicaSet", name="set", uid=owner, controller=True)
    return structs.replace(pod, metadata=structs.replace(pod.metadata, owner_references=(controller,)))


class Servers:
    """A cluster, and the default profile on it."""

    def __init__(self, *names: str, reports: bool = True) -> None:
        world = ClusterState()
        self.cluster = Cluster(Engine(), world)
        self.profile: Profile = Plugins(world).profile(main.defaults().profiles[0])
        for name in names:
            self.cluster.node(node(name))
            if reports:
                self.cluster.report(reported(name), 0.0)

    def choose(self, pod: Pod, seed: int = 1, **more: Any) -> Chosen | NoNode:
        shape = self.cluster.engine.shape(pod)
        return choosing.choose(Attempt(pod=pod, shape=shape, now=0.0, **more), self.profile, self.cluster, Random(seed))

    def place(self, pod: Pod, seed: int = 1) -> str:
        """Its node, on which it is assumed; empty: none."""
        found = self.choose(pod, seed)
        if isinstance(found, NoNode):
            return ""
        return self.cluster.assume(pod, found.decision).spec.node_name
