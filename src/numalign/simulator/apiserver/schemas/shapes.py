"""How one value of an API object merges: the description that strategic patches and server-side apply walk along.

`builtin` reads shapes out of its generated table and `crds` out of a custom resource's schema; both hand OpenAPI in.
A shape says what a value is, how lists and maps belong to their owners (atomic, set, map, granular), and which fields
the server's own structs always carry. It never validates: that is `structural`, or admission."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from numalign.simulator.trees import Tree

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
GRANULAR: Final = "granular"
ATOMIC: Final = "atomic"
SET: Final = "set"
MAP: Final = "map"


@dataclass(eq=False)
class Shape:
    """`type` as OpenAPI has it, empty where any value goes; `values` is for keys that are not declared fields."""

    type: str = ""
    format: str = ""
    relation: str = GRANULAR
    fields: dict[str, Shape] = field(default_factory=dict)
    values: Shape | None = None
    items: Shape | None = None
    keys: tuple[str, ...] = ()
    merge_key: str = ""
    strategies: tuple[str, ...] = ()
    default: Any = None
    always: dict[str, Any] = field(default_factory=dict)
    """Fields that a built-in struct never lacks, with their empty value: structs within structs, required lists."""
    model: str = ""

    def child(self, key: str) -> Shape | None:
        """The shape behind a key of a struct or map; None where the key is not declared and nothing else may come."""
        return self.fields.get(key, self.values)


ANYTHING: Final = Shape()
ANYTHING.values = ANYTHING
OPAQUE: Final = Shape(relation=ATOMIC)
OPAQUE.values = OPAQUE

Named = Callable[[str], Shape]


def read(schema: Tree, named: Named, preserving: bool = False) -> Shape:
    """The shape of an OpenAPI schema; `named` resolves references, `preserving` is inherited from above."""
    if "$ref" in schema:
        return _referred(schema, named(schema["$ref"]))
    shape = Shape(type=schema.get("type", ""), format=schema.get("format", ""), default=schema.get("default"))
    preserving = preserving or schema.get("x-kubernetes-preserve-unknown-fields") is True
    if shape.type in ("object", ""):
        fill(shape, schema, named, preserving)
    if shape.type == "array":
        _fill_list(shape, schema, named, preserving)
    return shape


def fill(shape: Shape, schema: Tree, named: Named, preserving: bool = False) -> None:
    """Reads fields into a shape that others may already point to: types refer to themselves."""
    properties: Mapping[str, Tree] = schema.get("properties") or {}
    for key, sub in properties.items():
        shape.fields[key] = read(sub, named, preserving)
    shape.values = _undeclared(schema, named, preserving)
    shape.relation = ATOMIC if schema.get("x-kubernetes-map-type") == ATOMIC else GRANULAR
    if schema.get("x-kubernetes-embedded-resource") is True:
        shape.fields |= embedded(named)


def embedded(named: Named) -> dict[str, Shape]:
    """What every object has, whether its schema says so or not."""
    text = Shape(type="string")
    return {"apiVersion": text, "kind": text, "metadata": named(OBJECT_META)}


def _undeclared(schema: Tree, named: Named, preserving: bool) -> Shape | None:
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        return read(more, named, preserving)
    if more is False:
        return None
    free = more is True or preserving or not schema.get("properties")
    return ANYTHING if free else None


def _referred(schema: Tree, target: Shape) -> Shape:
    """A use of a named type: its own strategy and default, and the very fields of the type."""
    atomic = schema.get("x-kubernetes-map-type") == ATOMIC
    return Shape(
        type=target.type,
        format=target.format,
        relation=ATOMIC if atomic else target.relation,
        fields=target.fields,
        values=target.values,
        strategies=_strategies(schema),
        default=schema.get("default"),
        always=target.always,
        model=target.model,
    )


def _fill_list(shape: Shape, schema: Tree, named: Named, preserving: bool) -> None:
    shape.items = read(schema.get("items") or {}, named, preserving)
    shape.strategies = _strategies(schema)
    shape.merge_key = schema.get("x-kubernetes-patch-merge-key", "")
    listed = schema.get("x-kubernetes-list-type", "")
    if listed:
        shape.relation = listed
        shape.keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    elif "merge" in shape.strategies:
        # Lists older than the list types say by their patch strategy how they are owned.
        shape.relation = MAP if shape.merge_key else SET
        shape.keys = (shape.merge_key,) if shape.merge_key else ()
    else:
        shape.relation = ATOMIC


def _strategies(schema: Tree) -> tuple[str, ...]:
    return tuple(filter(None, schema.get("x-kubernetes-patch-strategy", "").split(",")))
