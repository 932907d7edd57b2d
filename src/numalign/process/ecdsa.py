"""Keys on the curve P-256, and signatures with them: enough for a certificate, where Python itself makes none.

`certificates` makes a key or two when a server starts and signs once with each, and a lab makes one for its API server,
which signs tokens with it. Nothing else may sign here: the arithmetic takes as long as its numbers want, which a
stranger who can ask again and again could measure. What is said over TLS afterwards is OpenSSL's."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from msgspec import Struct

from numalign.process import der

# SEC 2, 2.4.2: y² = x³ - 3x + b over the field of P; G has N multiples.
P: Final = 2**256 - 2**224 + 2**192 + 2**96 - 1
N: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G: Final = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
SIZE: Final = 32
ALGORITHM: Final = der.sequence(der.identifier("1.2.840.10045.2.1"), der.identifier("1.2.840.10045.3.1.7"))
SIGNED_WITH: Final = der.sequence(der.identifier("1.2.840.10045.4.3.2"))
"""ECDSA of a SHA-256."""

Point = tuple[int, int]


class Key(Struct, frozen=True):
    secret: int
    point: bytes
    """The public half: both coordinates."""

    def public(self) -> bytes:
        return der.sequence(ALGORITHM, der.bits(self.point))

    def signature(self, message: bytes) -> bytes:
        digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
        while True:
            once = _number()
            r = times(once, G)[0] % N
            s = pow(once, -1, N) * (digest + r * self.secret) % N
            if r and s:
                return der.sequence(der.integer(r), der.integer(s))

    def pem(self) -> str:
        """PKCS #8, which everybody reads."""
        kept = (der.integer(1), der.octets(self.secret.to_bytes(SIZE, "big")), der.explicit(1, der.bits(self.point)))
        return der.pem("PRIVATE KEY", der.sequence(der.integer(0), ALGORITHM, der.octets(der.sequence(*kept))))


def made() -> Key:
    secret = _number()
    return Key(secret, b"\x04" + b"".join(part.to_bytes(SIZE, "big") for part in times(secret, G)))


def times(number: int, point: Point) -> Point:
    """From 1 to N - 1: then nothing on the way is the point at infinity, which has no coordinates."""
    total = point
    for place in reversed(range(number.bit_length() - 1)):
        total = plus(total, total)
        if number >> place & 1:
            total = plus(total, point)
    return total


def plus(one: Point, other: Point) -> Point:
    (x1, y1), (x2, y2) = one, other
    slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, P) if one == other else (y2 - y1) * pow(x2 - x1, -1, P)
    x = (slope * slope - x1 - x2) % P
    return x, (slope * (x1 - x) - y1) % P


def _number() -> int:
    return secrets.randbelow(N - 1) + 1
