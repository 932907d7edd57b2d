"""Reads and writes snapshots as files: our dumps, and the output of `kubectl get ... -o json|yaml`.

A dump is a list of objects like kubectl's, as JSON, with the scheduler's own state beside it, so both are read the
same way. Unreadable objects are skipped and reported; kinds that scheduling does not read are ignored."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, structs

from numalign.api import errors
from numalign.api.decode import decode
from numalign.api.decode import structs as wire
from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube import dumps
from numalign.kube.resources import Resource
from numalign.kubelet import demand
from numalign.scheduler import main, settings
from numalign.scheduler.record import entries
from numalign.scheduler.snapshot import snapshot
from numalign.scheduler.snapshot.snapshot import SCHEMA, SchedulerState, Snapshot

VERSION: Final = "numalign.io/v1alpha1"
KIND: Final = "SchedulerDump"
NOTHING: Final = (b"", b"null")
BY_KIND: Final = {(resource.group, resource.kind): resource for resource in snapshot.RESOURCES}


class _File(Wire, frozen=True):
    """A list of objects of kubectl or of a dump, which also has the scheduler's state."""

    api_version: str = ""
    kind: str = ""
    schema: int = SCHEMA
    taken: str = ""
    now: float = 0.0
    items: list[Raw] | None = None
    configuration: dict[str, Any] | None = None
    state: Raw = Raw()
    missing: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def pieces(taken: Snapshot) -> Iterator[bytes]:
    """The snapshot as JSON, in pieces, so that the caller can do other work in between."""
    head = {
        "apiVersion": VERSION,
        "kind": KIND,
        "schema": SCHEMA,
        "taken": taken.wall,
        "now": taken.now,
        "missing": taken.missing,
        "leftOut": taken.left_out,
        "configuration": settings.plain(taken.config),
        "state": taken.state,
    }
    yield wire.ENCODER.encode(head)[:-1] + b',"items":['
    comma = b""
    for resource in snapshot.RESOURCES:
        begin = b'{"apiVersion":"%s","kind":"%s",' % (resource.api_version.encode(), resource.kind.encode())
        for thing in taken.every(resource):
            yield comma + _begun(begin, wire.encode(thing))
            comma = b","
    yield b"]}"


def _begun(begin: bytes, thing: bytes) -> bytes:
    """The object with apiVersion and kind, which most structs omit."""
    return thing if thing.startswith(b'{"apiVersion":') else begin + thing[1:]


def packed(text: bytes) -> bytes:
    """The text compressed with gzip; equal texts give equal bytes."""
    return gzip.compress(text, compresslevel=6, mtime=0)


def read(text: bytes, name: str, config: Configuration | None = None) -> Snapshot:
    """The snapshot in a text. `config` replaces the file's configuration or the default. BadObject if it is none."""
    found = _Found()
    head = _File()
    for raw, place in dumps.documents(dumps.unpacked(text, name), name):
        document = _document(raw, place)
        head = document if document.kind == KIND else head
        found.take(document.items or (), document.kind.removesuffix(dumps.LIST), document.api_version)
    if not any(found.objects.values()):
        raise errors.BadObject("File", name, "", "holds no nodes, pods or anything else that a scheduler looks at")
    return Snapshot(
        objects={plural: tuple(things) for plural, things in found.objects.items()},
        config=config or (settings.again(head.configuration, name) if head.configuration else main.defaults()),
        state=_state(head.state, name),
        wall=head.taken,
        now=head.now,
        missing=head.missing,
        left_out=(*head.left_out, *found.left_out),
    )


class _Found:
    def __init__(self) -> None:
        self.objects: dict[str, list[Any]] = {resource.plural: [] for resource in snapshot.RESOURCES}
        self.left_out: list[str] = []

    def take(self, items: Iterable[Raw], usual: str, version: str) -> None:
        """`usual`: the kind of items that do not name theirs."""
        for place, item in enumerate(items):
            raw = bytes(item)
            try:
                typed = dumps.typed(raw, place)
                resource = _resource(typed.kind or usual, typed.api_version or version)
                if resource is not None:
                    self.objects[resource.plural].append(entries.discreet(_named(resource, resource.read(raw))))
            except errors.BadObject as problem:
                self.left_out.append(str(problem))


def _resource(kind: str, version: str) -> Resource[Any] | None:
    return BY_KIND.get((version.rpartition("/")[0], kind))


def _named(resource: Resource[Any], thing: Any) -> Any:
    """Fills in fields that the API server sets, for objects that were never created there."""
    meta: ObjectMeta = thing.metadata
    if not meta.name:
        raise errors.BadObject(resource.kind, "", "metadata.name", "is missing; the object was left out")
    if not isinstance(thing, Pod) or (meta.uid and meta.namespace):
        return thing
    meta = structs.replace(meta, namespace=meta.namespace or "default")
    thing = structs.replace(thing, metadata=meta)
    return structs.replace(thing, metadata=structs.replace(meta, uid=demand.identity(thing)))


def _document(raw: bytes, place: str) -> _File:
    try:
        document = msgspec.json.decode(raw, type=_File, strict=True)
    except decode.UNREADABLE as problem:
        raise errors.BadObject("File", place, "", f"is not a list of objects: {problem}") from None
    if document.schema > SCHEMA:
        raise errors.BadObject(
            "File", place, "schema", f"{document.schema} is newer than this program, which knows {SCHEMA}"
        )
    # A single object is a list of one.
    return document if document.items is not None else structs.replace(document, items=[Raw(raw)])


def _state(raw: Raw, name: str) -> SchedulerState | None:
    if bytes(raw) in NOTHING:
        return None
    try:
        return decode.decode(SchedulerState, bytes(raw))
    except errors.BadObject as problem:
        raise errors.BadObject("File", name, f"state.{problem.field}", problem.why) from None
