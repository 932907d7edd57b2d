"""What the doctor can mend from outside the nodes: delete, untaint, or apply an object.

Checks attach a repair to what they find, `fixes` carries it out. `diff` shows it before. A repair names the version of
the object that was judged: the API server refuses it if the object changed since."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from numalign.api.decode import structs
from numalign.api.objects import node as nodes
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node
from numalign.kube import resources
from numalign.kube.resources import Document, Target

Text = Mapping[str, Any]


class ObjectDeletion(Struct, frozen=True, kw_only=True):
    target: Target[Any]
    uid: str
    version: str
    why: str
    unless: Target[Any] | None = None
    """An object whose return forbids the deletion."""

    def diff(self) -> str:
        return f"- {self.target.words}  # {self.why}"


class Patch(Struct, frozen=True, kw_only=True):
    """A merge patch."""

    target: Target[Any]
    patch: Document
    before: Text
    after: Text

    def diff(self) -> str:
        return unified(self.target.words, self.before, self.after)


class Grant(Struct, frozen=True, kw_only=True):
    """A role of ours that is applied, and its binding."""

    target: Target[Any]
    wanted: Document
    before: Text | None
    """None: the role does not exist."""
    after: Text
    binding: Target[Any]
    bound: Document

    def diff(self) -> str:
        return unified(self.target.words, self.before or {}, self.after)


Repair = ObjectDeletion | Patch | Grant


def deletion(
    resource: resources.Resource[Any], meta: ObjectMeta, why: str, unless: Target[Any] | None
) -> ObjectDeletion:
    target = resource.at(meta.name, meta.namespace)
    return ObjectDeletion(target=target, uid=meta.uid, version=meta.resource_version, why=why, unless=unless)


def untainted(node: Node, key: str) -> Patch:
    patch = nodes.without_taint(node, key) or {}
    return Patch(
        target=resources.NODES.at(node.metadata.name),
        patch=patch,
        before={"spec": {"taints": msgspec.to_builtins(node.spec.taints)}},
        after={"spec": patch.get("spec", {})},
    )


def unified(name: str, before: Text, after: Text) -> str:
    """Both as lines of a path and a value, so that no YAML library decides what a change looks like."""
    lines = difflib.unified_diff(list(_lines(before)), list(_lines(after)), name, name, lineterm="", n=2)
    return "\n".join(lines)


def _lines(value: Any, path: str = "") -> Iterator[str]:
    """An element of a list is one line."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _lines(each, f"{path}.{key}" if path else str(key))
    elif value is None:
        return
    elif isinstance(value, list | tuple):
        for each in value:
            yield f"{path}: {structs.ENCODER.encode(each).decode()}"
    else:
        yield f"{path}: {structs.ENCODER.encode(value).decode()}"
