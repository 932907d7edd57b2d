"""Field selectors: `spec.nodeName=n1,status.phase!=Failed`, for the few selectable fields of each kind.

The store reads the selectable fields of an object once, when it writes the object, and keeps them beside it. Lists and
watches compare against this small dict. An unknown field is rejected with the real server's message, of which there are
two."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.trees import Tree

SelectableFields = Mapping[str, str]
NAME: Final = "metadata.name"
NAMESPACE: Final = "metadata.namespace"
NODE: Final = "spec.nodeName"
SUBJECT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
ZERO: Final = {"spec.unschedulable": "false", "status.replicas": "0", "status.successful": "0"}
META: Final = frozenset({NAME, NAMESPACE})
# events.k8s.io has other names for the fields of core events; spec.host is an old name of spec.nodeName.
RENAMED: Final[dict[str, dict[str, str]]] = {
    "v1": {"spec.host": NODE},
    "events.k8s.io/v1": {f"regarding.{name}": f"involvedObject.{name}" for name in SUBJECT}
    | {"reportingController": "reportingComponent"},
}


class FieldTerm(Struct, frozen=True):
    field: str
    value: str
    equal: bool = True


Terms = tuple[FieldTerm, ...]


def matches(terms: Terms, fields: SelectableFields) -> bool:
    return all((fields.get(term.field, "") == term.value) == term.equal for term in terms)


def required_value(terms: Terms, field: str) -> str:
    """The value that the terms require for the field, or an empty text."""
    return next((term.value for term in terms if term.field == field and term.equal), "")


def parse(text: str, resource: Resource) -> Terms:
    """Raises StatusError 400 for a text that is not a selector or names a field that is not selectable."""
    return tuple(_known(term, resource) for term in _terms(text))


@lru_cache(maxsize=4096)
def _terms(text: str) -> Terms:
    return tuple(_term(part, text) for part in re.split(r"(?<!\\),", text) if part)


def _term(part: str, whole: str) -> FieldTerm:
    for sign, equal in (("!=", False), ("==", True), ("=", True)):
        field, found, value = part.partition(sign)
        if found:
            return FieldTerm(field, re.sub(r"\\([\\,=])", r"\1", value), equal)
    raise errors.bad_request(f"invalid selector: '{whole}'; can't understand '{part}'")


def _known(term: FieldTerm, resource: Resource) -> FieldTerm:
    renamed = RENAMED.get(resource.api_version, {}).get(term.field, term.field)
    chosen = KNOWN.get(resource.group_resource)
    if chosen is None and renamed in (NAME, NAMESPACE):
        return term
    if chosen is not None and renamed in chosen.names:
        return FieldTerm(renamed, term.value, term.equal)
    raise errors.bad_request(_complaint(term.field, resource, chosen))


def _complaint(field: str, resource: Resource, chosen: "_Selectable | None") -> str:
    if chosen is None and resource.custom:
        return f"field label not supported: {field}"
    if chosen is None:
        return f'"{field}" is not a known field selector: only "{NAME}", "{NAMESPACE}"'
    return (
        f'field label "{field}" not supported for Job'
        if resource.kind == "Job"
        else f"field label not supported: {field}"
    )


def selectable_fields(resource: Resource, tree: Tree) -> dict[str, str] | None:
    """The selectable fields besides name and namespace; None for a kind that has no others."""
    chosen = KNOWN.get(resource.group_resource)
    return None if chosen is None else chosen.read(tree)


class _Selectable(Struct, frozen=True):
    names: frozenset[str]
    read: Callable[[Tree], dict[str, str]]


def _pod(tree: Tree) -> dict[str, str]:
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    addresses = status.get("podIPs")
    return {
        NODE: spec.get("nodeName") or "",
        "spec.restartPolicy": spec.get("restartPolicy") or "",
        "spec.schedulerName": spec.get("schedulerName") or "",
        "spec.serviceAccountName": spec.get("serviceAccountName") or "",
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase") or "",
        "status.podIP": addresses[0].get("ip", "") if addresses else status.get("podIP") or "",
        "status.nominatedNodeName": status.get("nominatedNodeName") or "",
    }


def _event(tree: Tree) -> dict[str, str]:
    subject, reporter = tree.get("involvedObject") or {}, tree.get("reportingComponent") or ""
    found = {f"involvedObject.{name}": str(subject.get(name) or "") for name in SUBJECT}
    return found | {
        "reason": tree.get("reason") or "",
        "reportingComponent": reporter,
        "source": (tree.get("source") or {}).get("component") or reporter,
        "type": tree.get("type") or "",
    }


def _flat(*paths: str) -> Callable[[Tree], dict[str, str]]:
    def read(tree: Tree) -> dict[str, str]:
        return {path: _text(tree, path) for path in paths}

    return read


def _text(tree: Tree, path: str) -> str:
    found: Any = tree
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return str(found if found is not None else ZERO.get(path, "")).replace("True", "true").replace("False", "false")


def _selectable(*paths: str, meta: frozenset[str] = META) -> _Selectable:
    return _Selectable(meta | set(paths), _flat(*paths))


KNOWN: Final = {
    ("", "pods"): _Selectable(META | _pod({}).keys() | {"status.podIPs"}, _pod),
    ("", "events"): _Selectable(META | _event({}).keys(), _event),
    ("", "nodes"): _selectable("spec.unschedulable", meta=frozenset({NAME})),
    ("", "namespaces"): _selectable("status.phase", meta=frozenset({NAME})),
    ("", "secrets"): _selectable("type"),
    ("", "services"): _selectable("spec.clusterIP", "spec.type"),
    ("", "replicationcontrollers"): _selectable("status.replicas"),
    ("batch", "jobs"): _selectable("status.successful"),
}
