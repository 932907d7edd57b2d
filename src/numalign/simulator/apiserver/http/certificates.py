"""Writes the certificate and key that the embedded API server serves TLS with, and its authority's certificate.

`simulator.hosting` calls it for `cluster up --tls`. The files go into the caller's directory; only their owner can read
the key. The authority's private key is never written."""

import os
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.process import certificates
from numalign.process.certificates import YEAR, CryptographyMissing, Validity

HOSTS: Final = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc")


class Certificates(Struct, frozen=True):
    authority: Path
    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        return context


def made(directory: Path, hosts: Sequence[str] = HOSTS) -> Certificates:
    """The directory must exist; BadObject without the package `cryptography`."""
    try:
        authority = certificates.authority("numalign embedded CA", Validity.of(datetime.now(UTC), 10 * YEAR))
    except CryptographyMissing as problem:
        raise BadObject("Cluster", directory.name, "tls", str(problem)) from None
    issued = authority.issue("kube-apiserver", hosts)
    files = Certificates(directory / "ca.crt", directory / "server.crt", directory / "server.key")
    files.authority.write_text(authority.certificate())
    files.certificate.write_text(issued.certificate)
    with open(os.open(files.key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(issued.key)
    return files
