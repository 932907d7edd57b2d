"""Nodes and pods of a trace as a cluster knows them: machines with NUMA zones, their reports, and pods with requests.

`zoned` calls `nodes` and `pod`; the embedded cluster and the lab run kubelets on `hardware`. Which machines have
several zones is an assumption (`has_zones`): a machine counts as one with two sockets if it has as many CPUs as such
servers have. What a machine offers is split evenly among its zones; the CPUs that its kubelet reserves come on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct, structs

from numalign.api.decode import cpuset, decode, quantity
from numalign.api.decode.quantity import NANO
from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.topologymanager import Policy
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeStatus
from numalign.api.objects.pod import Pod
from numalign.api.objects.resourcenames import MEMORY
from numalign.kubelet import configuration, predicates, start
from numalign.kubelet.machine.machine import Core, Device, DevicePlugin, Machine, Zone
from numalign.kubelet.report import report
from numalign.kubelet.settings import Settings
from numalign.placement.capacity.pluginrule import Published
from numalign.placement.reference import classes, numanodes
from numalign.placement.reference.numanodes import NumaNode
from numalign.plan.trace import TraceNode
from numalign.plan.workload import CPU, Shape

GPU: Final = "nvidia.com/gpu"
MIB: Final = 1 << 20
TWO_SOCKETS: Final = frozenset({96_000, 104_000, 128_000})
"""Thousandths of CPUs of servers with two sockets."""
PHYSICAL: Final = (64_000, 2)
"""CPUs and GPUs of one kind more."""
THREADS: Final = 2
MOST_PODS: Final = 1001
"""As the published nodes offer."""
LOCAL, REMOTE = 10, 21


class Place(Struct, frozen=True):
    """A node as the API server knows it, and its report."""

    node: Node
    topology: NodeTopology


class Hardware(Struct, frozen=True):
    """What the kubelet of a node runs on, and its KubeletConfiguration."""

    machine: Machine
    configuration: Mapping[str, Any]

    @property
    def settings(self) -> Settings:
        return configuration.read(self.configuration, "trace", self.machine)


def has_zones(node: TraceNode) -> bool:
    return node.gpus > 1 and (node.cpu_milli in TWO_SOCKETS or (node.cpu_milli, node.gpus) == PHYSICAL)


def nodes(listed: Sequence[TraceNode], zones: int, policy: Policy) -> list[Place]:
    """The nodes, of which the larger machines have so many zones."""
    return [_named(node, _place(structs.replace(node, name=""), zones, policy)) for node in listed]


def pod(shape: Shape, *, pinned: bool) -> Pod:
    """A pod that asks for this. `pinned`: it is Guaranteed, so that kubelets pin its CPUs; it has to ask for memory."""
    return decode.decode(Pod, {"metadata": {"name": "pod", "uid": "pod"}, "spec": spec(shape, pinned=pinned)})


def spec(shape: Shape, *, pinned: bool) -> dict[str, Any]:
    """The spec of such a pod."""
    amounts = {"cpu": f"{shape.cpu_milli}m", "memory": f"{max(1, shape.memory_mib)}Mi"}
    gpus = {GPU: str(shape.gpus)} if shape.gpus else {}
    resources = {"requests": amounts | gpus, "limits": amounts | gpus if pinned else gpus}
    return {"containers": [{"name": "main", "image": "none", "resources": resources}]}


def named(made: Pod, name: str) -> Pod:
    return structs.replace(made, metadata=structs.replace(made.metadata, name=name, uid=name))


def published(node: TraceNode, zones: int, policy: Policy) -> Published:
    """What the Go plugin reads of such a node as long as no pod is there."""
    return _published(structs.replace(node, name=""), zones, policy)


@lru_cache(maxsize=256)
def _published(node: TraceNode, zones: int, policy: Policy) -> Published:
    place = _place(node, zones, policy)
    reading = numanodes.read(normalise.encode(place.topology))
    # The plugin refuses pods where no zone lists the memory that they ask for. Nothing pins memory here.
    memory = {MEMORY: node.memory_mib * MIB * NANO // len(reading.numa_nodes)}
    listed = [NumaNode(each.id, {**each.free, **memory}, each.costs) for each in reading.numa_nodes]
    return Published(classes.present_on(place.node), structs.replace(reading, numa_nodes=tuple(listed)))


def _named(node: TraceNode, place: Place) -> Place:
    metadata = structs.replace(place.node.metadata, name=node.name)
    return Place(structs.replace(place.node, metadata=metadata), structs.replace(place.topology, node=node.name))


def hardware(node: TraceNode, zones: int, policy: Policy) -> Hardware:
    """Of the node, if larger machines have so many zones."""
    return _hardware(structs.replace(node, name=""), zones, policy)


@lru_cache(maxsize=256)
def _place(node: TraceNode, zones: int, policy: Policy) -> Place:
    made = _hardware(node, zones, policy)
    kubelet = start.start(made.machine, made.settings)
    offered = predicates.allocatable(kubelet, kubelet.initial())
    amounts = {resource: quantity.of(amount) for resource, amount in offered.items()}
    amounts |= {"cpu": quantity.parse(f"{node.cpu_milli}m"), "pods": quantity.of(MOST_PODS)}
    status = NodeStatus(capacity=amounts, allocatable=amounts)
    return Place(Node(metadata=ObjectMeta(name=""), status=status), report.of("", kubelet, kubelet.initial()))


@lru_cache(maxsize=256)
def _hardware(node: TraceNode, zones: int, policy: Policy) -> Hardware:
    machine = _machine(node, zones if has_zones(node) else 1)
    reserved = cpuset.of(cpu for zone in machine.zones for cpu in zone.cores[0].cpus)
    written = {
        "apiVersion": configuration.API_VERSION,
        "kind": configuration.KIND,
        "topologyManagerPolicy": policy,
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": cpuset.text(reserved),
        # Pods get all of the memory that the trace lists.
        "evictionHard": {"memory.available": "0%"},
        "maxPods": MOST_PODS,
    }
    return Hardware(machine, written)


def _machine(node: TraceNode, zones: int) -> Machine:
    """With a core more in each zone than the trace offers."""
    threads = node.cpu_milli // CPU // zones + THREADS
    made = []
    for zone in range(zones):
        first = zone * threads
        cores = tuple(Core(zone, (cpu, cpu + 1)) for cpu in range(first, first + threads, THREADS))
        distances = tuple(LOCAL if other == zone else REMOTE for other in range(zones))
        made.append(Zone(zone, cores, node.memory_mib * MIB // zones, distances=distances))
    devices = tuple(Device(f"gpu-{gpu}", (gpu * zones // max(1, node.gpus),)) for gpu in range(node.gpus))
    plugins: Mapping[str, DevicePlugin] = {GPU: DevicePlugin(devices)} if devices else {}
    return Machine("trace", tuple(made), plugins)
