"""TLS for servers: loads a certificate from files and reloads it, or issues one from a private certificate authority.

`numalign scheduler run` serves its pages with it; the embedded API server and the lab's control plane get certificates
and signing keys here. The package `cryptography` (the extra `tls`) makes keys and signatures. It is imported on first
use, so that the agent and a process that serves plain HTTP on loopback never load it. A reloaded certificate applies to
new connections; while its files do not match, the previous one stays. No repr shows a private key."""

from __future__ import annotations

import asyncio
import dataclasses
import ipaddress
import logging
import os
import ssl
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import CertificateBuilder, GeneralName, KeyUsage, Name, ObjectIdentifier


CLOCK_SKEW: Final = timedelta(hours=1)
YEAR: Final = timedelta(days=365)
KEY_USAGES: Final = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
"""RFC 5280, 4.2.1.3."""


class CryptographyMissing(Exception):
    def __init__(self) -> None:
        super().__init__("making a certificate needs the package cryptography: pip install 'numalign[tls]'")


def are_available() -> bool:
    """Whether certificates can be made."""
    return find_spec("cryptography") is not None


class Validity(NamedTuple):
    begin: datetime
    end: datetime

    @classmethod
    def of(cls, now: datetime, length: timedelta = YEAR) -> Validity:
        return cls(now - CLOCK_SKEW, now + length)


@dataclass(frozen=True)
class KeyPair:
    """A certificate, which the certificates of its issuers may follow, and its private key; both in PEM."""

    certificate: str
    key: str = dataclasses.field(repr=False)


@dataclass(frozen=True)
class SigningKey:
    """Both halves in PEM (PKCS #8 and SubjectPublicKeyInfo)."""

    private: str = dataclasses.field(repr=False)
    public: str


@dataclass(frozen=True)
class Authority:
    name: str
    key: EllipticCurvePrivateKey = dataclasses.field(repr=False)
    validity: Validity

    def certificate(self) -> str:
        from cryptography import x509

        builder = self._builder(self.name, self.key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        return self._signed(builder.add_extension(_key_usage("key_cert_sign", "crl_sign"), critical=True))

    def issue(self, name: str, hosts: Sequence[str]) -> KeyPair:
        """A certificate for a TLS server that answers under these host names and addresses."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        builder = self._leaf(name, key, ExtendedKeyUsageOID.SERVER_AUTH)
        builder = builder.add_extension(x509.SubjectAlternativeName(map(_host, hosts)), critical=False)
        return KeyPair(self._signed(builder), _private_pem(key))

    def issue_client(self, name: str, group: str = "") -> KeyPair:
        """A certificate for a TLS client of this name; an API server also reads the group."""
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        return KeyPair(self._signed(self._leaf(name, key, ExtendedKeyUsageOID.CLIENT_AUTH, group)), _private_pem(key))

    def _leaf(
        self, name: str, key: EllipticCurvePrivateKey, purpose: ObjectIdentifier, group: str = ""
    ) -> CertificateBuilder:
        from cryptography import x509

        builder = self._builder(name, key, group)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage("digital_signature"), critical=True)
        return builder.add_extension(x509.ExtendedKeyUsage((purpose,)), critical=False)

    def _builder(self, name: str, key: EllipticCurvePrivateKey, group: str = "") -> CertificateBuilder:
        from cryptography import x509

        issuer, subject = self.key.public_key(), key.public_key()
        return (
            x509.CertificateBuilder(issuer_name=_distinguished(self.name), subject_name=_distinguished(name, group))
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.validity.begin)
            .not_valid_after(self.validity.end)
            .public_key(subject)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(subject), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        )

    def _signed(self, builder: CertificateBuilder) -> str:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import Encoding

        return builder.sign(self.key, SHA256()).public_bytes(Encoding.PEM).decode()


def authority(name: str, validity: Validity) -> Authority:
    return Authority(name, _new_key(), validity)


def self_signed(hosts: Sequence[str], now: datetime) -> KeyPair:
    """As kube-scheduler makes one: issued by an authority whose key is discarded; its certificate follows."""
    issuer = authority(f"{hosts[0]}-ca@{now.timestamp():.0f}", Validity.of(now))
    issued = issuer.issue(f"{hosts[0]}@{now.timestamp():.0f}", hosts)
    return KeyPair(issued.certificate + issuer.certificate(), issued.key)


def signing_key() -> SigningKey:
    """An ECDSA key on P-256, as kube-apiserver signs service account tokens with."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = _new_key()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return SigningKey(_private_pem(key), public.decode())


def _new_key() -> EllipticCurvePrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise CryptographyMissing from None
    return ec.generate_private_key(ec.SECP256R1())


def _private_pem(key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _distinguished(name: str, group: str = "") -> Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([x509.NameAttribute(kind, text) for kind, text in (*parts, (NameOID.COMMON_NAME, name))])


def _host(host: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*allowed: str) -> KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(**{usage: usage in allowed for usage in KEY_USAGES})


LOG: Final = logging.getLogger(__name__)
RELOAD: Final = 60.0
"""Seconds between two reads of the files, as in kube-scheduler."""


class Unusable(Exception):
    """The files cannot be read, or do not hold a certificate and its key."""


class CertificateFiles:
    def __init__(self, certificate: Path, key: Path) -> None:
        """Both may be the same file."""
        self._certificate, self._key = certificate, key
        self._shown = self._read()
        self.context = context(self._shown)

    async def follow(self) -> None:
        """Reloads the files periodically, until cancelled."""
        while True:
            await asyncio.sleep(RELOAD)
            try:
                self.look()
            except Unusable as problem:
                LOG.warning("Certificate %s %s; keeping the previous one", self._certificate, problem)

    def look(self) -> bool:
        """True if a new certificate was loaded; Unusable where it cannot be used."""
        found = self._read()
        if found == self._shown:
            return False
        # A context that refuses a key has already dropped its certificate, so a new context tries first.
        context(found)
        _load(self.context, found)
        self._shown = found
        LOG.info("Reloaded certificate %s", self._certificate)
        return True

    def _read(self) -> KeyPair:
        try:
            return KeyPair(self._certificate.read_text(), self._key.read_text())
        except (OSError, UnicodeDecodeError) as problem:
            raise Unusable(f"cannot be read: {problem}") from None


def self_signed_context(hosts: Sequence[str], now: datetime) -> ssl.SSLContext:
    return context(self_signed(hosts, now))


def context(shown: KeyPair) -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load(made, shown)
    return made


def _load(made: ssl.SSLContext, shown: KeyPair) -> None:
    with _as_file(shown.certificate + "\n" + shown.key) as file:
        try:
            # Without a password, OpenSSL would ask for that of an encrypted key at the terminal.
            made.load_cert_chain(file, password="")
        except ssl.SSLError as problem:
            raise Unusable(f"cannot be used ({problem}); expected a certificate and its private key in PEM") from None


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """OpenSSL reads files only. On Linux the file is in memory, so that the key is never on disk."""
    if sys.platform == "linux":
        with open(os.memfd_create("certificate"), "w+") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile("w+") as file:
            file.write(text)
            file.flush()
            yield file.name
