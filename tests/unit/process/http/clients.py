"""A server that answers everything, its limits made small, and a transport that takes as much as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import structs

from numalign.process.http.connection import Connection, Pending, Served
from numalign.process.http.limits import Limits
from numalign.process.http.messages import Request, Response
from numalign.process.http.origins import Hosts

LIMITS = Limits(connections=4, body_bytes=1000, waiting_bytes=5000, waiting_requests=20)


class Later:
    """A response that is never ready."""

    def __init__(self) -> None:
        self.closed = False

    def open(self, connection: Connection) -> None: ...

    def end(self) -> None: ...

    def close(self) -> None:
        self.closed = True


class Echo:
    """Answers with the path, or with so many bytes as the path says."""

    headers: tuple[str, ...] = ()
    added: tuple[tuple[str, str], ...] = ()

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.later = Later()

    def answer(self, request: Request) -> Response | Pending:
        self.asked.append(request.path)
        if request.path == "/later":
            return self.later
        size = request.path.removeprefix("/size/")
        return Response(200, b"x" * int(size) if size.isdecimal() else request.path.encode())

    def refusal(self, code: int, why: str) -> Response:
        return Response(code, why.encode())


class Wire(asyncio.Transport):
    """Takes all bytes; says so late once `room` is used up."""

    def __init__(self, room: float = float("inf")) -> None:
        super().__init__()
        self.said, self.aborted, self.closed, self.reads = b"", False, False, True
        self.room = room
        self.connection: Connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.said += bytes(data)
        self.room -= len(data)
        if self.room <= 0:
            self.connection.pause_writing()

    def more(self, room: float) -> None:
        """The client read."""
        self.room = room
        self.connection.resume_writing()

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def can_write_eof(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    @property
    def codes(self) -> list[int]:
        return [int(each[:3]) for each in self.said.split(b"HTTP/1.1 ")[1:]]


class Stage:
    def __init__(self, room: float, hosts: Hosts | None, **changed: Any) -> None:
        self.echo = Echo()
        self.limits = structs.replace(LIMITS, **changed)
        self.served, self._connections = Served(self.echo, self.limits, hosts), set[Connection]()
        self.wire = self.wired(room)
        self.connection = self.wire.connection

    def wired(self, room: float) -> Wire:
        """Another client."""
        wire = Wire(room)
        wire.connection = Connection(self.served, self._connections)
        wire.connection.connection_made(wire)
        return wire

    def after(self, seconds: float) -> bool:
        """Whether the client is disconnected so long after the connection began to wait."""
        self.connection.sweep(self.connection.since + seconds)
        return self.wire.aborted


def staged(
    check: Callable[[Stage], None], room: float = float("inf"), hosts: Hosts | None = None, **changed: Any
) -> None:
    async def run() -> None:
        check(Stage(room, hosts, **changed))

    asyncio.run(run())


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", *headers, "", ""]).encode()
