"""One client connection: bytes to requests, responses to bytes, in order.

`listen` makes one for each client, `simulator.pipes` one for each client in the same process. httptools parses the
bytes. The application answers a request at once with a `Response`, or with a `Pending` that writes or ends later;
requests that arrive meanwhile wait. A client that exceeds its `Limits` is refused or disconnected, and a response waits
here until the client reads it."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Final, Protocol, cast

import httptools

from numalign.process.http import messages, origins
from numalign.process.http.limits import Limits
from numalign.process.http.messages import Request, Response
from numalign.process.http.origins import Hosts

LOG: Final = logging.getLogger(__name__)
PIECE: Final = 256 << 10
"""Bytes that are passed to the transport in one write."""
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE: Final = "Connection: close\r\n"
READ_HEADERS: Final = ("content-length", "expect")
NEW, IDLE, HEAD, BODY, ANSWERING, CLOSING = range(6)
"""What a connection waits for: its first request, the next one, the rest of a head or of a body, the application, the
client to read the last response."""


class Pending(Protocol):
    """A response that takes its time."""

    def open(self, connection: "Connection") -> None:
        """Begins; ends with `connection.finish`, which it may call at once."""

    def end(self) -> None:
        """The server stops: ends in order, if that is possible at once."""

    def close(self) -> None:
        """The client is gone."""


class Application(Protocol):
    headers: tuple[str, ...]
    """The request headers that it reads, in lower case."""
    added: tuple[tuple[str, str], ...]
    """Headers of every response."""

    def answer(self, request: Request) -> Response | Pending: ...

    def refusal(self, code: int, why: str) -> Response:
        """The response to a request that is not passed on."""


class Refused(Exception):
    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


class Served:
    """An application with the rules that its connections follow, shared by all of them."""

    def __init__(self, application: Application, limits: Limits, hosts: Hosts | None = None) -> None:
        """`hosts`: None where the application authenticates its clients, or where no browser can reach it."""
        self.application = application
        self.limits = limits
        self.hosts = hosts
        self.added = messages.lines(application.added)
        read = (*application.headers, *READ_HEADERS, *(origins.HEADERS if hosts is not None else ()))
        self.headers: Mapping[bytes, str] = {name.encode(): name for name in read}
        self.unsent = 0
        """Bytes that wait for all clients to read."""
        self.received = 0
        """Bytes of bodies whose rest is awaited, of all clients."""


class Connection(asyncio.Protocol):
    def __init__(self, served: Served, connections: set["Connection"] | None = None) -> None:
        """`connections` has it while it is connected."""
        self.is_connected = self.is_aborted = False
        self._served = served
        self._limits = served.limits
        self._read_headers = served.headers
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[Request] = deque()
        self._waiting_bytes = 0
        self._out: deque[bytes] = deque()
        self._sent = self._dropped = 0
        self._blocked = self._closes = self._performing = False
        self._pending: Pending | None = None
        self._request: Request | None = None
        self.unsent = 0
        """Bytes that wait for the client to read."""
        self._window: tuple[float, int] | None = None
        """Since when bytes wait, and how many had been sent."""
        self._phase = NEW
        self._number = self._numbered = self._head_bytes = 0
        self._body, self._size = list[bytes](), 0
        self.since = self._loop.time()
        """When the phase began."""

    @property
    def is_answered(self) -> bool:
        """Whether the client waits for the server, not the server for the client."""
        return self._phase >= ANSWERING or bool(self._out)

    def sweep(self, now: float) -> None:
        """Disconnects a client whose time is up."""
        if self._out:
            self.since = now
            if not self._reads(now):
                LOG.debug("Client does not read its response: disconnected")
                self._transport.abort()
            return
        self._window = None
        if now - self.since > self._seconds():
            self._transport.abort()

    def stop(self) -> None:
        """Ends a stream in order and closes the connection."""
        self._closes = True
        if self._pending is not None:
            self._pending.end()
        self._transport.close()

    def write(self, data: bytes) -> None:
        """Sends a part of a pending response. A client that leaves too much unread is disconnected."""
        self._out.append(data)
        self._count(len(data))
        self._flush()
        if self.unsent > self._limits.unsent_bytes:
            self.abort()
        elif self._served.unsent > self._limits.all_unsent_bytes:
            self._displace()

    def abort(self) -> None:
        # The transport tells of it in the next turn of the loop; until then the bytes must not count any more.
        self.is_aborted = True
        self._out.clear()
        self._count(-self.unsent)
        self._transport.abort()

    @property
    def unread_since(self) -> float:
        """Since when bytes wait for the client, as far as a sweep has noticed."""
        return self._window[0] if self._window is not None else float("inf")

    def finish(self, response: Response | None = None) -> None:
        """Ends a pending response; `response` is sent where nothing was written yet."""
        self._pending = None
        if response is not None:
            self._respond(self._request, response)
        if not self._performing:
            self._perform_waiting()
            self._settle()

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(PIECE)
        self.is_connected = True
        self.since = self._loop.time()
        if self._connections is not None:
            self._connections.add(self)

    def connection_lost(self, problem: Exception | None) -> None:
        self.is_connected = False
        if self._connections is not None:
            self._connections.discard(self)
        pending, self._pending = self._pending, None
        self._waiting.clear()
        self._out.clear()
        self._count(-self.unsent)
        self._drop_body()
        if pending is not None:
            pending.close()

    def data_received(self, data: bytes) -> None:
        if self._closes:
            return self._drop(len(data))
        number, phase = self._number, self._phase
        try:
            # The parser keeps what it has not reported yet, so it gets no more at once than a head may have.
            step = self._limits.head_bytes // 2
            if len(data) <= step:
                self._feed(data)
            else:
                for start in range(0, len(data), step):
                    self._feed(data[start : start + step])
        except httptools.HttpParserUpgrade:
            # The client asked for another protocol: its request was answered, and the rest is not HTTP.
            self._closes = True
        except httptools.HttpParserError as problem:
            self._not_parsed(problem)
        except Refused as refused:
            self._refuse(refused.code, refused.why)
        if number != self._number or phase != self._phase:
            self.since = self._loop.time()
        self._settle()

    def _drop(self, size: int) -> None:
        """For a client that still sends after its last request, or after it was refused."""
        self._dropped += size
        if self._dropped > self._limits.waiting_bytes:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._blocked = True
        if self._pending is None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._blocked = False
        self._flush()
        if not self._blocked:
            self._perform_waiting()
            if not self._blocked:
                self._transport.resume_reading()
            self._settle()

    # Callbacks of httptools.

    def on_message_begin(self) -> None:
        self._number += 1
        self._phase = HEAD
        self._target = b""
        self._headers: dict[str, str] = {}
        self._drop_body()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        known = self._read_headers.get(name.lower())
        if known is not None:
            self._headers[known] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        headers = self._headers
        hosts = self._served.hosts
        if hosts is not None and (refused := hosts.refusal(headers)) is not None:
            raise Refused(*refused)
        if "content-length" in headers and int(headers["content-length"]) > self._limits.body_bytes:
            raise self._too_large()
        self._phase = BODY
        if "expect" in headers and headers["expect"].lower() == "100-continue" and not self.is_answered:
            self._transport.write(CONTINUE)

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        self._served.received += len(body)
        if self._size > self._limits.body_bytes:
            raise self._too_large()
        if self._served.received > self._limits.all_body_bytes and self._served.received > self._size:
            raise Refused(503, f"Requests of all clients exceed {self._limits.all_body_bytes} bytes; try again")
        self._body.append(body)

    def _drop_body(self) -> None:
        self._served.received -= self._size
        self._body, self._size = [], 0

    def on_message_complete(self) -> None:
        is_free = self._pending is None and not self._waiting
        self._phase = IDLE if is_free else ANSWERING
        if self._closes:
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._drop_body()
        self._closes = not (self._limits.idle_seconds and self._parser.should_keep_alive())
        request = Request(self._parser.get_method().decode(), self._target, self._headers, body)
        if is_free and not self._blocked:
            self._perform(request)
        else:
            self._wait(request)

    def _wait(self, request: Request) -> None:
        self._waiting.append(request)
        self._waiting_bytes += len(request.body)
        if len(self._waiting) > self._limits.waiting_requests or self._waiting_bytes > self._limits.waiting_bytes:
            self._transport.abort()

    def _feed(self, data: bytes) -> None:
        self._parser.feed_data(data)
        if self._phase != HEAD:
            return
        if self._numbered != self._number:
            self._numbered, self._head_bytes = self._number, 0
        self._head_bytes += len(data)
        if self._head_bytes >= self._limits.head_bytes:
            raise Refused(431, f"Request header fields too large: limit is {self._limits.head_bytes}")

    def _not_parsed(self, problem: httptools.HttpParserError) -> None:
        cause = problem.__context__
        if isinstance(cause, Refused):
            self._refuse(cause.code, cause.why)
        elif cause is not None:
            LOG.error("Failed to answer a request", exc_info=cause)
            self._transport.abort()
        elif not self._closes:
            self._refuse(400, "the request is not HTTP/1.1")

    def _too_large(self) -> Refused:
        return Refused(413, f"Request entity too large: limit is {self._limits.body_bytes}")

    def _refuse(self, code: int, why: str) -> None:
        """Responds with an error and closes the connection, because the following bytes may not be a request."""
        if self._pending is not None or self._waiting:
            # The responses before it have not ended.
            return self._transport.abort()
        self._closes = True
        self._drop_body()
        self._respond(None, self._served.application.refusal(code, why))
        self._flush()
        self._phase = CLOSING
        # Closing at once would discard the response of a client that is still sending.
        if not self._out and self._transport.can_write_eof():
            self._transport.write_eof()
        self._loop.call_later(self._limits.linger_seconds, self._transport.abort)

    def _perform_waiting(self) -> None:
        self._performing = True
        while self._waiting and self._pending is None and not self._blocked:
            request = self._waiting.popleft()
            self._waiting_bytes -= len(request.body)
            self._perform(request)
        self._performing = False

    def _perform(self, request: Request) -> None:
        found = self._served.application.answer(request)
        if isinstance(found, Response):
            return self._respond(request, found)
        self._flush()
        self._request, self._pending, self._phase = request, found, ANSWERING
        found.open(self)

    def _respond(self, request: Request | None, response: Response) -> None:
        added = self._served.added
        if self._closes and not self._waiting:
            added += CLOSE
        written = messages.head(response, added)
        if request is None or request.method != "HEAD":
            written += response.body
        self._out.append(written)
        self._count(len(written))
        if self.unsent > PIECE:
            self._flush()
            if self._served.unsent > self._limits.all_unsent_bytes:
                self._displace()

    def _count(self, more: int) -> None:
        self.unsent += more
        self._served.unsent += more

    def _displace(self) -> None:
        """Disconnects the client that has left its response unread for longest; of several, the one with the most
        unsent bytes."""
        unread = [each for each in self._connections or () if each.unsent and not each.is_aborted]
        if len(unread) > 1:
            LOG.debug("Clients leave too many bytes unread: one disconnected")
            min(unread, key=lambda each: (each.unread_since, -each.unsent)).abort()

    def _flush(self) -> None:
        """Passes to the transport what it takes."""
        if self.unsent <= PIECE and not self._blocked:
            if self._out:
                self._transport.write(self._out[0] if len(self._out) == 1 else b"".join(self._out))
                self._sent += self.unsent
                self._count(-self.unsent)
                self._out.clear()
            return
        while self._out and not self._blocked:
            data = self._out.popleft()
            if len(data) > PIECE:
                # The whole rest is kept as one view, so that a large response is not copied again for every piece.
                rest = memoryview(data)
                self._out.appendleft(cast(bytes, rest[PIECE:]))
                data = cast(bytes, rest[:PIECE])
            self._sent += len(data)
            self._count(-len(data))
            self._transport.write(data)

    def _settle(self) -> None:
        """After bytes came or went: sends what is ready, and closes after the last response."""
        if self._out:
            self._flush()
        if self._pending is not None or self._waiting:
            return
        if self._phase == ANSWERING:
            self._phase, self.since = IDLE, self._loop.time()
        if self._closes and not self._out and self._phase != CLOSING:
            self._phase, self.since = CLOSING, self._loop.time()
            self._transport.close()

    def _seconds(self) -> float:
        limits = self._limits
        if self._phase == ANSWERING:
            return float("inf")
        if self._phase == CLOSING:
            return limits.read_seconds
        if self._phase == IDLE:
            return limits.idle_seconds
        return limits.body_seconds if self._phase == BODY else limits.head_seconds

    def _reads(self, now: float) -> bool:
        """Whether the client reads fast enough what waits for it."""
        if self._window is None:
            self._window = (now, self._sent)
        began, sent = self._window
        if now - began < self._limits.read_seconds:
            return True
        self._window = (now, self._sent)
        return self._sent - sent >= self._limits.read_rate * self._limits.read_seconds
