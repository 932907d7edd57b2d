"""Protobuf messages by table: bytes to plain trees, and trees to bytes.

Whoever talks to a kubelet's sockets (`agent.podresources`, the device plugin) writes the few messages that it needs as
tables and hands trees to msgspec for their types. Fields that a table does not name are skipped. Tables do not refer to
themselves, so a body can nest no deeper than they do, whoever made it. A tree holds only what was sent: a message that
came empty is an empty tree, one that did not come is not there.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from numalign.api.decode import protowire
from numalign.api.decode.protowire import BadProtobuf, Wire

Scalar = Literal["string", "bytes", "bool", "int", "uint"]
Tree = dict[str, Any]


class Field(Struct, frozen=True):
    name: str
    kind: "Scalar | Message"
    many: bool = False

    @property
    def is_number(self) -> bool:
        return isinstance(self.kind, str) and self.kind in NUMBERS


Message = Mapping[int, Field]

TEXTS: Final[Message] = {1: Field("key", "string"), 2: Field("value", "string")}
"""One entry of a map from text to text, which travels as a repeated message."""


def read(data: bytes, message: Message) -> Tree:
    """Where a field that is not repeated comes twice, the last one counts."""
    tree: Tree = {}
    for number, wire, raw in protowire.fields(data):
        field = message.get(number)
        if field is None:
            continue
        if field.many:
            tree.setdefault(field.name, []).extend(_several(wire, raw, field))
        else:
            tree[field.name] = _one(wire, raw, field)
    return tree


def _several(wire: Wire, raw: int | bytes, field: Field) -> list[Any]:
    # Repeated numbers may come packed or one by one, whatever the table's writer prefers.
    if isinstance(raw, bytes) and field.is_number:
        return [NUMBERS[field.kind](number) for number in protowire.packed(raw)]
    return [_one(wire, raw, field)]


def _one(wire: Wire, raw: int | bytes, field: Field) -> Any:
    kind = field.kind
    if not isinstance(kind, str):
        return read(_bytes(raw, wire, field), kind)
    if kind == "string":
        return _text(_bytes(raw, wire, field), field)
    if kind == "bytes":
        return _bytes(raw, wire, field)
    if wire is not Wire.VARINT or isinstance(raw, bytes):
        raise _wrong(wire, field)
    return NUMBERS[kind](raw)


def _bytes(raw: int | bytes, wire: Wire, field: Field) -> bytes:
    if isinstance(raw, bytes):
        return raw
    raise _wrong(wire, field)


def _wrong(wire: Wire, field: Field) -> BadProtobuf:
    return BadProtobuf(f"proto: wrong wireType = {wire.value} for field {field.name}")


def _text(data: bytes, field: Field) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadProtobuf(f"field {field.name} is not UTF-8") from None


NUMBERS: Final[Mapping[object, Callable[[int], int]]] = {
    "int": protowire.signed,
    "uint": lambda number: number % protowire.WORD,
    "bool": bool,
}


def written(tree: Mapping[str, Any], message: Message) -> bytes:
    """What a table names of the tree; zeros and empty texts are left out, as proto3 does, messages never are."""
    return b"".join(
        _written_field(number, field, tree[field.name]) for number, field in message.items() if field.name in tree
    )


def _written_field(number: int, field: Field, value: Any) -> bytes:
    if field.many:
        return _written_several(number, field, value)
    plain = isinstance(field.kind, str)
    return b"" if plain and not value else protowire.written(number, _written_one(field, value))


def _written_several(number: int, field: Field, values: Any) -> bytes:
    if field.is_number:
        numbers = b"".join(map(protowire.written_varint, values))
        return protowire.written(number, numbers) if numbers else b""
    return b"".join(protowire.written(number, _written_one(field, value)) for value in values)


def _written_one(field: Field, value: Any) -> int | bytes:
    if not isinstance(field.kind, str):
        return written(value, field.kind)
    return value.encode() if isinstance(value, str) else value


def entries(texts: Mapping[str, str]) -> list[Tree]:
    """A map as it travels, for a repeated field of `TEXTS`."""
    return [{"key": key, "value": value} for key, value in texts.items()]
