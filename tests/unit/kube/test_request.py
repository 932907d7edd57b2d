"""What goes over the wire, read off the value."""

import json
from typing import Any

import pytest

from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod, PodSpec
from numalign.kube import request
from numalign.kube.request import Repeat, Request, Selection, Since
from numalign.kube.resources import (
    LEASES,
    NODES,
    PODS,
    TOPOLOGIES,
    Binding,
    DeleteOptions,
    NodeTarget,
    Preconditions,
    Target,
)

WEB = PODS.at("web", "default")
RUNNING = Selection(fields="status.phase!=Succeeded,status.phase!=Failed")

TARGETS: dict[str, tuple[Target[Any], str, str]] = {
    "a pod": (WEB, "/api/v1/namespaces/default/pods/web", "Pod default/web"),
    "its status": (WEB.sub("status"), "/api/v1/namespaces/default/pods/web/status", "Pod default/web"),
    "all pods": (PODS.everywhere(), "/api/v1/pods", "pods"),
    "pods of a namespace": (PODS.within("a"), "/api/v1/namespaces/a/pods", "pods in a"),
    "a node": (NODES.at("n1"), "/api/v1/nodes/n1", "Node n1"),
    "a lease": (
        LEASES.at("numalign", "kube-system"),
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/numalign",
        "Lease kube-system/numalign",
    ),
    "reports": (
        TOPOLOGIES.everywhere(),
        "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies",
        TOPOLOGIES.plural,
    ),
    "a name that is a path": (NODES.at("../x?y"), "/api/v1/nodes/..%2Fx%3Fy", "Node ../x?y"),
}


@pytest.mark.parametrize("target, path, words", TARGETS.values(), ids=TARGETS)
def test_where_things_are(target: Target[Any], path: str, words: str) -> None:
    assert (target.path, target.words) == (path, words)


REQUESTS = {
    "get": (request.get(WEB), "GET /api/v1/namespaces/default/pods/web"),
    "first page": (request.page(NODES.everywhere(), request.EVERYTHING), "GET /api/v1/nodes?limit=500"),
    "next page": (
        request.page(NODES.everywhere(), request.EVERYTHING, 10, "a=b&c"),
        "GET /api/v1/nodes?limit=10&continue=a%3Db%26c",
    ),
    "selected": (
        request.page(PODS.everywhere(), RUNNING, 0),
        "GET /api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed",
    ),
    "watch": (
        request.watch(NODES.everywhere(), request.EVERYTHING, Since(version="7", seconds=300)),
        "GET /api/v1/nodes?watch=1&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300",
    ),
    "watch from the beginning": (
        request.watch(NODES.everywhere(), request.EVERYTHING, Since(version="", seconds=300, initial=True)),
        "GET /api/v1/nodes?watch=1&allowWatchBookmarks=true&timeoutSeconds=300"
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    ),
    "delete": (request.delete(WEB), "DELETE /api/v1/namespaces/default/pods/web"),
    "apply": (
        request.apply(WEB, {}, "numalign", force=True),
        "PATCH /api/v1/namespaces/default/pods/web?fieldManager=numalign&force=true",
    ),
}


@pytest.mark.parametrize("made, line", REQUESTS.values(), ids=REQUESTS)
def test_the_first_line_of_a_request(made: Request, line: str) -> None:
    assert f"{made.method} {made.target}" == line


BODIES: dict[str, tuple[Request, str, Any]] = {
    "created with kind and version": (
        request.create(PODS.within("default"), Pod(ObjectMeta(name="web"), PodSpec(node_name="n1"))),
        "application/json",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"nodeName": "n1"}},
    ),
    "a document keeps its own": (
        request.update(WEB, {"kind": "Other", "x": 1}),
        "application/json",
        {"apiVersion": "v1", "kind": "Other", "x": 1},
    ),
    "json patch": (
        request.patch(WEB, "json", [{"op": "remove", "path": "/x"}]),
        "application/json-patch+json",
        [{"op": "remove", "path": "/x"}],
    ),
    "merge patch": (request.patch(WEB, "merge", {"x": None}), "application/merge-patch+json", {"x": None}),
    "strategic patch": (request.patch(WEB, "strategic", {}), "application/strategic-merge-patch+json", {}),
    "apply": (
        request.apply(WEB, {"x": 1}, "m"),
        "application/apply-patch+yaml",
        {"apiVersion": "v1", "kind": "Pod", "x": 1},
    ),
    "deletion of exactly this one": (
        request.delete(WEB, DeleteOptions(0, preconditions=Preconditions(uid="u"))),
        "application/json",
        {"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}},
    ),
    "binding": (
        request.post("bind", WEB.sub("binding"), Binding(ObjectMeta(name="web", uid="u"), NodeTarget("n1"))),
        "application/json",
        {
            "metadata": {"name": "web", "uid": "u"},
            "target": {"name": "n1", "kind": "Node", "apiVersion": "v1"},
            "kind": "Binding",
            "apiVersion": "v1",
        },
    ),
}


@pytest.mark.parametrize("made, content_type, document", BODIES.values(), ids=BODIES)
def test_the_body_of_a_request(made: Request, content_type: str, document: Any) -> None:
    assert made.content_type == content_type
    assert json.loads(made.body) == document


def test_only_what_does_no_harm_twice_may_be_repeated() -> None:
    every = [made for made, _ in REQUESTS.values()] + [made for made, _, _ in BODIES.values()]
    harmless = {made.verb for made in every if made.repeat is Repeat.ALWAYS}
    assert harmless == {"get", "list", "apply"}
