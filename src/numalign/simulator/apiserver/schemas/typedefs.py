"""How the values of an API object merge: the type definitions that strategic merge patch and server-side apply use.

`builtin` reads them from its generated table, `structural` from the schema of a custom resource; both pass OpenAPI
schemas. A TypeDef says what a value is, how lists and maps are owned (atomic, set, map, granular), and which fields the
server's structs always carry. It does not validate values.

`without_empty` removes empty fields, as the real server does when it encodes its structs; it keeps zeros and empty
texts, because the table does not say which of them are omitted. `unknown_fields` finds undeclared fields for
`fieldValidation`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from numalign.simulator.trees import Tree

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
GRANULAR: Final = "granular"
ATOMIC: Final = "atomic"
SET: Final = "set"
MAP: Final = "map"


@dataclass(eq=False)
class TypeDef:
    """`type` is that of OpenAPI, empty for any value; `values` is the type of keys that are not declared fields."""

    type: str = ""
    format: str = ""
    relation: str = GRANULAR
    fields: dict[str, TypeDef] = field(default_factory=dict)
    values: TypeDef | None = None
    items: TypeDef | None = None
    keys: tuple[str, ...] = ()
    merge_key: str = ""
    strategies: tuple[str, ...] = ()
    default: Any = None
    always: dict[str, Any] = field(default_factory=dict)
    """Fields that a built-in struct always has, with their empty values: nested structs and required lists."""
    model: str = ""

    def child(self, key: str) -> TypeDef | None:
        """The type of a key of a struct or map; None if the key is not declared and no other key is allowed."""
        return self.fields.get(key, self.values)


def _recursive(relation: str) -> TypeDef:
    typedef = TypeDef(relation=relation)
    typedef.values = typedef
    return typedef


ANYTHING: Final = _recursive(GRANULAR)
OPAQUE: Final = _recursive(ATOMIC)

Named = Callable[[str], TypeDef]


def read(schema: Tree, named: Named, preserving: bool = False) -> TypeDef:
    """The type of an OpenAPI schema. `named` resolves references; `preserving` is inherited from the parent."""
    if "$ref" in schema:
        return _referred(schema, named(schema["$ref"]))
    typedef = TypeDef(type=schema.get("type", ""), format=schema.get("format", ""), default=schema.get("default"))
    preserving = preserving or schema.get("x-kubernetes-preserve-unknown-fields") is True
    if typedef.type in ("object", ""):
        fill(typedef, schema, named, preserving)
    if typedef.type == "array":
        _fill_list(typedef, schema, named, preserving)
    return typedef


def fill(typedef: TypeDef, schema: Tree, named: Named, preserving: bool = False) -> None:
    """Adds fields to a type that other types may already refer to."""
    properties: Mapping[str, Tree] = schema.get("properties") or {}
    for key, sub in properties.items():
        typedef.fields[key] = read(sub, named, preserving)
    typedef.values = _undeclared(schema, named, preserving)
    typedef.relation = ATOMIC if schema.get("x-kubernetes-map-type") == ATOMIC else GRANULAR
    if schema.get("x-kubernetes-embedded-resource") is True:
        typedef.fields |= embedded(named)


def embedded(named: Named) -> dict[str, TypeDef]:
    """The fields of every object, whether its schema declares them or not."""
    text = TypeDef(type="string")
    return {"apiVersion": text, "kind": text, "metadata": named(OBJECT_META)}


def _undeclared(schema: Tree, named: Named, preserving: bool) -> TypeDef | None:
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        return read(more, named, preserving)
    if more is False:
        return None
    free = more is True or preserving or not schema.get("properties")
    return ANYTHING if free else None


def _referred(schema: Tree, target: TypeDef) -> TypeDef:
    """A reference to a named type: the reference's strategy and default, with the fields of the type."""
    atomic = schema.get("x-kubernetes-map-type") == ATOMIC
    return TypeDef(
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


def _fill_list(typedef: TypeDef, schema: Tree, named: Named, preserving: bool) -> None:
    typedef.items = read(schema.get("items") or {}, named, preserving)
    typedef.strategies = _strategies(schema)
    typedef.merge_key = schema.get("x-kubernetes-patch-merge-key", "")
    listed = schema.get("x-kubernetes-list-type", "")
    if listed:
        typedef.relation = listed
        typedef.keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    elif "merge" in typedef.strategies:
        # Lists without a list type declare their ownership by the older patch strategy.
        typedef.relation = MAP if typedef.merge_key else SET
        typedef.keys = (typedef.merge_key,) if typedef.merge_key else ()
    else:
        typedef.relation = ATOMIC


def _strategies(schema: Tree) -> tuple[str, ...]:
    return tuple(filter(None, schema.get("x-kubernetes-patch-strategy", "").split(",")))


def without_empty(value: Any, typedef: TypeDef) -> Any:
    """A new value if something below is removed, else the same one."""
    if isinstance(value, list):
        items = typedef.items or ANYTHING
        return [without_empty(item, items) for item in value]
    if not isinstance(value, dict) or not (typedef.fields or typedef.values):
        return value
    kept = {}
    for key, child in value.items():
        below = typedef.child(key)
        if below is None:
            continue
        if child is None and below is typedef.values and below.type == "string":
            # In a map of texts a null means an empty text.
            kept[key] = ""
        elif child is not None and (child or not _is_left_out(key, child, typedef, below)):
            kept[key] = without_empty(child, below)
    return kept


def _is_left_out(key: str, child: Any, typedef: TypeDef, below: TypeDef) -> bool:
    """Empty lists and maps are removed; an empty struct stays, because it may have a meaning, as emptyDir has."""
    return isinstance(child, dict | list) and key in typedef.fields and key not in typedef.always and not below.model


def unknown_fields(value: Any, typedef: TypeDef, path: str = "") -> Iterator[str]:
    """The path of every undeclared field, as in `unknown field "spec.containers[0].imagee"`, in the order of the
    object. Fields below an undeclared one are not listed."""
    if isinstance(value, dict):
        for key, child in value.items():
            below = typedef.child(key)
            where = f"{path}.{key}" if path else key
            if below is None:
                yield where
            elif below.type or below.fields:
                yield from unknown_fields(child, below, where)
    elif isinstance(value, list) and typedef.items is not None:
        for index, item in enumerate(value):
            yield from unknown_fields(item, typedef.items, f"{path}[{index}]")
