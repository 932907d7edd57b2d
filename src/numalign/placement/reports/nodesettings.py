"""How the kubelet behind a report is configured: as the report says, else as its amounts and the Node suggest.

`read` turns the settings into rules and `commit.restorekubelet` starts a kubelet with them. Each assumption is added to
the caller's set, so that it is never mistaken for something that the node reported."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache

from numalign.api.attributes import directmode
from numalign.api.attributes.managers import ManagerPolicies
from numalign.api.attributes.repairs import GuessCode
from numalign.api.decode.quantity import Quantity
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects import resourcenames
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeInfo, NodeStatus
from numalign.kubelet import settings, versions
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import Settings
from numalign.placement.columns.nodefacts import Assumption

STATIC_CPUS = "static"
STATIC_MEMORY = "Static"
MAKES = 1024
"""Number of Nodes that are cached."""
UNSAID = frozenset({GuessCode.POLICY_ASSUMED, GuessCode.SCOPE_ASSUMED})


def read(topology: NodeTopology, node: Node | None, noted: set[Assumption]) -> Settings:
    """The settings, without reservations: those are amounts."""
    if is_assumed(topology):
        noted.add(Assumption.POLICY_FROM_KUBELET_DEFAULT)
    managers = topology.facts.managers or _from_amounts(topology, noted)
    build = topology.facts.kubelet
    return Settings(
        topology_policy=topology.manager.policy,
        topology_scope=topology.manager.scope,
        topology_options=managers.topology_options,
        cpu_policy="static" if managers.cpu == STATIC_CPUS else "none",
        cpu_options=managers.cpu_options,
        memory_policy="Static" if managers.memory == STATIC_MEMORY else "None",
        feature_gates=build.feature_gates if build else {},
        minor=minor(build.version if build else "", node, noted),
    )


def is_assumed(topology: NodeTopology) -> bool:
    """Whether the report omits the Topology Manager's policy or scope."""
    return any(guess.code in UNSAID for guess in topology.guesses)


def minor(version: str, node: Node | None, noted: set[Assumption]) -> versions.Minor:
    """The kubelet's minor: from the agent's version text, else from the Node, else the newest."""
    found = _minor(version) or (_minor(node.status.node_info.kubelet_version) if node else None)
    if found is None:
        noted.add(Assumption.MINOR_ASSUMED)
    return found or versions.NEWEST


_minor = lru_cache(maxsize=MAKES)(versions.parse)


def essence(node: Node) -> Node:
    """The parts of a Node that reports are read with; equal Nodes share one object."""
    capacity = tuple((sys.intern(name), amount) for name, amount in node.status.capacity.items())
    found = node.metadata.labels
    labels = tuple((name, found[name]) for name in directmode.LABELS if name in found)
    return _essence(node.status.node_info.kubelet_version, capacity, labels)


@lru_cache(maxsize=MAKES)
def _essence(version: str, capacity: tuple[tuple[str, Quantity], ...], labels: tuple[tuple[str, str], ...]) -> Node:
    status = NodeStatus(capacity=dict(capacity), node_info=NodeInfo(kubelet_version=version))
    return Node(metadata=ObjectMeta(labels=dict(labels)), status=status)


def switched_on(chosen: Mapping[str, str]) -> frozenset[str]:
    """The names of options that are true, as the kubelet reads truth; a kubelet with any other text would not run."""
    return frozenset(name for name, text in chosen.items() if _is_on(name, text))


def _from_amounts(topology: NodeTopology, noted: set[Assumption]) -> ManagerPolicies:
    """Publishers report as allocatable only what a static policy could hand out (exporter spec 2.5)."""
    static = _is_allocatable(topology, resourcenames.CPU)
    noted |= {Assumption.CPU_POLICY_FROM_AMOUNTS, Assumption.MEMORY_POLICY_FROM_AMOUNTS}
    if static:
        noted.add(Assumption.CPU_OPTIONS_NONE)
    return ManagerPolicies(
        cpu=STATIC_CPUS if static else "none",
        memory=STATIC_MEMORY if _is_allocatable(topology, resourcenames.MEMORY) else "None",
    )


def _is_allocatable(topology: NodeTopology, resource: str) -> bool:
    amounts = (zone.resources.get(resource) for zone in topology.zones)
    return any(each is not None and each.allocatable > 0 for each in amounts)


def _is_on(name: str, text: str) -> bool:
    try:
        return settings.boolean_option(name, text, settings.CPU_OPTIONS)
    except StartRefusal:
        return False
