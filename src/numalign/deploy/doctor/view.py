"""What checks ask about an observed cluster, derived once: nodes in scope, their topologies, their kubelets.

`diagnosis` makes one view for all checks. A node is in scope if pods can be meant for it: the selection of the user, or
every Linux node that no taint of the control plane keeps for itself. Facts about a kubelet come from the report of our
agent, from the kubelet's own /configz, or partly from the report of another publisher."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Final, TypeVar

from msgspec import Struct

from numalign.api import errors
from numalign.api.attributes.repairs import GuessCode
from numalign.api.decode import fields, quantity
from numalign.api.decode.fields import Field
from numalign.api.nrt import normalise, publishers
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects import resourcenames
from numalign.api.objects.node import Node
from numalign.deploy.doctor.observed import Observed, PublishedReport
from numalign.deploy.podtroubles import WatchedPod
from numalign.kubelet import configuration, versions

CONTROL_PLANE: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
LINUX: Final = "linux"
DEFAULT_RECONCILE: Final = 10.0
YOUNG: Final = 120.0
"""Seconds in which a new object may still become what it should be."""

Reservations = Mapping[int, Mapping[str, int]]
T = TypeVar("T")


class KubeletFacts(Struct, frozen=True, kw_only=True):
    """What is known of a kubelet's configuration. None: not known."""

    policy: str | None = None
    scope: str | None = None
    cpu: str | None = None
    memory: str | None = None
    topology_options: Mapping[str, str] | None = None
    reserved_memory: Reservations | None = None
    names_reserved_cpus: bool | None = None
    """Whether `reservedSystemCPUs` is set; otherwise the kubelet picks the CPUs."""
    reconcile_seconds: float | None = None
    problem: str = ""
    """Why /configz could not be read completely."""

    @property
    def is_complete(self) -> bool:
        return None not in (self.policy, self.cpu, self.memory)


class View(Struct, frozen=True, dict=True):
    observed: Observed
    selects: Callable[[Node], bool] | None = None
    """The user's selection of nodes; None: not given."""

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """In scope, by name."""
        selects = self.selects or self._is_for_pods
        return {each.metadata.name: each for each in self.observed.nodes if selects(each)}

    def _is_for_pods(self, node: Node) -> bool:
        if node.status.node_info.operating_system not in ("", LINUX):
            return False
        kept = any(taint.key in CONTROL_PLANE and taint.effect != "PreferNoSchedule" for taint in node.spec.taints)
        return not kept or node.metadata.name in self.reports

    @cached_property
    def node_names(self) -> frozenset[str]:
        """Of all nodes, in scope or not."""
        return frozenset(each.metadata.name for each in self.observed.nodes)

    @cached_property
    def reports(self) -> dict[str, PublishedReport]:
        return {each.metadata.name: each for each in self.observed.reports}

    @cached_property
    def topologies(self) -> dict[str, NodeTopology]:
        """Of nodes in scope that have a report."""
        return {name: normalise.normalise(self.reports[name]) for name in self.nodes if name in self.reports}

    @cached_property
    def kubelets(self) -> dict[str, KubeletFacts]:
        return {name: self._kubelet(name) for name in self.nodes}

    def _kubelet(self, name: str) -> KubeletFacts:
        topology = self.topologies.get(name)
        if topology is not None and topology.facts.managers is not None:
            return of_agent(topology)
        reported = of_report(topology) if topology is not None else KubeletFacts()
        asked = self.observed.configz.get(name)
        return reported if asked is None else of_configz(name, asked)

    @cached_property
    def aligned(self) -> frozenset[str]:
        """Nodes in scope whose policy refuses pods."""
        return frozenset(
            name for name, each in self.kubelets.items() if each.policy in ("restricted", "single-numa-node")
        )

    @cached_property
    def pods_by_owner(self) -> dict[str, list[WatchedPod]]:
        """Pods of DaemonSets, by the uid of the DaemonSet."""
        found: dict[str, list[WatchedPod]] = {}
        for pod in self.observed.pods:
            owner = pod.metadata.controller
            if owner is not None and owner.kind == "DaemonSet":
                found.setdefault(owner.uid, []).append(pod)
        return found

    def age(self, stamp: str | None) -> float | None:
        """Seconds since then; None: unknown."""
        then, now = publishers.moment(stamp), self.observed.now
        return None if then is None or now is None else (now - then).total_seconds()

    def is_young(self, stamp: str | None) -> bool:
        age = self.age(stamp)
        return age is not None and age < YOUNG

    def capacity(self, node: Node) -> dict[str, int]:
        return {name: amount.value for name, amount in node.status.capacity.items()}


def of_agent(topology: NodeTopology) -> KubeletFacts:
    managers = topology.facts.managers
    assert managers is not None
    return KubeletFacts(
        policy=topology.manager.policy,
        scope=topology.manager.scope,
        cpu=managers.cpu,
        memory=managers.memory,
        topology_options=managers.topology_options,
        reserved_memory=topology.facts.reserved_memory,
    )


def of_report(topology: NodeTopology) -> KubeletFacts:
    """What reports of other publishers have. An assumed value is not known."""
    assumed = {each.code for each in topology.guesses}
    return KubeletFacts(
        policy=None if GuessCode.POLICY_ASSUMED in assumed else topology.manager.policy,
        scope=None if GuessCode.SCOPE_ASSUMED in assumed else topology.manager.scope,
    )


def of_configz(node: str, config: Mapping[str, object]) -> KubeletFacts:
    root = fields.root(config, configuration.KIND, node)
    problems: list[str] = []

    def read(ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except errors.BadObject as problem:
            problems.append(str(problem))
            return None

    def word(key: str, default: str) -> str | None:
        return read(lambda: fields.text(root.at(key)) if root.at(key).given else default)

    reserved = read(lambda: configuration.reserved_memory(root.at("reservedMemory")))
    by_zone: dict[int, dict[str, int]] = {}
    for each in reserved or ():
        by_zone.setdefault(each.zone, {}).update(each.limits)
    cpus = word("reservedSystemCPUs", "")
    return KubeletFacts(
        policy=word("topologyManagerPolicy", "none"),
        scope=word("topologyManagerScope", "container"),
        cpu=word("cpuManagerPolicy", "none"),
        memory=word("memoryManagerPolicy", "None"),
        topology_options=read(lambda: configuration.texts(root.at("topologyManagerPolicyOptions"))),
        reserved_memory=None if reserved is None else by_zone,
        names_reserved_cpus=None if cpus is None else bool(cpus),
        reconcile_seconds=read(lambda: _seconds(root.at("cpuManagerReconcilePeriod"))),
        problem="; ".join(problems),
    )


def _seconds(field: Field) -> float:
    return fields.duration_seconds(field) if field.given else DEFAULT_RECONCILE


def minor(node: Node) -> versions.Minor | None:
    return versions.parse(node.status.node_info.kubelet_version)


def withheld_memory(node: Node) -> int | None:
    """What the kubelet keeps from pods by reservations and the eviction threshold; None: the Node does not tell.

    The kubelet subtracts it, and all hugepages, from the capacity (kubelet spec 12)."""
    capacity, allocatable = node.status.capacity, node.status.allocatable
    if resourcenames.MEMORY not in capacity or resourcenames.MEMORY not in allocatable:
        return None
    pages = sum(amount.value for name, amount in capacity.items() if resourcenames.is_hugepages(name))
    return capacity[resourcenames.MEMORY].value - allocatable[resourcenames.MEMORY].value - pages


def extended(amounts: Mapping[str, quantity.Quantity]) -> Iterator[str]:
    """Names of devices that the node offers."""
    return (name for name, amount in amounts.items() if resourcenames.is_extended(name) and amount.value > 0)
