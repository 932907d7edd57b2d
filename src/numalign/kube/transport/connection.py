"""One HTTP/1.1 connection, the responses that arrive on it, and their time limits.

`transport` sends on a `Connection` and reads an `IncomingResponse`, whole or in pieces; the sender is paused while the
reader is slow. httptools parses the bytes. A broken connection, or one whose response was not read to its end, is never
reused. `Deadlines` watches all responses with one timer: they share one time limit, so the oldest expires first, and a
timer for each would cost more than reading it."""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, cast

import httptools
from msgspec import Struct

HIGH_WATER: Final = 1 << 20
"""Bytes of a stream that may be buffered before reading pauses."""


class Broken(Exception):
    """The connection ended before the answer was complete, or the server did not send HTTP."""


class Fields(Mapping[str, str]):
    """Headers by lower-case name, decoded on first access: most answers need none."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._raw = raw

    def __getitem__(self, name: str) -> str:
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)

    @cached_property
    def _read(self) -> dict[str, str]:
        return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._raw}


NO_FIELDS: Final = Fields([])


class Response(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes


class IncomingResponse:
    """An answer that may still be arriving. It has one reader, which is woken for every piece only while it streams."""

    __slots__ = (
        "_connection",
        "_pieces",
        "_piecewise",
        "_problem",
        "_reader",
        "_waiting",
        "complete",
        "headers",
        "status",
    )

    def __init__(self, connection: "Connection") -> None:
        self.status = 0
        self.headers: Mapping[str, str] = NO_FIELDS
        self.complete = False
        self._connection = connection
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._problem: Broken | TimeoutError | None = None
        self._reader: asyncio.Future[None] | None = None
        self._piecewise = False

    async def started(self) -> None:
        """Waits for status and headers."""
        self._piecewise = True
        while not self.status:
            await self._more()

    async def read(self) -> bytes:
        """The bytes since the last call, at least one; empty at the end."""
        while not self._pieces and not self.complete:
            await self._more()
        taken = self._taken()
        self._connection.resume()
        return taken

    async def whole(self) -> Response:
        while not self.complete:
            await self._more()
        return Response(self.status, self.headers, self._taken())

    def began(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, headers
        self._wake_piecewise()

    def abandon(self) -> None:
        """Drops the answer; its reader gets `Broken`."""
        self._connection.close()

    def arrived(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._waiting += len(piece)
        if self._piecewise and self._waiting > HIGH_WATER:
            self._connection.hold()
        self._wake_piecewise()

    @property
    def is_over(self) -> bool:
        """The answer is complete or has failed."""
        return self.complete or self._problem is not None

    def expire(self) -> None:
        """The time limit is reached; its reader gets a TimeoutError."""
        if not self.is_over:
            self.ended(TimeoutError())

    def ended(self, problem: Broken | TimeoutError | None = None) -> None:
        self.complete = problem is None
        self._problem = problem
        self._wake()

    async def _more(self) -> None:
        if self._problem is not None:
            raise self._problem
        self._reader = asyncio.get_running_loop().create_future()
        await self._reader

    def _taken(self) -> bytes:
        pieces, self._pieces, self._waiting = self._pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _wake_piecewise(self) -> None:
        if self._piecewise:
            self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class Connection(asyncio.Protocol):
    """Sends one request at a time. The callbacks of asyncio and httptools follow its own methods."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.usable = True
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._fields: list[tuple[bytes, bytes]] = []
        self._answer: IncomingResponse | None = None

    def send(self, request: bytes) -> IncomingResponse:
        assert self._transport is not None, "the connection is open"
        assert self._answer is None, "one request at a time"
        self._answer = IncomingResponse(self)
        self._transport.write(request)
        return self._answer

    def close(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def hold(self) -> None:
        if self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing() and not self._transport.is_reading():
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No isinstance check: other event loops have transport classes of their own.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            # No request is in flight: the server closes an idle connection.
            return self.close()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._break("the answer is not HTTP")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and self._answer.status and self._is_unframed() and exc is None:
            self._finish()
        self._break("the connection was closed" if exc is None else f"the connection broke ({exc})")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        if self._answer is not None and self._parser.get_status_code() >= 200:
            self._answer.began(self._parser.get_status_code(), Fields(self._fields))

    def on_body(self, body: bytes) -> None:
        if self._answer is not None:
            self._answer.arrived(body)

    def on_message_complete(self) -> None:
        self._fields = []
        if self._answer is None or not self._answer.status:
            return
        if not self._parser.should_keep_alive():
            self.usable = False
        self._finish()

    def _is_unframed(self) -> bool:
        """Neither Content-Length nor chunks: the answer ends with the connection."""
        return not ({"content-length", "transfer-encoding"} & Fields(self._fields).keys())

    def _finish(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.ended()

    def _break(self, why: str) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.ended(Broken(why))
        self.close()


class Deadlines:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: deque[tuple[float, IncomingResponse]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, answer: IncomingResponse) -> None:
        """Starts the time limit of an answer; its reader gets a TimeoutError if it is not complete in time."""
        loop, waiting = asyncio.get_running_loop(), self._waiting
        while waiting and waiting[0][1].is_over:
            waiting.popleft()
        waiting.append((loop.time() + self._seconds, answer))
        if self._timer is None:
            self._timer = loop.call_at(waiting[0][0], self._look)

    def _look(self) -> None:
        loop, waiting = asyncio.get_running_loop(), self._waiting
        while waiting and (waiting[0][1].is_over or waiting[0][0] <= loop.time()):
            waiting.popleft()[1].expire()
        self._timer = loop.call_at(waiting[0][0], self._look) if waiting else None
