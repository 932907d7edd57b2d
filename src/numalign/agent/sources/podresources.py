"""What the kubelet says that pods hold: its podresources socket, version v1 (exporter spec 2).

`readings` asks `list` and `allocatable` for every look at the node. The socket is a new file after each restart of the
kubelet; that is noticed before every call, and once more where a call fails. What the answers say is read by
`podresourcesmessages`; nothing is interpreted here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, TypeVar
from urllib.parse import unquote, urlsplit

from numalign.agent.sources import podresourcesmessages as messages
from numalign.agent.sources.podresourcesmessages import (
    Allocatable,
    ContainerResources,
    DeviceEntry,
    MemoryEntry,
    PodResources,
)
from numalign.api import errors
from numalign.api.decode import protomessages
from numalign.api.decode.protowire import BadProtobuf
from numalign.process import rpc

__all__ = [
    "SOCKET",
    "Allocatable",
    "ContainerResources",
    "DeviceEntry",
    "MemoryEntry",
    "PodResources",
    "PodResourcesClient",
    "PodResourcesError",
]

SERVICE: Final = "v1.PodResourcesLister"
SOCKET: Final = "pod-resources/kubelet.sock"
"""Below the kubelet's root folder."""
PAUSES: Final = (0.05, 0.1, 0.2, 0.4)
"""Before each further try while the kubelet's bucket of 100 calls a second is empty (exporter spec 2.1)."""

ErrorKind = Literal[
    "unavailable", "forbidden", "rate-limited", "unimplemented", "too-large", "timeout", "unreadable", "refused"
]
KINDS: Final[dict[str, ErrorKind]] = {
    "UNAVAILABLE": "unavailable",
    "UNIMPLEMENTED": "unimplemented",
    "DEADLINE_EXCEEDED": "timeout",
    "RESOURCE_EXHAUSTED": "too-large",
}

T = TypeVar("T")
BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def endpoint(text: str) -> Path:
    """The socket of a URL such as unix:///run/kubelet.sock, read as RTE reads it. BadObject for any other kind."""
    scheme, mark, rest = text.partition(":")
    if not mark or scheme.lower() != "unix" or BAD_ESCAPE.search(rest):
        why = f"{errors.echo(text)} is not of the form unix:///path; the kubelet is asked on a socket of this machine"
        raise errors.BadObject("Agent", "settings", "podresources socket", why)
    path = urlsplit(f"unix:{rest}").path if rest.startswith("/") else ""
    return Path(unquote(path))


class PodResourcesError(Exception):
    """No answer that can be used: `kind` says which way, the text can go into a log as it is."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class PodResourcesClient:
    """For one event loop; calls may overlap. `close` at the end."""

    def __init__(self, socket: Path, deadline: float = rpc.DEADLINE, pauses: Sequence[float] = PAUSES) -> None:
        self._link = rpc.Link(socket)
        self._deadline = deadline
        self._pauses = pauses
        self._reader = messages.Reader()

    async def list(self) -> tuple[PodResources, ...]:
        """Every pod that the kubelet lists, sorted by namespace and name."""
        return await self._asked("List", b"", self._reader.pods)

    async def allocatable(self) -> Allocatable | None:
        """None where the kubelet has no such call: before 1.21, or switched off."""
        try:
            return await self._asked("GetAllocatableResources", b"", self._reader.allocatable)
        except PodResourcesError as failure:
            if failure.kind == "unimplemented":
                return None
            raise

    async def get(self, namespace: str, name: str) -> PodResources | None:
        """None where the kubelet knows no such pod."""
        request = protomessages.written({"name": name, "namespace": namespace}, messages.GET_REQUEST)
        try:
            return await self._asked("Get", request, messages.got)
        except PodResourcesError as failure:
            # The kubelet has no code for this, only words (exporter spec 2.6).
            if failure.kind == "refused" and failure.text.endswith("not found"):
                return None
            raise

    async def close(self) -> None:
        await self._link.close()

    async def _asked(self, call: str, request: bytes, read: Callable[[bytes], T]) -> T:
        try:
            return read(await self._patiently(f"/{SERVICE}/{call}", request))
        except rpc.CallFailed as failure:
            raise _error(call, failure) from None
        except BadProtobuf as problem:
            raise PodResourcesError("unreadable", f"the kubelet's answer to {call} cannot be read: {problem}") from None

    async def _patiently(self, method: str, request: bytes) -> bytes:
        for pause in self._pauses:
            try:
                return await self._link.call(method, request, self._deadline)
            except rpc.CallFailed as failure:
                if not _is_rate_limit(failure):
                    raise
            await asyncio.sleep(pause)
        return await self._link.call(method, request, self._deadline)


def _is_rate_limit(failure: rpc.CallFailed) -> bool:
    # An answer beyond the limit of this side has the same code.
    return failure.code == "RESOURCE_EXHAUSTED" and "rate limit" in failure.text


def _error(call: str, failure: rpc.CallFailed) -> PodResourcesError:
    if _is_rate_limit(failure):
        return PodResourcesError("rate-limited", f"too many calls of the kubelet's podresources socket: {failure.text}")
    if call == "List" and failure.code == "UNIMPLEMENTED":
        why = "this kubelet has no podresources v1, which came with 1.20; v1alpha1 tells neither CPUs nor zones"
        return PodResourcesError("unimplemented", why)
    if failure.code == "PERMISSION_DENIED":
        why = f"the kubelet's podresources {call}: {failure.text}; it takes root, or the socket's group"
        return PodResourcesError("forbidden", why)
    # A switched off call fails with no code of its own (exporter spec 2.3).
    kind = "unimplemented" if "disabled" in failure.text else KINDS.get(failure.code, "refused")
    return PodResourcesError(kind, f"the kubelet's podresources {call}: {failure.text or failure.code}")
