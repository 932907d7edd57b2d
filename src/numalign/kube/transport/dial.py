"""From a server's address to an open connection: TCP with keepalive, through a proxy if there is one, then TLS.

`transport` calls `dial` whenever no kept connection is left. Every step is bounded by the time the caller gives."""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from numalign.kube.transport import proxy as tunnels
from numalign.kube.transport.exchange import Connection
from numalign.kube.transport.server import Proxy, Server

# Keepalive detects a half-open connection after about a minute (kube-scheduler spec 7.3).
KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


Dial = Callable[[Server, ssl.SSLContext | None, float], Awaitable[Connection]]
"""Connects to the server, with TLS or without, within a number of seconds."""


class CannotConnect(Exception):
    """Nothing was sent to the server; the text names the step that failed."""


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
        transport = await _through(server.proxy, server)
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
    """Starts TLS on an open connection; asyncio leaves cleaning up and the protocol's callback to the caller."""
    try:
        secured = await asyncio.get_running_loop().start_tls(transport, connection, context, server_hostname=name)
    except BaseException:
        transport.abort()
        raise
    assert secured is not None
    connection.connection_made(secured)


async def _through(proxy: Proxy, server: Server) -> asyncio.Transport:
    # A proxy is verified with the system's trust store: the cluster's authority is for the cluster alone.
    context = ssl.create_default_context() if proxy.scheme == "https" else None
    loop = asyncio.get_running_loop()
    transport, dialogue = await loop.create_connection(tunnels.Dialogue, proxy.host, proxy.port, ssl=context)
    try:
        await tunnels.opened(proxy, server, transport, dialogue)
    except tunnels.Refused as refused:
        place = f"{proxy.host}:{proxy.port}"
        raise CannotConnect(f"the proxy {place} refused a tunnel to {server.authority}: {refused}") from None
    return transport


def _keep_alive(transport: asyncio.BaseTransport) -> None:
    end = transport.get_extra_info("socket")
    if end is None:
        return
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        # Not every system has these options; then its defaults apply.
        if hasattr(socket, name):
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _why(problem: OSError) -> str:
    # asyncio repeats the address in its message; names that do not resolve have error codes of their own.
    if problem.errno and not isinstance(problem, socket.gaierror):
        return os.strerror(problem.errno)
    return problem.strerror or str(problem) or type(problem).__name__
