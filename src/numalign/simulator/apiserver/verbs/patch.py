"""Applies a patch of any of the four kinds and writes the result.

`Api` and the HTTP layer call `patch_object`. The patch is applied to the object in the apiVersion of the request; the
result takes the path of every update. A server-side apply of an object that does not exist creates it."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from numalign.api.decode import decode
from numalign.simulator import trees
from numalign.simulator.apiserver.patches import ApplyConflict, BadPatch, jsonpatch, strategic
from numalign.simulator.apiserver.patches.apply import FieldManager
from numalign.simulator.apiserver.patches.errors import UNREADABLE, checked_body
from numalign.simulator.apiserver.schemas import builtin, fielderrors, gotext
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusCause, StatusError, TypeMismatch
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.storage.store import StoredObject
from numalign.simulator.apiserver.verbs import conversion, create, subresources, update
from numalign.simulator.apiserver.verbs.state import PLAIN, ServerState, WriteOptions
from numalign.simulator.trees import Tree

PatchKind = Literal["json", "merge", "strategic", "apply"]
CODES: Final[Mapping[int, str]] = {400: "BadRequest", 422: "Invalid", 415: "UnsupportedMediaType"}
NOT_STRATEGIC: Final = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)
WRONG_NAMESPACE: Final = "the namespace of the provided object does not match the namespace sent on the request"


class Patch(Struct, frozen=True):
    kind: PatchKind
    body: bytes | Tree | list[Tree]


class PatchTarget(Struct, frozen=True):
    """The object that is patched, and the subresource."""

    resource: Resource
    name: str
    namespace: str = ""
    subresource: str = ""


class PatchResult(Struct, frozen=True):
    entry: StoredObject
    is_new: bool = False


def patch_object(state: ServerState, place: PatchTarget, patch: Patch, options: WriteOptions = PLAIN) -> PatchResult:
    resource = place.resource
    if resource.custom and patch.kind == "strategic":
        raise errors.unsupported_media_type(NOT_STRATEGIC)
    entry = state.store.entry(resource, place.name, place.namespace)
    body = _read(patch)
    if entry is None:
        if patch.kind != "apply" or place.subresource:
            raise errors.not_found(resource, place.name)
        _check_name(place, body)
        made = _changed(state, place, patch.kind, None, body, options)
        made["metadata"] = {"name": place.name, "namespace": place.namespace} | made["metadata"]
        return PatchResult(create.create_object(state, resource, made, options), is_new=True)
    seen = trees.decoded(conversion.to_version(resource, entry.data))
    if place.subresource == "scale":
        seen = subresources.scale_of(state.registry, resource, seen)
    uid = seen["metadata"]["uid"]
    new = _changed(state, place, patch.kind, seen, body, options)
    options = msgspec.structs.replace(options, applied=patch.kind == "apply")
    try:
        builtin.check_structure(new, resource)
        _check(place, entry, uid, new)
        return PatchResult(_written(state, place, entry, new, options))
    except TypeMismatch as problem:
        raise _unfit(patch.kind, body, new, problem) from None


def _written(
    state: ServerState, place: PatchTarget, entry: StoredObject, new: Tree, options: WriteOptions
) -> StoredObject:
    resource, subresource = place.resource, place.subresource
    if subresource == "scale":
        new, subresource = subresources.scaled(state.registry, resource, trees.decoded(entry.data), new), ""
    old, kept = trees.decoded(entry.data), conversion.to_storage(resource, new)
    return update.replace_object(state, resource, entry, old, kept, subresource=subresource, options=options)


def _unfit(how: PatchKind, body: Any, new: Tree, problem: TypeMismatch) -> StatusError:
    """The 422 for a patch that gives a field a value of the wrong type."""
    shown, why = trees.encoded(dict(sorted(new.items()))).decode(), problem.why
    if how == "strategic":
        shown, why = gotext.go_value(body), gotext.conversion_error(problem.got, problem.wanted) or why
    cause = fielderrors.invalid("patch", shown, why)
    return StatusError(422, "Invalid", f' "" is invalid: patch: {cause.message}', {"causes": [cause.tree()]})


def _read(patch: Patch) -> Any:
    if not isinstance(patch.body, bytes):
        return patch.body
    try:
        body = _read_yaml(patch.body) if patch.kind == "apply" else msgspec.json.decode(patch.body)
        return checked_body(patch.kind, body)
    except msgspec.DecodeError:
        raise errors.bad_request(UNREADABLE) from None
    except BadPatch as problem:
        raise patch_error(problem) from None


def _read_yaml(body: bytes) -> Any:
    try:
        return gotext.decode_yaml(body)
    except ValueError as problem:
        raise errors.bad_request(f"error encoding patch: {problem}") from None


def patch_error(problem: BadPatch) -> StatusError:
    details: Tree | None = {} if problem.code == 422 else None
    return StatusError(problem.code, CODES.get(problem.code, ""), problem.message, details)


def _changed(
    state: ServerState, place: PatchTarget, how: PatchKind, seen: Tree | None, body: Any, options: WriteOptions
) -> Tree:
    resource = place.resource
    target = subresources.SCALE if place.subresource == "scale" else resource
    try:
        if how == "apply":
            fields = FieldManager(target.gvk, state.clock.rfc3339(), place.subresource, state.registry.schema(target))
            return fields.apply(seen, body, options.manager, force=options.force)
        return _patched(how, seen or {}, body, target.gvk)
    except BadPatch as problem:
        raise patch_error(problem) from None
    except ApplyConflict as conflict:
        found = [
            StatusCause(each.field, "FieldManagerConflict", f"conflict with {each.manager}") for each in conflict.causes
        ]
        details = {"causes": [cause.tree() for cause in found]}
        raise StatusError(409, "Conflict", conflict.message, details) from None


def _patched(how: PatchKind, seen: Tree, body: Any, kind: tuple[str, str, str]) -> Tree:
    if how == "json":
        return jsonpatch.applied(seen, body)
    if how == "merge":
        return decode.merge_patch(seen, body)
    return strategic.applied(seen, body, kind)


def _check_name(place: PatchTarget, body: Any) -> None:
    name = trees.metadata(body).get("name") if isinstance(body, dict) else None
    if name and name != place.name:
        raise wrong_name(name, place.name)


def _check(place: PatchTarget, entry: StoredObject, old_uid: str, new: Tree) -> None:
    """A patch may name the version that it expects, and must not change name, namespace or uid."""
    metadata = trees.metadata(new)
    if place.namespace and (metadata.get("namespace") or place.namespace) != place.namespace:
        raise errors.bad_request(WRONG_NAMESPACE)
    if metadata.get("name") != place.name:
        raise wrong_name(metadata.get("name") or "", place.name)
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if uid and uid != old_uid:
        cause = fielderrors.invalid("metadata.uid", uid, "field is immutable")
        raise errors.invalid(place.resource, place.name, [cause])
    if version and version != str(entry.version):
        raise errors.conflict(place.resource, place.name, update.STALE)


def wrong_name(name: str, url: str) -> StatusError:
    return errors.bad_request(f"the name of the object ({name}) does not match the name on the URL ({url})")
