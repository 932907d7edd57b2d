"""Asking a kubelet for its configuration over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from numalign.agent.sources import kubeletconfig
from numalign.api import errors
from numalign.kube.clock import SystemClock
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.dial import Server
from numalign.kube.transport.sender import Sender


@contextlib.asynccontextmanager
async def answering(status: str, body: bytes) -> AsyncIterator[tuple[Sender, list[str]]]:
    """An API server that gives this answer, and what it was asked for."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode())
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        access = Access(Server("127.0.0.1", port), Login(auth.unchanging(Identity()), SystemClock()))
        sender = Sender(access, SystemClock())
        yield sender, asked
        sender.close()


def test_the_api_server_is_asked_for_the_node() -> None:
    async def told() -> tuple[bytes, list[str]]:
        async with answering("200 OK", b'{"kubeletconfig":{}}') as (sender, asked):
            return await kubeletconfig.through_api_server(sender, "worker-7")(), asked

    assert asyncio.run(told()) == (
        b'{"kubeletconfig":{}}',
        ["GET /api/v1/nodes/worker-7/proxy/configz HTTP/1.1"],
    )


def test_a_refusal_is_a_sentence() -> None:
    async def told() -> bytes:
        async with answering("403 Forbidden", b"") as (sender, _):
            return await kubeletconfig.through_api_server(sender, "worker-7")()

    with pytest.raises(errors.BadObject, match=r"no answer: .*configuration of node worker-7"):
        asyncio.run(told())
