"""Serves an `Api` over HTTP/1.1, and makes the certificates for TLS.

`simulator.hosting` and tests enter `serve`. The server speaks plain HTTP unless certificates are given, accepts every
client but pages of other sites unless a token is given, and listens on loopback addresses only unless `anywhere` is
set.

`make_certificates` writes the server's certificate and key and the certificate of their authority into the caller's
directory, for `cluster up --tls`. Only the owner can read the key; the authority's private key is never written."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.process import certificates, privatefile
from numalign.process.certificates import YEAR, CryptographyMissing, Validity
from numalign.process.http import listen
from numalign.process.http.limits import Limits
from numalign.process.http.origins import Hosts
from numalign.simulator.apiserver.http import application
from numalign.simulator.apiserver.http.routes import Router
from numalign.simulator.apiserver.verbs.api import Api

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


def make_certificates(directory: Path, hosts: Sequence[str] = HOSTS) -> Certificates:
    """The directory must exist. Raises BadObject without the package `cryptography`."""
    try:
        authority = certificates.authority("numalign embedded CA", Validity.of(datetime.now(UTC), 10 * YEAR))
    except CryptographyMissing as problem:
        raise BadObject("Cluster", directory.name, "tls", str(problem)) from None
    issued = authority.issue("kube-apiserver", hosts)
    files = Certificates(directory / "ca.crt", directory / "server.crt", directory / "server.key")
    files.authority.write_text(authority.certificate())
    files.certificate.write_text(issued.certificate)
    privatefile.write(files.key, issued.key)
    return files


class ListenOptions(Struct, frozen=True):
    """Where and how to listen. `anywhere` allows addresses that other machines can reach."""

    host: str = "127.0.0.1"
    port: int = 0
    certificates: Certificates | None = None
    token: str = ""
    anywhere: bool = False
    limits: Limits = application.LIMITS


class Address(Struct, frozen=True):
    host: str
    port: int
    secure: bool

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"


LOOPBACK = ListenOptions()


@asynccontextmanager
async def serve(api: Api, listening: ListenOptions = LOOPBACK) -> AsyncIterator[Address]:
    """Serves until the block ends; watches are closed in order."""
    if not (listening.anywhere or listen.is_loopback(listening.host)):
        raise ValueError(f"{listening.host} can be reached from other machines; set `anywhere` to allow this")
    context = listening.certificates.context() if listening.certificates is not None else None
    # Browsers do not know the token. Clients that do may be proxies, which pass on the headers of a browser.
    hosts = None if listening.token else Hosts((listening.host, *HOSTS))
    served = application.served(Router(api.state), listening.token, hosts, listening.limits)
    async with listen.listening(served, (listening.host, listening.port), context) as port:
        yield Address(listening.host, port, secure=context is not None)
