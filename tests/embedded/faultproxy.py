"""A proxy between our client and an API server that misbehaves by chance, from a seed.

Tests hand `Proxy.dial` to a client where there are no sockets, or enter `Proxy.served` where there are. What can befall
a call is in `CALLS`, what can befall a watch on its way in `STREAMS`. It never reorders and never invents an object:
what was said before may be said again, from some event up to the last. `storm` is bad weather, `calm` ends it."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final, cast

import httptools
from msgspec import Struct

from numalign.kube.lists import Lines
from numalign.kube.transport.connection import Broken, Connection, IncomingResponse, Response
from numalign.kube.transport.dial import CannotConnect, Dial, Server
from numalign.simulator import pipes

NOT_KEPT: Final = {"content-length", "transfer-encoding", "connection"}
HANGS_UP: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: a socket closed with it sends a reset."""


class Weather(Struct, frozen=True, kw_only=True):
    """How often what happens, and for how long; `silence` is when a connection that fell silent is cut after all."""

    calls: float = 0.25
    bindings: float = 0.25
    """Of those calls that bind a pod."""
    events: float = 0.1
    outages: float = 90.0
    """Seconds between the moments at which every connection is lost, on average."""
    outage: float = 8.0
    """Seconds for which nobody can connect after that, at most."""
    delay: float = 40.0
    silence: float = float("inf")


class Proxy:
    def __init__(self, server: Server, dial: Dial, chance: Random, weather: Weather) -> None:
        self.chance = chance
        self.weather = weather
        # In order, so that a seed tells the same story every time.
        self.fronts: dict[Front, None] = {}
        self.tasks: dict[asyncio.Task[None], None] = {}
        self.met: dict[str, int] = {}
        self.is_calm, self.is_out = True, False
        self.denies = False
        """Every binding, as an admission webhook may."""
        self._server = server
        self._upstream = dial
        self.dial: Dial = pipes.dial(lambda: None if self.is_out else self.front)

    def front(self) -> Front:
        return Front(self)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[int]:
        """On a port of the loopback."""
        server = await asyncio.get_running_loop().create_server(self.front, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            await self.close()

    async def storm(self) -> None:
        """Bad weather with outages, until it is cancelled."""
        self.is_calm = False
        while True:
            await asyncio.sleep(self.chance.expovariate(1 / self.weather.outages))
            self.is_out = True
            self._count("outage")
            for front in list(self.fronts):
                front.reset()
            await asyncio.sleep(self.chance.uniform(0, self.weather.outage))
            self.is_out = False

    def calm(self) -> None:
        """From now on everything goes through; what fell silent before stays so."""
        self.is_calm, self.is_out, self.denies = True, False, False

    async def close(self) -> None:
        for front in list(self.fronts):
            front.reset()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def fault(self, kinds: dict[str, Any], often: float) -> str:
        """The name of one of them, or none."""
        name = "" if self.is_calm or self.chance.random() >= often else self.chance.choice(list(kinds))
        return self._count(name)

    def _count(self, name: str) -> str:
        self.met[name] = self.met.get(name, 0) + 1
        return name

    async def connected(self) -> Connection:
        return await self._upstream(self._server, None, 10.0)


class Front(asyncio.Protocol):
    """One connection of the client; one request at a time, as our client sends them."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self._parser = httptools.HttpRequestParser(self)
        self._raw = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.proxy.fronts[self] = None
        if self.proxy.is_out:
            self.reset()

    def connection_lost(self, problem: Exception | None) -> None:
        self.proxy.fronts.pop(self, None)

    def data_received(self, data: bytes) -> None:
        self._raw += data
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        raw, self._raw = self._raw, b""
        task = asyncio.ensure_future(self._handle(raw))
        self.proxy.tasks[task] = None
        task.add_done_callback(lambda ended: self.proxy.tasks.pop(ended, None))

    def reset(self) -> None:
        end = self.transport.get_extra_info("socket")
        if end is not None:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HANGS_UP)
        self.transport.abort()

    async def silent(self) -> None:
        """For ever, or until the weather says that it is cut."""
        if self.proxy.weather.silence < float("inf"):
            await asyncio.sleep(self.proxy.weather.silence)
            self.reset()

    async def _handle(self, raw: bytes) -> None:
        proxy, binds = self.proxy, b"/binding " in raw[: raw.index(b"\r\n")]
        fault = proxy.fault(CALLS, proxy.weather.bindings if binds else proxy.weather.calls)
        try:
            if binds and proxy.denies:
                await said(403, "Forbidden")(self, raw)
            else:
                await (CALLS[fault](self, raw) if fault else self.passed(raw))
        except (Broken, CannotConnect):
            self.reset()

    async def passed(self, raw: bytes) -> None:
        connection = await self.proxy.connected()
        try:
            answer = connection.send(raw)
            await answer.started()
            if answer.headers.get("transfer-encoding") == "chunked":
                await _Following(self, answer).run()
            else:
                self.transport.write(written(await answer.whole()))
        finally:
            connection.close()

    async def asked(self, raw: bytes) -> Response:
        """What the server says; of a watch, only that it began."""
        connection = await self.proxy.connected()
        try:
            answer = connection.send(raw)
            await answer.started()
            watch = answer.headers.get("transfer-encoding") == "chunked"
            return Response(answer.status, answer.headers, b"") if watch else await answer.whole()
        finally:
            connection.close()


class _Following:
    """A watch on its way, event by event."""

    def __init__(self, front: Front, answer: IncomingResponse) -> None:
        self._front = front
        self._answer = answer
        self._said: list[bytes] = []

    async def run(self) -> None:
        proxy, transport, split = self._front.proxy, self._front.transport, Lines()
        transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        while piece := await self._answer.read():
            for line in split.feed(piece):
                fault = proxy.fault(STREAMS, proxy.weather.events)
                if transport.is_closing() or (fault and not await STREAMS[fault](self, line)):
                    return
                if not fault:
                    self.say(line)
        transport.write(b"0\r\n\r\n")

    def say(self, line: bytes) -> None:
        self._said.append(line)
        self._front.transport.write(chunk(line))

    async def reset(self, line: bytes) -> bool:
        self._front.reset()
        return False

    async def cut(self, line: bytes) -> bool:
        """After a part of the event."""
        whole = chunk(line)
        self._front.transport.write(whole[: self._front.proxy.chance.randrange(len(whole))])
        self._front.transport.close()
        return False

    async def silence(self, line: bytes) -> bool:
        await self._front.silent()
        return False

    async def hesitation(self, line: bytes) -> bool:
        weather = self._front.proxy.weather
        await asyncio.sleep(self._front.proxy.chance.uniform(0, min(weather.delay, weather.silence)))
        self.say(line)
        return True

    async def repeat(self, line: bytes) -> bool:
        """From some event on, up to the last."""
        self.say(line)
        for again in self._said[self._front.proxy.chance.randrange(len(self._said)) :]:
            self._front.transport.write(chunk(again))
        return True

    async def end(self, line: bytes) -> bool:
        """In order, as when the time is up."""
        self._front.transport.write(b"0\r\n\r\n")
        return False

    async def gone(self, line: bytes) -> bool:
        return self._error(410, "Expired")

    async def failure(self, line: bytes) -> bool:
        return self._error(500, "InternalError")

    def _error(self, code: int, reason: str) -> bool:
        event = {"type": "ERROR", "object": status(code, reason)}
        self._front.transport.write(chunk(json.dumps(event).encode()) + b"0\r\n\r\n")
        return False


def status(code: int, reason: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}


def chunk(line: bytes) -> bytes:
    return b"%x\r\n%b\n\r\n" % (len(line) + 1, line)


def written(response: Response) -> bytes:
    kept = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items() if name not in NOT_KEPT)
    head = f"HTTP/1.1 {response.status} Told\r\n{kept}Content-Length: {len(response.body)}\r\n\r\n"
    return head.encode() + response.body


Fault = Callable[[Front, bytes], Awaitable[None]]


def said(code: int, reason: str, headers: dict[str, str] | None = None, *, acted: bool = False) -> Fault:
    """This answer instead of the server's, which may or may not have got the call."""

    async def fault(front: Front, raw: bytes) -> None:
        if acted:
            await front.asked(raw)
        front.transport.write(written(Response(code, headers or {}, json.dumps(status(code, reason)).encode())))

    return fault


async def throttled(front: Front, raw: bytes) -> None:
    seconds = str(front.proxy.chance.choice((1, 1, 5, 20)))
    await said(429, "TooManyRequests", {"Retry-After": seconds})(front, raw)


async def reset(front: Front, raw: bytes) -> None:
    front.reset()


async def lost(front: Front, raw: bytes) -> None:
    """The server acts, and nobody hears of it."""
    await front.asked(raw)
    front.reset()


async def cut(front: Front, raw: bytes) -> None:
    whole = written(await front.asked(raw))
    front.transport.write(whole[: front.proxy.chance.randrange(len(whole))])
    front.transport.close()


async def silence(front: Front, raw: bytes) -> None:
    if front.proxy.chance.random() < 0.5:
        await front.asked(raw)
    await front.silent()


async def twice(front: Front, raw: bytes) -> None:
    """As where something between us and the server sends it again by itself."""
    await front.asked(raw)
    await front.passed(raw)


async def late(front: Front, raw: bytes) -> None:
    """It arrives long after, perhaps when the client has given it up."""
    weather = front.proxy.weather
    await asyncio.sleep(front.proxy.chance.uniform(0, min(weather.delay, weather.silence)))
    await front.passed(raw)


CALLS: Final[dict[str, Fault]] = {
    "reset": reset,
    "lost": lost,
    "cut": cut,
    "silence": silence,
    "late": late,
    "throttled": throttled,
    "failed": said(500, "InternalError"),
    "failed and acted": said(500, "InternalError", acted=True),
    "unavailable": said(503, "ServiceUnavailable"),
    "expired": said(410, "Expired"),
    "conflict": said(409, "Conflict"),
    "conflict and acted": said(409, "Conflict", acted=True),
    "twice": twice,
}
STREAMS: Final[dict[str, Callable[[_Following, bytes], Awaitable[bool]]]] = {
    "stream reset": _Following.reset,
    "stream cut": _Following.cut,
    "stream silence": _Following.silence,
    "stream hesitation": _Following.hesitation,
    "stream repeat": _Following.repeat,
    "stream end": _Following.end,
    "stream gone": _Following.gone,
    "stream failure": _Following.failure,
}
"""Each says whether the stream goes on."""
