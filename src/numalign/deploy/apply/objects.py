"""Objects as plain trees: their identity, the order in which they are created, and what a set of them may not be.

All modules of this package use it. Kinds that `order` does not name come last, by name."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from numalign.api import errors
from numalign.deploy.order import KINDS

Tree = dict[str, Any]

NAMESPACE: Final = "Namespace"
CRD: Final = "CustomResourceDefinition"


class Ref(Struct, frozen=True, order=True):
    """An object: what it is and where it is. The inventory stores it."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The object, whatever version of its API it was written in."""
        return self.group, self.kind, self.namespace, self.name


def ref(tree: Mapping[str, Any]) -> Ref:
    meta = tree["metadata"]
    return Ref(tree["apiVersion"], tree["kind"], meta["name"], meta.get("namespace") or "")


def checked(trees: Iterable[Any]) -> list[Tree]:
    """The objects in the order of their creation. BadObject where one is no object, or is there twice."""
    found: dict[tuple[str, str, str, str], Tree] = {}
    for number, tree in enumerate(trees):
        _require_object(tree, f"{number}")
        key = ref(tree).identity
        if key in found:
            raise errors.BadObject(ref(tree).kind, _full(ref(tree)), "", "is in the set twice; keep one of them")
        found[key] = tree
    return sorted(found.values(), key=lambda tree: rank(ref(tree)))


def _require_object(tree: Any, place: str) -> None:
    if not isinstance(tree, dict):
        raise errors.BadObject("Object", place, "", f"{errors.echo(tree)} is not an object of Kubernetes")
    for key in ("apiVersion", "kind"):
        if not isinstance(tree.get(key), str) or not tree[key]:
            raise errors.BadObject("Object", place, key, "is missing; every object of Kubernetes has it")
    meta = tree.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        raise errors.BadObject(tree["kind"], "", "metadata.name", "is missing; every object needs a name")
    if not isinstance(meta.get("namespace") or "", str):
        raise errors.BadObject(tree["kind"], meta["name"], "metadata.namespace", "is not text")


def _full(which: Ref) -> str:
    return f"{which.namespace}/{which.name}" if which.namespace else which.name


def rank(which: Ref) -> tuple[int, str, str, str]:
    known = KINDS.index(which.kind) if which.kind in KINDS else len(KINDS)
    return known, which.kind, which.namespace, which.name


def backwards(refs: Iterable[Ref]) -> list[Ref]:
    """In the order of removal."""
    return sorted(refs, key=rank, reverse=True)


def at(tree: Any, *path: str) -> Any:
    """The value below these keys; None where it is missing or something on the way is no object."""
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree
