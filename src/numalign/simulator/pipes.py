"""In-process connections between two asyncio protocols, without a socket.

Our client reaches the embedded API server by `dial`, also in virtual time, which rejects sockets. Bytes arrive in order
in a later iteration of the event loop, after an optional latency. Flow control works as on a socket, and a closed
connection delivers what was written before."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

from numalign.kube.transport.connection import Connection
from numalign.kube.transport.dial import CannotConnect, Dial, Server

HIGH_WATER = 1 << 20
"""Bytes in transit at which a writer pauses, unless its protocol asks for another limit; at a quarter it resumes."""

END: Final = None

Listening = Callable[[], asyncio.Protocol]


def dial(listening: Callable[[], Listening | None], latency: float = 0.0) -> Dial:
    """Connects to the current listener; refuses the connection if there is none.

    `latency` is the delay in seconds in each direction."""

    async def dialled(server: Server, context: ssl.SSLContext | None, seconds: float) -> Connection:
        made = listening()
        if made is None:
            raise CannotConnect(f"no connection to {server.authority}: Connection refused")
        ours, theirs = Connection(), made()
        joined(ours, theirs, latency)
        return ours

    return dialled


def joined(one: asyncio.Protocol, other: asyncio.Protocol, latency: float = 0.0) -> tuple[Wire, Wire]:
    """Connects both protocols at once."""
    ends = Wire(one, latency), Wire(other, latency)
    for end, peer in (ends, ends[::-1]):
        end.peer = peer
    for end in ends:
        end.protocol.connection_made(end)
    return ends


class Wire(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, protocol: asyncio.Protocol, latency: float) -> None:
        super().__init__()
        self.protocol = protocol
        self._latency = latency
        self.peer: Wire
        self._loop = asyncio.get_running_loop()
        self._arriving: deque[bytes | None] = deque()
        self._waiting = 0
        self._most = HIGH_WATER
        self._paused = self._scheduled = self._closing = self._lost = self._holding = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if data and not self._closing:
            self.peer._take(bytes(data))
            if self.peer._waiting > self._most and not self._holding:
                self._holding = True
                self.protocol.pause_writing()

    def close(self) -> None:
        """Bytes that were written still arrive at the other end; bytes on their way to this end are dropped."""
        if not self._closing:
            self._closing = True
            self.peer._take(END)
            self._loop.call_soon(self._lose)

    def abort(self) -> None:
        self.peer._arriving.clear()
        self.close()

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._schedule()

    def is_reading(self) -> bool:
        return not self._paused

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._most = HIGH_WATER if high is None else high

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self.peer._waiting

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 0) if name == "peername" else default

    def _take(self, data: bytes | None) -> None:
        self._arriving.append(data)
        self._waiting += len(data or b"")
        self._schedule()

    def _schedule(self) -> None:
        if self._arriving and not self._scheduled and not self._paused:
            self._scheduled = True
            if self._latency:
                self._loop.call_later(self._latency, self._deliver)
            else:
                self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        while self._arriving and not self._paused and not self._closing:
            data = self._arriving.popleft()
            if data is END:
                return self.close()
            self._waiting -= len(data)
            self.protocol.data_received(data)
        self._release()

    def _release(self) -> None:
        """Resumes the writer at the other end once few bytes are in transit."""
        if self.peer._holding and self._waiting <= self.peer._most // 4:
            self.peer._holding = False
            self.peer.protocol.resume_writing()

    def _lose(self) -> None:
        if not self._lost:
            self._lost = True
            self._arriving.clear()
            self.protocol.connection_lost(None)
