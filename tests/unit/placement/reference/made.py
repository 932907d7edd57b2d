"""Pods, nodes and topology reports for tests of the reference flavour, in as few words as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numalign.api.decode import quantity
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.nrt.wire import Attribute, Cost, NodeResourceTopology, PublishedZone, Resource
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeStatus
from numalign.api.objects.pod import Container, Pod, PodSpec, PodStatus, ResourceList, ResourceRequirements
from numalign.placement.reference import numanodes
from numalign.placement.reference.filter import Seen

Amounts = Mapping[str, str | int]
SINGLE = "single-numa-node"


def amounts(written: Amounts) -> ResourceList:
    return {name: quantity.parse(amount) for name, amount in written.items()}


def container(
    name: str = "c", *, sidecar: bool = False, limits: Amounts | None = None, **wanted: str | int
) -> Container:
    """Guaranteed, unless its limits say otherwise. `nic` and `gpu` are devices of example.com."""
    plain = requesting(wanted)
    limited = plain.resources.limits if limits is None else amounts(named(limits))
    resources = ResourceRequirements(requests=plain.resources.requests, limits=limited)
    return Container(name=name, restart_policy="Always" if sidecar else "", resources=resources)


def requesting(wanted: Amounts) -> Container:
    requests = amounts(named(wanted))
    return Container(name="c", resources=ResourceRequirements(requests=requests, limits=requests))


def named(wanted: Amounts) -> dict[str, str | int]:
    devices = {"nic": "example.com/nic", "gpu": "example.com/gpu", "disk": "ephemeral-storage"}
    return {devices.get(name, name): amount for name, amount in wanted.items()}


def pod(*containers: Container, init: Sequence[Container] = (), name: str = "p", qos: str = "", **overhead: str) -> Pod:
    spec = PodSpec(containers=containers, init_containers=tuple(init), overhead=amounts(overhead))
    return Pod(metadata=ObjectMeta(namespace="ns", name=name), spec=spec, status=PodStatus(qos_class=qos))


def node(**allocatable: str | int) -> Node:
    plain: dict[str, str | int] = {"cpu": 64, "memory": "64Gi", "nic": 8, "gpu": 8}
    offered = amounts(named(plain | allocatable))
    return Node(metadata=ObjectMeta(name="n"), status=NodeStatus(allocatable=offered))


def zone(zone_id: int | str, costs: Mapping[int, int] | None = None, **free: str | int) -> PublishedZone:
    name = f"node-{zone_id}" if isinstance(zone_id, int) else zone_id
    resources = tuple(
        Resource(name=name, capacity="100Gi", allocatable="50Gi", available=str(amount))
        for name, amount in named(free).items()
    )
    distances = tuple(Cost(name=f"node-{other}", value=cost) for other, cost in (costs or {}).items())
    return PublishedZone(name=name, type="Node", costs=distances, resources=resources)


def report(
    *zones: PublishedZone, scope: str = "container", policy: str = SINGLE, max_zones: str = "8"
) -> NodeResourceTopology:
    settings = {
        "topologyManagerPolicy": policy,
        "topologyManagerScope": scope,
        "topologyManagerMaxNUMANodes": max_zones,
    }
    attributes = tuple(Attribute(name=name, value=value) for name, value in settings.items())
    return NodeResourceTopology(metadata=ObjectMeta(name="n"), zones=zones, attributes=attributes)


def seen(*zones: PublishedZone, scope: str = "container", policy: str = SINGLE, max_zones: str = "8") -> Seen:
    return Seen(reading=numanodes.read(report(*zones, scope=scope, policy=policy, max_zones=max_zones)))


def ref(pod: str, container: str = "c") -> ContainerRef:
    return ContainerRef("ns", pod, container)
