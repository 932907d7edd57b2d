"""The identity of a process at the API server: obtained, cached and renewed.

`Access` holds everything that reaches a server: `access.kubeconfig` and `access.access` make one, `sender` takes
headers from it before each call and reports a 401, `dial` takes a TLS context. A `Source` obtains an identity and its
lifetime; `Login` caches it that long. No repr shows a secret."""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from numalign.api import errors
from numalign.kube.clock import Clock
from numalign.kube.transport.dial import Dial, Server, dial
from numalign.kube.transport.tls import Certificate, Contexts

Headers = tuple[tuple[str, str], ...]

NOTHING_MORE: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})
REREAD: Final = 60.0
"""Seconds after which files are read again; tokens are rotated long before they expire."""


@dataclass(frozen=True)
class Identity:
    headers: Headers = field(default=(), repr=False)
    certificate: Certificate | None = None


@dataclass(frozen=True)
class Obtained:
    identity: Identity
    good_for: float | None = None
    """Seconds; None: no expiry."""


Source = Callable[[], Awaitable[Obtained]]


class Login:
    """Holds the current identity. Obtains a new one on first use, after expiry, and after the server refused it."""

    def __init__(self, source: Source, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._kept: Identity | None = None
        self._refused = False
        self._until: float | None = None
        self._one_at_a_time = asyncio.Lock()

    async def identity(self) -> Identity:
        if self._kept is None or self._has_run_out():
            async with self._one_at_a_time:
                if self._kept is None or self._has_run_out():
                    self._kept = await self._obtained()
        return self._kept

    @property
    def has_worked(self) -> bool:
        return self._kept is not None

    def refuse(self, identity: Identity) -> None:
        """The server answered 401. Unless the identity was replaced in the meantime, the next call obtains a new
        one."""
        if identity is self._kept:
            self._refused = True

    def _has_run_out(self) -> bool:
        return self._refused or (self._until is not None and self._clock.now() >= self._until)

    async def _obtained(self) -> Identity:
        obtained = await self._source()
        self._refused = False
        self._until = None if obtained.good_for is None else self._clock.now() + obtained.good_for
        # An equal identity stays the same object, so that connections made with it are kept.
        return self._kept if self._kept is not None and obtained.identity == self._kept else obtained.identity


@dataclass
class Access:
    server: Server
    login: Login = field(repr=False)
    contexts: Contexts | None = field(default=None, repr=False)
    """None: plain HTTP."""
    namespace: str = "default"
    """The default namespace of the context or the pod."""
    dial: Dial = dial
    """Opens connections; an embedded server in the same process replaces it."""


def bearer(token: str) -> Headers:
    return (("Authorization", f"Bearer {token}"),)


def basic(username: str, password: str) -> Headers:
    return (("Authorization", f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"),)


def unchanging(identity: Identity) -> Source:
    async def obtain() -> Obtained:
        return Obtained(identity)

    return obtain


def from_files(read: Callable[[], Identity]) -> Source:
    """Reads the files every minute. While a file cannot be read, the previous identity stays."""
    last: list[Identity] = []

    async def obtain() -> Obtained:
        try:
            last[:] = [read()]
        except errors.BadObject:
            if not last:
                raise
        return Obtained(last[0], REREAD)

    return obtain


def file_bytes(path: str, source: str, field: str) -> bytes:
    """The content of the file that `field` of `source` names."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as problem:
        why = f"{path} cannot be read: {getattr(problem, 'strerror', None) or 'not a file name'}"
        raise errors.BadObject("Kubeconfig", source, field, why) from None


def token_text(raw: bytes | str, source: str, field: str) -> str:
    """A token that is valid in a header; errors never quote it."""
    text = raw.decode("utf-8", "replace").strip() if isinstance(raw, bytes) else raw.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise errors.BadObject("Kubeconfig", source, field, "holds no token: expected one word of printable ASCII")
    return text


def impersonating(
    user: str, uid: str = "", groups: Sequence[str] = (), extra: Mapping[str, Sequence[str]] = NOTHING_MORE
) -> Headers:
    """`extra` holds user attributes by key; keys are percent-encoded in the header's name."""
    named = [("Impersonate-User", user), ("Impersonate-Uid", uid), *(("Impersonate-Group", group) for group in groups)]
    extras = [
        (f"Impersonate-Extra-{quote(name, safe='')}", value) for name, values in extra.items() for value in values
    ]
    return tuple((name, value) for name, value in [*named, *extras] if value)
