"""What a server shows over TLS: a certificate from files, read again when they change, or one of its own making.

`numalign scheduler run` serves its pages with it. A new certificate counts for new connections; files that do not
belong together yet, because somebody is just replacing them, leave the last one in place."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from numalign.process import certificates
from numalign.process.certificates import KeyPair

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


def self_signed(hosts: Sequence[str], now: datetime) -> ssl.SSLContext:
    return context(certificates.self_signed(hosts, now))


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
