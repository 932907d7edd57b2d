"""Reads what pods hold from the kubelet's podresources socket, version v1 (exporter spec 2).

`readings` calls `list` and `allocatable` for every snapshot. The kubelet creates a new socket at each restart; the
client checks for it before every call, and after a failed one. Lists are sorted, because the kubelet's order is random;
containers keep the pod's order. Claims of dynamic resources are not read. The messages are decoded by hand: in the
usual warm case protobuf's generated code takes 0.2 ms instead of 1.9, but 5.2 instead of 1.9 when cold, and ties the
agent to a runtime version."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, TypeVar
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import BadProtobuf, Message, MessageField, Tree
from numalign.process import rpc


class DeviceEntry(Struct, frozen=True):
    """A device on several zones has several entries with the same id (exporter spec 2.4)."""

    resource: str
    ids: tuple[str, ...]
    zones: tuple[int, ...] | None
    """None: the plugin reported no topology."""


class MemoryEntry(Struct, frozen=True, order=True):
    type: str
    size: int
    """Bytes of the whole block, over all its zones."""
    zones: tuple[int, ...]


class ContainerResources(Struct, frozen=True):
    name: str
    devices: tuple[DeviceEntry, ...] = ()
    cpus: tuple[int, ...] = ()
    """Exclusive ones only."""
    memory: tuple[MemoryEntry, ...] = ()


class PodResources(Struct, frozen=True):
    namespace: str
    name: str
    containers: tuple[ContainerResources, ...] = ()
    cpus: tuple[int, ...] = ()
    """Held by the pod as a whole, its containers' included; with `memory` new in 1.37 (exporter spec 2.4)."""
    memory: tuple[MemoryEntry, ...] = ()


class Allocatable(Struct, frozen=True):
    devices: tuple[DeviceEntry, ...] = ()
    cpus: tuple[int, ...] = ()
    memory: tuple[MemoryEntry, ...] = ()


ZONE: Final[Message] = {1: MessageField("id", "int")}
ZONES: Final[Message] = {1: MessageField("nodes", ZONE, many=True)}
DEVICES: Final[Message] = {
    1: MessageField("resource", "string"),
    2: MessageField("ids", "string", many=True),
    3: MessageField("topology", ZONES),
}
MEMORY: Final[Message] = {
    1: MessageField("type", "string"),
    2: MessageField("size", "uint"),
    3: MessageField("topology", ZONES),
}
CONTAINER: Final[Message] = {
    1: MessageField("name", "string"),
    2: MessageField("devices", DEVICES, many=True),
    3: MessageField("cpus", "int", many=True),
    4: MessageField("memory", MEMORY, many=True),
}
POD: Final[Message] = {
    1: MessageField("name", "string"),
    2: MessageField("namespace", "string"),
    3: MessageField("containers", CONTAINER, many=True),
    4: MessageField("cpus", "int", many=True),
    5: MessageField("memory", MEMORY, many=True),
}
ALLOCATABLE: Final[Message] = {
    1: MessageField("devices", "bytes", many=True),
    2: MessageField("cpus", "int", many=True),
    3: MessageField("memory", MEMORY, many=True),
}
LIST_ANSWER: Final[Message] = {1: MessageField("pods", "bytes", many=True)}
GET_ANSWER: Final[Message] = {1: MessageField("pod", POD)}
GET_REQUEST: Final[Message] = {1: MessageField("name", "string"), 2: MessageField("namespace", "string")}


class Reader:
    """Caches decoded parts of the last answers by their bytes: most of them repeat.

    The kubelet sends them in random order, so whole answers seldom repeat."""

    def __init__(self) -> None:
        self._pods: dict[bytes, PodResources] = {}
        self._devices: dict[bytes, DeviceEntry] = {}
        self._offer: tuple[bytes, Allocatable] | None = None

    def pods(self, answer: bytes) -> tuple[PodResources, ...]:
        raw: list[bytes] = protobuf.decode_message(answer, LIST_ANSWER).get("pods", [])
        self._pods = {each: self._pods.get(each) or pod(protobuf.decode_message(each, POD)) for each in raw}
        return tuple(sorted(self._pods.values(), key=lambda each: (each.namespace, each.name)))

    def allocatable(self, answer: bytes) -> Allocatable:
        if self._offer is not None and self._offer[0] == answer:
            return self._offer[1]
        tree = protobuf.decode_message(answer, ALLOCATABLE)
        raw: list[bytes] = tree.get("devices", [])
        self._devices = {
            each: self._devices.get(each) or _device(protobuf.decode_message(each, DEVICES)) for each in raw
        }
        offered = Allocatable(tuple(sorted(self._devices.values(), key=_place)), _cpus(tree), _memory(tree))
        self._offer = answer, offered
        return offered


def got(answer: bytes) -> PodResources:
    return pod(protobuf.decode_message(answer, GET_ANSWER).get("pod", {}))


def pod(tree: Tree) -> PodResources:
    return PodResources(
        namespace=tree.get("namespace", ""),
        name=tree.get("name", ""),
        containers=tuple(map(_container, tree.get("containers", ()))),
        cpus=_cpus(tree),
        memory=_memory(tree),
    )


def _container(tree: Tree) -> ContainerResources:
    return ContainerResources(name=tree.get("name", ""), devices=_devices(tree), cpus=_cpus(tree), memory=_memory(tree))


def _cpus(tree: Tree) -> tuple[int, ...]:
    return tuple(sorted(tree.get("cpus", ())))


def _devices(tree: Tree) -> tuple[DeviceEntry, ...]:
    return tuple(sorted(map(_device, tree.get("devices", ())), key=_place))


def _device(tree: Tree) -> DeviceEntry:
    zones = _zones(tree["topology"]) if "topology" in tree else None
    return DeviceEntry(tree.get("resource", ""), tuple(sorted(tree.get("ids", ()))), zones)


def _place(entry: DeviceEntry) -> tuple[str, tuple[str, ...], tuple[int, ...]]:
    return entry.resource, entry.ids, entry.zones or ()


def _memory(tree: Tree) -> tuple[MemoryEntry, ...]:
    return tuple(sorted(map(_block, tree.get("memory", ()))))


def _block(tree: Tree) -> MemoryEntry:
    return MemoryEntry(tree.get("type", ""), tree.get("size", 0), _zones(tree.get("topology", {})))


def _zones(topology: Tree) -> tuple[int, ...]:
    # Zone 0 is protobuf's default and is not sent (exporter spec 2.2).
    return tuple(sorted(node.get("id", 0) for node in topology.get("nodes", ())))


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
"""Seconds before each retry while the kubelet's limit of 100 calls per second is exhausted (exporter spec 2.1)."""

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
    """No usable answer: `kind` classifies it, and the text is a log message."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class PodResourcesClient:
    """A client for one event loop; calls may overlap. Call `close` at the end."""

    def __init__(self, socket: Path, deadline: float = rpc.DEADLINE, pauses: Sequence[float] = PAUSES) -> None:
        self._link = rpc.Link(socket)
        self._deadline = deadline
        self._pauses = pauses
        self._reader = Reader()

    async def list(self) -> tuple[PodResources, ...]:
        """Every pod that the kubelet lists, sorted by namespace and name."""
        return await self._asked("List", b"", self._reader.pods)

    async def allocatable(self) -> Allocatable | None:
        """None where the kubelet has no such call: before 1.21, or disabled."""
        try:
            return await self._asked("GetAllocatableResources", b"", self._reader.allocatable)
        except PodResourcesError as failure:
            if failure.kind == "unimplemented":
                return None
            raise

    async def get(self, namespace: str, name: str) -> PodResources | None:
        """None where the kubelet does not know the pod."""
        request = protobuf.encode_message({"name": name, "namespace": namespace}, GET_REQUEST)
        try:
            return await self._asked("Get", request, got)
        except PodResourcesError as failure:
            # The kubelet has no code for this, only a message (exporter spec 2.6).
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
    # An answer beyond the client's size limit has the same code.
    return failure.code == "RESOURCE_EXHAUSTED" and "rate limit" in failure.text


def _error(call: str, failure: rpc.CallFailed) -> PodResourcesError:
    if _is_rate_limit(failure):
        return PodResourcesError("rate-limited", f"too many calls of the kubelet's podresources socket: {failure.text}")
    if call == "List" and failure.code == "UNIMPLEMENTED":
        why = "this kubelet has no podresources v1, which came with 1.20; v1alpha1 has neither CPUs nor zones"
        return PodResourcesError("unimplemented", why)
    if failure.code == "PERMISSION_DENIED":
        why = f"the kubelet's podresources {call}: {failure.text}; run as root or in the socket's group"
        return PodResourcesError("forbidden", why)
    # A disabled call has no error code of its own (exporter spec 2.3).
    kind = "unimplemented" if "disabled" in failure.text else KINDS.get(failure.code, "refused")
    return PodResourcesError(kind, f"the kubelet's podresources {call}: {failure.text or failure.code}")
