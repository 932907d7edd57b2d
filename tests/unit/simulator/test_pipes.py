"""Connections inside the process behave as those through sockets do."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kube.transport.dial import CannotConnect, Server
from numalign.simulator import pipes, virtualtime
from numalign.simulator.pipes import Wire


class Listener(asyncio.Protocol):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard = b""
        self.lost = 0
        self.held: list[str] = []

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost += 1

    def pause_writing(self) -> None:
        self.held.append("pause")

    def resume_writing(self) -> None:
        self.held.append("resume")


Story = Callable[[Listener, Listener, Wire, Wire], Awaitable[None]]


def told(story: Story) -> tuple[Listener, Listener]:
    async def main() -> tuple[Listener, Listener]:
        one, other = Listener(), Listener()
        await story(one, other, *pipes.joined(one, other))
        await asyncio.sleep(1)
        return one, other

    return virtualtime.run(main())


@given(st.lists(st.binary(max_size=20)))
def test_everything_arrives_in_order(pieces: list[bytes]) -> None:
    async def story(one: Listener, other: Listener, here: Wire, there: Wire) -> None:
        for piece in pieces:
            here.write(piece)

    assert told(story)[1].heard == b"".join(pieces)


def test_nothing_arrives_before_the_writer_is_done_with_its_turn() -> None:
    async def story(one: Listener, other: Listener, here: Wire, there: Wire) -> None:
        here.write(b"hello")
        assert other.heard == b""

    assert told(story)[1].heard == b"hello"


def test_what_was_written_before_closing_arrives_and_both_ends_are_told_once() -> None:
    async def story(one: Listener, other: Listener, here: Wire, there: Wire) -> None:
        here.write(b"bye")
        here.close()
        here.close()
        here.write(b"too late")

    one, other = told(story)
    assert (other.heard, one.lost, other.lost) == (b"bye", 1, 1)


def test_an_aborted_connection_loses_what_was_on_its_way() -> None:
    async def story(one: Listener, other: Listener, here: Wire, there: Wire) -> None:
        here.write(b"never heard")
        here.abort()

    one, other = told(story)
    assert (other.heard, one.lost, other.lost) == (b"", 1, 1)


def test_a_reader_that_pauses_holds_the_writer_back() -> None:
    async def story(one: Listener, other: Listener, here: Wire, there: Wire) -> None:
        there.pause_reading()
        here.write(bytes(pipes.HIGH_WATER + 1))
        await asyncio.sleep(1)
        assert (one.held, other.heard) == (["pause"], b"")
        there.resume_reading()

    one, other = told(story)
    assert (one.held, len(other.heard)) == (["pause", "resume"], pipes.HIGH_WATER + 1)


def test_where_nobody_listens_the_connection_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(CannotConnect, match="no connection to kube:6443: Connection refused"):
            await pipes.dial(lambda: None)(Server("kube", 6443), None, 1.0)

    virtualtime.run(main())
