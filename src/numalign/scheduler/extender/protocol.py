"""The messages of the scheduler extender protocol, version 1, with the field names that kube-scheduler uses.

`http.extenderserver` reads and writes them, `extender` computes the answers. Pods and nodes inside are ordinary objects
of the Kubernetes API. The answer of `filter` has the form of the question: names where kube-scheduler sent names, whole
nodes where it sent those (kube-scheduler spec 5.2 and 5.3)."""

from __future__ import annotations

from typing import Any

from msgspec import field

from numalign.api.decode.structs import Wire
from numalign.api.objects.pod import Pod

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


class BindingArgs(Wire, frozen=True, rename={"name": "PodName", "namespace": "PodNamespace", "uid": "PodUID"}):
    name: str
    namespace: str
    uid: str
    node: str = field(name="Node")


class BindingAnswer(Wire, frozen=True, omit_defaults=False, rename="pascal"):
    error: str = ""
    """Empty: the pod is bound."""
