"""Pods with labels in namespaces, on nodes with labels, and the rules that look at both: words for their tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.pluginargs import InterPodAffinityArgs, PodTopologySpreadArgs
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.pods.interpodaffinity import InterPodAffinity
from numalign.placement.rules.pods.podtopologyspread import PodTopologySpread
from tests.unit.placement.rules import worlds
from tests.unit.placement.rules.surroundings import Surroundings

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WEB = {"matchLabels": {"app": "web"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Place:
    """A world, what follows it, and the rules."""

    def __init__(self, world: ClusterState) -> None:
        self.world, self.around = world, Surroundings(world)

    def spreading(self, **args: Any) -> PodTopologySpread:
        return PodTopologySpread(self.around.counts, self.around.owners, decode.decode(PodTopologySpreadArgs, args))

    def affinity(self, **args: Any) -> InterPodAffinity:
        around = self.around
        settings = decode.decode(InterPodAffinityArgs, args)
        return InterPodAffinity(around.counts, around.terms, around.namespaces, settings)


def pod(labels: Mapping[str, str] | None = None, *, namespace: str = "default", **spec: Any) -> Pod:
    metadata = {"name": "pod", "uid": "pod", "namespace": namespace, "labels": dict(labels or {})}
    if spec.pop("leaving", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if "owner" in spec:
        metadata["ownerReferences"] = [spec.pop("owner") | {"controller": True}]
    return decode.decode(Pod, {"metadata": metadata, "spec": spec})


def web(**more: Any) -> Pod:
    return pod({"app": "web"}, **more)


def place(nodes: Mapping[str, Mapping[str, str]], pods: Mapping[str, Sequence[Pod]] | None = None) -> Place:
    """Nodes by name with their labels; pods by node."""
    return Place(worlds.world([worlds.node(name, labels=dict(labels)) for name, labels in nodes.items()], pods))


def in_zones(**zones: int) -> Place:
    """One node per zone, named like it, with so many web pods."""
    nodes = {zone: {ZONE: zone, HOST: zone} for zone in zones}
    return place(nodes, {zone: [web()] * count for zone, count in zones.items()})


def constraint(key: str = ZONE, **fields: Any) -> dict[str, Any]:
    written = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
    return written | fields


def should(key: str = ZONE, **fields: Any) -> dict[str, Any]:
    return constraint(key, whenUnsatisfiable="ScheduleAnyway", **fields)


def term(key: str = ZONE, **fields: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": WEB} | fields


def near(*terms: Mapping[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def away(*terms: Mapping[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def liking(weight: int, one: Mapping[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": one}]}}


def avoiding(weight: int, one: Mapping[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": one}]}}
