"""Converts stored objects to the apiVersion that a client asked for, and back.

The store keeps the bytes in the version that was written, always in the order kind, apiVersion, metadata, rest; so most
conversions replace a prefix. Only events have two groups with different field names."""

from functools import lru_cache
from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.trees import Tree

METADATA: Final = b'"metadata":'
CORE, NEW = resources.EVENTS, resources.NEW_EVENTS
# Fields of events: the name in core/v1, and in events.k8s.io/v1.
RENAMED: Final = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
TO_NEW: Final = dict(RENAMED)
TO_CORE: Final = {new: core for core, new in RENAMED}


@lru_cache(maxsize=1024)
def prefix(resource: Resource) -> bytes:
    return f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()


def to_version(resource: Resource, data: bytes) -> bytes:
    """A whole object, encoded."""
    if resource is NEW:
        return trees.encoded(as_new_event(trees.decoded(data)))
    head = prefix(resource)
    return data if data.startswith(head) else head + data[data.index(METADATA) :]


def to_list_item(resource: Resource, data: bytes) -> bytes:
    """The object as an item of a list; items of built-in kinds omit kind and apiVersion."""
    if resource.custom:
        return to_version(resource, data)
    data = to_version(resource, data)
    return b"{" + data[data.index(METADATA) :]


def to_storage(resource: Resource, tree: Tree) -> Tree:
    """The object with its parts in the order of stored objects."""
    if resource is NEW:
        tree = _renamed(tree, TO_CORE, CORE)
    owner = storage_resource(resource)
    head: Tree = {"kind": owner.kind, "apiVersion": owner.api_version, "metadata": tree.get("metadata") or {}}
    tree.pop("kind", None)
    tree.pop("apiVersion", None)
    tree.pop("metadata", None)
    return head | tree


def storage_resource(resource: Resource) -> Resource:
    """The resource under which the objects are stored and validated."""
    return CORE if resource is NEW else resource


def as_new_event(tree: Tree) -> Tree:
    return _renamed(tree, TO_NEW, NEW)


def _renamed(tree: Tree, names: dict[str, str], resource: Resource) -> Tree:
    renamed = {names.get(name, name): value for name, value in tree.items()}
    return renamed | {"kind": resource.kind, "apiVersion": resource.api_version}
