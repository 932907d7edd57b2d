"""An authority of our own, and a server certificate that it vouches for, where the embedded server speaks TLS.

The keys live in the directory that the caller gives, for its owner's eyes only, and are good for nothing but this
server. The authority's own key is forgotten at once."""

import os
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.process import certificates
from numalign.process.certificates import YEAR, Life

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
    """Writes them into the directory, which has to exist."""
    authority = certificates.authority("numalign embedded CA", Life.of(datetime.now(UTC), 10 * YEAR))
    issued = authority.vouched("kube-apiserver", hosts)
    files = Certificates(directory / "ca.crt", directory / "server.crt", directory / "server.key")
    files.authority.write_text(authority.certificate())
    files.certificate.write_text(issued.certificate)
    with open(os.open(files.key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(issued.key)
    return files
