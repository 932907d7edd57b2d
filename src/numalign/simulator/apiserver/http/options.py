"""What the query of a request asks for, checked as the real server checks it.

The checks are about combinations (a version to match without a version, initial events without a watch); what a
selector or a token says is checked where it is used."""

from typing import Any, Final

from numalign.simulator.apiserver.http import bodies
from numalign.simulator.apiserver.http.calls import Call
from numalign.simulator.apiserver.schemas import formats
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.storage.state import WriteOptions
from numalign.simulator.apiserver.verbs.delete import DeleteOptions
from numalign.simulator.apiserver.verbs.list import Asked
from numalign.simulator.apiserver.verbs.watch import Since
from numalign.simulator.trees import Tree

META: Final = "meta.k8s.io"
MATCH: Final = "resourceVersionMatch"
INITIAL: Final = "sendInitialEvents"
VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
LONGEST_MANAGER: Final = 128
POLICIES: Final = ("Foreground", "Background", "Orphan")


def _kind(name: str) -> Resource:
    return Resource(META, "v1", name.lower(), name, namespaced=False)


LIST, DELETE, PATCH = _kind("ListOptions"), _kind("DeleteOptions"), _kind("PatchOptions")
CREATE, UPDATE = _kind("CreateOptions"), _kind("UpdateOptions")


def page(call: Call) -> Asked:
    """Of a list."""
    query = call.query
    if not query:
        return Asked()
    causes = _match_causes(query)
    if INITIAL in query:
        causes.append(_forbidden(INITIAL, "sendInitialEvents is forbidden for list"))
    _refuse(LIST, causes)
    return Asked(
        limit=whole(query.get("limit", "")),
        token=query.get("continue", ""),
        version=query.get("resourceVersion", ""),
        match=query.get(MATCH, ""),
    )


def _match_causes(query: dict[str, str]) -> list[Cause]:
    match, version = query.get(MATCH, ""), query.get("resourceVersion", "")
    if not match:
        return []
    causes = []
    if not version:
        causes.append(_forbidden(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if query.get("continue"):
        causes.append(_forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    if match not in ("Exact", "NotOlderThan"):
        causes.append(_unsupported(MATCH, f'"{match}"', '"Exact", "NotOlderThan", ""'))
    if match == "Exact" and version == "0":
        causes.append(_forbidden(MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return causes


def since(call: Call) -> Since:
    """Of a watch."""
    query = call.query
    match, wished = query.get(MATCH, ""), query.get(INITIAL)
    causes = []
    if match and wished is None:
        causes.append(
            _forbidden(MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        )
    if wished is not None and match != "NotOlderThan":
        causes.append(_forbidden(MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
        if match:
            causes.append(_unsupported(MATCH, f'"{match}"', '"NotOlderThan"'))
    _refuse(LIST, causes)
    return Since(query.get("resourceVersion", ""), None if wished is None else call.flag(INITIAL))


def writing(call: Call, kind: Resource) -> WriteOptions:
    query = call.query
    if not query:
        return WriteOptions(call.manager, needs_version=True)
    causes = _dry_run_causes([query["dryRun"]] if "dryRun" in query else []) + _manager_causes(call)
    validation = query.get("fieldValidation", "")
    if validation not in VALIDATIONS:
        causes.append(_unsupported("fieldValidation", f'"{validation}"', '"", "Ignore", "Strict", "Warn"'))
    _refuse(kind, causes)
    return WriteOptions(call.manager, bool(query.get("dryRun")), call.flag("force"), needs_version=True)


def _dry_run_causes(asked: list[str]) -> list[Cause]:
    if all(each == "All" for each in asked):
        return []
    return [_unsupported("dryRun", formats.shown(asked), '"All"')]


def _manager_causes(call: Call) -> list[Cause]:
    name = call.query.get("fieldManager", "")
    if len(name.encode()) > LONGEST_MANAGER:
        why = f"Too long: may not be more than {LONGEST_MANAGER} bytes"
        return [Cause("fieldManager", "FieldValueTooLong", why)]
    strange = next((index for index, sign in enumerate(name) if not sign.isprintable()), None)
    if strange is None:
        return []
    why = f"invalid character U+{ord(name[strange]):04X} (at position {strange})"
    return [Cause("fieldManager", "FieldValueInvalid", f"Invalid value: {formats.shown(name)}: {why}")]


def applying(call: Call) -> WriteOptions:
    if not call.query.get("fieldManager"):
        _refuse(PATCH, [Cause("fieldManager", "FieldValueRequired", "Required value: is required for apply patch")])
    return writing(call, PATCH)


def patching(call: Call) -> WriteOptions:
    if "force" in call.query:
        _refuse(PATCH, [_forbidden("force", "may not be specified for non-apply patch")])
    return writing(call, PATCH)


def deleting(call: Call) -> DeleteOptions:
    """In the body where there is one, else in the query."""
    return deletion(_body(call) if call.body else _from_query(call.query))


def deletion(tree: Tree) -> DeleteOptions:
    policy, orphan = tree.get("propagationPolicy"), tree.get("orphanDependents")
    _refuse(DELETE, _dry_run_causes(tree.get("dryRun") or []))
    if policy is not None and orphan is not None:
        why = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
        _refuse(DELETE, [Cause("propagationPolicy", "FieldValueInvalid", why)])
    if policy is not None and policy not in POLICIES:
        listed = ", ".join(f'"{each}"' for each in (*POLICIES, "nil"))
        _refuse(DELETE, [_unsupported("propagationPolicy", f'"{policy}"', listed)])
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    conditions = tree.get("preconditions") or {}
    return DeleteOptions(
        tree.get("gracePeriodSeconds"),
        conditions.get("uid") or "",
        conditions.get("resourceVersion") or "",
        policy or "",
        bool(tree.get("dryRun")),
    )


def _body(call: Call) -> Tree:
    try:
        tree = bodies.decoded(call.body, call.content_type)
    except ValueError as problem:
        raise errors.bad_request(str(problem)) from None
    kind = tree.get("kind") if isinstance(tree, dict) else None
    if kind not in (None, "", "DeleteOptions"):
        version = tree.get("apiVersion", "")
        why = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise errors.bad_request(why)
    return tree if isinstance(tree, dict) else {}


def _from_query(query: dict[str, str]) -> Tree:
    found: dict[str, Any] = {}
    if "gracePeriodSeconds" in query:
        found["gracePeriodSeconds"] = whole(query["gracePeriodSeconds"])
    if "propagationPolicy" in query:
        found["propagationPolicy"] = query["propagationPolicy"]
    if "orphanDependents" in query:
        found["orphanDependents"] = query["orphanDependents"] == "true"
    if query.get("dryRun"):
        found["dryRun"] = [query["dryRun"]]
    return found


def whole(text: str) -> int:
    try:
        return int(text or 0)
    except ValueError:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _forbidden(field: str, why: str) -> Cause:
    return Cause(field, "FieldValueForbidden", f"Forbidden: {why}")


def _unsupported(field: str, value: str, supported: str) -> Cause:
    return Cause(field, "FieldValueNotSupported", f"Unsupported value: {value}: supported values: {supported}")


def _refuse(kind: Resource, causes: list[Cause]) -> None:
    if causes:
        raise errors.invalid(kind, "", causes)
