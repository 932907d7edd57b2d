"""Decodes lists and watch events, each object once.

`client` and `informer` read every page and line here. A page is decoded in one typed pass; only if that fails, each
object is decoded alone. An object that cannot be decoded becomes an `Unreadable` that keeps its identity, so that a
store neither loses it nor keeps an old state. `Lines` splits a stream into lines and joins each line once."""

from functools import lru_cache, partial
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from numalign.api import errors
from numalign.api.decode import decode, structs
from numalign.api.objects.meta import ObjectMeta
from numalign.kube.resources import Named, Resource, Status

T = TypeVar("T", bound=Named)

BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"


class ListMeta(structs.Wire, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ObjectIdentity(structs.Wire, frozen=True):
    """The metadata that identifies an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Unreadable(Struct, frozen=True):
    """An object that exists but could not be decoded: its identity and the error."""

    metadata: ObjectMeta
    problem: errors.BadObject


def readable(found: list[T | Unreadable]) -> list[T]:
    """The objects without those that could not be decoded."""
    return [each for each in found if not isinstance(each, Unreadable)]


class Bookmark(structs.Wire, frozen=True):
    """A bookmark's object: only its version counts, and required fields may be null."""

    metadata: ObjectMeta = ObjectMeta()


class Page(Struct, Generic[T], frozen=True):
    metadata: ListMeta
    items: list[T | Unreadable]


class WatchEvent(Struct, Generic[T], frozen=True):
    type: str
    object: T | Unreadable | Bookmark | Status


SPECIAL: Final[dict[str, type[Bookmark] | type[Status]]] = {BOOKMARK: Bookmark, ERROR: Status}

Item = TypeVar("Item")


class _List(structs.Wire, Generic[Item], frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[Item] | None = None


class _Event(structs.Wire, Generic[Item], frozen=True):
    type: str
    object: Item


class _Owned(structs.Wire, frozen=True):
    metadata: ObjectIdentity = ObjectIdentity()


def page(resource: Resource[T], raw: bytes) -> Page[T]:
    """Decodes a page of a list. BadObject only where the document is not a list."""
    try:
        known = _decoder(_List, resource.struct).decode(raw)
        if all(item.metadata.name for item in known.items or ()):
            return Page(known.metadata, known.items or [])
    except decode.UNREADABLE:
        pass
    split = _split(_List, f"{resource.kind}List", raw)
    read = partial(one, resource)
    return Page(split.metadata, [read(bytes(item)) for item in split.items or ()])


def watch_event(resource: Resource[T], line: bytes) -> WatchEvent[T]:
    """Decodes a line of a watch. BadObject only where the line is not an event."""
    try:
        known = _decoder(_Event, resource.struct).decode(line)
        if known.type not in SPECIAL and known.object.metadata.name:
            return WatchEvent(known.type, known.object)
    except decode.UNREADABLE:
        pass
    split = _split(_Event, "WatchEvent", line)
    if split.type in SPECIAL:
        return WatchEvent(split.type, decode.decode(SPECIAL[split.type], bytes(split.object)))
    return WatchEvent(split.type, one(resource, bytes(split.object)))


def one(resource: Resource[T], raw: bytes) -> T | Unreadable:
    try:
        read = resource.read(raw)
        if read.metadata.name:
            return read
        problem = errors.BadObject(resource.kind, "", "metadata.name", "is missing; the object is skipped")
    except errors.BadObject as met:
        problem = met
    return Unreadable(_identity(raw), problem)


def _identity(raw: bytes) -> ObjectMeta:
    try:
        whose = decode.decode(_Owned, raw).metadata
    except errors.BadObject:
        return ObjectMeta()
    return ObjectMeta(**msgspec.structs.asdict(whose))


def _split(form: Any, kind: str, raw: bytes) -> Any:
    """Decodes the envelope; objects stay bytes."""
    try:
        return _decoder(form, Raw).decode(raw)
    except decode.UNREADABLE:
        raise errors.BadObject(kind, "", "", "is not a Kubernetes list or event; the answer may be truncated") from None


@lru_cache(maxsize=64)
def _decoder(form: Any, item: Any) -> msgspec.json.Decoder[Any]:
    # The hooks of `decode`: quantities keep their text.
    return msgspec.json.Decoder(form[item], dec_hook=structs.decoded, float_hook=str)


LONGEST_LINE: Final = 64 << 20
"""Bytes of one line; the server limits objects to a few MB."""


class LineTooLong(ValueError):
    """No line end within the limit: this is not a watch stream."""


class Lines:
    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that end in this piece, without line ends and without empty lines."""
        head, newline, rest = piece.partition(b"\n")
        self._size += len(head)
        if self._size > LONGEST_LINE:
            raise LineTooLong(f"a line of more than {LONGEST_LINE >> 20} MiB")
        self._begun.append(head)
        if not newline:
            return []
        first = b"".join(self._begun)
        *others, begun = rest.split(b"\n")
        self._begun, self._size = [begun], len(begun)
        return [line for line in (first, *others) if line.strip()]
