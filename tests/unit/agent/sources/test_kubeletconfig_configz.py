"""Asking the kubelet itself for its configuration: over verified TLS, with the agent's own token."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pytest

from numalign.agent.sources import kubeletconfig
from numalign.api import errors
from numalign.kube.clock import SystemClock
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.dial import Server
from numalign.process import certificates

NODE = "worker-7"
TOKEN = "the-agents-token"
T = TypeVar("T")


@contextlib.asynccontextmanager
async def kubelet(folder: Path, status: str, body: bytes = b"") -> AsyncIterator[tuple[str, list[list[str]]]]:
    """A kubelet that gives this answer: its address, and the heads of the requests that it got."""
    asked: list[list[str]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n"))
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    shown = certificates.self_signed([NODE], datetime.now(UTC))
    (folder / "kubelet.crt").write_text(shown.certificate)
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=certificates.context(shown)) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


def run(
    folder: Path, status: str, use: Callable[[str], Awaitable[T]], body: bytes = b""
) -> tuple[T | errors.BadObject, list[list[str]]]:
    async def ran() -> tuple[T | errors.BadObject, list[list[str]]]:
        async with kubelet(folder, status, body) as (address, asked):
            try:
                return await use(address), asked
            except errors.BadObject as problem:
                return problem, asked

    return asyncio.run(ran())


async def fetched(address: str, authority: Path, node: str = NODE) -> bytes:
    login = Login(auth.unchanging(Identity(auth.bearer(TOKEN))), SystemClock())
    agent = Access(Server("api.example", 443), login)
    asking = kubeletconfig.KubeletClient(kubeletconfig.kubelet_access(agent, address, node, authority))
    try:
        return await asking.configz()
    finally:
        asking.close()


def test_the_kubelet_is_asked_with_the_agents_token(tmp_path: Path) -> None:
    answer, asked = run(tmp_path, "200 OK", lambda address: fetched(address, tmp_path / "kubelet.crt"), b"{}")
    assert (answer, asked[0][0]) == (b"{}", "GET /configz HTTP/1.1")
    assert f"Authorization: Bearer {TOKEN}" in asked[0]


def test_a_refusal_is_a_sentence(tmp_path: Path) -> None:
    answer, _ = run(tmp_path, "403 Forbidden", lambda address: fetched(address, tmp_path / "kubelet.crt"))
    assert "no answer: get configuration of the kubelet" in str(answer)


def test_a_server_that_the_authority_does_not_know_gets_no_token(tmp_path: Path) -> None:
    other = tmp_path / "other.crt"
    other.write_text(certificates.self_signed([NODE], datetime.now(UTC)).certificate)
    answer, asked = run(tmp_path, "200 OK", lambda address: fetched(address, other))
    assert (isinstance(answer, errors.BadObject), asked) == (True, [])


def test_the_kubelet_of_another_node_gets_no_token(tmp_path: Path) -> None:
    answer, asked = run(tmp_path, "200 OK", lambda address: fetched(address, tmp_path / "kubelet.crt", "worker-8"))
    assert (isinstance(answer, errors.BadObject), asked) == (True, [])


def test_without_an_authority_nothing_is_asked(tmp_path: Path) -> None:
    answer, asked = run(tmp_path, "200 OK", lambda address: fetched(address, tmp_path / "absent.crt"))
    assert ("--kubelet-certificate-authority" in str(answer), asked) == (True, [])


@pytest.mark.parametrize(
    "address, place",
    [("127.0.0.1", ("127.0.0.1", 10250)), ("[::1]:250", ("::1", 250)), ("node.example:1", ("node.example", 1))],
)
def test_an_address_may_name_a_port(address: str, place: tuple[str, int]) -> None:
    agent = Access(Server("api.example", 443), Login(auth.unchanging(Identity()), SystemClock()))
    server = kubeletconfig.kubelet_access(agent, address, NODE, Path("any")).server
    assert ((server.host, server.port), server.secure, server.tls_name) == (place, True, NODE)


@pytest.mark.parametrize("address", ["", ":10250", "a:b", "a/b:1", "user@host"])
def test_what_is_no_address_is_refused(address: str) -> None:
    agent = Access(Server("api.example", 443), Login(auth.unchanging(Identity()), SystemClock()))
    with pytest.raises(errors.BadObject, match="--kubelet-address"):
        kubeletconfig.kubelet_access(agent, address, NODE, Path("any"))
