"""Listens for clients and holds their connections to the limits of the server.

`process.serve` and the embedded API server enter `listening`. A connection counts from the moment it is accepted,
before TLS begins. Clients whose time is up are found by a sweep, so that a request costs no timer."""

import asyncio
import errno
import ipaddress
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from numalign.process.http.connection import Connection, Served

LOG: Final = logging.getLogger(__name__)
BACKLOG: Final = 128
EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
PAUSE: Final = 1.0
"""Seconds to wait where the machine has no resources for another connection, and for connections to close."""
LOOK: Final = 0.01


@asynccontextmanager
async def listening(served: Served, address: tuple[str, int], tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serves until the block ends; yields the port, also where 0 was asked for. OSError where the port is taken."""
    sockets = await _bound(*address)
    listener = Listener(served, sockets, tls)
    try:
        listener.start()
        yield int(sockets[0].getsockname()[1])
    finally:
        await listener.stop()


async def _bound(host: str, port: int) -> list[socket.socket]:
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, place in dict.fromkeys(found):
            bound = socket.create_server((place[0], place[1]), family=family, backlog=BACKLOG)
            bound.setblocking(False)
            sockets.append(bound)
    except OSError:
        for bound in sockets:
            bound.close()
        raise
    return sockets


class Listener:
    def __init__(self, served: Served, sockets: list[socket.socket], tls: ssl.SSLContext | None) -> None:
        self._served = served
        self._sockets = sockets
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._arriving: dict[Connection, asyncio.Task[None]] = {}
        """Accepted, and not connected before the TLS handshake is done."""
        self._connected: set[Connection] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    def start(self) -> None:
        for bound in self._sockets:
            self._loop.add_reader(bound, self._accept, bound)

    async def stop(self) -> None:
        sockets, self._sockets = self._sockets, []
        for bound in sockets:
            self._loop.remove_reader(bound)
            bound.close()
        for task in self._arriving.values():
            task.cancel()
        for connection in list(self._connected):
            connection.stop()
        until = self._loop.time() + PAUSE
        while self._connected and self._loop.time() < until:
            await asyncio.sleep(LOOK)
        for connection in list(self._connected):
            connection.abort()
        if self._sweeping is not None:
            self._sweeping.cancel()

    def _accept(self, bound: socket.socket) -> None:
        for _ in range(BACKLOG):
            try:
                accepted, _ = bound.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:
                if problem.errno not in EXHAUSTED:
                    raise
                LOG.warning("Cannot accept a connection, next attempt in %g s: %s", PAUSE, problem)
                self._loop.remove_reader(bound)
                self._loop.call_later(PAUSE, self._resume, bound)
                return
            self._admit(accepted)

    def _resume(self, bound: socket.socket) -> None:
        if bound in self._sockets:
            self._loop.add_reader(bound, self._accept, bound)

    def _admit(self, accepted: socket.socket) -> None:
        every = self._connected.union(self._arriving)
        if len(every) >= self._served.limits.connections and not self._displace(every):
            return accepted.close()
        accepted.setblocking(False)
        connection = Connection(self._served, self._connected)
        connecting = self._loop.create_task(self._connect(connection, accepted))
        connecting.add_done_callback(lambda _: self._arrived(connection, accepted))
        self._arriving[connection] = connecting
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(self._served.limits.tick, self._sweep)

    def _displace(self, every: set[Connection]) -> bool:
        """Disconnects the client that the server has waited for longest, if it waits for any."""
        waiting = [connection for connection in every if not connection.is_answered]
        if not waiting:
            return False
        longest = min(waiting, key=lambda connection: connection.since)
        if longest.is_connected:
            self._connected.discard(longest)
            longest.abort()
        else:
            self._arriving.pop(longest).cancel()
        return True

    async def _connect(self, connection: Connection, accepted: socket.socket) -> None:
        shaking = self._served.limits.head_seconds if self._tls is not None else None
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._tls, ssl_handshake_timeout=shaking
            )
        except OSError as problem:
            LOG.debug("Client did not connect: %s", problem)

    def _arrived(self, connection: Connection, accepted: socket.socket) -> None:
        self._arriving.pop(connection, None)
        if not connection.is_connected:
            accepted.close()

    def _sweep(self) -> None:
        now = self._loop.time()
        for connection in list(self._connected):
            connection.sweep(now)
        left = self._connected or self._arriving
        self._sweeping = self._loop.call_later(self._served.limits.tick, self._sweep) if left else None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" and socket.gethostbyname(host).startswith("127.")
