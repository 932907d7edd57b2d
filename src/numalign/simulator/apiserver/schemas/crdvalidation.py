"""Validates custom resource definitions and their schemas, with the real server's messages.

The create and update verbs call `definition_errors` with a completed definition before they store it. `schema_errors`
checks that a schema is structural. The usual mistakes are found; a schema that passes may still be rejected by a real
server for rarer reasons (formats of nested defaults, CEL costs)."""

import re
from collections.abc import Iterator
from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import fielderrors, registry, validate
from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.apiserver.storage.names import dns1035_label_problems
from numalign.simulator.trees import Tree

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
LIST_TYPES: Final = ("atomic", "set", "map")
MAP_TYPES: Final = ("atomic", "granular")
# allOf, anyOf, oneOf and not may only restrict values; the type of a field is declared outside of them.
OUTSIDE_ONLY: Final = ("type", "default", "additionalProperties", "nullable", "title", "description")
ONLY_NAMES: Final = "must not specify anything other than name and generateName, but metadata is implicitly specified"
QUADRATIC: Final = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
NEEDS_KEY: Final = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
SCOPES: Final = ("Cluster", "Namespaced")
COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
APPROVAL: Final = "api-approved.kubernetes.io"
APPROVAL_WORDS: Final = (
    f'protected groups must have approval annotation "{APPROVAL}", '
    "see https://github.com/kubernetes/enhancements/pull/1111"
)
PRESERVE_WORDS: Final = (
    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
)
# The server prints its internal structs, which keep what all versions share in another place.
HOISTED: Final = "Deprecated DeprecationWarning Schema Subresources AdditionalPrinterColumns SelectableFields"


def schema_errors(schema: Tree, path: str) -> Iterator[StatusCause]:
    if not schema.get("type"):
        yield fielderrors.required(f"{path}.type", "must not be empty at the root")
    elif schema["type"] != "object":
        yield fielderrors.invalid(f"{path}.type", schema["type"], "must be object at the root")
    else:
        metadata = (schema.get("properties") or {}).get("metadata") or {}
        if set(metadata.get("properties") or ()) - {"name", "generateName"}:
            yield fielderrors.forbidden(f"{path}.properties[metadata]", ONLY_NAMES)
        yield from _errors(schema, path)


def _errors(schema: Tree, path: str) -> Iterator[StatusCause]:
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


def _own_errors(schema: Tree, path: str) -> Iterator[StatusCause]:
    if schema.get("$ref"):
        yield fielderrors.forbidden(f"{path}.$ref", "$ref is not supported")
    if schema.get("type") == "array" and not schema.get("items"):
        yield fielderrors.required(f"{path}.items", "must be specified")
    if schema.get("properties") and schema.get("additionalProperties") not in (None, False):
        yield fielderrors.forbidden(
            f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"
        )
    if schema.get("uniqueItems"):
        yield fielderrors.forbidden(f"{path}.uniqueItems", QUADRATIC)
    yield from _pattern_errors(schema, path)
    yield from _list_errors(schema, path)
    if schema.get("x-kubernetes-map-type") not in (None, *MAP_TYPES):
        yield fielderrors.unsupported(f"{path}.x-kubernetes-map-type", schema["x-kubernetes-map-type"], MAP_TYPES)
    if schema.get("default") is not None:
        for cause in validate.errors(schema["default"], schema):
            yield StatusCause(f"{path}.default", cause.reason, cause.message)


def _type_errors(schema: Tree, path: str, empty: str) -> Iterator[StatusCause]:
    free = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")
    if not schema.get("type"):
        if not free and not schema.get("$ref"):
            yield fielderrors.required(f"{path}.type", empty)
    elif schema["type"] not in TYPES:
        yield fielderrors.unsupported(f"{path}.type", schema["type"], TYPES)


def _pattern_errors(schema: Tree, path: str) -> Iterator[StatusCause]:
    try:
        re.compile(schema.get("pattern") or "")
    except re.error as error:
        why = f"must be a valid regular expression, but isn't: {error}"
        yield fielderrors.invalid(f"{path}.pattern", schema["pattern"], why)


def _list_errors(schema: Tree, path: str) -> Iterator[StatusCause]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if kind not in (None, *LIST_TYPES):
        yield fielderrors.unsupported(f"{path}.x-kubernetes-list-type", kind, LIST_TYPES)
    if kind != "map":
        return
    if not keys:
        words = "must not be empty if x-kubernetes-list-type is map"
        yield fielderrors.required(f"{path}.x-kubernetes-list-map-keys", words)
    items = schema.get("items") or {}
    for key in keys or ():
        sub = (items.get("properties") or {}).get(key)
        if sub is None:
            words = "entries must all be names of item properties"
            yield fielderrors.invalid(f"{path}.x-kubernetes-list-map-keys", keys, words)
        elif key not in (items.get("required") or ()) and "default" not in sub:
            yield fielderrors.required(f"{path}.items.properties[{key}].default", NEEDS_KEY)


def _judging_errors(schema: Tree, path: str, outside: Tree) -> Iterator[StatusCause]:
    for word in OUTSIDE_ONLY:
        # int-or-string repeats the types inside anyOf, by convention.
        if schema.get(word) and not (word == "type" and outside.get("x-kubernetes-int-or-string")):
            yield fielderrors.forbidden(f"{path}.{word}", "must be empty to be structural")
    for key, sub in (schema.get("properties") or {}).items():
        yield from _judging_errors(sub, f"{path}.properties[{key}]", outside)
    for word in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(schema.get(word) or ()):
            yield from _judging_errors(sub, f"{path}.{word}[{index}]", outside)


def definition_errors(crd: Tree) -> list[StatusCause]:
    """All errors of a definition whose names are filled in."""
    spec = crd.get("spec") or {}
    names = spec.get("names") or {}
    found = list(_name_errors(crd, spec, names))
    found += _version_errors(spec, crd.get("status") or {})
    for index, _ in enumerate(spec.get("versions") or ()):
        found += _errors_of_version(spec["versions"], index)
    # An error in a part that all versions share is reported once.
    return list(dict.fromkeys(found))


def _name_errors(crd: Tree, spec: Tree, names: Tree) -> Iterator[StatusCause]:
    name, group = trees.text(crd, "metadata", "name"), spec.get("group") or ""
    if name != f"{names.get('plural', '')}.{group}":
        yield fielderrors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield fielderrors.required("spec.group")
    elif group.endswith((".k8s.io", ".kubernetes.io")) and not trees.at(crd, "metadata", "annotations", APPROVAL):
        yield fielderrors.required(f"metadata.annotations[{APPROVAL}]", APPROVAL_WORDS)
    scope = spec.get("scope")
    if not scope:
        yield fielderrors.required("spec.scope")
    elif scope not in SCOPES:
        yield fielderrors.unsupported("spec.scope", scope, SCOPES)
    if spec.get("preserveUnknownFields"):
        yield fielderrors.invalid("spec.preserveUnknownFields", True, PRESERVE_WORDS)
    yield from _word_errors(names)


def _word_errors(names: Tree) -> Iterator[StatusCause]:
    for key in ("plural", "singular", "kind", "listKind"):
        text = names.get(key) or ""
        mixed = key in ("kind", "listKind")
        if not text:
            yield fielderrors.required(f"spec.names.{key}")
        for why in dns1035_label_problems(text.lower() if mixed else text) if text else ():
            words = f"may have mixed case, but should otherwise match: {why}" if mixed else why
            yield fielderrors.invalid(f"spec.names.{key}", text, words)


def _version_errors(spec: Tree, status: Tree) -> Iterator[StatusCause]:
    versions = spec.get("versions") or []
    listed = [each.get("name", "") for each in versions]
    for index, name in enumerate(listed):
        for why in dns1035_label_problems(name):
            yield fielderrors.invalid(f"spec.versions[{index}].name", name, why)
    if len(set(listed)) < len(listed):
        yield fielderrors.invalid("spec.versions", _shown(versions), "must contain unique version names")
    if sum(bool(each.get("storage")) for each in versions) != 1:
        yield fielderrors.invalid(
            "spec.versions", _shown(versions), "must have exactly one version marked as storage version"
        )
    if not status.get("storedVersions"):
        yield fielderrors.invalid("status.storedVersions", None, "must have at least one stored version")


def _shown(versions: list[Any]) -> list[Tree] | None:
    rest = dict.fromkeys(HOISTED.split()) | {"Deprecated": False}
    named = [(each.get("name"), bool(each.get("served")), bool(each.get("storage"))) for each in versions]
    return [{"Name": name, "Served": served, "Storage": storage} | rest for name, served, storage in named] or None


def _errors_of_version(versions: list[Any], index: int) -> Iterator[StatusCause]:
    version = versions[index]
    schema = trees.at(version, "schema", "openAPIV3Schema")
    if schema is None:
        yield fielderrors.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    else:
        yield from schema_errors(schema, registry.per_version(versions, index, "schema") + ".openAPIV3Schema")
    scale = trees.at(version, "subresources", "scale")
    where = registry.per_version(versions, index, "subresources")
    for key in ("specReplicasPath", "statusReplicasPath"):
        if scale is not None and not scale.get(key):
            yield fielderrors.required(f"{where}.scale.{key}")
    yield from _column_errors(version, registry.per_version(versions, index, "additionalPrinterColumns"))


def _column_errors(version: Tree, path: str) -> Iterator[StatusCause]:
    for place, column in enumerate(version.get("additionalPrinterColumns") or ()):
        if column.get("type") not in COLUMN_TYPES:
            words = "must be one of " + ",".join(COLUMN_TYPES)
            yield fielderrors.invalid(f"{path}[{place}].type", column.get("type", ""), words)
        if not column.get("jsonPath", "").startswith("."):
            words = "must be a simple json path starting with ."
            yield fielderrors.invalid(f"{path}[{place}].JSONPath", column.get("jsonPath", ""), words)
