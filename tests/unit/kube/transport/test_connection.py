"""Answers out of bytes, however these were cut, and connections that end in every way."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kube.transport.connection import HIGH_WATER, Broken, Connection, Response
from tests.unit.kube.clocks import run

SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Note: a\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + SIZED
ANSWERS = {"sized": (SIZED, 200, b"hello"), "chunked": (CHUNKED, 201, b"hello"), "empty": (EMPTY, 204, b"")}
ANSWERS |= {"continued": (CONTINUED, 200, b"hello")}


class Wire(asyncio.Transport):
    """A transport that goes nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.aborted = False

    def write(self, data: Any) -> None:
        pass

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.aborted

    def is_reading(self) -> bool:
        return self.reading

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


def connected() -> tuple[Connection, Wire]:
    connection, wire = Connection(), Wire()
    connection.connection_made(wire)
    return connection, wire


def answered(feed: Callable[[Connection], None]) -> Response:
    async def check() -> Response:
        connection, _ = connected()
        answer = connection.send(b"GET")
        feed(connection)
        return await answer.whole()

    return run(check())


@pytest.mark.parametrize("raw, status, body", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_read_whole(raw: bytes, status: int, body: bytes) -> None:
    response = answered(lambda connection: connection.data_received(raw))
    assert (response.status, response.body) == (status, body)


@given(st.sampled_from([SIZED, CHUNKED, CONTINUED]), st.data())
def test_it_does_not_matter_how_it_is_cut(raw: bytes, data: st.DataObject) -> None:
    def feed(connection: Connection) -> None:
        rest = raw
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            connection.data_received(rest[:size])
            rest = rest[size:]

    assert answered(feed).body == b"hello"


def test_header_names_are_in_lower_case() -> None:
    assert answered(lambda connection: connection.data_received(SIZED)).headers["x-note"] == "a"


def test_an_answer_without_length_ends_with_the_connection() -> None:
    def feed(connection: Connection) -> None:
        connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nhel")
        connection.data_received(b"lo")
        connection.connection_lost(None)

    assert answered(feed).body == b"hello"


def half_an_answer(connection: Connection) -> None:
    connection.data_received(SIZED[:-1])
    connection.connection_lost(None)


BREAKS: dict[str, tuple[Callable[[Connection], None], str]] = {
    "nothing came": (lambda connection: connection.connection_lost(None), "the connection was closed"),
    "a reset": (lambda connection: connection.connection_lost(ConnectionResetError("reset")), "the connection broke"),
    "no HTTP": (lambda connection: connection.data_received(b"SSH-2.0-OpenSSH\r\n\r\n"), "the answer is not HTTP"),
    "half an answer": (half_an_answer, "the connection was closed"),
}


@pytest.mark.parametrize("feed, why", BREAKS.values(), ids=BREAKS)
def test_a_broken_answer_has_a_reason(feed: Callable[[Connection], None], why: str) -> None:
    with pytest.raises(Broken, match=why):
        answered(feed)


ENDINGS = {"kept": (SIZED, True), "closed": (SIZED.replace(b"X-Note: a", b"Connection: close"), False)}
ENDINGS |= {"old": (SIZED.replace(b"1.1", b"1.0"), False)}


@pytest.mark.parametrize("raw, usable", ENDINGS.values(), ids=ENDINGS)
def test_a_connection_is_used_again_unless_the_server_ends_it(raw: bytes, usable: bool) -> None:
    async def check() -> bool:
        connection, _ = connected()
        answer = connection.send(b"GET")
        connection.data_received(raw)
        await answer.whole()
        return connection.usable

    assert run(check()) is usable


def test_a_connection_answers_one_request_after_the_other() -> None:
    async def check() -> list[bytes]:
        connection, _ = connected()
        bodies = []
        for raw in (SIZED, CHUNKED, EMPTY, SIZED):
            answer = connection.send(b"GET")
            connection.data_received(raw)
            bodies.append((await answer.whole()).body)
        return bodies

    assert run(check()) == [b"hello", b"hello", b"", b"hello"]


def test_an_idle_connection_that_receives_bytes_is_closed() -> None:
    connection, wire = connected()
    connection.data_received(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    assert not connection.usable
    assert wire.aborted


def streaming(check: Callable[[Connection, Wire], Coroutine[Any, Any, None]]) -> None:
    async def started() -> None:
        connection, wire = connected()
        await check(connection, wire)

    run(started())


def test_a_stream_is_paused_while_it_is_not_read() -> None:
    async def check(connection: Connection, wire: Wire) -> None:
        answer = connection.send(b"GET")
        connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")
        await answer.started()
        connection.data_received(b"x" * (HIGH_WATER + 1))
        assert not wire.reading
        assert len(await answer.read()) == HIGH_WATER + 1
        assert wire.reading

    streaming(check)


def test_a_stream_delivers_what_arrived_before_it_broke() -> None:
    async def check(connection: Connection, wire: Wire) -> None:
        answer = connection.send(b"GET")
        connection.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n")
        connection.connection_lost(None)
        assert await answer.read() == b"hel"
        with pytest.raises(Broken):
            await answer.read()

    streaming(check)
