"""The options of a request, validated as the real server validates them.

`routes` calls one function for each verb. The checks are about combinations, such as resourceVersionMatch without
resourceVersion; selectors and tokens are checked where they are used."""

from typing import Any, Final

from numalign.process.http.messages import Request
from numalign.simulator.apiserver.http import bodies
from numalign.simulator.apiserver.schemas import fielderrors
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.delete import DeleteOptions
from numalign.simulator.apiserver.verbs.list import ListOptions
from numalign.simulator.apiserver.verbs.state import WriteOptions
from numalign.simulator.apiserver.verbs.watch import WatchStart
from numalign.simulator.trees import Tree

META: Final = "meta.k8s.io"
MATCH: Final = "resourceVersionMatch"
INITIAL: Final = "sendInitialEvents"
VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
MAX_MANAGER_LENGTH: Final = 128
POLICIES: Final = ("Foreground", "Background", "Orphan")


def _kind(name: str) -> Resource:
    return Resource(META, "v1", name.lower(), name, namespaced=False)


LIST, DELETE, PATCH = _kind("ListOptions"), _kind("DeleteOptions"), _kind("PatchOptions")
CREATE, UPDATE = _kind("CreateOptions"), _kind("UpdateOptions")


def list_options(request: Request) -> ListOptions:
    """The options of a list."""
    query = request.query
    if not query:
        return ListOptions()
    found = _match_causes(query)
    if INITIAL in query:
        found.append(fielderrors.forbidden(INITIAL, "sendInitialEvents is forbidden for list"))
    _refuse(LIST, found)
    return ListOptions(
        limit=parse_integer(query.get("limit", "")),
        token=query.get("continue", ""),
        version=query.get("resourceVersion", ""),
        match=query.get(MATCH, ""),
    )


def _match_causes(query: dict[str, str]) -> list[StatusCause]:
    match, version = query.get(MATCH, ""), query.get("resourceVersion", "")
    if not match:
        return []
    found = []
    if not version:
        found.append(
            fielderrors.forbidden(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")
        )
    if query.get("continue"):
        found.append(fielderrors.forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    if match not in ("Exact", "NotOlderThan"):
        found.append(fielderrors.unsupported(MATCH, match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and version == "0":
        found.append(fielderrors.forbidden(MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return found


def watch_start(request: Request) -> WatchStart:
    """The options of a watch."""
    query = request.query
    match, requested = query.get(MATCH, ""), query.get(INITIAL)
    found = []
    if match and requested is None:
        found.append(
            fielderrors.forbidden(
                MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
        )
    if requested is not None and match != "NotOlderThan":
        found.append(
            fielderrors.forbidden(MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        )
        if match:
            found.append(fielderrors.unsupported(MATCH, match, ("NotOlderThan",)))
    _refuse(LIST, found)
    return WatchStart(query.get("resourceVersion", ""), None if requested is None else request.flag(INITIAL))


def write_options(request: Request, kind: Resource) -> WriteOptions:
    query = request.query
    if not query:
        return WriteOptions(_manager(request), needs_version=True)
    found = _dry_run_causes([query["dryRun"]] if "dryRun" in query else []) + _manager_causes(request)
    validation = query.get("fieldValidation", "")
    if validation not in VALIDATIONS:
        found.append(fielderrors.unsupported("fieldValidation", validation, VALIDATIONS))
    _refuse(kind, found)
    return WriteOptions(_manager(request), bool(query.get("dryRun")), request.flag("force"), needs_version=True)


def _dry_run_causes(asked: list[str]) -> list[StatusCause]:
    if all(each == "All" for each in asked):
        return []
    return [fielderrors.unsupported("dryRun", asked, ("All",))]


def _manager_causes(request: Request) -> list[StatusCause]:
    name = request.query.get("fieldManager", "")
    if len(name.encode()) > MAX_MANAGER_LENGTH:
        return [fielderrors.too_long("fieldManager", MAX_MANAGER_LENGTH)]
    strange = next((index for index, sign in enumerate(name) if not sign.isprintable()), None)
    if strange is None:
        return []
    why = f"invalid character U+{ord(name[strange]):04X} (at position {strange})"
    return [fielderrors.invalid("fieldManager", name, why)]


def apply_options(request: Request) -> WriteOptions:
    if not request.query.get("fieldManager"):
        _refuse(PATCH, [fielderrors.required("fieldManager", "is required for apply patch")])
    return write_options(request, PATCH)


def patch_options(request: Request) -> WriteOptions:
    if "force" in request.query:
        _refuse(PATCH, [fielderrors.forbidden("force", "may not be specified for non-apply patch")])
    return write_options(request, PATCH)


def delete_options(request: Request) -> DeleteOptions:
    """The options of a deletion, from the body if there is one, else from the query."""
    return read_delete_options(_body(request) if request.body else _from_query(request.query))


def read_delete_options(tree: Tree) -> DeleteOptions:
    policy, orphan = tree.get("propagationPolicy"), tree.get("orphanDependents")
    _refuse(DELETE, _dry_run_causes(tree.get("dryRun") or []))
    if policy is not None and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        _refuse(DELETE, [fielderrors.invalid("propagationPolicy", policy, why)])
    if policy is not None and policy not in POLICIES:
        _refuse(DELETE, [fielderrors.unsupported("propagationPolicy", policy, (*POLICIES, "nil"))])
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


def _body(request: Request) -> Tree:
    try:
        tree = bodies.decode(request.body, request.content_type)
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
        found["gracePeriodSeconds"] = parse_integer(query["gracePeriodSeconds"])
    if "propagationPolicy" in query:
        found["propagationPolicy"] = query["propagationPolicy"]
    if "orphanDependents" in query:
        found["orphanDependents"] = query["orphanDependents"] == "true"
    if query.get("dryRun"):
        found["dryRun"] = [query["dryRun"]]
    return found


def parse_integer(text: str) -> int:
    try:
        return int(text or 0)
    except ValueError:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _refuse(kind: Resource, found: list[StatusCause]) -> None:
    if found:
        raise errors.invalid(kind, "", found)


def _manager(request: Request) -> str:
    """The field manager: by name, else the program in the user agent."""
    return request.query.get("fieldManager") or request.headers.get("user-agent", "").partition("/")[0] or "unknown"
