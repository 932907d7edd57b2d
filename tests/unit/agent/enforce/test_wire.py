"""ttrpc and NRI's multiplexer: bytes as the container runtime sends and expects them."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.agent.enforce import wire
from numalign.agent.enforce.wire import Trunk
from numalign.api.decode import protobuf
from numalign.process.rpc import CallFailed
from numalign.simulator import pipes, virtualtime

REQUEST = bytes.fromhex("0a 03 73 76 63 12 04 45 63 68 6f 1a 02 68 69".replace(" ", ""))
"""service svc, method Echo, payload hi."""


class Line(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def message(stream: int, kind: int, payload: bytes, flags: int = 0) -> bytes:
    return struct.pack(">IIBB", len(payload), stream, kind, flags) + payload


def frame(connection: int, payload: bytes) -> bytes:
    return struct.pack(">II", connection, len(payload)) + payload


def echo(method: str, request: bytes) -> bytes:
    if method == "svc/Refuse":
        raise CallFailed("NOT_FOUND", "no such pod")
    if method == "svc/Break":
        raise ZeroDivisionError("odd pod")
    return request


def fed(*chunks: bytes) -> Line:
    """What a trunk that serves connection 1 writes for these bytes."""

    async def feed() -> Line:
        line, trunk = Line(), Trunk(serves=1, calls=2, answer=echo)
        trunk.connection_made(line)
        for chunk in chunks:
            trunk.data_received(chunk)
        return line

    return virtualtime.run(feed())


ANSWER = frame(1, message(1, 2, b"\x12\x02hi"))


def test_a_request_is_answered_on_its_connection_and_stream() -> None:
    assert fed(frame(1, message(1, 1, REQUEST, 1))).written == ANSWER


@settings(max_examples=50, deadline=None)
@given(cuts=st.lists(st.integers(0, 40)), frames=st.integers(1, 25))
def test_a_request_may_arrive_in_any_pieces(cuts: list[int], frames: int) -> None:
    whole = message(1, 1, REQUEST, 1)
    data = b"".join(frame(1, whole[at : at + frames]) for at in range(0, len(whole), frames))
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    chunks = [data[start:end] for start, end in itertools.pairwise(places)]
    assert fed(*chunks).written == ANSWER


def test_other_connections_and_kinds_of_messages_are_ignored() -> None:
    assert fed(frame(7, b"anything"), frame(1, message(1, 3, b"data"))).written == b""


@pytest.mark.parametrize(
    "method, code",
    [("Refuse", 5), ("Break", 13)],
    ids=["refused", "broken"],
)
def test_a_request_that_cannot_be_answered_gets_a_status_and_the_next_one_an_answer(method: str, code: int) -> None:
    bad = protobuf.encode_message({"service": "svc", "method": method}, wire.REQUEST)
    line = fed(frame(1, message(1, 1, bad)), frame(1, message(3, 1, b"\xff\xff")), frame(1, message(5, 1, REQUEST)))
    assert line.written[18:22] == bytes([0x0A, line.written[19], 0x08, code])
    assert line.written.endswith(frame(1, message(5, 2, b"\x12\x02hi")))
    assert not line.closed


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">II", 1, 1 << 31),
        frame(1, struct.pack(">IIBB", 1 << 31, 1, 1, 0)),
    ],
)
def test_sizes_beyond_the_protocols_limit_end_the_connection_without_being_read(data: bytes) -> None:
    assert fed(data).closed


def between(left: Callable[[str, bytes], bytes], right: Callable[[str, bytes], bytes]) -> tuple[Trunk, Trunk]:
    one, other = Trunk(serves=1, calls=2, answer=left), Trunk(serves=2, calls=1, answer=right)
    pipes.joined(one, other)
    return one, other


def test_both_ends_call_at_the_same_time() -> None:
    async def calls() -> list[bytes]:
        one, other = between(lambda method, request: b"left " + request, lambda method, request: b"right " + request)
        made = [each.call("svc", "Say", str(number).encode(), 1.0) for number in range(3) for each in (one, other)]
        return await asyncio.gather(*made)

    assert virtualtime.run(calls()) == [b"right 0", b"left 0", b"right 1", b"left 1", b"right 2", b"left 2"]


def test_large_messages_arrive_whole_in_frames_that_the_runtime_can_read() -> None:
    async def call() -> None:
        one, _ = between(echo, echo)
        big = bytes(range(256)) * 4096
        assert await one.call("svc", "Echo", big, 1.0) == big
        with pytest.raises(CallFailed, match="RESOURCE_EXHAUSTED"):
            await one.call("svc", "Echo", bytes(wire.LARGEST), 1.0)

    virtualtime.run(call())

    async def sizes() -> None:
        line, trunk = Line(), Trunk(serves=1, calls=2, answer=echo)
        trunk.connection_made(line)
        with pytest.raises(CallFailed, match="DEADLINE_EXCEEDED"):
            await trunk.call("svc", "Echo", bytes(10_000), 1.0)
        at = 0
        while at < len(line.written):
            connection, size = struct.unpack_from(">II", line.written, at)
            assert (connection, size <= 4096) == (2, True)
            at += 8 + size

    virtualtime.run(sizes())


def test_a_status_becomes_the_failure_of_the_call() -> None:
    async def call() -> None:
        one, _ = between(echo, echo)
        with pytest.raises(CallFailed, match="NOT_FOUND: no such pod"):
            await one.call("svc", "Refuse", b"", 1.0)

    virtualtime.run(call())


def test_calls_fail_when_the_connection_ends() -> None:
    async def call() -> None:
        one = Trunk(serves=1, calls=2, answer=echo)
        line = Line()
        one.connection_made(line)
        calling = asyncio.ensure_future(one.call("svc", "Echo", b"", 10.0))
        await asyncio.sleep(0)
        one.connection_lost(None)
        with pytest.raises(CallFailed, match="UNAVAILABLE"):
            await calling
        with pytest.raises(CallFailed, match="UNAVAILABLE"):
            await one.call("svc", "Echo", b"", 10.0)

    virtualtime.run(call())


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_break_a_trunk(data: bytes) -> None:
    fed(data, frame(1, data), frame(1, message(1, 1, data)))
