"""What clients send, decoded: JSON, YAML and the protobuf that kubectl insists on, with the real complaints.

The HTTP layer calls `read` for objects and `options` for what comes with a deletion; `patching` calls `yaml`."""

from typing import Any, Final

import msgspec
import yaml as pyyaml

from numalign.simulator.apiserver import refusals
from numalign.simulator.apiserver.presenting import protobuf
from numalign.simulator.apiserver.refusals import StatusError
from numalign.simulator.apiserver.resources import BUILT_IN, Resource
from numalign.simulator.trees import Tree

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
UNKNOWN_FORMAT: Final = (
    f"the body of the request was in an unknown format - accepted media types include: {JSON}, {YAML}, {PROTOBUF}"
)
# What the real server reads first of any object, as Go prints it.
HEAD: Final = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
LARGEST: Final = 3 * 1024 * 1024


def read(body: bytes, content_type: str, resource: Resource) -> Tree:
    """The object, which has to be of the resource's kind or not say what it is."""
    try:
        tree = decoded(body, content_type)
    except ValueError as problem:
        message = f"the object provided is unrecognized (must be of type {resource.kind}): {problem}"
        raise refusals.bad_request(f"{message} ({_clipped(body)})") from None
    if not isinstance(tree, dict):
        got = "array" if isinstance(tree, list) else "string" if isinstance(tree, str) else "number"
        why = f"couldn't get version/kind; json parse error: json: cannot unmarshal {got} into Go value of type {HEAD}"
        message = f"the object provided is unrecognized (must be of type {resource.kind}): {why}"
        raise refusals.bad_request(f"{message} ({_clipped(body)})")
    check_kind(tree, resource)
    _check_shape(tree, resource)
    return tree


def decoded(body: bytes, content_type: str) -> Any:
    """ValueError says what is wrong with it."""
    media = content_type.partition(";")[0].strip().lower() or JSON
    if media == JSON:
        return _json(body)
    if media == YAML:
        return _yaml(body)
    if media == PROTOBUF:
        return protobuf_body(body)
    raise refusals.unsupported_media_type(UNKNOWN_FORMAT)


def protobuf_body(body: bytes) -> Tree:
    try:
        return protobuf.decoded(body)
    except protobuf.BadProtobuf as problem:
        raise refusals.bad_request(str(problem)) from None


def yaml(body: bytes) -> Tree:
    """An applied configuration."""
    try:
        tree = _yaml(body)
    except ValueError as problem:
        raise refusals.bad_request(f"error decoding YAML: {problem}") from None
    if not isinstance(tree, dict):
        raise refusals.bad_request("error decoding YAML: an object is wanted")
    return tree


def check_kind(tree: Tree, resource: Resource) -> None:
    kind, version = tree.get("kind") or resource.kind, tree.get("apiVersion") or resource.api_version
    if (kind, version) == (resource.kind, resource.api_version):
        return
    if any((each.kind, each.api_version) == (kind, version) for each in BUILT_IN):
        other = f"({version.rpartition('/')[2]}.{kind})"
        why = f"converting {other} to ({resource.group or 'core'}.{resource.kind}): unknown conversion"
    else:
        why = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
    raise refusals.bad_request(f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {why}')


# What every object has to be an object of, if it has it at all.
OBJECTS: Final = ("metadata", "spec", "status")


def _check_shape(tree: Tree, resource: Resource) -> None:
    for name in OBJECTS:
        found = tree.get(name)
        if found is not None and not isinstance(found, dict) and not (resource.custom and name != "metadata"):
            got = {list: "array", str: "string", bool: "bool"}.get(type(found), "number")
            raise mistyped(resource, name, got)


def mistyped(resource: Resource, field: str, got: str) -> StatusError:
    kind = "ObjectMeta" if field == "metadata" else f"{resource.kind}{field.capitalize()}"
    why = f"json: cannot unmarshal {got} into Go struct field {resource.kind}.{field} of type {resource.version}.{kind}"
    return refusals.bad_request(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}'
    )


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as problem:
        why = "unexpected end of JSON input" if "truncated" in str(problem) else str(problem)
        raise ValueError(f"couldn't get version/kind; json parse error: {why}") from None


def _yaml(body: bytes) -> Any:
    if body[:1] == b"{":
        return _json(body)
    try:
        return pyyaml.load(body, Loader=LOADER)
    except (pyyaml.YAMLError, UnicodeDecodeError, ValueError) as problem:
        mark = getattr(problem, "problem_mark", None)
        line = f"line {mark.line or 1}: " if mark is not None else ""
        raise ValueError(f"yaml: {line}{getattr(problem, 'problem', None) or problem}") from None


class _Loader(getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)):  # type: ignore[misc]
    """Times stay text, as JSON has them."""


_Loader.yaml_implicit_resolvers = {
    sign: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for sign, resolvers in _Loader.yaml_implicit_resolvers.items()
}
LOADER: Final = _Loader


def _clipped(body: bytes) -> str:
    if not body:
        return "<empty>"
    return (
        body[:64].decode() if body.isascii() and body.decode().isprintable() and body[:1] == b"{" else body[:32].hex()
    )
