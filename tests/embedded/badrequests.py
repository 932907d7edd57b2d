"""Requests that are refused, for ours and for the real API server: what people and programs get wrong.

`FURNITURE` has to be there first. `refusals` sends them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tests.embedded import realserver

JSON: Final = "application/json"
YAML: Final = "application/yaml"
HOME: Final = "/api/v1/namespaces/default"
PODS: Final = f"{HOME}/pods"
APPS: Final = "/apis/apps/v1/namespaces/default/deployments"
REPORTS: Final = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
LABELS: Final = "labelSelector"
FIELDS: Final = "fieldSelector"
Tree = dict[str, Any]


class Request(NamedTuple):
    verb: str
    path: str
    body: Tree | list[Any] | str = ""
    media: str = JSON


def pod(name: str = "bad", metadata: Tree | None = None, **spec: Any) -> Tree:
    spec = {"containers": [{"name": "main", "image": "web"}]} | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name} | (metadata or {}), "spec": spec}


def asking(**resources: Any) -> Tree:
    return pod(containers=[{"name": "main", "image": "web", "resources": resources}])


def deployment(name: str = "bad", **spec: Any) -> Tree:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template} | spec
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def config(name: str, **more: Any) -> Tree:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def report(name: str = "bad", **more: Any) -> Tree:
    about = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology"}
    return {**about, "metadata": {"name": name}, **more}


def node(name: str, **spec: Any) -> Tree:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}


def binding(which: str, **target: str) -> Request:
    return create({"metadata": {"name": which}, "target": target}, f"{PODS}/{which}/binding")


def create(body: Any, path: str = PODS, media: str = JSON) -> Request:
    return Request("POST", path, body, media)


def patch(how: str, body: Any, path: str = f"{PODS}/web") -> Request:
    return Request("PATCH", path, body, realserver.MEDIA[how])


def chosen(by: str, words: str, path: str = PODS) -> Request:
    return Request("GET", f"{path}?{by}={words}")


FURNITURE: Final = (
    create(pod("web")),
    create(config("settings", data={"color": "blue"}), f"{HOME}/configmaps"),
    create(config("fixed", immutable=True, data={"a": "b"}), f"{HOME}/configmaps"),
    create(deployment("front"), APPS),
    create(node("node-9"), "/api/v1/nodes"),
    create(report("node-9", zones=[{"name": "node-0", "type": "Node"}]), REPORTS),
    binding("web", kind="Node", name="node-9"),
    patch("apply", config("owned", data={"k": "1"}), f"{HOME}/configmaps/owned?fieldManager=ann"),
)

MALFORMED: Final = {
    "half an object": create('{"apiVersion": "v1", "kind": "Pod"'),
    "words": create("hello"),
    "nothing": create(""),
    "a number": create("5"),
    "a list": create("[]"),
    "null": create("null"),
    "an object without anything": create("{}"),
    "two objects": create("{}{}"),
    "a key twice": create('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","name":"b"},"spec":{}}'),
    "malformed YAML": create("metadata:\n  name: [a\n", media=YAML),
    "YAML with a tab": create("metadata:\n\tname: a\n", media=YAML),
    "YAML that is a word": create("hello", media=YAML),
    "YAML that is a list": create("- a\n- b\n", media=YAML),
    "YAML without a container": create("apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {}\n", media=YAML),
    "a format nobody reads": create("<pod/>", media="text/xml"),
    "an unknown field, strictly": create(pod(color="red"), f"{PODS}?fieldValidation=Strict"),
    "a key twice, strictly": create(
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1","a":"2"}}',
        f"{HOME}/configmaps?fieldValidation=Strict",
    ),
    "a validation nobody knows": create(pod(), f"{PODS}?fieldValidation=Hard"),
    "a number for a name": create(pod(metadata={"name": 5})),
    "a word for labels": create(pod(metadata={"labels": "app"})),
    "a number for a label": create(pod(metadata={"labels": {"app": 5}})),
    "a word for containers": create(pod(containers="one")),
    "a word for a number": create(pod(terminationGracePeriodSeconds="ten")),
    "a list for a spec": create({**pod(), "spec": []}),
    "a fraction of a replica": create(deployment(replicas=1.5), APPS),
    "a quantity that is none": create(asking(requests={"cpu": "1 core"})),
    "a time that is none": create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "a"},
            "spec": {"renewTime": "now"},
        },
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    ),
    "a deployment without anything": create("{}", APPS),
    "a report without a kind": create({"metadata": {"name": "bad"}, "zones": []}, REPORTS),
    "a report that is null": create("null", REPORTS),
    "a report with unknown fields, strictly": create(
        report(color="red", zones=[]), f"{REPORTS}?fieldValidation=Strict"
    ),
    "a key without a colon": create('{"apiVersion" "v1"}'),
    "a comma too many": create('{"apiVersion":"v1",}'),
    "half a word": create('{"apiVersion":nul'),
    "a line's end in a text": create('{"apiVersion":"v1\n"}'),
}
UNKNOWN: Final = {
    "a group": Request("GET", "/apis/nobody.example/v1/things"),
    "a version": Request("GET", "/apis/apps/v9/deployments"),
    "a resource": Request("GET", "/api/v1/things"),
    "a resource in a namespace": Request("GET", f"{HOME}/things/a"),
    "a root": Request("GET", "/nowhere"),
    "a part": Request("GET", f"{PODS}/web/shape"),
    "a pod": Request("GET", f"{PODS}/nobody"),
    "a deployment": Request("GET", f"{APPS}/nobody"),
    "a report": Request("GET", f"{REPORTS}/nobody"),
    "a pod to delete": Request("DELETE", f"{PODS}/nobody"),
    "a pod to put": Request("PUT", f"{PODS}/nobody", pod("nobody")),
    "a pod to patch": patch("merge", {}, f"{PODS}/nobody"),
    "a pod to bind": binding("nobody", name="node-9"),
    "a pod to evict": create({"metadata": {"name": "nobody"}}, f"{PODS}/nobody/eviction"),
    "a scale": Request("GET", f"{APPS}/nobody/scale"),
    "a namespace to write to": create(pod(), "/api/v1/namespaces/nowhere/pods"),
    "a kind": create({**pod(), "kind": "Pot"}),
    "a kind's version": create({**pod(), "apiVersion": "v7"}),
    "a kind for this path": create(config("bad")),
    "a report's kind": create({**report(zones=[]), "kind": "Report"}, REPORTS),
    "a report's version": create({**report(zones=[]), "apiVersion": "topology.node.k8s.io/v9"}, REPORTS),
    "a method": Request("POST", f"{PODS}/web"),
    "a way to put a collection": Request("PUT", PODS, pod()),
    "a way to delete namespaces": Request("DELETE", "/api/v1/namespaces"),
}
SELECTORS: Final = {
    "an operator nobody knows": chosen(LABELS, "app%20like%20web"),
    "two equals too many": chosen(LABELS, "app===web"),
    "an open bracket": chosen(LABELS, "app%20in%20(a,b"),
    "in without values": chosen(LABELS, "app%20in"),
    "only a comma": chosen(LABELS, ","),
    "a key with a space": chosen(LABELS, "a%20b"),
    "a key with a question mark": chosen(LABELS, "a?=b"),
    "a key that is too long": chosen(LABELS, "a" * 64),
    "a value that is too long": chosen(LABELS, f"app={'a' * 64}"),
    "a value with a slash": chosen(LABELS, "app=a/b"),
    "more than a word": chosen(LABELS, "app%20%3E%20many"),
    "of a deployment": chosen(LABELS, "a%20b", APPS),
    "of a report": chosen(LABELS, "a%20b", REPORTS),
    "a field pods have not": chosen(FIELDS, "spec.color=red"),
    "a field deployments have not": chosen(FIELDS, "spec.replicas=1", APPS),
    "a field reports have not": chosen(FIELDS, "zones=1", REPORTS),
    "a field without a value": chosen(FIELDS, "spec.nodeName"),
    "a field that has to be in": chosen(FIELDS, "status.phase%20in%20(Running)"),
    "a watch with such a field": Request("GET", f"{PODS}?watch=1&{FIELDS}=spec.color=red"),
}
LISTING: Final = {
    "a limit of words": Request("GET", f"{PODS}?limit=many"),
    "a continue token nobody gave": Request("GET", f"{PODS}?continue=xyz"),
    "a version of words": Request("GET", f"{PODS}?resourceVersion=old"),
    "a version of words to watch": Request("GET", f"{PODS}?watch=1&resourceVersion=old"),
    "a match without a version": Request("GET", f"{PODS}?resourceVersionMatch=Exact"),
    "a match nobody knows": Request("GET", f"{PODS}?resourceVersion=1&resourceVersionMatch=Near"),
    "a negative limit": Request("GET", f"{PODS}?limit=-1&continue=xyz"),
    "initial events of a list": Request("GET", f"{PODS}?sendInitialEvents=true"),
    "a timeout of words": Request("GET", f"{PODS}?watch=1&timeoutSeconds=soon"),
    "a policy for orphans that is unknown": Request("DELETE", f"{PODS}/web?propagationPolicy=Maybe"),
    "both ways to leave orphans": Request(
        "DELETE", f"{PODS}/web", {"orphanDependents": True, "propagationPolicy": "Orphan"}
    ),
    "a negative grace": Request("DELETE", f"{PODS}/web", {"gracePeriodSeconds": -5, "dryRun": ["Some"]}),
    "somebody else's uid": Request("DELETE", f"{PODS}/web", {"preconditions": {"uid": "not-mine"}}),
    "somebody else's version": Request("DELETE", f"{PODS}/web", {"preconditions": {"resourceVersion": "1"}}),
    "options of another kind": Request("DELETE", f"{PODS}/web", config("web")),
    "options that are half": Request("DELETE", f"{PODS}/web", '{"gracePeriodSeconds":'),
    "a dry run of some": create(pod(), f"{PODS}?dryRun=Some"),
    "a manager with a line's end": create(pod(), f"{PODS}?fieldManager=a%0Ab"),
    "a manager that is too long": create(pod(), f"{PODS}?fieldManager={'a' * 129}"),
}
PATCHES: Final = {
    "a patch of no kind": Request("PATCH", f"{PODS}/web", {}, JSON),
    "a JSON patch that is an object": patch("json", {"op": "remove"}),
    "a JSON patch of words": patch("json", "remove it"),
    "a JSON patch to nowhere": patch("json", [{"op": "replace", "path": "/nowhere/at/all", "value": 1}]),
    "a JSON patch with an unknown word": patch("json", [{"op": "paint", "path": "/spec", "value": 1}]),
    "a JSON patch without a path": patch("json", [{"op": "remove"}]),
    "a JSON patch past the end": patch("json", [{"op": "add", "path": "/spec/containers/7", "value": {}}]),
    "a JSON patch whose test fails": patch("json", [{"op": "test", "path": "/kind", "value": "Node"}]),
    "a JSON patch of an image away": patch("json", [{"op": "remove", "path": "/spec/containers/0/image"}]),
    "a merge patch that is a list": patch("merge", []),
    "a merge patch of words": patch("merge", "paint it"),
    "a merge patch to a new name": patch("merge", {"metadata": {"name": "other"}}),
    "a merge patch to a new uid": patch("merge", {"metadata": {"uid": "other"}}),
    "a merge patch of an old version": patch("merge", {"metadata": {"resourceVersion": "1"}}),
    "a merge patch to another namespace": patch("merge", {"metadata": {"namespace": "kube-system"}}),
    "a strategic patch without the key": patch("strategic", {"spec": {"containers": [{"image": "other"}]}}),
    "a strategic patch with an unknown directive": patch("strategic", {"spec": {"$patch": "paint"}}),
    "a strategic patch of a report": patch("strategic", {"zones": []}, f"{REPORTS}/node-9"),
    "a strategic patch to a wrong type": patch("strategic", {"spec": {"containers": {"a": 1}}}),
    "a strategic patch of replicas to words": patch("strategic", {"spec": {"replicas": "x"}}, f"{APPS}/front"),
    "a strategic patch of a spec to a word": patch("strategic", {"spec": "x"}, f"{APPS}/front"),
    "a strategic patch of labels to a list": patch("strategic", {"metadata": {"labels": [1]}}),
    "a strategic patch of a label to a number": patch("strategic", {"metadata": {"labels": {"a": 1}}}),
    "a strategic patch of a label to yes": patch("strategic", {"metadata": {"labels": {"a": True}}}),
    "a strategic patch that is a list": patch("strategic", []),
    "a strategic patch to no amount": patch(
        "strategic", {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "x"}}}]}}
    ),
    "a merge patch of a spec away": patch("merge", {"spec": None}),
    "a merge patch of metadata to a word": patch("merge", {"metadata": "x"}, f"{HOME}/configmaps/fixed"),
    "an apply of a list": patch("apply", [], f"{HOME}/configmaps/owned?fieldManager=bob"),
    "an apply of a word": patch("apply", "hello", f"{HOME}/configmaps/owned?fieldManager=bob"),
    "an apply without a manager": patch("apply", config("owned"), f"{HOME}/configmaps/owned"),
    "an apply of half a YAML": patch("apply", "data: {k: [", f"{HOME}/configmaps/owned?fieldManager=bob"),
    "an apply without a kind": patch("apply", {"data": {}}, f"{HOME}/configmaps/owned?fieldManager=bob"),
    "an apply with a field nobody knows": patch(
        "apply", config("owned", color="red"), f"{HOME}/configmaps/owned?fieldManager=bob"
    ),
    "an apply of what is somebody else's": patch(
        "apply", config("owned", data={"k": "2"}), f"{HOME}/configmaps/owned?fieldManager=bob"
    ),
    "an apply under another name": patch("apply", config("x"), f"{HOME}/configmaps/owned?fieldManager=bob"),
    "an apply that brings managed fields": patch(
        "apply",
        {**config("owned"), "metadata": {"name": "owned", "managedFields": [{"manager": "x"}]}},
        f"{HOME}/configmaps/owned?fieldManager=bob",
    ),
    "force without apply": patch("merge", {}, f"{PODS}/web?force=true"),
}
INVALID: Final = {
    "a name with capitals": create(pod("Web")),
    "no name": create({**pod(), "metadata": {}}),
    "a name that is taken": create(pod("web")),
    "a label with a space": create(pod(metadata={"labels": {"a b": "c d"}})),
    "an annotation without a key": create(pod(metadata={"annotations": {"": "x"}})),
    "a finalizer without a domain": create(pod(metadata={"finalizers": ["later"]})),
    "an owner without a name": create(
        pod(metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "uid": "a"}]})
    ),
    "a version before it is there": create(pod(metadata={"resourceVersion": "1"})),
    "another namespace": create(pod(metadata={"namespace": "kube-system"})),
    "no containers": create(pod(containers=[])),
    "a container without anything": create(pod(containers=[{}])),
    "two containers of one name": create(pod(containers=[{"name": "a", "image": "b"}, {"name": "a", "image": "b"}])),
    "a policy that is unknown": create(pod(restartPolicy="Sometimes")),
    "a node's name with capitals": create(pod(nodeName="Node-9")),
    "more asked than allowed": create(asking(requests={"cpu": "2"}, limits={"cpu": "1"})),
    "less than nothing": create(asking(requests={"cpu": "-1"})),
    "half a device": create(asking(requests={"nvidia.com/gpu": "500m"}, limits={"nvidia.com/gpu": "500m"})),
    "devices without a limit": create(asking(requests={"nvidia.com/gpu": "1"})),
    "pages without memory": create(asking(requests={"hugepages-2Mi": "4Mi"}, limits={"hugepages-2Mi": "4Mi"})),
    "a resource without a domain": create(asking(requests={"gpu": "1"})),
    "a toleration of nothing": create(pod(tolerations=[{"operator": "Exists", "value": "x", "effect": "Never"}])),
    "a volume that is not mounted right": create(
        pod(containers=[{"name": "a", "image": "b", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}])
    ),
    "a port out of reach": create(
        pod(containers=[{"name": "a", "image": "b", "ports": [{"containerPort": 70000, "protocol": "TCP"}]}])
    ),
    "an unknown priority": create(pod(priorityClassName="urgent")),
    "a pod bound twice": binding("web", kind="Node", name="node-9"),
    "a pod bound to nothing": binding("web"),
    "a pod bound to a pod": binding("web", kind="Pod", name="node-9"),
    "a binding without a name": create({"target": {"name": "node-9"}}, f"{PODS}/web/binding"),
    "a binding of another pod": create({"metadata": {"name": "x"}, "target": {"name": "y"}}, f"{PODS}/web/binding"),
    "a deployment that selects others": create(deployment(selector={"matchLabels": {"app": "others"}}), APPS),
    "a deployment without a selector": create(deployment(selector=None), APPS),
    "fewer replicas than none": create(deployment(replicas=-1), APPS),
    "a scale below zero": patch("merge", {"spec": {"replicas": -1}}, f"{APPS}/front/scale"),
    "another selector afterwards": patch(
        "merge", {"spec": {"selector": {"matchLabels": {"app": "other"}}}}, f"{APPS}/front"
    ),
    "a change of what is fixed": patch("merge", {"data": {"a": "c"}}, f"{HOME}/configmaps/fixed"),
    "a key with a slash": create(config("bad", data={"a/b": "c"}), f"{HOME}/configmaps"),
    "a taint without an effect": create(node("bad", taints=[{"key": "a"}]), "/api/v1/nodes"),
    "a container with a dot": create(pod(containers=[{"name": "a.b", "image": "c"}])),
    "a namespace that has to stay": Request("DELETE", "/api/v1/namespaces/kube-public"),
    "a namespace with a dot": create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}, "/api/v1/namespaces"
    ),
    "an old version to put": Request(
        "PUT",
        f"{HOME}/configmaps/settings",
        {**config("settings"), "metadata": {"name": "settings", "resourceVersion": "1"}},
    ),
    "another name to put": Request("PUT", f"{HOME}/configmaps/settings", config("others")),
    "a report without zones": create(report(), REPORTS),
    "a zone without a type": create(report(zones=[{"name": "node-0"}]), REPORTS),
    "zones that are a word": create(report(zones="all"), REPORTS),
    "an amount that is a list": create(
        report(
            zones=[
                {
                    "name": "node-0",
                    "type": "Node",
                    "resources": [{"name": "cpu", "capacity": [], "allocatable": "1", "available": 1}],
                }
            ]
        ),
        REPORTS,
    ),
}
GROUPS: Final = {
    "malformed": MALFORMED,
    "unknown": UNKNOWN,
    "selectors": SELECTORS,
    "listing": LISTING,
    "patches": PATCHES,
    "invalid": INVALID,
}
REQUESTS: Final = {f"{group}: {name}": each for group, table in GROUPS.items() for name, each in table.items()}
