"""A patch of any of the four kinds, from its bytes to the write.

`api` and the HTTP layer call `patch`. The patch is applied to the object as its reader sees it, in the version that was
asked for; what comes out takes the way of every update. An apply that finds nothing creates."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from numalign.simulator import trees
from numalign.simulator.apiserver import bodies, creating, refusals, scale, showing, updating
from numalign.simulator.apiserver.patches import ApplyConflict, BadPatch, apply, jsonpatch, mergepatch, strategic
from numalign.simulator.apiserver.refusals import Cause, StatusError
from numalign.simulator.apiserver.resources import Resource
from numalign.simulator.apiserver.ring import Entry
from numalign.simulator.apiserver.state import PLAIN, State, WriteOptions
from numalign.simulator.trees import Tree

PatchKind = Literal["json", "merge", "strategic", "apply"]
CODES: Final[Mapping[int, str]] = {400: "BadRequest", 422: "Invalid", 415: "UnsupportedMediaType", 500: "InternalError"}


class Patch(Struct, frozen=True):
    kind: PatchKind
    body: bytes | Tree | list[Tree]


class Place(Struct, frozen=True):
    """Which object, and which part of it."""

    resource: Resource
    name: str
    namespace: str = ""
    part: str = ""


class Patched(Struct, frozen=True):
    entry: Entry
    is_new: bool = False


def patch(state: State, place: Place, patch: Patch, options: WriteOptions = PLAIN) -> Patched:
    resource = place.resource
    entry = state.store.entry(resource, place.name, place.namespace)
    body = _read(patch)
    if entry is None:
        if patch.kind != "apply" or place.part:
            raise refusals.not_found(resource, place.name)
        _check_name(place, body)
        made = _changed(state, place, patch.kind, None, body, options)
        made["metadata"] = {"name": place.name, "namespace": place.namespace} | made["metadata"]
        return Patched(creating.create(state, resource, made, options), is_new=True)
    # Twice, since what comes out of a patch may share parts with what went in.
    old, seen = trees.decoded(entry.data), trees.decoded(showing.shown(resource, entry.data))
    if place.part == "scale":
        seen = scale.shown(state.registry, resource, seen)
    new = _changed(state, place, patch.kind, seen, body, options)
    _check(place, entry, old, new)
    if place.part == "scale":
        new = scale.scaled(state.registry, resource, trees.decoded(entry.data), new)
    options = msgspec.structs.replace(options, applied=patch.kind == "apply")
    part = "" if place.part == "scale" else place.part
    return Patched(
        updating.replace(state, resource, entry, old, showing.kept(resource, new), part=part, options=options)
    )


def _read(patch: Patch) -> Any:
    if not isinstance(patch.body, bytes):
        return patch.body
    if patch.kind == "apply":
        return bodies.yaml(patch.body)
    try:
        return msgspec.json.decode(patch.body)
    except msgspec.DecodeError as problem:
        raise refusals.bad_request(
            "invalid JSON patch" if patch.kind == "merge" else f"error decoding patch: {problem}"
        ) from None


def _changed(state: State, place: Place, how: PatchKind, seen: Tree | None, body: Any, options: WriteOptions) -> Tree:
    resource = place.resource
    of_scale = place.part == "scale"
    kind = ("autoscaling", "v1", "Scale") if of_scale else (resource.group, resource.version, resource.kind)
    try:
        if how == "apply":
            custom = None if of_scale else state.registry.custom(resource)
            schema = custom.schema if custom is not None else None
            return apply.applied(
                seen,
                body,
                kind=kind,
                manager=options.manager,
                force=options.force,
                now=state.clock.rfc3339(),
                part=place.part,
                schema=schema,
            )
        return _patched(how, seen or {}, body, kind, custom=resource.custom)
    except BadPatch as problem:
        raise StatusError(problem.code, CODES.get(problem.code, ""), problem.message) from None
    except ApplyConflict as conflict:
        causes = [
            Cause(each.field, "FieldManagerConflict", f"conflict with {each.manager}") for each in conflict.causes
        ]
        details = {"causes": [cause.tree() for cause in causes]}
        raise StatusError(409, "Conflict", conflict.message, details) from None


def _patched(how: PatchKind, seen: Tree, body: Any, kind: tuple[str, str, str], *, custom: bool) -> Tree:
    if how == "json":
        return jsonpatch.applied(seen, body)
    if how == "merge":
        return mergepatch.applied(seen, body)
    if custom:
        accepted = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        raise refusals.unsupported_media_type(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )
    return strategic.applied(seen, body, kind)


def _check_name(place: Place, body: Any) -> None:
    name = trees.metadata(body).get("name") if isinstance(body, dict) else None
    if name and name != place.name:
        raise wrong_name(name, place.name)


def _check(place: Place, entry: Entry, old: Tree, new: Tree) -> None:
    """A patch may name the version it means, but not change who the object is."""
    metadata = trees.metadata(new)
    if metadata.get("name") != place.name:
        raise wrong_name(metadata.get("name") or "", place.name)
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if uid and uid != old["metadata"]["uid"]:
        cause = Cause("metadata.uid", "FieldValueInvalid", f'Invalid value: "{uid}": field is immutable')
        raise refusals.invalid(place.resource, place.name, [cause])
    if version and version != str(entry.version):
        raise refusals.conflict(place.resource, place.name, updating.STALE)


def wrong_name(name: str, url: str) -> StatusError:
    return refusals.bad_request(f"the name of the object ({name}) does not match the name on the URL ({url})")
