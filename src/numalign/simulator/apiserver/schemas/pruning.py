"""What a custom resource keeps of what it was sent: unknown fields go, missing ones get their defaults.

`structural` calls `prune` and `fill` on trees of its own and both change them in place. Null where a schema does not
allow it counts as not given."""

from __future__ import annotations

from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import builtin, fieldchecks, shapes
from numalign.simulator.trees import Tree

PRESERVING: Final = "x-kubernetes-preserve-unknown-fields"
OWN: Final = ("apiVersion", "kind", "metadata")
FREE: Final[Tree] = {PRESERVING: True}


def prune(value: Any, schema: Tree, *, embedded: bool = False) -> None:
    """Removes the fields that the schema does not declare."""
    if isinstance(value, list):
        items = schema.get("items") or FREE
        for item in value:
            if isinstance(item, dict | list):
                prune(item, items)
    elif isinstance(value, dict) and schema is not FREE:
        _prune_fields(value, schema, embedded=embedded or bool(schema.get("x-kubernetes-embedded-resource")))


def _prune_fields(value: Tree, schema: Tree, *, embedded: bool) -> None:
    for key, child in list(value.items()):
        found = FREE if embedded and key in OWN else _schema_of(key, schema)
        if found is None:
            del value[key]
        elif embedded and key == "metadata":
            _prune_metadata(child)
        elif isinstance(child, dict | list):
            prune(child, found)


def _schema_of(key: str, schema: Tree) -> Tree | None:
    more = schema.get("additionalProperties")
    found: Tree | None = (schema.get("properties") or {}).get(key)
    if found is not None:
        return found
    if isinstance(more, dict):
        return more
    # Below a field that nobody described everything is kept.
    return FREE if schema.get(PRESERVING) or more is True else None


def _prune_metadata(metadata: Any) -> None:
    for unknown in list(fieldchecks.unknown(metadata, builtin.named(shapes.OBJECT_META))):
        # Only a top-level field of metadata can be removed alone.
        metadata.pop(unknown.partition(".")[0].partition("[")[0], None)


def fill(value: Any, schema: Tree) -> None:
    """Puts defaults where a field is missing, and drops nulls that are not allowed."""
    if isinstance(value, list):
        for item in value:
            fill(item, schema.get("items") or {})
    if not isinstance(value, dict):
        return
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, found in properties.items():
        if "default" in found and (key not in value or _is_unwanted_null(value[key], found)):
            value[key] = trees.copied(found["default"])
    for key in list(value):
        found = properties.get(key, more if isinstance(more, dict) else None)
        if found is None:
            continue
        if _is_unwanted_null(value[key], found):
            del value[key]
        else:
            fill(value[key], found)


def _is_unwanted_null(value: Any, schema: Tree) -> bool:
    return value is None and not schema.get("nullable")
