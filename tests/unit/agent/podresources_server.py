"""A kubelet's podresources socket for tests: the real gRPC, with answers that the test lays out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from numalign.agent.sources import podresources as messages
from numalign.api.decode import protobuf
from numalign.process import rpc

Tree = Mapping[str, Any]


class FakeKubelet:
    """Answers as laid out; the first calls fail with `failures`, one each."""

    def __init__(self, *pods: Tree, allocatable: Tree | None = None) -> None:
        self.pods = pods
        self.allocatable = allocatable
        self.failures: list[rpc.CallFailed] = []
        self.calls: list[str] = []
        self.before: Callable[[], Any] | None = None

    def service(self) -> rpc.Service:
        calls = {"List": self.list, "Get": self.get}
        return rpc.Service("v1.PodResourcesLister", calls | self._allocatable_call())

    def _allocatable_call(self) -> dict[str, rpc.Answering]:
        return {} if self.allocatable is None else {"GetAllocatableResources": self.get_allocatable}

    async def list(self, request: bytes) -> bytes:
        await self._called("List")
        pods = [protobuf.encode_message(pod, messages.POD) for pod in self.pods]
        return protobuf.encode_message({"pods": pods}, messages.LIST_ANSWER)

    async def get_allocatable(self, request: bytes) -> bytes:
        await self._called("GetAllocatableResources")
        tree = dict(self.allocatable or {})
        tree["devices"] = [protobuf.encode_message(each, messages.DEVICES) for each in tree.get("devices", ())]
        return protobuf.encode_message(tree, messages.ALLOCATABLE)

    async def get(self, request: bytes) -> bytes:
        await self._called("Get")
        asked = protobuf.decode_message(request, messages.GET_REQUEST)
        for pod in self.pods:
            if asked == {"name": pod["name"], "namespace": pod["namespace"]}:
                return protobuf.encode_message({"pod": pod}, messages.GET_ANSWER)
        raise rpc.CallFailed("UNKNOWN", f"pod {asked['name']} in namespace {asked['namespace']} not found")

    async def _called(self, call: str) -> None:
        self.calls.append(call)
        if self.before is not None:
            await self.before()
        if self.failures:
            raise self.failures.pop(0)


@contextlib.asynccontextmanager
async def serving(socket: Path, *services: rpc.Service) -> AsyncIterator[rpc.Server]:
    """As the kubelet does it: listen under another name, then rename into place."""
    hidden = socket.with_name(f"{socket.name}.{id(services) % 10000}")
    server = rpc.Server(hidden, *services)
    await server.start()
    hidden.rename(socket)
    try:
        yield server
    finally:
        await asyncio.shield(server.stop())
