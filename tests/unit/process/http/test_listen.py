"""How many clients a server has, and that those who ask are served beside any number of those who do not."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from numalign.process import certificates, serve
from numalign.process.http import listen
from numalign.process.http.connection import Served
from numalign.process.serve import Page, PageResponse, Pages
from tests.unit.process.http.clients import LIMITS, Echo, get

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
TLS = [False, True]


def server_context() -> ssl.SSLContext:
    return certificates.self_signed_context(("localhost",), datetime.now(UTC))


def client_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def connected(port: int) -> Streams:
    return await asyncio.open_connection("127.0.0.1", port)


async def asked(port: int, path: str = "/", *, tls: bool = False) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context() if tls else None)
    try:
        writer.write(get(path, "Connection: close"))
        return await reader.read()
    finally:
        writer.close()


async def is_cut(streams: Streams) -> bool:
    reader, writer = streams
    try:
        return await reader.read(1) == b""
    except ConnectionResetError:
        return True
    finally:
        writer.close()


def run(check: Callable[[int], Awaitable[Any]], *, tls: bool = False, head_seconds: float = 1000.0) -> None:
    async def serving() -> None:
        served = Served(Echo(), structs.replace(LIMITS, head_seconds=head_seconds))
        async with listen.listening(served, ("127.0.0.1", 0), server_context() if tls else None) as port:
            await asyncio.wait_for(check(port), 20)

    asyncio.run(serving())


@pytest.mark.parametrize("tls", TLS)
def test_clients_that_ask_for_nothing_give_way(tls: bool) -> None:
    async def check(port: int) -> None:
        # Those of the TLS server never begin the handshake.
        silent = [await connected(port) for _ in range(50)]
        assert (await asked(port, tls=tls)).startswith(b"HTTP/1.1 200 ")
        cut = await asyncio.gather(*map(is_cut, silent[: 50 - LIMITS.connections]))
        assert all(cut)
        for _, writer in silent:
            writer.close()

    run(check, tls=tls)


def test_clients_that_are_being_answered_do_not() -> None:
    async def check(port: int) -> None:
        waiting = [await connected(port) for _ in range(LIMITS.connections)]
        for _, writer in waiting:
            writer.write(get("/later"))
            await asyncio.sleep(0.01)
        assert await is_cut(await connected(port))
        for _, writer in waiting:
            writer.close()

    run(check)


def test_a_connection_that_ended_makes_room() -> None:
    async def check(port: int) -> None:
        for _ in range(5 * LIMITS.connections):
            assert (await asked(port)).endswith(b"\r\n\r\n/")

    run(check)


@pytest.mark.parametrize("tls", TLS)
def test_a_silent_client_is_disconnected_in_time(tls: bool) -> None:
    async def check(port: int) -> None:
        assert await is_cut(await connected(port))

    run(check, tls=tls, head_seconds=0.05)


def test_the_server_stops_although_a_client_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "PAUSE", 0.05)

    async def check() -> None:
        async with listen.listening(Served(Echo(), LIMITS), ("127.0.0.1", 0)) as port:
            reader, writer = await connected(port)
            writer.write(get("/size/20000000"))
            await reader.readexactly(1)
        writer.transport.abort()

    asyncio.run(check())


@pytest.mark.parametrize("tls", TLS)
def test_a_page_is_not_kept_for_a_client_that_does_not_read(tls: bool) -> None:
    """It has the only connection, and another client gets it after a while."""
    limits = structs.replace(serve.LIMITS, connections=1, read_seconds=0.05)
    pages: dict[str, Page] = {
        "/dump": lambda asked: PageResponse(b"x" * 20_000_000),
        "/small": lambda asked: PageResponse("ok"),
    }

    async def check() -> None:
        context = server_context() if tls else None
        async with serve.serving(Pages(pages), ("127.0.0.1", 0), context, limits) as port:
            greedy = await asyncio.open_connection("127.0.0.1", port, ssl=client_context() if tls else None, limit=1000)
            greedy[1].write(get("/dump"))
            await greedy[0].readexactly(1)
            while not await _is_served(port, tls):
                await asyncio.sleep(0.01)
            greedy[1].transport.abort()

    async def soon() -> None:
        await asyncio.wait_for(check(), 20)

    asyncio.run(soon())


async def _is_served(port: int, tls: bool) -> bool:
    try:
        return (await asked(port, "/small", tls=tls)).endswith(b"ok")
    except OSError:
        return False
