"""What a custom resource keeps of what it was sent: unknown fields go, missing ones get their defaults.

`structural` calls `prune` and `fill` on trees of its own and both change them in place. Null where a schema does not
allow it counts as not given."""

from __future__ import annotations

from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import builtin, fieldchecks
from numalign.simulator.trees import Tree

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
PRESERVING: Final = "x-kubernetes-preserve-unknown-fields"
OWN: Final = ("apiVersion", "kind", "metadata")
FREE: Final[Tree] = {PRESERVING: True}


def prune(value: Any, schema: Tree, lost: list[str], path: str = "", embedded: bool = False) -> None:
    """Removes what the schema does not know, and notes the path of each in `lost`."""
    if isinstance(value, list):
        items = schema.get("items") or FREE
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                prune(item, items, lost, f"{path}[{index}]")
    elif isinstance(value, dict) and schema is not FREE:
        _prune_fields(value, schema, lost, path, embedded or bool(schema.get("x-kubernetes-embedded-resource")))


def _prune_fields(value: Tree, schema: Tree, lost: list[str], path: str, embedded: bool) -> None:
    for key, child in list(value.items()):
        where = f"{path}.{key}" if path else key
        found = FREE if embedded and key in OWN else _schema_of(key, schema)
        if found is None:
            del value[key]
            lost.append(where)
        elif embedded and key == "metadata":
            _prune_meta(child, lost, where)
        elif isinstance(child, dict | list):
            prune(child, found, lost, where)


def _schema_of(key: str, schema: Tree) -> Tree | None:
    more = schema.get("additionalProperties")
    found: Tree | None = (schema.get("properties") or {}).get(key)
    if found is not None:
        return found
    if isinstance(more, dict):
        return more
    # Below a field that nobody described everything is kept.
    return FREE if schema.get(PRESERVING) or more is True else None


def _prune_meta(metadata: Any, lost: list[str], path: str) -> None:
    for unknown in list(fieldchecks.unknown(metadata, builtin.named(OBJECT_META))):
        # Only a top field of metadata can be taken out alone.
        metadata.pop(unknown.partition(".")[0].partition("[")[0], None)
        lost.append(f"{path}.{unknown}")


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
            value[key] = _own(found["default"])
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


def _own(default: Any) -> Any:
    return trees.copied({"": default})[""]
