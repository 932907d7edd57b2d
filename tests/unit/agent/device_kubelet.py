"""A kubelet's device manager for tests: takes registrations, connects back, and records what plugins send."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from numalign.agent.deviceplugin import plugin
from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import Message, Tree
from numalign.process import rpc


class DeviceManager:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registrations: list[Tree] = []
        self.devices: dict[str, list[Tree]] = {}
        self.refusal: rpc.CallFailed | None = None
        self._channels: dict[str, rpc.Channel] = {}
        self._streams: dict[str, asyncio.Task[None]] = {}
        self._told = asyncio.Condition()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[DeviceManager]:
        """As the real one: every socket in the folder is removed, then ours is made."""
        for socket in self.folder.glob("*.sock"):
            socket.unlink()
        server = rpc.Server(
            self.folder / "kubelet.sock", rpc.Service(plugin.REGISTRATION, {"Register": self._register})
        )
        await server.start()
        try:
            yield self
        finally:
            for resource in (*self._channels,):
                await self.forget(resource)
            await server.stop()

    async def forget(self, resource: str) -> None:
        """Drop the connection, as if it had broken."""
        stream = self._streams.pop(resource)
        stream.cancel()
        await asyncio.wait([stream])
        await self._channels.pop(resource).close()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20), self._told:
            await self._told.wait_for(holds)

    async def ask(self, resource: str, call: str, tree: Mapping[str, Any], form: tuple[Message, Message]) -> Tree:
        request = protobuf.encode_message(tree, form[0])
        return protobuf.decode_message(
            await self._channels[resource].call(f"/{plugin.PLUGIN}/{call}", request), form[1]
        )

    async def _register(self, request: bytes) -> bytes:
        if self.refusal is not None:
            raise self.refusal
        told = protobuf.decode_message(request, plugin.REGISTER)
        resource = told["resource"]
        self._channels[resource] = rpc.Channel(self.folder / told["endpoint"])
        self._streams[resource] = asyncio.create_task(self._listen(resource))
        async with self._told:
            self.registrations.append(told)
            self._told.notify_all()
        return b""

    async def _listen(self, resource: str) -> None:
        with contextlib.suppress(rpc.CallFailed):
            async for answer in self._channels[resource].stream(f"/{plugin.PLUGIN}/ListAndWatch", b""):
                async with self._told:
                    self.devices[resource] = protobuf.decode_message(answer, plugin.DEVICES).get("devices", [])
                    self._told.notify_all()
