"""An authority of our own, and a server certificate that it vouches for, where the embedded server speaks TLS.

Python has no way to make certificates, so the `openssl` program does; where it is missing, that is said. The keys
live in the directory that the caller gives and are good for nothing but this server."""

import ipaddress
import shutil
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

DAYS: Final = "3650"
HOSTS: Final = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc")


class NoOpenssl(Exception):
    """`openssl` is not installed, or did not do its work."""


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
    """Writes them into the directory, which has to exist; raises NoOpenssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise NoOpenssl("TLS needs the openssl program to make certificates; install it, or serve plain HTTP")
    authority, authority_key = directory / "ca.crt", directory / "ca.key"
    certificate, key = directory / "server.crt", directory / "server.key"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS]
    usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
    _run(openssl, "req", "-x509", *curve, "-subj", "/CN=numalign embedded CA", *usage, *_out(authority, authority_key))
    issuer = ["-CA", str(authority), "-CAkey", str(authority_key)]
    names = ["-addext", f"subjectAltName={','.join(map(_name, hosts))}", "-addext", "extendedKeyUsage=serverAuth"]
    plain = ["-addext", "basicConstraints=critical,CA:FALSE"]
    _run(
        openssl, "req", "-x509", *curve, "-subj", "/CN=kube-apiserver", *issuer, *names, *plain, *_out(certificate, key)
    )
    for secret in (authority_key, key):
        secret.chmod(0o600)
    return Certificates(authority, certificate, key)


def _out(certificate: Path, key: Path) -> list[str]:
    return ["-out", str(certificate), "-keyout", str(key)]


def _name(host: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoOpenssl(f"openssl could not make a certificate: {done.stderr.strip().splitlines()[-1:]}")
