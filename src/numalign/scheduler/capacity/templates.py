"""Makes nodes that do not exist, for questions about them: a scratch cluster with a Node and a report for each.

`service` and the autoscaler bridges call it. A machine preset starts a kubelet model with the given configuration, and
its report is that of an empty node. An instance type is learnt from a node of the cluster: its report as if no pod were
on it. A node that nothing is known about has no report, and its totals alone decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct, structs

from numalign.api.decode import quantity
from numalign.api.decode.quantity import Quantity
from numalign.api.errors import BadObject, clipped
from numalign.api.nrt import normalise, wire
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects import resourcenames
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeStatus
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kubelet import configuration, start
from numalign.kubelet.machine import presets
from numalign.kubelet.refusals import StartRefusal, Undecided
from numalign.kubelet.report import report, zonetable
from numalign.kubelet.start import Kubelet
from numalign.placement.commit import restorekubelet
from numalign.placement.engine import Engine
from numalign.placement.rules.clusterstate import ClusterState
from numalign.scheduler import settings
from numalign.scheduler.capacity.messages import TemplateRequest
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.plugins import Plugins
from numalign.scheduler.profiles import Profile

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
TOPOLOGY = "numalign.io/template-topology"
MACHINE = "numalign.io/template-machine"
KUBELET = "numalign.io/template-kubelet"
"""Annotations of template Nodes: a NodeResourceTopology as JSON; a machine preset, and fields of a KubeletConfiguration
as JSON."""
PODS = "pods"
DEFAULT_PODS = 110


class TemplateNode(Struct, frozen=True):
    """A node that does not exist. `topology` None: nothing is known about its zones."""

    node: Node
    topology: NodeTopology | None = None
    note: str = ""
    """Where the zones come from, if not from the request."""


class ScratchCluster(Struct, frozen=True):
    """Templates as nodes of a cluster of their own, with the profiles of the scheduler."""

    cluster: Cluster
    profiles: Mapping[str, Profile]
    notes: tuple[str, ...]


def scratch(config: Configuration, templates: Iterable[TemplateNode]) -> ScratchCluster:
    made = Scratch(config)
    for each in templates:
        made.add(each)
    return made.cluster()


class Scratch:
    """Makes a scratch cluster template by template, so that other tasks can run in between."""

    def __init__(self, config: Configuration) -> None:
        world = ClusterState()
        self._config, self._stock = config, Plugins(world)
        self._cluster = Cluster(Engine(settings.engine(config)), world)
        self._notes: dict[str, None] = {}

    def add(self, template: TemplateNode) -> None:
        self._cluster.node(template.node)
        if template.topology is not None:
            written = normalise.encode(renamed(template.topology, template.node.metadata.name))
            self._cluster.report(written, 0.0)
        if template.note:
            self._notes[template.note] = None

    def cluster(self) -> ScratchCluster:
        profiles = {each.scheduler_name: self._stock.profile(each) for each in self._config.profiles}
        return ScratchCluster(self._cluster, profiles, tuple(self._notes))


class InstanceTypes:
    """The instance types that nodes of the cluster have, for one request."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made: dict[str, TemplateNode] = {}

    @cached_property
    def _nodes(self) -> dict[str, str]:
        """By instance type, the first node by name that has a report."""
        cluster, found = self._cluster, dict[str, str]()
        for name in sorted(cluster.engine.rows):
            node = cluster.node_named(name)
            kind = node.metadata.labels.get(INSTANCE_TYPE, "") if node is not None else ""
            is_reported = cluster.report_of(name) is not None and not cluster.engine.lacks_report(name)
            if kind and kind not in found and is_reported:
                found[kind] = name
        return found

    def like(self, instance_type: str) -> TemplateNode | None:
        """A node of this type as if it were empty; None: no such node has a report."""
        name = self._nodes.get(instance_type, "")
        node, written = self._cluster.node_named(name), self._cluster.report_of(name)
        if node is None or written is None:
            return None
        if name not in self._made:
            note = f"zones of instance type {instance_type} as node {name} has them"
            self._made[name] = TemplateNode(_cleared(node), emptied(normalise.normalise(written)), note)
        return self._made[name]


def made(asked: TemplateRequest, name: str, types: InstanceTypes) -> TemplateNode:
    """BadObject if the template names nothing that is known."""
    given = [each for each in (asked.machine, asked.instance_type, asked.topology) if each]
    if len(given) != 1:
        why = "needs exactly one of machine, instanceType and topology"
        raise BadObject("Template", name, "", why)
    if asked.topology is not None:
        topology = normalise.normalise(asked.topology)
        return TemplateNode(_renamed(asked.node or _node_of(topology), name), topology)
    if asked.machine:
        kubelet = _kubelet(asked, name)
        own = asked.node or node_of(kubelet)
        return TemplateNode(_renamed(own, name), report.of(name, kubelet, kubelet.initial()))
    found = types.like(asked.instance_type)
    if found is None:
        label = f"{INSTANCE_TYPE}={clipped(asked.instance_type)}"
        why = f"no node with a report has the label {label}; give machine or topology"
        raise BadObject("Template", name, "instanceType", why)
    return structs.replace(found, node=_renamed(asked.node or found.node, name))


def of_node(node: Node, types: InstanceTypes) -> TemplateNode:
    """A Node of an autoscaler's template: its zones by its own annotations, else by its instance type, else unknown.

    BadObject if an annotation makes no sense."""
    notes, name = node.metadata.annotations, node.metadata.name
    if TOPOLOGY in notes:
        return TemplateNode(node, normalise.normalise(wire.decode(notes[TOPOLOGY].encode())))
    if MACHINE in notes:
        asked = TemplateRequest(machine=notes[MACHINE], kubelet=_fields(notes.get(KUBELET, "{}"), name))
        kubelet = _kubelet(asked, name)
        return TemplateNode(node, report.of(name, kubelet, kubelet.initial()))
    instance_type = node.metadata.labels.get(INSTANCE_TYPE, "")
    found = types.like(instance_type) if instance_type else None
    return TemplateNode(node) if found is None else structs.replace(found, node=node)


def _fields(text: str, name: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (ValueError, RecursionError) as problem:
        raise BadObject("Node", name, f"metadata.annotations[{KUBELET}]", f"is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise BadObject("Node", name, f"metadata.annotations[{KUBELET}]", "is not a JSON object")
    return found


def emptied(topology: NodeTopology) -> NodeTopology:
    """The report of the node if no pod were on it: by its kubelet where our agent describes it, else by amounts."""
    restored = restorekubelet.restored(topology, {})
    if restored is not None:
        found = report.of(topology.node, restored.kubelet, restored.kubelet.initial())
        return structs.replace(found, manager=topology.manager)
    zones = tuple(
        structs.replace(
            zone,
            resources={
                name: structs.replace(amounts, available=amounts.allocatable)
                for name, amounts in zone.resources.items()
            },
        )
        for zone in topology.zones
    )
    facts = structs.replace(topology.facts, default_cpus=None, memory=None, devices=None, placements=None)
    return structs.replace(topology, zones=zones, fingerprint=None, placement=None, facts=facts)


def renamed(topology: NodeTopology, node: str) -> NodeTopology:
    """The same report for a node of another name."""
    return structs.replace(topology, node=node)


def _kubelet(asked: TemplateRequest, name: str) -> Kubelet:
    machine = presets.machine(asked.machine)
    config = {**asked.kubelet, **configuration.HEAD}
    try:
        return start.start(machine, configuration.read(config, f"template {name}", machine))
    except (StartRefusal, Undecided) as refusal:
        raise BadObject("Template", name, "kubelet", f"the kubelet would not start: {refusal}") from None


def node_of(kubelet: Kubelet) -> Node:
    """A Node without a name that offers what the kubelet would report."""
    totals = zonetable.of(kubelet, kubelet.initial()).totals
    offered = {name: _amount(name, each.allocatable) for name, each in totals.items()}
    return _offering({**offered, PODS: quantity.of(kubelet.settings.max_pods)})


def _node_of(topology: NodeTopology) -> Node:
    """A Node that offers what its zones have together."""
    sums: dict[str, int] = {}
    for zone in topology.zones:
        for name, amounts in zone.resources.items():
            sums[name] = sums.get(name, 0) + amounts.allocatable
    return _offering({name: _amount(name, sums[name]) for name in sums} | {PODS: quantity.of(DEFAULT_PODS)})


def _offering(amounts: Mapping[str, Quantity]) -> Node:
    return Node(status=NodeStatus(capacity=dict(amounts), allocatable=dict(amounts)))


def _amount(name: str, amount: int) -> Quantity:
    return quantity.of_milli(amount) if name == resourcenames.CPU else quantity.of(amount)


def _renamed(node: Node, name: str) -> Node:
    return structs.replace(node, metadata=structs.replace(node.metadata, name=name))


def _cleared(node: Node) -> Node:
    """Like the node when it is new: schedulable, and without what was written on this one."""
    metadata = ObjectMeta(labels=node.metadata.labels)
    return structs.replace(node, metadata=metadata, spec=structs.replace(node.spec, unschedulable=False))
