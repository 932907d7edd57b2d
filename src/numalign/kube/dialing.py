"""From a server's address to an open connection: TCP with keepalive, through a proxy if there is one, then TLS.

`transport` calls `dial` whenever no kept connection is left. Every step is bounded by the time the caller gives."""

import asyncio
import os
import socket
import ssl
from typing import Final

from numalign.kube.exchange import Connection
from numalign.kube.server import Proxy, Server

# A peer that vanished without a word is found out after about a minute (kube-scheduler spec 7.3, half-open).
KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
LONGEST_REPLY: Final = 16 << 10


class CannotConnect(Exception):
    """Nothing was sent to the server; the text says which step failed."""


async def dial(server: Server, context: ssl.SSLContext | None, seconds: float) -> Connection:
    try:
        async with asyncio.timeout(seconds):
            return await _dialled(server, context)
    except TimeoutError:
        raise CannotConnect(f"no connection to {server.authority} within {seconds:g} s") from None
    except ssl.SSLCertVerificationError as problem:
        raise CannotConnect(f"{server.authority} is not trusted: {problem.verify_message}") from None
    except OSError as problem:
        raise CannotConnect(f"no connection to {server.authority}: {_why(problem)}") from None


async def _dialled(server: Server, context: ssl.SSLContext | None) -> Connection:
    loop = asyncio.get_running_loop()
    name = (server.tls_name or server.host) if context else None
    if server.proxy is None:
        transport, connection = await loop.create_connection(
            Connection, server.host, server.port, ssl=context, server_hostname=name
        )
    else:
        transport = await _tunnel(server.proxy, server.authority)
        connection = Connection()
        transport.set_protocol(connection)
        connection.connection_made(transport)
        if context is not None:
            await _secure(transport, connection, context, name)
    _keep_alive(transport)
    return connection


async def _secure(
    transport: asyncio.Transport, connection: Connection, context: ssl.SSLContext, name: str | None
) -> None:
    """TLS on a connection that is open already; asyncio leaves it to us to clean up and to tell the protocol."""
    try:
        secured = await asyncio.get_running_loop().start_tls(transport, connection, context, server_hostname=name)
    except BaseException:
        transport.abort()
        raise
    assert secured is not None
    connection.connection_made(secured)


async def _tunnel(proxy: Proxy, authority: str) -> asyncio.Transport:
    loop = asyncio.get_running_loop()
    transport, tunnel = await loop.create_connection(_Tunnel, proxy.host, proxy.port)
    login = f"Proxy-Authorization: Basic {proxy.credentials}\r\n" if proxy.credentials else ""
    transport.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n".encode())
    try:
        status = await tunnel.reply
    except BaseException:
        transport.abort()
        raise
    if status != "200":
        transport.abort()
        raise CannotConnect(f"the proxy {proxy.host}:{proxy.port} refused the way to {authority}: {status}")
    return transport


class _Tunnel(asyncio.Protocol):
    """Reads a proxy's reply to CONNECT up to its empty line; what follows belongs to the server."""

    def __init__(self) -> None:
        self.reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        if b"\r\n\r\n" in self._received and not self.reply.done():
            words = self._received.split(b"\r\n", 1)[0].split()
            self.reply.set_result(words[1].decode("latin-1") if len(words) > 1 else "nothing that is HTTP")
        elif len(self._received) > LONGEST_REPLY:
            self._fail("the proxy's reply does not end")

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("the proxy closed the connection")

    def _fail(self, why: str) -> None:
        if not self.reply.done():
            self.reply.set_exception(ConnectionError(why))


def _keep_alive(transport: asyncio.BaseTransport) -> None:
    end = transport.get_extra_info("socket")
    if end is None:
        return
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        # Not every system has them by these names; its own defaults then stay.
        if hasattr(socket, name):
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _why(problem: OSError) -> str:
    # asyncio writes the address into the text, where it has been said already; names that do not resolve have codes
    # of their own.
    if problem.errno and not isinstance(problem, socket.gaierror):
        return os.strerror(problem.errno)
    return problem.strerror or str(problem) or type(problem).__name__
