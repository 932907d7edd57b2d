"""Reads files of objects: what `kubectl get ... -o json|yaml` prints, and dumps of the same form.

The scheduler's snapshots and the doctor read files here. Gzip is detected. JSON stays bytes, so that each reader
decodes an object once, into its own struct; YAML is read by the one hardened reader and turned into JSON."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Raw

from numalign.api import errors
from numalign.api.decode import decode, yamltext
from numalign.api.decode.structs import Wire

GZIP: Final = b"\x1f\x8b"
LIST: Final = "List"
LARGEST: Final = 256 << 20
"""The largest size in bytes after decompression; a dump of 5,000 nodes has 35 MB."""


class Typed(Wire, frozen=True):
    api_version: str = ""
    kind: str = ""


class _ListFile(Typed, frozen=True):
    items: list[Raw] | None = None


def unpacked(text: bytes, name: str) -> bytes:
    if not text.startswith(GZIP):
        return text
    try:
        unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
        plain = unpacking.decompress(text, LARGEST)
        if unpacking.unconsumed_tail or not unpacking.eof:
            raise errors.BadObject("File", name, "", "was cut short, or is far too large")
        return plain
    except zlib.error as problem:
        raise errors.BadObject("File", name, "", f"cannot be unpacked: {problem}") from None


def documents(text: bytes, name: str) -> Iterator[tuple[bytes, str]]:
    """The documents of a text as JSON, each with its place."""
    if text.lstrip()[:1] == b"{":
        yield text, name
        return
    try:
        found = yamltext.documents(text.decode("utf-8-sig"), name)
    except UnicodeDecodeError as problem:
        why = f"byte {problem.start} is not UTF-8 text; is this a YAML or JSON file?"
        raise errors.BadObject("File", name, "", why) from None
    for document in found:
        if not isinstance(document.value, Mapping):
            raise errors.BadObject("File", document.place, "", "is not an object")
        yield msgspec.json.encode(document.value, enc_hook=str), document.place


def typed(raw: bytes, place: int) -> Typed:
    """The apiVersion and kind of the item at this place of a list."""
    try:
        return decode.decode(Typed, raw)
    except errors.BadObject as problem:
        # Its kind is unknown, so the error names its place in the list.
        where = f"items[{place}].{problem.field}".rstrip(".")
        raise errors.BadObject("Snapshot", "", where, f"{problem.why}; left out") from None


def objects(text: bytes, name: str, odd: list[str]) -> Iterator[tuple[Typed, bytes]]:
    """Every object of a file, lists taken apart; what is no object is noted in `odd`. BadObject if it is no file of
    objects."""
    for raw, place in documents(unpacked(text, name), name):
        try:
            found = msgspec.json.decode(raw, type=_ListFile, strict=True)
        except decode.UNREADABLE as problem:
            raise errors.BadObject("File", place, "", f"is not a list of objects: {problem}") from None
        # A single object is a list of one; items of a typed list need not name their kind.
        usual = Typed(found.api_version, found.kind.removesuffix(LIST) if found.items is not None else found.kind)
        for number, item in enumerate(found.items if found.items is not None else [Raw(raw)]):
            try:
                own = typed(bytes(item), number)
            except errors.BadObject as problem:
                odd.append(str(problem))
                continue
            yield Typed(own.api_version or usual.api_version, own.kind or usual.kind), bytes(item)
