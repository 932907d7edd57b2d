"""An API call as a value: verb, path, query, body, and when it may be repeated.

`client` and `informer` build requests, `transport.sender` sends them. This module opens no socket."""

import enum
from typing import Any, Final, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from numalign.api.decode import structs
from numalign.kube.resources import PLAIN_DELETION, DeleteOptions, Document, Target

JSON: Final = "application/json"
PAGE: Final = 500

PatchKind = Literal["json", "merge", "strategic"]
PATCH_TYPES: Final[dict[str, str]] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
# JSON is valid YAML, and servers before 1.33 accept server-side apply only with this content type.
APPLY_TYPE: Final = "application/apply-patch+yaml"


class Repeat(enum.Enum):
    """After which failures a call may be repeated safely."""

    ALWAYS = "idempotent: may be repeated after any failure"
    REFUSED = "may be repeated only where the server cannot have acted on it"


class Request(Struct, frozen=True, kw_only=True):
    verb: str
    """The verb in metrics and messages: get, list, watch, create, update, patch, apply, delete, bind, evict."""
    method: str
    path: str
    words: str
    """The object in messages: Pod default/web."""
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = JSON
    repeat: Repeat = Repeat.REFUSED

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class Selection(Struct, frozen=True):
    """Label and field selectors of a list or watch."""

    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        return {"labelSelector": self.labels, "fieldSelector": self.fields}


EVERYTHING: Final = Selection()


class Since(Struct, frozen=True, kw_only=True):
    """Where a watch begins and how long it may last; with `initial` the server sends the initial state first."""

    version: str
    seconds: int
    initial: bool = False


def get(target: Target[Any]) -> Request:
    return _request("get", "GET", target, repeat=Repeat.ALWAYS)


def page(target: Target[Any], selection: Selection, limit: int = PAGE, token: str = "") -> Request:
    query = selection.query() | {"limit": str(limit or ""), "continue": token}
    return _request("list", "GET", target, query=query, repeat=Repeat.ALWAYS)


def watch(target: Target[Any], selection: Selection, since: Since) -> Request:
    query = selection.query() | {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": since.version,
        "timeoutSeconds": str(since.seconds),
    }
    if since.initial:
        # The server marks the end of the initial events only if both are set (kube-scheduler spec 7.2).
        query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    return _request("watch", "GET", target, query=query)


def create(target: Target[Any], thing: structs.Wire | Document) -> Request:
    return _request("create", "POST", target, body=body(target, thing))


def update(target: Target[Any], thing: structs.Wire | Document) -> Request:
    return _request("update", "PUT", target, body=body(target, thing))


def patch(target: Target[Any], kind: PatchKind, changes: Document | list[Document]) -> Request:
    content_type = PATCH_TYPES[kind]
    return _request("patch", "PATCH", target, body=structs.ENCODER.encode(changes), content_type=content_type)


def apply(
    target: Target[Any], wanted: Document, manager: str, force: bool = False, *, dry_run: bool = False
) -> Request:
    """With `dry_run` the server checks the call and answers as if it had acted."""
    query = {"fieldManager": manager, "force": "true" if force else "", "dryRun": "All" if dry_run else ""}
    return _request(
        "apply",
        "PATCH",
        target,
        query=query,
        body=body(target, wanted),
        content_type=APPLY_TYPE,
        repeat=Repeat.ALWAYS,
    )


def delete(target: Target[Any], options: DeleteOptions = PLAIN_DELETION) -> Request:
    return _request("delete", "DELETE", target, body=structs.encode(options))


def post(verb: str, target: Target[Any], thing: structs.Wire, repeat: Repeat = Repeat.REFUSED) -> Request:
    """A POST to a subresource that takes a kind of its own."""
    return _request(verb, "POST", target, body=structs.encode(thing), repeat=repeat)


def body(target: Target[Any], thing: structs.Wire | Document) -> bytes:
    """Adds kind and apiVersion, which custom resources must have."""
    resource = target.resource
    described = {"apiVersion": resource.api_version, "kind": resource.kind}
    if not isinstance(thing, structs.Wire) or hasattr(thing, "kind"):
        return structs.ENCODER.encode(described | msgspec.to_builtins(thing, enc_hook=structs.encodable))
    # A struct without these fields is encoded in one pass, without a detour through dicts.
    written, head = structs.encode(thing), structs.ENCODER.encode(described)
    return head[:-1] + b"," + written[1:] if written != b"{}" else head


def _request(
    verb: str, method: str, target: Target[Any], *, query: dict[str, str] | None = None, **rest: Any
) -> Request:
    asked = tuple((name, value) for name, value in (query or {}).items() if value)
    return Request(verb=verb, method=method, path=target.path, words=target.words, query=asked, **rest)
