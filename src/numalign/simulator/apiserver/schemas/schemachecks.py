"""Whether a schema may stand in a custom resource definition: the rules that make it structural.

`structural.read` asks. The most usual mistakes are found, in the server's words; a schema that passes here may still
be refused by a real server for rarer reasons (formats of defaults deep inside, CEL costs)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from numalign.simulator.apiserver.schemas import causes, validating
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.trees import Tree

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
LIST_TYPES: Final = ("atomic", "set", "map")
MAP_TYPES: Final = ("atomic", "granular")
# Within allOf and its like only values are judged; what a field is stands outside.
OUTSIDE_ONLY: Final = ("type", "default", "additionalProperties", "nullable", "title", "description")
ONLY_NAMES: Final = "must not specify anything other than name and generateName, but metadata is implicitly specified"
QUADRATIC: Final = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
NEEDS_KEY: Final = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"


def errors(schema: Tree, path: str) -> Iterator[Cause]:
    if not schema.get("type"):
        yield causes.required(f"{path}.type", "must not be empty at the root")
    elif schema["type"] != "object":
        yield causes.invalid(f"{path}.type", schema["type"], "must be object at the root")
    else:
        metadata = (schema.get("properties") or {}).get("metadata") or {}
        if set(metadata.get("properties") or ()) - {"name", "generateName"}:
            yield causes.forbidden(f"{path}.properties[metadata]", ONLY_NAMES)
        yield from _errors(schema, path)


def _errors(schema: Tree, path: str) -> Iterator[Cause]:
    yield from _own_errors(schema, path)
    for key, sub in (schema.get("properties") or {}).items():
        where = f"{path}.properties[{key}]"
        yield from _type_errors(sub, where, "must not be empty for specified object fields")
        yield from _errors(sub, where)
    if isinstance(schema.get("additionalProperties"), dict):
        where = f"{path}.additionalProperties"
        yield from _type_errors(schema["additionalProperties"], where, "must not be empty for specified object fields")
        yield from _errors(schema["additionalProperties"], where)
    if isinstance(schema.get("items"), dict):
        yield from _type_errors(schema["items"], f"{path}.items", "must not be empty for specified array items")
        yield from _errors(schema["items"], f"{path}.items")
    for word in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(schema.get(word) or ()):
            yield from _judging_errors(sub, f"{path}.{word}[{index}]", schema)
    if schema.get("not"):
        yield from _judging_errors(schema["not"], f"{path}.not", schema)


def _own_errors(schema: Tree, path: str) -> Iterator[Cause]:
    if schema.get("$ref"):
        yield causes.forbidden(f"{path}.$ref", "$ref is not supported")
    if schema.get("type") == "array" and not schema.get("items"):
        yield causes.required(f"{path}.items", "must be specified")
    if schema.get("properties") and schema.get("additionalProperties") not in (None, False):
        yield causes.forbidden(
            f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"
        )
    if schema.get("uniqueItems"):
        yield causes.forbidden(f"{path}.uniqueItems", QUADRATIC)
    yield from _pattern_errors(schema, path)
    yield from _list_errors(schema, path)
    if schema.get("x-kubernetes-map-type") not in (None, *MAP_TYPES):
        yield causes.unsupported(f"{path}.x-kubernetes-map-type", schema["x-kubernetes-map-type"], MAP_TYPES)
    if schema.get("default") is not None:
        for cause in validating.errors(schema["default"], schema):
            yield Cause(f"{path}.default", cause.reason, cause.message)


def _type_errors(schema: Tree, path: str, empty: str) -> Iterator[Cause]:
    free = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")
    if not schema.get("type"):
        if not free and not schema.get("$ref"):
            yield causes.required(f"{path}.type", empty)
    elif schema["type"] not in TYPES:
        yield causes.unsupported(f"{path}.type", schema["type"], TYPES)


def _pattern_errors(schema: Tree, path: str) -> Iterator[Cause]:
    try:
        re.compile(schema.get("pattern") or "")
    except re.error as error:
        why = f"must be a valid regular expression, but isn't: {error}"
        yield causes.invalid(f"{path}.pattern", schema["pattern"], why)


def _list_errors(schema: Tree, path: str) -> Iterator[Cause]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if kind not in (None, *LIST_TYPES):
        yield causes.unsupported(f"{path}.x-kubernetes-list-type", kind, LIST_TYPES)
    if kind != "map":
        return
    if not keys:
        words = "must not be empty if x-kubernetes-list-type is map"
        yield causes.required(f"{path}.x-kubernetes-list-map-keys", words)
    items = schema.get("items") or {}
    for key in keys or ():
        sub = (items.get("properties") or {}).get(key)
        if sub is None:
            words = "entries must all be names of item properties"
            yield causes.invalid(f"{path}.x-kubernetes-list-map-keys", keys, words)
        elif key not in (items.get("required") or ()) and "default" not in sub:
            yield causes.required(f"{path}.items.properties[{key}].default", NEEDS_KEY)


def _judging_errors(schema: Tree, path: str, outside: Tree) -> Iterator[Cause]:
    for word in OUTSIDE_ONLY:
        # int-or-string is spelled with the types inside anyOf, by old habit.
        if schema.get(word) and not (word == "type" and outside.get("x-kubernetes-int-or-string")):
            yield causes.forbidden(f"{path}.{word}", "must be empty to be structural")
    for key, sub in (schema.get("properties") or {}).items():
        yield from _judging_errors(sub, f"{path}.properties[{key}]", outside)
    for word in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(schema.get(word) or ()):
            yield from _judging_errors(sub, f"{path}.{word}[{index}]", outside)
