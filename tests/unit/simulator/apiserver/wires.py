"""Raw bytes to our server and back, for tests of what HTTP itself asks for."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from numalign.simulator.apiserver.http import server
from numalign.simulator.apiserver.http.server import LOOPBACK, Address, ListenOptions
from numalign.simulator.apiserver.verbs.api import Api
from tests.unit.simulator.apiserver import doors


def run(check: Callable[[Api, Address], Coroutine[Any, Any, Any]], listening: ListenOptions = LOOPBACK) -> Any:
    async def ready() -> Any:
        api = doors.door()
        async with server.serve(api, listening) as address:
            return await asyncio.wait_for(check(api, address), 20)

    return asyncio.run(ready())


def talk(
    said: bytes, answers: int = 1, listening: ListenOptions = LOOPBACK, pieces: int = 1
) -> list[tuple[int, bytes]]:
    """Codes and bodies of so many answers to these bytes, sent in so many pieces."""

    async def check(api: Api, address: Address) -> list[tuple[int, bytes]]:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        size = -(-len(said) // pieces)
        for start in range(0, len(said), size):
            writer.write(said[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)
        found = [await answer(reader) for _ in range(answers)]
        writer.close()
        return found

    found: list[tuple[int, bytes]] = run(check, listening)
    return found


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await headers(reader)
    code = int(head.split(b" ", 2)[1])
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return code, await reader.readexactly(int(length or 0))


async def headers(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return head if not head.startswith(b"HTTP/1.1 100") else await headers(reader)


async def chunk(reader: asyncio.StreamReader) -> bytes:
    """One event of a watch; nothing at its end."""
    size = int(await reader.readline(), 16)
    return (await reader.readexactly(size + 2))[:-2]


def get(path: str, *more: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *more, "", ""]).encode()


def post(path: str, body: bytes, *more: str) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body
