"""Answers a question about a cluster with numalign's rules, in the form of the real scheduler's answer.

`judge` compares the two. The rules are those of the default profile in its order, which decides whose refusal a node
reports (kube-scheduler spec 1.1), with the settings and the objects of the case. How the framework combines the answers
of plugins is repeated here (kube-scheduler spec 4.6, 4.7), so that the weights of scores are compared too."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct

from numalign.api.decode import decode
from numalign.api.decode.structs import Wire
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from numalign.api.objects.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from numalign.api.schedulerconfig.pluginargs import (
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    VolumeBindingArgs,
)
from numalign.oracle.harness.divergence import Raw
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodes.imagelocality import ImageLocality
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.nodes.nodeports import NodePorts
from numalign.placement.rules.nodes.nodespec import NodeDeclaredFeatures, NodeName, NodeUnschedulable, TaintToleration
from numalign.placement.rules.pods.interpodaffinity import InterPodAffinity
from numalign.placement.rules.pods.matchers import Namespaces
from numalign.placement.rules.pods.owners import Controller, Owners
from numalign.placement.rules.pods.podcounts import PodCounts
from numalign.placement.rules.pods.podterms import PodTerms
from numalign.placement.rules.pods.podtopologyspread import PodTopologySpread
from numalign.placement.rules.resources.balanced import NodeResourcesBalancedAllocation
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.placement.rules.rule import FITS, FilterRule, Refusal, ScoreRule
from numalign.placement.rules.volumes.nodevolumelimits import AttachedVolumes, NodeVolumeLimits
from numalign.placement.rules.volumes.volumebinding import VolumeBinding
from numalign.placement.rules.volumes.volumerestrictions import VolumeRestrictions, VolumeUsers
from numalign.placement.rules.volumes.volumestock import VolumeStock
from numalign.placement.rules.volumes.volumezone import VolumeZone

T = TypeVar("T", bound=Wire)


class RuleInputs(Struct, frozen=True):
    """The state that the rules read."""

    world: ClusterState
    stock: VolumeStock
    namespaces: Namespaces
    owners: Owners


def read(snapshot: Raw) -> RuleInputs:
    seen = RuleInputs(ClusterState(), VolumeStock(), Namespaces(), Owners())
    for namespace in _each(Namespace, snapshot, "namespaces"):
        seen.namespaces.put(namespace.metadata.name, namespace.metadata.labels)
    for service in _each(Service, snapshot, "services"):
        seen.owners.put_service(service)
    for controller in _controllers(snapshot):
        seen.owners.put_controller(controller)
    _stock(seen.stock, snapshot)
    _populate(seen.world, snapshot)
    return seen


def _controllers(snapshot: Raw) -> Iterator[Controller]:
    yield from _each(ReplicationController, snapshot, "replicationControllers")
    yield from _each(ReplicaSet, snapshot, "replicaSets")
    yield from _each(StatefulSet, snapshot, "statefulSets")


def _stock(stock: VolumeStock, snapshot: Raw) -> None:
    for volume in _each(PersistentVolume, snapshot, "persistentVolumes"):
        stock.volumes.put(volume)
    for claim in _each(PersistentVolumeClaim, snapshot, "persistentVolumeClaims"):
        stock.claims.put(claim)
    for storage_class in _each(StorageClass, snapshot, "storageClasses"):
        stock.classes.put(storage_class)
    for node in _each(CSINode, snapshot, "csiNodes"):
        stock.nodes.put(node)
    for driver in _each(CSIDriver, snapshot, "csiDrivers"):
        stock.drivers.put(driver)
    for capacity in _each(CSIStorageCapacity, snapshot, "csiStorageCapacities"):
        stock.capacities.put(capacity)
    for attachment in _each(VolumeAttachment, snapshot, "volumeAttachments"):
        stock.attachments.put(attachment)


def _populate(world: ClusterState, snapshot: Raw) -> None:
    """Add nodes and their pods. Pods on missing nodes get rows without a node."""
    rows: dict[str, int] = {}
    for node in _each(Node, snapshot, "nodes"):
        row = rows.setdefault(node.metadata.name, len(rows))
        world.put_node(row, node)
    for pod in _each(Pod, snapshot, "pods"):
        if pod.spec.node_name and not pod.status.is_finished:
            world.put_pod(pod.metadata.uid, rows.setdefault(pod.spec.node_name, len(rows)), pod)


def _each(kind: type[T], snapshot: Raw, field: str) -> list[T]:
    return [decode.decode(kind, raw) for raw in snapshot.get(field) or ()]


Args = TypeVar("Args", bound=Wire)

WEIGHTS: Final = {"TaintToleration": 3, "NodeAffinity": 2, "PodTopologySpread": 2, "InterPodAffinity": 2}
"""Weights of scores in the default profile; all others count once."""


class RuleSet(Struct, frozen=True):
    world: ClusterState
    filters: tuple[FilterRule[Any], ...]
    scores: tuple[ScoreRule[Any], ...]


class ProfileSettings:
    """A profile's plugin configuration."""

    def __init__(self, profile: Raw) -> None:
        self._args = {each["name"]: each["args"] for each in profile.get("pluginConfig") or ()}

    def of(self, plugin: str, kind: type[Args]) -> Args:
        return decode.decode(kind, self._args.get(plugin, {}))


def build(case: Raw) -> RuleSet:
    seen, settings = read(case["snapshot"]), ProfileSettings(case.get("profile") or {})
    world, stock = seen.world, seen.stock
    counts = PodCounts(world)
    taints = TaintToleration()
    nodes = NodeAffinity(settings.of("NodeAffinity", NodeAffinityArgs).added_affinity)
    fit = NodeResourcesFit(settings.of("NodeResourcesFit", NodeResourcesFitArgs))
    binding = VolumeBinding(stock, settings.of("VolumeBinding", VolumeBindingArgs))
    spread = PodTopologySpread(counts, seen.owners, settings.of("PodTopologySpread", PodTopologySpreadArgs))
    affinity = InterPodAffinity(
        counts, PodTerms(world), seen.namespaces, settings.of("InterPodAffinity", InterPodAffinityArgs)
    )
    balanced = NodeResourcesBalancedAllocation(
        settings.of("NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocationArgs)
    )
    filters = (
        *(NodeName(), NodeUnschedulable(), taints, nodes, NodePorts(), fit),
        *(VolumeRestrictions(stock, VolumeUsers(world)), NodeVolumeLimits(stock, AttachedVolumes(world, stock))),
        *(binding, VolumeZone(stock), spread, affinity, NodeDeclaredFeatures()),
    )
    return RuleSet(world, filters, (taints, nodes, fit, binding, spread, affinity, balanced, ImageLocality()))


Answer = dict[str, Any]


SUCCESS: Final = "Success"
REFUSED: Final = "Unschedulable"
UNRESOLVABLE: Final = "UnschedulableAndUnresolvable"


class RuleCycle:
    """One pod in one scheduling cycle through all rules."""

    def __init__(self, stage: RuleSet, pod: Pod) -> None:
        self.stage, self.pod, self.world = stage, pod, stage.world
        self.pre_filters: Answer = {}
        self.asked: list[tuple[FilterRule[Any], Any]] = []
        for rule in stage.filters:
            self._prepare(rule)

    def _prepare(self, rule: FilterRule[Any]) -> None:
        prepared = rule.prepare(self.pod, self.world)
        if isinstance(prepared, Refusal):
            self.pre_filters[rule.name] = {**_status(prepared), "nodes": None}
        elif prepared is not None:
            self.asked.append((rule, prepared))
            if prepared.only is not None:
                self.pre_filters[rule.name] = {"code": SUCCESS, "reasons": [], "nodes": sorted(prepared.only)}

    def filters(self) -> Answer:
        """The refusals by node and plugin."""
        said: Answer = {}
        for rule, prepared in self.asked:
            codes = rule.filter(prepared)
            for name, row in self.world.rows.items():
                if codes[row] != FITS:
                    said.setdefault(name, {})[rule.name] = _status(prepared.refusals[int(codes[row])])
        return said

    def what_if(self, change: Raw) -> Answer:
        row, removed = self.world.rows[change["node"]], change.get("removed") or ()
        added = [decode.decode(Pod, raw) for raw in change.get("added") or ()]
        said: Answer = {}
        for rule, prepared in self.asked:
            code = rule.filter_row(prepared, row, removed, added)
            if code != FITS:
                said[rule.name] = _status(prepared.refusals[code])
        return said

    def scores(self, feasible: Iterable[str]) -> Answer:
        names = list(feasible)
        rows = np.array([self.world.rows[name] for name in names], np.intp)
        raw: Answer = {}
        normalized: Answer = {}
        for rule in self.stage.scores:
            prepared = rule.prepare_score(self.pod, self.world, rows)
            if prepared is not None:
                given = rule.score(prepared, rows)
                raw[rule.name] = _by_name(names, given)
                normalized[rule.name] = _by_name(names, rule.normalized(prepared, given))
        return {"raw": raw, "normalized": normalized, "totals": {name: _total(normalized, name) for name in names}}


def answer(stage: RuleSet, question: Raw) -> Answer:
    cycle = RuleCycle(stage, decode.decode(Pod, question["pod"]))
    filters, merged = cycle.filters(), _merged(cycle.pre_filters)
    made: Answer = {"pre_filter": merged, "pre_filters": cycle.pre_filters, "filters": filters, "verdicts": {}}
    if merged["code"] != SUCCESS:
        return made
    looked_at = [name for name in cycle.world.rows if merged["nodes"] is None or name in merged["nodes"]]
    made["verdicts"] = {name: _first(filters[name], cycle) for name in looked_at if name in filters}
    if question.get("what_if"):
        made["what_if"] = [cycle.what_if(change) for change in question["what_if"]]
    if feasible := [name for name in looked_at if name not in filters]:
        made["scores"] = cycle.scores(feasible)
    return made


def _merged(pre_filters: Mapping[str, Answer]) -> Answer:
    """The combined result; plugins are in the order in which they ran."""
    nodes: set[str] | None = None
    refusal: Answer | None = None
    plugins: list[str] = []
    for name, said in pre_filters.items():
        if said["code"] == UNRESOLVABLE:
            return {**said, "plugin": name, "plugins": []}
        if said["code"] == REFUSED:
            refusal = {**said, "plugin": name}
            continue
        plugins.append(name)
        nodes = set(said["nodes"]) if nodes is None else nodes & set(said["nodes"])
        if not nodes:
            return {
                "code": UNRESOLVABLE,
                "reasons": [_nowhere(sorted(plugins))],
                "nodes": [],
                "plugins": sorted(plugins),
            }
    left = None if nodes is None else sorted(nodes)
    return {**(refusal or {"code": SUCCESS, "reasons": []}), "nodes": left, "plugins": sorted(plugins)}


def _nowhere(plugins: list[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"


def _first(refusals: Mapping[str, Answer], cycle: RuleCycle) -> Answer:
    name = next(rule.name for rule, _ in cycle.asked if rule.name in refusals)
    return {**refusals[name], "plugin": name}


def _status(refusal: Refusal) -> Answer:
    return {"code": UNRESOLVABLE if refusal.unresolvable else REFUSED, "reasons": sorted(refusal.reasons)}


def _by_name(names: list[str], scores: Iterable[Any]) -> dict[str, int]:
    return {name: int(score) for name, score in zip(names, scores, strict=True)}


def _total(normalized: Mapping[str, Mapping[str, int]], name: str) -> int:
    return sum(WEIGHTS.get(plugin, 1) * scores[name] for plugin, scores in normalized.items())
