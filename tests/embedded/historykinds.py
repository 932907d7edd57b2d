"""The kinds of objects whose histories are compared: how one is made and changed, and what only this kind knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.embedded.realserver import MEDIA
from tests.embedded.twins import JSON, Tree

APPS = ("red", "blue")
FINALIZER = "example.com/held"
PHASES = ("Pending", "Running", "Failed")

Special = Callable[[str, int], tuple[str, str, Tree, str]]
"""From a name and a value: verb, subresource, body, media type."""


@dataclass(frozen=True)
class Kind:
    name: str
    api_version: str
    path: str
    valued: Callable[[int], Tree]
    """The fields that carry a value, as a tree to be laid over the object."""
    chosen: Tree
    """What objects carry that the field selector takes."""
    fields: tuple[str, ...] = ()
    specials: tuple[Special, ...] = ()

    def made(self, name: str, labels: dict[str, str], value: int, *, last: bool = False) -> Tree:
        head = {"apiVersion": self.api_version, "kind": self.name, "metadata": {"name": name, "labels": labels}}
        return laid_over(head, laid_over(self.valued(value), self.chosen if last else {}))

    def changed(self, tree: Tree, app: str, value: int) -> Tree:
        own: Tree = json.loads(json.dumps(tree))
        return laid_over(own, self.patch(app, value))

    def patch(self, app: str, value: int) -> Tree:
        return laid_over({"metadata": {"labels": {"app": app}}}, self.valued(value))


def laid_over(under: Tree, over: Tree) -> Tree:
    """As a merge patch does it, except that objects in lists are merged one by one."""
    return {**under, **{name: _merged(under.get(name), each) for name, each in over.items()}}


def _merged(under: Any, over: Any) -> Any:
    if isinstance(under, dict) and isinstance(over, dict):
        return laid_over(under, over)
    if isinstance(under, list) and isinstance(over, list) and len(under) == len(over):
        return [_merged(one, other) for one, other in zip(under, over, strict=True)]
    return over


def bind(name: str, value: int) -> tuple[str, str, Tree, str]:
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": f"node-{value}"}}
    return "POST", "binding", {"apiVersion": "v1", "kind": "Binding", **body}, JSON


def evict(name: str, value: int) -> tuple[str, str, Tree, str]:
    return "POST", "eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}, JSON


def pod_status(name: str, value: int) -> tuple[str, str, Tree, str]:
    ready = {"type": "Ready", "status": "True" if value == 1 else "False"}
    body = {"status": {"phase": PHASES[value], "conditions": [ready]}}
    return "PATCH", "status", body, MEDIA["strategic"]


def node_status(name: str, value: int) -> tuple[str, str, Tree, str]:
    # Both, as a kubelet says them: the embedded server leaves a status as it was told.
    amounts = {"cpu": str(value + 1)}
    return "PATCH", "status", {"status": {"capacity": amounts, "allocatable": amounts}}, MEDIA["merge"]


def node_condition(name: str, value: int) -> tuple[str, str, Tree, str]:
    ready = {"type": "Ready", "status": "True" if value == 1 else "False", "reason": "Told"}
    return "PATCH", "status", {"status": {"conditions": [ready]}}, MEDIA["strategic"]


def zone(value: int) -> Tree:
    amounts = {"capacity": "8", "allocatable": "8", "available": str(value)}
    return {"name": "node-0", "type": "Node", "resources": [{"name": "cpu", **amounts}]}


PODS = Kind(
    "Pod",
    "v1",
    "/api/v1/namespaces/default/pods",
    # The account is named, as the plugin that would fill it in is switched off in the real server.
    lambda value: {
        "spec": {"containers": [{"name": "main", "image": f"web:{value}"}], "serviceAccountName": "default"}
    },
    {"spec": {"nodeName": "node-1"}},
    ("spec.nodeName=node-1",),
    (bind, pod_status, evict),
)
NODES = Kind(
    "Node",
    "v1",
    "/api/v1/nodes",
    lambda value: {"spec": {"unschedulable": value == 1}, "metadata": {"annotations": {"value": str(value)}}},
    {"spec": {"unschedulable": True}},
    ("spec.unschedulable=true",),
    (node_status, node_condition),
)
REPORTS = Kind(
    "NodeResourceTopology",
    "topology.node.k8s.io/v1alpha2",
    "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies",
    lambda value: {"zones": [zone(value)], "topologyPolicies": ["None"]},
    {},
)
KINDS = {"pods": PODS, "nodes": NODES, "topology reports": REPORTS}
