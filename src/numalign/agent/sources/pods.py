"""Reads the kubelet's pods socket: uid, phase, QoS class and container names of its pods (exporter spec 2.9).

The source is optional: kubelets have it from 1.36 on, by default from 1.37 on. `PodsClient.list` returns all pods;
`watch` first all and then every change; a client that reads too slowly is disconnected and starts again. `PodsView`
follows the stream as a task and keeps a table; while it is not in sync, the kubelet is asked for a list."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from enum import IntEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import BadProtobuf, Message, MessageField, Tree
from numalign.process import rpc

SERVICE: Final = "v1alpha1.Pods"
SOCKET: Final = "pods-api/pods-api.sock"
"""Below the kubelet's root folder."""

CONTAINER: Final[Message] = {1: MessageField("name", "string")}
METADATA: Final[Message] = {
    1: MessageField("name", "string"),
    3: MessageField("namespace", "string"),
    5: MessageField("uid", "string"),
}
SPEC: Final[Message] = {
    2: MessageField("containers", CONTAINER, many=True),
    20: MessageField("inits", CONTAINER, many=True),
}
STATUS: Final[Message] = {1: MessageField("phase", "string"), 9: MessageField("qos", "string")}
POD: Final[Message] = {
    1: MessageField("metadata", METADATA),
    2: MessageField("spec", SPEC),
    3: MessageField("status", STATUS),
}
LIST: Final[Message] = {1: MessageField("pods", "bytes", many=True)}
EVENT: Final[Message] = {1: MessageField("type", "int"), 2: MessageField("pod", POD)}


class PodEventType(IntEnum):
    """The type of an event; `SYNCED` comes once, without a pod, after all known pods."""

    ADDED = 1
    MODIFIED = 2
    DELETED = 3
    SYNCED = 4


class LocalPod(Struct, frozen=True):
    uid: str
    namespace: str
    name: str
    phase: str = ""
    qos: str = ""
    containers: tuple[str, ...] = ()
    inits: tuple[str, ...] = ()


class PodEvent(Struct, frozen=True):
    """A deleted pod has only its uid, namespace and name."""

    change: PodEventType
    pod: LocalPod | None


class PodsError(Exception):
    """No usable answer; `absent` where this kubelet has no such socket or service."""

    def __init__(self, text: str, *, absent: bool = False) -> None:
        super().__init__(text)
        self.absent = absent


class PodsClient:
    """For one event loop. Call `close` at the end."""

    def __init__(self, socket: Path, deadline: float = rpc.DEADLINE) -> None:
        self._link = rpc.Link(socket)
        self._deadline = deadline
        self._known: dict[bytes, LocalPod] = {}
        """Pods of the last answer by their bytes: most of them repeat."""

    async def list(self) -> tuple[LocalPod, ...]:
        """Sorted by uid."""
        try:
            answer = await self._link.call(f"/{SERVICE}/ListPods", b"", self._deadline)
            raw: list[bytes] = protobuf.decode_message(answer, LIST).get("pods", [])
            self._known = {each: self._known.get(each) or _pod(protobuf.decode_message(each, POD)) for each in raw}
        except (rpc.CallFailed, BadProtobuf) as failure:
            raise _error(failure) from None
        return tuple(sorted(self._known.values(), key=lambda pod: pod.uid))

    async def watch(self) -> AsyncIterator[PodEvent]:
        """Yields events until the kubelet ends the stream; PodsError if it gives a reason."""
        try:
            async for answer in self._link.current().stream(f"/{SERVICE}/WatchPods", b""):
                event = protobuf.decode_message(answer, EVENT)
                # Unknown types of events are skipped.
                if event.get("type") in PodEventType.__members__.values():
                    yield PodEvent(PodEventType(event["type"]), _pod(event["pod"]) if "pod" in event else None)
        except (rpc.CallFailed, BadProtobuf) as failure:
            raise _error(failure) from None

    async def close(self) -> None:
        await self._link.close()


def _error(failure: rpc.CallFailed | BadProtobuf) -> PodsError:
    if isinstance(failure, BadProtobuf):
        return PodsError(f"the kubelet's answer about its pods cannot be read: {failure}")
    return PodsError(f"the kubelet's pods socket: {failure}", absent=failure.code in ("UNAVAILABLE", "UNIMPLEMENTED"))


def _pod(tree: Tree) -> LocalPod:
    metadata, spec, status = tree.get("metadata", {}), tree.get("spec", {}), tree.get("status", {})
    return LocalPod(
        uid=metadata.get("uid", ""),
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        phase=status.get("phase", ""),
        qos=status.get("qos", ""),
        containers=_names(spec.get("containers", [])),
        inits=_names(spec.get("inits", [])),
    )


def _names(containers: list[Tree]) -> tuple[str, ...]:
    return tuple(each.get("name", "") for each in containers)


LOG: Final = logging.getLogger(__name__)
PAUSE: Final = 10.0
ABSENT: Final = 300.0
"""Seconds until a kubelet without a pods socket is tried again."""


class PodsView:
    """For one event loop. Call `close` at the end."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._client = PodsClient(socket)
        self._pods: dict[str, LocalPod] = {}
        self._synced = False

    async def list(self) -> tuple[LocalPod, ...]:
        """PodsError where the pods are unknown."""
        return tuple(self._pods.values()) if self._synced else await self._client.list()

    async def follow(self, heard: Callable[[], None]) -> None:
        """Until cancelled."""
        while True:
            pause, client = PAUSE, PodsClient(self._socket)
            try:
                async for event in client.watch():
                    self._take(event)
                    heard()
            except PodsError as problem:
                LOG.debug("Not following the kubelet's pods: %s", problem)
                pause = ABSENT if problem.absent else PAUSE
            finally:
                # Events before the next stream are lost.
                self._synced, self._pods = False, {}
                await client.close()
            await asyncio.sleep(pause)

    def _take(self, event: PodEvent) -> None:
        if event.change is PodEventType.SYNCED:
            self._synced = True
        elif event.pod is not None and event.change is PodEventType.DELETED:
            self._pods.pop(event.pod.uid, None)
        elif event.pod is not None:
            self._pods[event.pod.uid] = event.pod

    async def close(self) -> None:
        await self._client.close()
