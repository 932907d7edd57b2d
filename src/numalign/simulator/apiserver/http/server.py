"""The door over HTTP: an address on which clients find the API that `Api` is inside the process.

Who starts a cluster for kubectl enters `serve`. Plain HTTP unless certificates are given, everybody is welcome unless a
token is, and only this machine can connect unless told otherwise."""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from numalign.simulator.apiserver.http.certificates import Certificates
from numalign.simulator.apiserver.http.connections import Connection
from numalign.simulator.apiserver.http.routes import Router
from numalign.simulator.apiserver.verbs.api import Api


class ListenOptions(Struct, frozen=True):
    """Where and how to listen. `anywhere` has to be said to be heard by other machines."""

    host: str = "127.0.0.1"
    port: int = 0
    certificates: Certificates | None = None
    token: str = ""
    anywhere: bool = False


class Address(Struct, frozen=True):
    host: str
    port: int
    secure: bool

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"


LOOPBACK = ListenOptions()


@asynccontextmanager
async def serve(api: Api, listening: ListenOptions = LOOPBACK) -> AsyncIterator[Address]:
    """Serves until the block is left; watches end in order then."""
    if not (listening.anywhere or is_loopback(listening.host)):
        raise ValueError(f"{listening.host} can be reached from other machines; say so with `anywhere` if it is meant")
    serving, connections = Router(api.state), set[Connection]()
    context = listening.certificates.context() if listening.certificates is not None else None
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(serving, connections, listening.token), listening.host, listening.port, ssl=context
    )
    try:
        port = server.sockets[0].getsockname()[1]
        yield Address(listening.host, port, secure=context is not None)
    finally:
        server.close()
        for connection in list(connections):
            connection.stop()
        await server.wait_closed()


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" and socket.gethostbyname(host).startswith("127.")
