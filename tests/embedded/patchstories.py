"""Random patches for the comparison with the real server: objects, what is wanted of them, and how it is sent.

Every function takes a random generator, so that a story can be told again from its seed. The patches are mostly right,
and now and then not; what they touch overlaps on purpose, so that managers get into each other's way."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import Any

Tree = dict[str, Any]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MANAGERS = ("ann", "bob", "kubectl")
WORDS = ("1", "2", "3")


class Story(ABC):
    """One kind of object: where it lives, its first state, and what to send next."""

    kind: tuple[str, str, str]
    path: str
    parts: tuple[str, ...] = ("",)
    ways: tuple[str, ...] = ("json", "merge", "strategic")

    def head(self) -> Tree:
        group, version, kind = self.kind
        return {"apiVersion": f"{group}/{version}" if group else version, "kind": kind, "metadata": {"name": "story"}}

    @abstractmethod
    def wanted(self, chance: Random, part: str) -> Tree: ...

    def patch(self, chance: Random, way: str, part: str) -> Any:
        return self.wanted(chance, part) if way != "json" else operations(chance, self.pointers(part))

    def pointers(self, part: str) -> list[str]:
        return ["/metadata/labels", "/metadata/labels/a", "/metadata/annotations", "/metadata/annotations/a~1b"]


def some(chance: Random, keys: str) -> Tree:
    return {key: chance.choice(WORDS) for key in keys if chance.random() < 0.5}


def metadata(chance: Random) -> Tree:
    found: Tree = {"name": "story"}
    if chance.random() < 0.5:
        found["labels"] = some(chance, "abc")
    if chance.random() < 0.3:
        found["annotations"] = some(chance, "abc")
    if chance.random() < 0.3:
        found["finalizers"] = [f"ex.com/{each}" for each in chance.sample("abc", chance.randrange(3))]
    return found


def operations(chance: Random, pointers: list[str]) -> list[Tree]:
    found = []
    for _ in range(chance.randint(1, 3)):
        name = chance.choice(("add", "add", "remove", "replace", "test", "copy", "move"))
        operation: Tree = {"op": name, "path": chance.choice(pointers)}
        if name in ("copy", "move"):
            operation["from"] = chance.choice(pointers)
        else:
            operation["value"] = chance.choice(WORDS) if chance.random() < 0.8 else {"a": "1"}
        found.append(operation)
    return found


class ConfigMaps(Story):
    kind = ("", "v1", "ConfigMap")
    path = "/api/v1/namespaces/default/configmaps"

    def wanted(self, chance: Random, part: str) -> Tree:
        tree = {**self.head(), "metadata": metadata(chance)}
        if chance.random() < 0.8:
            tree["data"] = some(chance, "abcd")
        if chance.random() < 0.05:
            tree["data"] = chance.choice(["x", {"a": 1}, {"a": None}, None, {}])
        elif chance.random() < 0.03:
            tree["dat"] = {}
        return tree

    def patch(self, chance: Random, way: str, part: str) -> Any:
        found = super().patch(chance, way, part)
        if way == "merge" and chance.random() < 0.5:
            # As client-side apply would leave it, now and then of something that is not what is there.
            note = found if chance.random() < 0.7 else self.wanted(chance, part)
            found["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(note)}
        return found

    def pointers(self, part: str) -> list[str]:
        return [*super().pointers(part), "/data", "/data/a", "/data/b", "/data/c", "/data/d"]


class Pods(Story):
    kind = ("", "v1", "Pod")
    path = "/api/v1/namespaces/default/pods"
    parts = ("", "", "status")

    def wanted(self, chance: Random, part: str) -> Tree:
        tree = {**self.head(), "metadata": metadata(chance)}
        if part == "status":
            tree["metadata"] = {"name": "story"}
            tree["status"] = self.status(chance)
            return tree
        containers = [{"name": name, "image": "registry/" + chance.choice(WORDS)} for name in ("one", "two")]
        tree["spec"] = {"containers": containers}
        return tree

    def status(self, chance: Random) -> Tree:
        kinds = chance.sample(["Ready", "PodScheduled", "ex.com/Extra"], chance.randint(1, 2))
        conditions = [{"type": kind, "status": chance.choice(("True", "False"))} for kind in kinds]
        found: Tree = {"conditions": conditions}
        return found | ({"message": chance.choice(WORDS)} if chance.random() < 0.5 else {})

    def pointers(self, part: str) -> list[str]:
        if part == "status":
            return ["/status/message", "/status/reason", "/status/phase"]
        return [*super().pointers(part), "/spec/containers/0/image", "/spec/containers/1/image"]


class Deployments(Story):
    kind = ("apps", "v1", "Deployment")
    path = "/apis/apps/v1/namespaces/default/deployments"
    parts = ("", "", "", "status")

    def wanted(self, chance: Random, part: str) -> Tree:
        tree = {**self.head(), "metadata": metadata(chance)}
        if part == "status":
            tree["metadata"] = {"name": "story", "labels": some(chance, "ab")}
            tree["status"] = {
                key: chance.randint(1, 3) for key in ("replicas", "readyReplicas") if chance.random() < 0.7
            }
            return tree
        template = {"metadata": {"labels": {"app": "x", **some(chance, "ab")}}, "spec": self.pod(chance)}
        tree["spec"] = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
        if chance.random() < 0.5:
            tree["spec"]["replicas"] = chance.randrange(4)
        if chance.random() < 0.2:
            tree["spec"]["strategy"] = chance.choice([{"type": "Recreate"}, {"rollingUpdate": {"maxSurge": 1}}, {}])
        if chance.random() < 0.03:
            tree["spec"]["bogus"] = 1
        return tree

    def pod(self, chance: Random) -> Tree:
        names = chance.sample(["one", "two", "three"], chance.randint(1, 3))
        found: Tree = {"containers": [self.container(chance, name) for name in names]}
        if chance.random() < 0.3:
            kinds: list[Tree] = [{"emptyDir": {}}, {"hostPath": {"path": "/x"}}, {"configMap": {"name": "c"}}]
            found["volumes"] = [{"name": name, **chance.choice(kinds)} for name in chance.sample("vw", 1)]
        if chance.random() < 0.3:
            found["nodeSelector"] = some(chance, "ab")
        if chance.random() < 0.2:
            found["securityContext"] = {"runAsUser": chance.randrange(3)}
        return found

    def container(self, chance: Random, name: str) -> Tree:
        found: Tree = {"name": name, "image": "registry/" + chance.choice(WORDS)}
        if chance.random() < 0.4:
            found["env"] = [{"name": key, "value": chance.choice(WORDS)} for key in chance.sample("ABC", 2)]
        if chance.random() < 0.3:
            ports = chance.sample([80, 81, 82], chance.randint(0, 2))
            found["ports"] = [{"containerPort": port, **({"name": f"p{port}"} if port > 80 else {})} for port in ports]
        if chance.random() < 0.3:
            found["args"] = chance.sample(["-a", "-b", "-c"], chance.randrange(3))
        if chance.random() < 0.3:
            found["resources"] = {"limits": {"cpu": chance.choice(WORDS)}} if chance.random() < 0.8 else {}
        if chance.random() < 0.02:
            found["name"] = "one"
        return found

    def patch(self, chance: Random, way: str, part: str) -> Any:
        found = super().patch(chance, way, part)
        if way == "strategic" and not part:
            self.direct(chance, found)
        return found

    def direct(self, chance: Random, tree: Tree) -> None:
        """Adds directives."""
        pod, roll = tree["spec"]["template"]["spec"], chance.random()
        if roll < 0.2:
            pod["containers"].append({"name": chance.choice(("one", "two")), "$patch": "delete"})
        elif roll < 0.3:
            pod["containers"].append({"$patch": "replace"})
        elif roll < 0.5:
            order = [{"name": each["name"]} for each in pod["containers"]]
            chance.shuffle(order)
            pod["$setElementOrder/containers"] = [*order, {"name": "none"}]
        elif roll < 0.6:
            # The list itself beside it would be obeyed before or after, as the server's maps happen to be ordered.
            tree["metadata"] = {"$deleteFromPrimitiveList/finalizers": ["ex.com/a"]}
        elif roll < 0.7:
            pod["volumes"] = [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]
        elif roll < 0.75:
            pod["containers"].append({"image": "nameless"})

    def pointers(self, part: str) -> list[str]:
        if part == "status":
            return ["/status/replicas", "/status/readyReplicas", "/spec/replicas"]
        first = "/spec/template/spec/containers/0"
        spots = [f"{first}/image", f"{first}/env/0/value", f"{first}/env/-", f"{first}/args/0", f"{first}/args/-"]
        return [*super().pointers(part), *spots, "/spec/template/spec/containers/1"]


class Reports(Story):
    """NodeResourceTopology: top fields without spec, lists that are atomic as a whole."""

    kind = ("topology.node.k8s.io", "v1alpha2", "NodeResourceTopology")
    path = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
    ways = ("json", "merge")

    def wanted(self, chance: Random, part: str) -> Tree:
        tree = {**self.head(), "metadata": metadata(chance), "zones": [self.zone(chance, n) for n in range(2)]}
        if chance.random() < 0.4:
            tree["topologyPolicies"] = chance.sample(["Restricted", "BestEffort"], 1)
        if chance.random() < 0.4:
            tree["attributes"] = [{"name": "policy", "value": chance.choice(WORDS)}]
        if chance.random() < 0.05:
            tree["bogus"] = 1
        return tree

    def zone(self, chance: Random, number: int) -> Tree:
        amounts = {key: chance.choice((1, "2", "500m")) for key in ("capacity", "allocatable", "available")}
        return {"name": f"node-{number}", "type": "Node", "resources": [{"name": "cpu", **amounts}]}

    def pointers(self, part: str) -> list[str]:
        zone = "/zones/0/resources/0/available"
        return [*super().pointers(part), zone, "/zones/1/type", "/topologyPolicies", "/attributes/0/value", "/zones/-"]


class Things(Reports):
    """A made-up custom resource with every way to own a field, and a status of its own."""

    kind = ("ex.com", "v1", "Thing")
    path = "/apis/ex.com/v1/namespaces/default/things"
    parts = ("", "", "status")

    def wanted(self, chance: Random, part: str) -> Tree:
        tree = {**self.head(), "metadata": metadata(chance)}
        if part == "status":
            tree["metadata"] = {"name": "story"}
            tree["status"] = some(chance, "ab")
            return tree
        spec: Tree = {}
        makers: dict[str, Callable[[], Any]] = {
            "set": lambda: chance.sample("abc", chance.randrange(3)),
            "named": lambda: [
                {"name": name, **some(chance, "ab")} for name in chance.sample("xyz", chance.randrange(3))
            ],
            "whole": lambda: some(chance, "ab"),
            "parts": lambda: some(chance, "ab"),
            "free": lambda: chance.choice([some(chance, "ab"), {"a": {"b": chance.choice(WORDS)}}, "text", [1, 2]]),
            "either": lambda: chance.choice([1, "1", "50%"]),
        }
        for key, make in makers.items():
            if chance.random() < 0.4:
                spec[key] = make()
        return {**tree, "spec": spec}

    def pointers(self, part: str) -> list[str]:
        if part == "status":
            return ["/status/a", "/status/b"]
        return [
            *Story.pointers(self, part),
            "/spec/set/-",
            "/spec/named/0/a",
            "/spec/whole/a",
            "/spec/parts/b",
            "/spec/free",
        ]


STORIES: dict[str, Story] = {
    type(each).__name__: each for each in (ConfigMaps(), Pods(), Deployments(), Reports(), Things())
}
