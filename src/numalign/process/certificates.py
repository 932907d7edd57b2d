"""An authority of our own, and server certificates that it vouches for (X.509 version 3, RFC 5280).

The scheduler's pages use it where no certificate is given, the embedded API server for TLS. Nobody trusts such an
authority who was not handed its certificate. When they begin and end is the caller's to say; no file is touched."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec import Struct

from numalign.process import der, ecdsa
from numalign.process.ecdsa import Key

CLOCKS_DIFFER: Final = timedelta(hours=1)
YEAR: Final = timedelta(days=365)

BASIC_CONSTRAINTS: Final = "2.5.29.19"
KEY_USAGE: Final = "2.5.29.15"
SUBJECT_KEY: Final = "2.5.29.14"
AUTHORITY_KEY: Final = "2.5.29.35"
EXTENDED_USAGE: Final = "2.5.29.37"
OTHER_NAMES: Final = "2.5.29.17"
COMMON_NAME: Final = "2.5.4.3"
SERVER_AUTH: Final = "1.3.6.1.5.5.7.3.1"
SIGNS_CERTIFICATES: Final = der.bits(b"\x06", unused=1)
SIGNS_HANDSHAKES: Final = der.bits(b"\x80", unused=7)


class Life(NamedTuple):
    begin: datetime
    end: datetime

    @classmethod
    def of(cls, now: datetime, length: timedelta = YEAR) -> Life:
        return cls(now - CLOCKS_DIFFER, now + length)


class Issued(Struct, frozen=True):
    """In PEM; a certificate may be followed by those that vouch for it."""

    certificate: str
    key: str


class Authority(Struct, frozen=True):
    name: str
    key: Key
    life: Life

    def certificate(self) -> str:
        usage = (
            _extension(BASIC_CONSTRAINTS, der.sequence(der.boolean(True)), critical=True),
            _extension(KEY_USAGE, SIGNS_CERTIFICATES, critical=True),
        )
        return self._signed(self.name, self.key, usage)

    def vouched(self, name: str, hosts: Sequence[str]) -> Issued:
        key = ecdsa.made()
        usage = (
            _extension(BASIC_CONSTRAINTS, der.sequence(), critical=True),
            _extension(KEY_USAGE, SIGNS_HANDSHAKES, critical=True),
            _extension(EXTENDED_USAGE, der.sequence(der.identifier(SERVER_AUTH))),
            _extension(OTHER_NAMES, der.sequence(*map(_host, hosts))),
        )
        return Issued(self._signed(name, key, usage), key.pem())

    def _signed(self, name: str, key: Key, usage: Sequence[bytes]) -> str:
        ids = (
            _extension(SUBJECT_KEY, der.octets(_key_id(key))),
            _extension(AUTHORITY_KEY, der.sequence(der.thing(0x80, _key_id(self.key)))),
        )
        content = der.sequence(
            der.explicit(0, der.integer(2)),
            der.integer(secrets.randbits(126) + 1),
            ecdsa.SIGNED_WITH,
            _name(self.name),
            der.sequence(der.moment(self.life.begin), der.moment(self.life.end)),
            _name(name),
            key.public(),
            der.explicit(3, der.sequence(*usage, *ids)),
        )
        signature = der.bits(self.key.signature(content))
        return der.pem("CERTIFICATE", der.sequence(content, ecdsa.SIGNED_WITH, signature))


def authority(name: str, life: Life) -> Authority:
    return Authority(name, ecdsa.made(), life)


def self_made(hosts: Sequence[str], now: datetime) -> Issued:
    """As the stock scheduler's: an authority vouches for it that is forgotten at once; its certificate comes along."""
    begun = authority(f"{hosts[0]}-ca@{now.timestamp():.0f}", Life.of(now))
    issued = begun.vouched(f"{hosts[0]}@{now.timestamp():.0f}", hosts)
    return Issued(issued.certificate + begun.certificate(), issued.key)


def _extension(kind: str, content: bytes, *, critical: bool = False) -> bytes:
    mark = (der.boolean(True),) if critical else ()
    return der.sequence(der.identifier(kind), *mark, der.octets(content))


def _key_id(key: Key) -> bytes:
    return hashlib.sha1(key.point, usedforsecurity=False).digest()


def _name(name: str) -> bytes:
    return der.sequence(der.thing(der.SET, der.sequence(der.identifier(COMMON_NAME), der.text(name))))


def _host(host: str) -> bytes:
    try:
        return der.thing(0x87, ipaddress.ip_address(host).packed)
    except ValueError:
        return der.thing(0x82, host.encode())
