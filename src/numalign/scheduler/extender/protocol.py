"""The messages of the scheduler extender protocol, version 1, with the field names that kube-scheduler uses.

`http.extenderserver` reads and writes them, `extender` computes the answers. Pods and nodes inside are ordinary objects
of the Kubernetes API. The answer of `filter` has the form of the question: names where kube-scheduler sent names, whole
nodes where it sent those (kube-scheduler spec 5.2 and 5.3)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import field

from numalign.api.decode.structs import Wire
from numalign.api.objects.pod import Pod

VICTIMS: Final = {"pods": "Pods", "violations": "NumPDBViolations"}
WholeNode = dict[str, Any]
"""Returned as it came."""


class NodeList(Wire, frozen=True):
    items: tuple[WholeNode, ...] = ()


class ExtenderArgs(Wire, frozen=True, rename="pascal"):
    """The request of `filter` and `prioritize`."""

    pod: Pod
    nodes: NodeList | None = None
    node_names: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        if self.node_names is not None:
            return self.node_names
        return tuple(name_of(each) for each in self.nodes.items) if self.nodes is not None else ()


def name_of(node: WholeNode) -> str:
    metadata = node.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


class FilterResult(Wire, frozen=True, omit_defaults=False, rename="pascal"):
    nodes: NodeList | None = None
    node_names: tuple[str, ...] | None = None
    failed_nodes: dict[str, str] = field(default_factory=dict)
    failed_and_unresolvable_nodes: dict[str, str] = field(default_factory=dict)
    """Evicting pods does not help there."""
    error: str = ""


class HostPriority(Wire, frozen=True, omit_defaults=False, rename="pascal"):
    host: str
    score: int
    """From 0 to 10."""


class MetaPod(Wire, frozen=True, omit_defaults=False, rename={"uid": "UID"}):
    uid: str


class MetaVictims(Wire, frozen=True, omit_defaults=False, rename=VICTIMS):
    """Pods to evict from a node, the most important first."""

    pods: tuple[MetaPod, ...] | None = None
    violations: int = 0
    """How many of them a disruption budget protects."""

    @property
    def uids(self) -> tuple[str, ...]:
        return tuple(each.uid for each in self.pods or ())


class WholeVictims(Wire, frozen=True, rename=VICTIMS):
    pods: tuple[Pod, ...] | None = None
    violations: int = 0


class PreemptionArgs(Wire, frozen=True, rename="pascal"):
    """The request of `preempt`. Up to Kubernetes 1.37 every node has victims, which kube-scheduler chose without
    regard to zones; from 1.38 on, nodes that only an extender refuses have none."""

    pod: Pod
    node_name_to_victims: dict[str, WholeVictims | None] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims | None] | None = None

    @property
    def nodes(self) -> int:
        """How many are asked about."""
        return len(self.node_name_to_meta_victims or self.node_name_to_victims or ())

    @property
    def candidates(self) -> dict[str, MetaVictims]:
        """By node."""
        if self.node_name_to_meta_victims is not None:
            return {node: each or MetaVictims() for node, each in self.node_name_to_meta_victims.items()}
        whole = self.node_name_to_victims or {}
        return {node: _meta(each) if each is not None else MetaVictims() for node, each in whole.items()}


def _meta(victims: WholeVictims) -> MetaVictims:
    return MetaVictims(tuple(MetaPod(each.metadata.uid) for each in victims.pods or ()), victims.violations)


class PreemptionResult(Wire, frozen=True, omit_defaults=False, rename="pascal"):
    node_name_to_meta_victims: dict[str, MetaVictims] = field(default_factory=dict)


class BindingArgs(Wire, frozen=True, rename={"name": "PodName", "namespace": "PodNamespace", "uid": "PodUID"}):
    name: str
    namespace: str
    uid: str
    node: str = field(name="Node")


class BindingAnswer(Wire, frozen=True, omit_defaults=False, rename="pascal"):
    error: str = ""
    """Empty: the pod is bound."""
