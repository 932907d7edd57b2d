"""What the programs of a lab listen on, and how a stranger is answered there: a client without credentials."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import ssl
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from numalign.lab.processes import Part

PATIENCE = 10.0
LISTENS = "0A"


class Listening(Struct, frozen=True):
    address: str
    port: int


def of(part: Part) -> list[Listening]:
    """The TCP sockets that a process listens on."""
    process = Path("/proc", str(part.pid))
    inodes = {_target(file) for file in (process / "fd").iterdir()}
    lines = [line.split() for name in ("tcp", "tcp6") for line in _lines(process / "net" / name)]
    found = [entry[1].split(":") for entry in lines if entry[3] == LISTENS and f"socket:[{entry[9]}]" in inodes]
    return [Listening(_address(address), int(port, 16)) for address, port in found]


def _target(file: Path) -> str:
    with contextlib.suppress(OSError):
        return str(file.readlink())
    return ""


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines()[1:] if file.exists() else []


def _address(text: str) -> str:
    """Words of 32 bits, each in the order of this machine."""
    words = [int(text[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(text), 8)]
    return str(ipaddress.ip_address(b"".join(words)))


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def answer(
    port: int,
    path: str,
    method: str = "GET",
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    tls: ssl.SSLContext | None,
    host: str = "127.0.0.1",
) -> int | None:
    """The status code; None if the connection ends without an answer."""
    if tls is None:
        connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
    else:
        connection = http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=tls)
    try:
        connection.request(method, path, body, dict(headers or {}))
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
