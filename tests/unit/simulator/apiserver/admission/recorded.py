"""What a real API server 1.37.1 answered to good and bad objects, and a small world to admit them into."""

import gzip
import json
from pathlib import Path
from typing import Any

from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.errors import StatusCause, StatusError
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.trees import Tree

DATA = Path(__file__).with_name("data")
KINDS = {(each.api_version, each.kind): each for each in resources.BUILT_IN}
UID = "12345678-1234-1234-1234-123456789012"


def load(name: str) -> Any:
    return json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))


class World:
    """The objects that were there when the real server was asked."""

    def __init__(self, *objects: tuple[Resource, Tree]) -> None:
        self._objects = list(objects)

    def __call__(self, resource: Resource, name: str, namespace: str = "") -> Tree | None:
        here = [tree for tree in self.all(resource) if tree["metadata"]["name"] == name]
        return next((tree for tree in here if tree["metadata"].get("namespace", "") == namespace), None)

    def all(self, resource: Resource) -> list[Tree]:
        return [tree for each, tree in self._objects if each is resource]


def account(name: str) -> tuple[Resource, Tree]:
    return resources.SERVICEACCOUNTS, {"metadata": {"name": name, "namespace": "default"}}


LOW: Tree = {"metadata": {"name": "low"}, "value": -5, "preemptionPolicy": "Never"}
DEFAULT_MARK = {"storageclass.kubernetes.io/is-default-class": "true"}
FAST: Tree = {"metadata": {"name": "fast", "annotations": DEFAULT_MARK}}
THERE = World(
    (resources.PRIORITYCLASSES, LOW),
    (resources.STORAGECLASSES, FAST),
    *map(account, ("sa", "x", "nope")),
)


def arrived(tree: Tree, **given: str) -> Tree:
    """As the verbs hand an object to admission: with a uid, a namespace and a name."""
    resource, metadata = KINDS[tree["apiVersion"], tree["kind"]], tree["metadata"]
    home = {"namespace": "default"} if resource.namespaced else {}
    name = {"name": f"{metadata['generateName']}7d9d5"} if "generateName" in metadata else {}
    return tree | {"metadata": {"uid": UID} | home | given | name | metadata}


def refusal(tree: Tree, old: Tree | None = None, world: World = THERE) -> Tree | None:
    """What admission has against the object, in the shape of the recordings."""
    resource = KINDS[tree["apiVersion"], tree["kind"]]
    try:
        causes = admission.errors(resource, admission.prepare(resource, tree, old, world), old)
    except StatusError as error:
        return {"code": error.code, "reason": error.reason, "message": error.message, "causes": []}
    return {"code": 422, "reason": "Invalid", "causes": list(map(_listed, causes))} if causes else None


def _listed(cause: StatusCause) -> list[str]:
    return [cause.field, cause.reason, cause.message]
