"""TLS contexts from a kubeconfig or a service account: trusted authorities and the client certificate.

`dial` takes a context from `Contexts` before every new connection. An authority's file is read again when it changes.
Verification is off only if the configuration says so. No repr shows a private key."""

import os
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from numalign.api import errors


class Trust(Struct, frozen=True):
    """The trusted authorities; with neither file nor data, those of the system."""

    file: str = ""
    data: bytes = b""
    insecure: bool = False


@dataclass(frozen=True)
class Certificate:
    """A client certificate with its key, both in PEM."""

    chain: bytes
    key: bytes = field(repr=False)


@dataclass
class Contexts:
    """The TLS context for a client certificate; made again when the authority's file changes."""

    trust: Trust
    source: str
    """The configuration that names it, for messages."""
    kind: str = "Kubeconfig"
    _kept: tuple[object, ssl.SSLContext] | None = field(default=None, repr=False)

    def context(self, certificate: Certificate | None) -> ssl.SSLContext:
        """The current context. While a file is being replaced, the previous one stays."""
        try:
            version = (certificate, self._changed_at())
            if self._kept is None or self._kept[0] != version:
                self._kept = version, self._made(certificate)
        except errors.BadObject:
            if self._kept is None:
                raise
        return self._kept[1]

    def _changed_at(self) -> int:
        if not self.trust.file:
            return 0
        try:
            return os.stat(self.trust.file).st_mtime_ns
        except OSError as problem:
            raise self._bad("certificate-authority", f"{self.trust.file}: {problem.strerror}") from None

    def _made(self, certificate: Certificate | None) -> ssl.SSLContext:
        context = ssl.create_default_context() if not (self.trust.file or self.trust.data) else self._trusting()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if self.trust.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            self._load(context, certificate)
        return context

    def _trusting(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        field = "certificate-authority-data" if self.trust.data else "certificate-authority"
        try:
            data = self.trust.data or Path(self.trust.file).read_bytes()
            context.load_verify_locations(cadata=data.decode())
        except (OSError, ValueError) as problem:
            raise self._bad(field, f"holds no certificate in PEM ({_short(problem)})") from None
        return context

    def _load(self, context: ssl.SSLContext, certificate: Certificate) -> None:
        with _as_file(certificate.chain + b"\n" + certificate.key) as file:
            try:
                context.load_cert_chain(file, password=_no_password)
            except (OSError, ValueError) as problem:
                why = f"are not a certificate and its unencrypted key in PEM ({_short(problem)})"
                raise self._bad("client certificate and key", why) from None

    def _bad(self, field: str, why: str) -> errors.BadObject:
        return errors.BadObject(self.kind, self.source, field, why)


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """OpenSSL reads files only. On Linux the file is in memory, so that the key is never on disk."""
    in_memory = sys.platform == "linux"
    with open(os.memfd_create("client"), "wb") if in_memory else tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}" if in_memory else file.name


def _no_password() -> bytes:
    """Without this callback, OpenSSL would ask at the terminal."""
    raise ValueError("the key is encrypted")


def _short(problem: Exception) -> str:
    return getattr(problem, "reason", None) or getattr(problem, "strerror", None) or type(problem).__name__
