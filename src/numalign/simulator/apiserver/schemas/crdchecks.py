"""What a custom resource definition may not be: the mistakes people make, in the server's words.

The API server calls `errors` with a completed definition, before it is stored; schemas are read along the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import causes, crds, schemachecks
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.trees import Tree

LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LABEL_WORDS: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
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
# The server shows its own structs, in which what all versions have alike is kept elsewhere.
HOISTED: Final = "Deprecated DeprecationWarning Schema Subresources AdditionalPrinterColumns SelectableFields"


def errors(crd: Tree) -> list[Cause]:
    """Everything wrong with a definition whose names are filled in."""
    spec = crd.get("spec") or {}
    names = spec.get("names") or {}
    found = list(_name_errors(crd, spec, names))
    found += _version_errors(spec, crd.get("status") or {})
    for index, _ in enumerate(spec.get("versions") or ()):
        found += _errors_of_version(spec["versions"], index)
    # What all versions have alike is at fault once.
    return list(dict.fromkeys(found))


def _name_errors(crd: Tree, spec: Tree, names: Tree) -> Iterator[Cause]:
    name, group = trees.text(crd, "metadata", "name"), spec.get("group") or ""
    if name != f"{names.get('plural', '')}.{group}":
        yield causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield causes.required("spec.group")
    elif group.endswith((".k8s.io", ".kubernetes.io")) and not trees.at(crd, "metadata", "annotations", APPROVAL):
        yield causes.required(f"metadata.annotations[{APPROVAL}]", APPROVAL_WORDS)
    scope = spec.get("scope")
    if not scope:
        yield causes.required("spec.scope")
    elif scope not in SCOPES:
        yield causes.unsupported("spec.scope", scope, SCOPES)
    if spec.get("preserveUnknownFields"):
        yield causes.invalid("spec.preserveUnknownFields", True, PRESERVE_WORDS)
    yield from _word_errors(names)


def _word_errors(names: Tree) -> Iterator[Cause]:
    for key in ("plural", "singular", "kind", "listKind"):
        text = names.get(key) or ""
        mixed = key in ("kind", "listKind")
        if not text:
            yield causes.required(f"spec.names.{key}")
        elif not LABEL.fullmatch(text.lower() if mixed else text):
            words = f"may have mixed case, but should otherwise match: {LABEL_WORDS}" if mixed else LABEL_WORDS
            yield causes.invalid(f"spec.names.{key}", text, words)


def _version_errors(spec: Tree, status: Tree) -> Iterator[Cause]:
    versions = spec.get("versions") or []
    listed = [each.get("name", "") for each in versions]
    for index, name in enumerate(listed):
        if not LABEL.fullmatch(name):
            yield causes.invalid(f"spec.versions[{index}].name", name, LABEL_WORDS)
    if len(set(listed)) < len(listed):
        yield causes.invalid("spec.versions", _shown(versions), "must contain unique version names")
    if sum(bool(each.get("storage")) for each in versions) != 1:
        yield causes.invalid(
            "spec.versions", _shown(versions), "must have exactly one version marked as storage version"
        )
    if not status.get("storedVersions"):
        yield causes.invalid("status.storedVersions", None, "must have at least one stored version")


def _shown(versions: list[Any]) -> list[Tree] | None:
    rest = dict.fromkeys(HOISTED.split()) | {"Deprecated": False}
    named = [(each.get("name"), bool(each.get("served")), bool(each.get("storage"))) for each in versions]
    return [{"Name": name, "Served": served, "Storage": storage} | rest for name, served, storage in named] or None


def _errors_of_version(versions: list[Any], index: int) -> Iterator[Cause]:
    version = versions[index]
    schema = trees.at(version, "schema", "openAPIV3Schema")
    if schema is None:
        yield causes.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    else:
        yield from schemachecks.errors(schema, crds.per_version(versions, index, "schema") + ".openAPIV3Schema")
    scale = trees.at(version, "subresources", "scale")
    where = crds.per_version(versions, index, "subresources")
    for key in ("specReplicasPath", "statusReplicasPath"):
        if scale is not None and not scale.get(key):
            yield causes.required(f"{where}.scale.{key}")
    yield from _column_errors(version, crds.per_version(versions, index, "additionalPrinterColumns"))


def _column_errors(version: Tree, path: str) -> Iterator[Cause]:
    for place, column in enumerate(version.get("additionalPrinterColumns") or ()):
        if column.get("type") not in COLUMN_TYPES:
            words = "must be one of " + ",".join(COLUMN_TYPES)
            yield causes.invalid(f"{path}[{place}].type", column.get("type", ""), words)
        if not column.get("jsonPath", "").startswith("."):
            words = "must be a simple json path starting with ."
            yield causes.invalid(f"{path}[{place}].JSONPath", column.get("jsonPath", ""), words)
