"""DER, as far as certificates and keys need it: values in, bytes out, nothing is read.

`ecdsa` and `certificates` write with it. A thing is one byte of tag, its length, and its content (X.690, 8 and 10)."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from typing import Final

SEQUENCE: Final = 0x30
SET: Final = 0x31
LAST_SHORT_YEAR: Final = 2049
"""From then on a year has four digits (RFC 5280, 4.1.2.5)."""


def thing(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes((tag, length)) + content
    size = (length.bit_length() + 7) // 8
    return bytes((tag, 0x80 | size)) + length.to_bytes(size, "big") + content


def sequence(*parts: bytes) -> bytes:
    return thing(SEQUENCE, b"".join(parts))


def explicit(place: int, content: bytes) -> bytes:
    return thing(0xA0 | place, content)


def boolean(value: bool) -> bytes:
    return thing(0x01, b"\xff" if value else b"\x00")


def integer(number: int) -> bytes:
    """Of numbers that are not negative: one byte more than needed where the first bit would be a sign."""
    return thing(0x02, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def bits(content: bytes, unused: int = 0) -> bytes:
    return thing(0x03, bytes((unused,)) + content)


def octets(content: bytes) -> bytes:
    return thing(0x04, content)


def identifier(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    return thing(0x06, b"".join(map(_base128, (40 * first + second, *rest))))


def text(words: str) -> bytes:
    return thing(0x0C, words.encode())


def moment(when: datetime) -> bytes:
    when = when.astimezone(UTC)
    if when.year > LAST_SHORT_YEAR:
        return thing(0x18, when.strftime("%Y%m%d%H%M%SZ").encode())
    return thing(0x17, when.strftime("%y%m%d%H%M%SZ").encode())


def pem(label: str, content: bytes) -> str:
    lines = b64encode(content).decode()
    wrapped = "\n".join(lines[start : start + 64] for start in range(0, len(lines), 64))
    return f"-----BEGIN {label}-----\n{wrapped}\n-----END {label}-----\n"


def _base128(number: int) -> bytes:
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(0x80 | number & 0x7F)
    return bytes(reversed(groups))
