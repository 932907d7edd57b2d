"""The structural schema of one version of a custom resource: pruning, defaulting and validation.

`registry` makes one for each served version; the create and update verbs call `admitted`, and patches walk along its
`typedef`. A null that the schema does not allow counts as absent. CEL rules (x-kubernetes-validations) are stored with
the definition and not enforced."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import builtin, fielderrors, typedefs, validate
from numalign.simulator.apiserver.schemas.typedefs import TypeDef
from numalign.simulator.apiserver.storage.errors import StatusCause
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
    # A field without a schema keeps everything below it.
    return FREE if schema.get(PRESERVING) or more is True else None


def _prune_metadata(metadata: Any) -> None:
    for unknown in list(typedefs.unknown_fields(metadata, builtin.named(typedefs.OBJECT_META))):
        # Only a top-level field of metadata can be removed alone.
        metadata.pop(unknown.partition(".")[0].partition("[")[0], None)


def fill_defaults(value: Any, schema: Tree) -> None:
    """Sets the defaults of missing fields, and removes nulls that are not allowed."""
    if isinstance(value, list):
        for item in value:
            fill_defaults(item, schema.get("items") or {})
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
            fill_defaults(value[key], found)


def _is_unwanted_null(value: Any, schema: Tree) -> bool:
    return value is None and not schema.get("nullable")


@dataclass(eq=False)
class StructuralSchema:
    tree: Tree
    has_status_subresource: bool = False

    @functools.cached_property
    def typedef(self) -> TypeDef:
        found = typedefs.read(self.tree, builtin.named)
        found.fields = {**found.fields, **typedefs.embedded(builtin.named)}
        return found

    @functools.cached_property
    def fits(self) -> validate.QuickCheck:
        """Whether an object is certainly valid; many times faster than `errors`."""
        return validate.quick_check(self.tree)


def pruned(schema: StructuralSchema, tree: Tree) -> Tree:
    """A copy without undeclared fields; the metadata is pruned as that of every kind."""
    own = trees.copied(tree)
    prune(own, schema.tree, embedded=True)
    if "metadata" in own:
        own["metadata"] = typedefs.without_empty(own["metadata"], builtin.named(typedefs.OBJECT_META))
    return own


def admitted(schema: StructuralSchema, tree: Tree) -> tuple[Tree, list[StatusCause]]:
    """The object as it would be stored (pruned, with defaults), and its errors."""
    own = pruned(schema, tree)
    fill_defaults(own, schema.tree)
    return own, errors(schema, own)


def errors(schema: StructuralSchema, tree: Tree) -> list[StatusCause]:
    """The errors of an object, except for its metadata, which validation checks for every kind."""
    seen = {key: value for key, value in tree.items() if key != "metadata"}
    if schema.fits(seen):
        return []
    found = list(validate.errors(seen, schema.tree))
    return found + list(identity_errors(seen, schema.tree))


def identity_errors(value: Any, schema: Tree, path: str = "") -> Iterator[StatusCause]:
    """Duplicate items of sets and map lists, and embedded resources without apiVersion or kind."""
    if isinstance(value, list):
        yield from _duplicates(value, schema, path)
        for index, item in enumerate(value):
            yield from identity_errors(item, schema.get("items") or {}, f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.get("x-kubernetes-embedded-resource"):
            missing = (key for key in ("apiVersion", "kind") if not value.get(key))
            yield from (fielderrors.required(validate.below(path, key)) for key in missing)
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, child in value.items():
            found = properties.get(key, more if isinstance(more, dict) else None)
            if found:
                yield from identity_errors(child, found, validate.below(path, key))


def _duplicates(items: list[Any], schema: Tree, path: str) -> Iterator[StatusCause]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind not in (typedefs.SET, typedefs.MAP):
        return
    seen = set()
    for index, item in enumerate(items):
        if kind == typedefs.MAP and isinstance(item, dict):
            item = {key: item[key] for key in sorted(keys) if key in item}
        text = fielderrors.quoted(item)
        if text in seen:
            yield fielderrors.duplicate(f"{path}[{index}]", item)
        seen.add(text)
