"""The schema of one version of a custom resource, ready for use: what the API server asks of it on every write.

`crds` reads it out of a definition; `pruned`, `defaulted` and `errors` are called in this order before an object is
stored, `shape` is what patches walk along. Validation rules in CEL (x-kubernetes-validations) are kept in the
definition and not enforced."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import (
    builtin,
    causes,
    fitting,
    formats,
    normal,
    pruning,
    shapes,
    validating,
)
from numalign.simulator.apiserver.schemas.shapes import Shape
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.trees import Tree


@dataclass(eq=False)
class Schema:
    tree: Tree
    has_status_part: bool = False

    @functools.cached_property
    def shape(self) -> Shape:
        found = shapes.read(self.tree, builtin.named)
        found.fields = {**found.fields, **shapes.embedded(builtin.named)}
        return found

    @functools.cached_property
    def fits(self) -> fitting.Check:
        """Whether an object has no errors, found many times faster than the errors are."""
        return fitting.check(self.tree)


def pruned(schema: Schema, tree: Tree) -> Tree:
    """A copy without the fields that the schema does not know; metadata is the same struct in every kind."""
    own = trees.copied(tree)
    pruning.prune(own, schema.tree, embedded=True)
    if "metadata" in own:
        own["metadata"] = normal.normal(own["metadata"], builtin.named(shapes.OBJECT_META))
    return own


def fitted(schema: Schema, tree: Tree) -> tuple[Tree, list[Cause]]:
    """All three in one go: the object as it would be stored, and what is wrong with it."""
    own = pruned(schema, tree)
    pruning.fill(own, schema.tree)
    return own, errors(schema, own)


def errors(schema: Schema, tree: Tree) -> list[Cause]:
    """What is wrong with an object; its metadata is not looked at, which is the same for all kinds."""
    seen = {key: value for key, value in tree.items() if key != "metadata"}
    if schema.fits(seen):
        return []
    found = list(validating.errors(seen, schema.tree))
    return found + list(identity_errors(seen, schema.tree))


def identity_errors(value: Any, schema: Tree, path: str = "") -> Iterator[Cause]:
    """Items twice in a set or map list, and embedded resources that do not say what they are."""
    if isinstance(value, list):
        yield from _duplicates(value, schema, path)
        for index, item in enumerate(value):
            yield from identity_errors(item, schema.get("items") or {}, f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.get("x-kubernetes-embedded-resource"):
            missing = (key for key in ("apiVersion", "kind") if not value.get(key))
            yield from (causes.required(validating.below(path, key)) for key in missing)
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, child in value.items():
            found = properties.get(key, more if isinstance(more, dict) else None)
            if found:
                yield from identity_errors(child, found, validating.below(path, key))


def _duplicates(items: list[Any], schema: Tree, path: str) -> Iterator[Cause]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind not in (shapes.SET, shapes.MAP):
        return
    seen = set()
    for index, item in enumerate(items):
        if kind == shapes.MAP and isinstance(item, dict):
            item = {key: item[key] for key in sorted(keys) if key in item}
        text = formats.shown(item)
        if text in seen:
            yield causes.duplicate(f"{path}[{index}]", item)
        seen.add(text)
