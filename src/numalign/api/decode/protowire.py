"""Protobuf's wire format: bytes in, numbered fields out, and back.

`protomessages` gives the fields names and types for the kubelet's gRPC services, the embedded API server's own table
does for Kubernetes objects. Nothing here knows a message; whatever cannot be read, from a number that never ends to a
length beyond the end of the body, is a `BadProtobuf`.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

MAX_VARINT_BYTES: Final = 10
WORD: Final = 2**64


class BadProtobuf(ValueError):
    """The body cannot be read; the text says why."""


class Wire(IntEnum):
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5


def fields(data: bytes) -> Iterator[tuple[int, Wire, int | bytes]]:
    """Number, wire type and value of each field, in the order of the body."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise BadProtobuf("proto: illegal tag 0 (wire type 0)")
        if wire == Wire.VARINT:
            whole, at = varint(data, at)
            yield number, Wire.VARINT, whole
        elif wire == Wire.BYTES:
            length, at = varint(data, at)
            yield number, Wire.BYTES, _slice(data, at, length)
            at += length
        elif wire in (Wire.FIXED64, Wire.FIXED32):
            size = 8 if wire == Wire.FIXED64 else 4
            yield number, Wire(wire), int.from_bytes(_slice(data, at, size), "little")
            at += size
        else:
            raise BadProtobuf(f"proto: illegal wireType {wire}")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that starts there, and where it ends."""
    # Nearly all tags, lengths and ids take one byte.
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1
    number = 0
    for position in range(MAX_VARINT_BYTES):
        if at + position >= len(data):
            raise BadProtobuf("unexpected EOF")
        byte = data[at + position]
        number |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return number, at + position + 1
    raise BadProtobuf("proto: integer overflow")


def packed(data: bytes) -> Iterator[int]:
    """The numbers of a repeated field that travel as one."""
    at = 0
    while at < len(data):
        number, at = varint(data, at)
        yield number


def signed(number: int) -> int:
    """A negative int32 or int64 travels as a huge positive number."""
    number %= WORD
    return number - WORD if number >= WORD // 2 else number


def double(bits: int) -> float:
    value: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return value


def written_varint(number: int) -> bytes:
    number %= WORD
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def written(number: int, value: int | bytes) -> bytes:
    """One field: a number as it is, bytes behind their length."""
    if isinstance(value, int):
        return written_varint(number << 3 | Wire.VARINT) + written_varint(value)
    return written_varint(number << 3 | Wire.BYTES) + written_varint(len(value)) + value


def _slice(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise BadProtobuf("unexpected EOF")
    return data[at : at + length]
