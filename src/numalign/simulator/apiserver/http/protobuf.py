r"""Decodes request bodies in protobuf, which kubectl sends for objects that it generates.

`bodies` calls `decoded` for the media type application/vnd.kubernetes.protobuf and continues with a tree, as with JSON.
A body is the magic `k8s\0`, an envelope with kind and version, and the object. Field numbers, names and types come from
a table that tools/protobuffields.py generates; unknown fields are skipped. Responses are never protobuf: every client
accepts JSON."""

import base64
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any, Final

from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import BadProtobuf, WireType
from numalign.simulator.trees import Tree

__all__ = ["MAGIC", "BadProtobuf", "decoded"]

MAGIC: Final = b"k8s\0"
MAX_DEPTH: Final = 60
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MAX_SECONDS: Final = 253402300799
ZERO_TIME: Final = -62135596800

Field = tuple[str, str, str]
Raw = dict[int, int | bytes]


def decoded(body: bytes) -> Tree:
    """The object, with apiVersion and kind. Raises BadProtobuf if it cannot be decoded or its kind is unknown."""
    if not body.startswith(MAGIC):
        raise BadProtobuf("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = _last_values(body[len(MAGIC) :])
    identity = _last_values(_bytes(envelope, 1))
    version, kind = _text(_bytes(identity, 1)), _text(_bytes(identity, 2))
    name = _message_name(version, kind)
    if name not in _table():
        raise BadProtobuf(f'no kind "{kind}" is registered for version "{version}" in the embedded API server')
    return {"apiVersion": version, "kind": kind, **_message(_bytes(envelope, 2), name, 0)}


def _message_name(version: str, kind: str) -> str:
    # Options carry the version of the object that they are for.
    if kind.endswith("Options"):
        return f"meta.{kind}"
    group, _, number = version.rpartition("/")
    return f"{group.partition('.')[0] or 'core'}.{number}.{kind}"


@cache
def _table() -> dict[str, dict[int, Field]]:
    data = resources.files(__package__).joinpath("data/protobuf.json").read_bytes()
    return {
        message: {int(number): (field[0], field[1], "".join(field[2:])) for number, field in fields.items()}
        for message, fields in json.loads(data).items()
    }


def _message(data: bytes, name: str, depth: int) -> Tree:
    if depth > MAX_DEPTH:
        raise BadProtobuf("nested too deeply; no object of this kind needs that")
    known, tree = _table()[name], Tree()
    for number, wire, raw in protobuf.fields(data):
        if number in known:
            _put(tree, known[number], _checked(wire, raw, known[number]), depth + 1)
    return tree


def _checked(wire: WireType, raw: int | bytes, field: Field) -> int | bytes:
    if wire is not EXPECTED.get(field[1].strip("[]") if field[1][0] == "[" else field[1], WireType.BYTES):
        raise BadProtobuf(f"proto: wrong wireType = {wire.value} for field {field[0]}")
    return raw


def _put(tree: Tree, field: Field, raw: int | bytes, depth: int) -> None:
    name, kind, flags = field
    if kind[0] == "[":
        tree.setdefault(name, []).append(_value(raw, kind[1:-1], depth))
    elif kind[0] == "{":
        key, value = _entry(raw, kind[1:-1], depth)
        tree.setdefault(name, {})[key] = value
    elif flags == "<":
        tree.update(_value(raw, kind, depth))
    else:
        value = _value(raw, kind, depth)
        # Messages and empty collections inside them are kept, as in JSON; zero values of scalars are dropped.
        if value is not None and (flags == "+" or value not in ("", 0)):
            tree[name] = value


def _entry(raw: int | bytes, kind: str, depth: int) -> tuple[str, Any]:
    """One entry of a map. An entry without a value has the zero of its type."""
    parts = _last_values(_as_bytes(raw))
    return _text(_bytes(parts, 1)), _value(parts.get(2, b""), kind, depth)


def _value(raw: int | bytes, kind: str, depth: int) -> Any:
    reader = READERS.get(kind)
    if reader is not None:
        return reader(raw)
    tree = _message(_as_bytes(raw), kind, depth)
    # These messages only wrap lists, because protobuf maps cannot hold lists.
    return tree.get("items", []) if kind.endswith(".ExtraValue") else tree


def _text(raw: int | bytes) -> str:
    try:
        return _as_bytes(raw).decode()
    except UnicodeDecodeError:
        raise BadProtobuf("a text is not UTF-8") from None


def _integer(raw: int | bytes) -> int:
    return protobuf.signed(_as_int(raw))


def _quantity(raw: int | bytes) -> str:
    return _text(_bytes(_last_values(_as_bytes(raw)), 1)) or "0"


def _int_or_string(raw: int | bytes) -> int | str:
    parts = _last_values(_as_bytes(raw))
    return _text(_bytes(parts, 3)) if parts.get(1) else _integer(parts.get(2, 0))


def _time(raw: int | bytes) -> str | None:
    moment = _moment(raw)
    return None if moment is None else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _microtime(raw: int | bytes) -> str | None:
    moment = _moment(raw)
    return None if moment is None else f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"


def _moment(raw: int | bytes) -> datetime | None:
    parts = _last_values(_as_bytes(raw))
    seconds, nanos = _integer(parts.get(1, 0)), _integer(parts.get(2, 0))
    # An absent time is an empty message or the year 1.
    if not parts or seconds == ZERO_TIME:
        return None
    if not ZERO_TIME < seconds <= MAX_SECONDS or not 0 <= nanos < 10**9:
        raise BadProtobuf(f"{seconds} s and {nanos} ns are no time that can be written")
    return EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)


def _raw_json(raw: int | bytes) -> Any:
    data = _bytes(_last_values(_as_bytes(raw)), 1)
    try:
        return json.loads(data) if data else None
    except (ValueError, RecursionError):
        raise BadProtobuf("a field that must hold JSON does not") from None


def _last_values(data: bytes) -> Raw:
    """The last value of a field counts, even of one that must not be repeated."""
    return {number: value for number, _, value in protobuf.fields(data)}


def _bytes(parts: Raw, number: int) -> bytes:
    return _as_bytes(parts.get(number, b""))


def _as_bytes(raw: int | bytes) -> bytes:
    if isinstance(raw, bytes):
        return raw
    raise BadProtobuf("proto: wrong wireType = 0 for a field of bytes")


def _as_int(raw: int | bytes) -> int:
    # A map entry without a value arrives as empty bytes.
    return raw if isinstance(raw, int) else 0


READERS: Final[dict[str, Callable[[int | bytes], Any]]] = {
    "string": _text,
    "bytes": lambda raw: base64.b64encode(_as_bytes(raw)).decode(),
    "bool": lambda raw: bool(_as_int(raw)),
    **dict.fromkeys(("int32", "int64", "uint32", "uint64"), _integer),
    "double": lambda raw: protobuf.double(_as_int(raw)),
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _time,
    "MicroTime": _microtime,
    "Raw": _raw_json,
}


def _expected(kinds: Iterable[str], wire: WireType) -> dict[str, WireType]:
    return dict.fromkeys(kinds, wire)


EXPECTED: Final = _expected(("bool", "int32", "int64", "uint32", "uint64"), WireType.VARINT) | {
    "double": WireType.FIXED64
}
