"""gRPC by bytes over unix sockets: calls, streams, refusals, and sockets that cannot be reached."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from numalign.process import rpc
from numalign.process.rpc import CallFailed, Channel, Service

T = TypeVar("T")


async def echo(request: bytes) -> bytes:
    return request * 2


async def refuse(request: bytes) -> bytes:
    raise CallFailed("FAILED_PRECONDITION", "not yet")


async def crash(request: bytes) -> bytes:
    raise ZeroDivisionError


async def count(request: bytes) -> AsyncIterator[bytes]:
    for number in range(3):
        yield str(number).encode()
    if request:
        raise CallFailed("ABORTED", "enough")


SERVICE = Service("test.Service", {"Echo": echo, "Refuse": refuse, "Crash": crash}, {"Count": count})


@pytest.fixture
def socket() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="numalign-") as folder:
        yield Path(folder, "s.sock")


def talked(socket: Path, talk: Callable[[Channel], Awaitable[T]]) -> T:
    async def exchange() -> T:
        server = rpc.Server(socket, SERVICE)
        await server.start()
        channel = Channel(socket)
        try:
            return await talk(channel)
        finally:
            await channel.close()
            await server.stop()

    return asyncio.run(exchange())


def test_a_call_is_answered(socket: Path) -> None:
    assert talked(socket, lambda channel: channel.call("/test.Service/Echo", b"ab")) == b"abab"


FAILING = {
    "a refusal keeps its code and text": ("Refuse", "FAILED_PRECONDITION: not yet"),
    "a crash is unknown": ("Crash", "UNKNOWN"),
    "no such call": ("Nothing", "UNIMPLEMENTED"),
}


@pytest.mark.parametrize("call, why", FAILING.values(), ids=FAILING)
def test_a_call_fails(socket: Path, call: str, why: str) -> None:
    with pytest.raises(CallFailed, match=why):
        talked(socket, lambda channel: channel.call(f"/test.Service/{call}", b""))


def test_a_stream_gives_everything_until_its_end(socket: Path) -> None:
    async def heard(channel: Channel) -> list[bytes]:
        return [each async for each in channel.stream("/test.Service/Count", b"")]

    assert talked(socket, heard) == [b"0", b"1", b"2"]


def test_a_failed_stream_has_a_reason(socket: Path) -> None:
    async def heard(channel: Channel) -> list[bytes]:
        return [each async for each in channel.stream("/test.Service/Count", b"x")]

    with pytest.raises(CallFailed, match="ABORTED: enough"):
        talked(socket, heard)


def test_a_socket_without_a_server_is_unavailable(socket: Path) -> None:
    socket.touch()
    with pytest.raises(CallFailed, match="UNAVAILABLE"):
        asyncio.run(_call(socket))


async def _call(socket: Path) -> bytes:
    link = rpc.Link(socket)
    try:
        return await link.call("/test.Service/Echo", b"")
    finally:
        await link.close()


UNREACHABLE = {
    "no file": ("none", "UNAVAILABLE: there is no socket"),
    "below a file": ("file/s.sock", "UNAVAILABLE: .* cannot be read: Not a directory"),
}


@pytest.mark.parametrize("name, why", UNREACHABLE.values(), ids=UNREACHABLE)
def test_a_socket_that_is_not_there(socket: Path, name: str, why: str) -> None:
    socket.with_name("file").touch()
    with pytest.raises(CallFailed, match=why):
        asyncio.run(_call(socket.parent / name))


def test_a_path_that_is_too_long_for_a_socket_is_refused(socket: Path) -> None:
    long = socket.with_name("x" * 108)
    long.touch()
    with pytest.raises(CallFailed, match="longer than a unix socket's may be"):
        asyncio.run(_call(long))
    with pytest.raises(OSError, match="longer than a unix socket's may be"):
        asyncio.run(_serve(long))


async def _serve(socket: Path) -> None:
    rpc.Server(socket, SERVICE)


def test_a_connection_without_calls_shows_the_end_of_the_other_side(socket: Path) -> None:
    async def story() -> tuple[bool, bool]:
        server = rpc.Server(socket, SERVICE)
        await server.start()
        channel = Channel(socket)
        waiting = asyncio.ensure_future(channel.broken())
        try:
            await channel.call("/test.Service/Echo", b"")  # it is connected
            before = waiting.done()
            await server.stop()
            return before, await asyncio.wait_for(waiting, 30)
        finally:
            await channel.close()

    assert asyncio.run(story()) == (False, True)


@pytest.mark.parametrize("chosen, level", [({}, "ERROR"), ({"GRPC_VERBOSITY": "DEBUG"}, "DEBUG")], ids=["none", "own"])
def test_grpc_logs_only_errors_itself_unless_the_user_chooses_another_level(chosen: dict[str, str], level: str) -> None:
    """It would else report every connection that ends."""
    code = "import os, numalign.process.rpc; print(os.environ['GRPC_VERBOSITY'])"
    given = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"} | chosen
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == level


def test_where_no_program_answers_there_is_no_connection(socket: Path) -> None:
    async def story() -> bool:
        channel = Channel(socket)
        try:
            return await asyncio.wait_for(channel.broken(), 30)
        finally:
            await channel.close()

    assert not asyncio.run(story())


def test_grpc_is_loaded_by_those_who_talk() -> None:
    imports = "import sys, numalign.agent.sources.podresources, numalign.agent.deviceplugin.server"
    code = f"{imports}; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
