"""Decodes request bodies (JSON, YAML and the protobuf that kubectl sends) with the real server's error messages.

`routes` calls `read_object` for objects, `options` calls `decode` for the options of a deletion. `field_warnings` finds
unknown and duplicate fields if the request sets `fieldValidation` to Strict or Warn, as kubectl does. Without it
nothing is checked: an unknown field is stored, where the real server warns and drops it, and the last of duplicate
fields counts."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import msgspec

from numalign.process.http.messages import JSON, Request
from numalign.simulator import trees
from numalign.simulator.apiserver.http import protobuf
from numalign.simulator.apiserver.schemas import builtin, fielderrors, gotext, typedefs
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import BUILT_IN, Resource
from numalign.simulator.apiserver.verbs.state import ServerState
from numalign.simulator.trees import Tree

YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
UNKNOWN_FORMAT: Final = (
    f"the body of the request was in an unknown format - accepted media types include: {JSON}, {YAML}, {PROTOBUF}"
)
# The struct that the real server decodes first from any object, as Go prints it.
HEAD: Final = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
MAX_SHOWN: Final = 30


def read_object(body: bytes, content_type: str, resource: Resource) -> Tree:
    """The object, which must be of the resource's kind or name no kind."""
    try:
        tree = decode(body, content_type)
    except ValueError as problem:
        raise _unrecognized(resource, str(problem), body) from None
    if tree is None and not resource.custom:
        tree = {}
    if resource.custom and (tree is None or (isinstance(tree, dict) and not tree.get("kind"))):
        raise _unrecognized(resource, f"Object 'Kind' is missing in '{body.decode(errors='replace')}'", body)
    if not isinstance(tree, dict):
        got = gotext.json_type(tree)
        why = f"couldn't get version/kind; json parse error: json: cannot unmarshal {got} into Go value of type {HEAD}"
        raise _unrecognized(resource, why, body)
    _check_kind(tree, resource)
    builtin.check_structure(tree, resource)
    return tree


def _unrecognized(resource: Resource, why: str, body: bytes) -> StatusError:
    message = f"the object provided is unrecognized (must be of type {resource.kind}): {why}"
    return errors.bad_request(f"{message} ({_clipped(body)})")


def decode(body: bytes, content_type: str) -> Any:
    """Raises ValueError with the message of the decoder."""
    media = content_type.partition(";")[0].strip().lower() or JSON
    if media == JSON:
        return _json(body)
    if media == YAML:
        return gotext.decode_yaml(body)
    if media == PROTOBUF:
        return protobuf_body(body)
    raise errors.unsupported_media_type(UNKNOWN_FORMAT)


def protobuf_body(body: bytes) -> Tree:
    try:
        return protobuf.decoded(body)
    except protobuf.BadProtobuf as problem:
        raise errors.bad_request(str(problem)) from None


def _check_kind(tree: Tree, resource: Resource) -> None:
    kind, version = tree.get("kind") or resource.kind, tree.get("apiVersion") or resource.api_version
    if (kind, version) == (resource.kind, resource.api_version):
        return
    if resource.custom:
        raise _other_kind(tree, kind, version, resource)
    if any((each.kind, each.api_version) == (kind, version) for each in BUILT_IN):
        other = f"({version.rpartition('/')[2]}.{kind})"
        why = f"converting {other} to ({resource.group or 'core'}.{resource.kind}): unknown conversion"
    else:
        why = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
    raise errors.bad_request(f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {why}')


def _other_kind(tree: Tree, kind: str, version: str, resource: Resource) -> StatusError:
    wanted = resource.api_version
    if version != wanted:
        return errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({wanted})"
        )
    cause = fielderrors.invalid("kind", kind, f"must be {resource.kind}")
    return errors.invalid(replace(resource, kind=kind), trees.text(tree, "metadata", "name"), [cause])


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        raise ValueError(f"couldn't get version/kind; json parse error: {gotext.json_error(body)}") from None


def _clipped(body: bytes) -> str:
    if not body:
        return "<empty>"
    shown = body[:MAX_SHOWN]
    text = shown.decode(errors="replace") if body[:1] == b"{" else shown.hex()
    return f"{text} ..." if len(body) > MAX_SHOWN else text


def field_warnings(state: ServerState, request: Request, resource: Resource, tree: Tree) -> list[str]:
    """The texts of the Warning headers. Raises StatusError 400 if Strict is set and a field is unknown or duplicate."""
    requested = request.query.get("fieldValidation", "") if request.query else ""
    if requested not in ("Strict", "Warn"):
        return []
    found = [f"duplicate field {fielderrors.quoted(path)}" for path in _twice(request.body)]
    found += [f"unknown field {fielderrors.quoted(path)}" for path in _unknown(state, resource, tree)]
    if found and requested == "Strict":
        kind, listed = resource.kind, ", ".join(found)
        raise errors.bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {kind}: strict decoding error: {listed}'
        )
    return found


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written, with duplicate keys."""


def _twice(body: bytes) -> list[str]:
    """The paths of duplicate fields; only JSON bodies are checked."""
    if body[:1] != b"{":
        return []
    try:
        return list(_repeated(json.loads(body, object_pairs_hook=_Pairs), ""))
    except ValueError:
        return []


def _repeated(thing: Any, path: str) -> Iterator[str]:
    if isinstance(thing, _Pairs):
        seen = set[str]()
        for key, value in thing:
            here = f"{path}.{key}" if path else key
            if key in seen:
                yield here
            seen.add(key)
            yield from _repeated(value, here)
    elif isinstance(thing, list):
        for index, value in enumerate(thing):
            yield from _repeated(value, f"{path}[{index}]")


def _unknown(state: ServerState, resource: Resource, tree: Tree) -> list[str]:
    schema = state.registry.schema(resource)
    typedef = builtin.typedef(resource.gvk) if schema is None else schema.typedef
    return list(typedefs.unknown_fields(tree, typedef)) if typedef is not None else []
