"""A custom resource definition for tests: widgets with a size, scaled by it, in two versions."""

from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.trees import Tree

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", namespaced=True)
OLD_WIDGETS = Resource("example.com", "v1alpha1", "widgets", "Widget", namespaced=True)

SIZE = {"type": "integer", "default": 3, "minimum": 0}
PARTS = {"type": "object", "properties": {"size": SIZE}}
SCHEMA = {"type": "object", "properties": {"spec": PARTS, "status": {"type": "object", "properties": {"size": SIZE}}}}


def version(name: str, *, stored: bool) -> Tree:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    return {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}, "scale": scale},
    }


def widgets() -> Tree:
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", stored=True), version("v1alpha1", stored=False)],
        },
    }


def widget(name: str, **spec: object) -> Tree:
    about = {"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind}
    return {**about, "metadata": {"name": name, "namespace": "default"}, "spec": spec}
