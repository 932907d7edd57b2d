"""What one client can do to a server, and what it cannot."""

from __future__ import annotations

import logging

import pytest

from numalign.process.http.messages import Request, Response
from tests.unit.process.http.clients import Echo, Stage, get, staged

PARTS = {
    "nothing": (b"", 10.0),
    "half a head": (b"GET / HTTP/1.1\r\nA: b", 10.0),
    "half a body": (b"PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx", 30.0),
    "no second request": (get("/"), 60.0),
    "half of a second head": (get("/") + b"GET / HTTP/1.1\r\nA: b", 10.0),
}


@pytest.mark.parametrize("sent, seconds", PARTS.values(), ids=PARTS)
def test_a_client_that_sends_too_slowly_is_disconnected(sent: bytes, seconds: float) -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(sent)
        assert not stage.after(seconds - 0.1)
        # Another byte now and then wins no time.
        began = stage.connection.since
        stage.connection.data_received(b"" if sent.endswith(b"\r\n\r\n") or not sent else b"x")
        assert stage.connection.since == began
        assert stage.after(seconds + 0.1)

    staged(check)


def test_time_is_not_limited_while_the_server_makes_the_response() -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/later"))
        assert not stage.after(10_000)

    staged(check)


@pytest.mark.parametrize("part", [b"x", b"x: y\r\n"], ids=["value or target", "headers"])
@pytest.mark.parametrize("begun", [b"GET /", b"GET / HTTP/1.1\r\nA: "], ids=["target", "header"])
def test_an_endless_head_is_refused(begun: bytes, part: bytes) -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(begun)
        for _ in range(20):
            stage.connection.data_received(part * (5000 // len(part)))
        assert (stage.wire.codes[0], stage.echo.asked) in ((431, []), (400, []))

    staged(check)


@pytest.mark.parametrize("size, code", [(15_000, 200), (50_000, 431)])
@pytest.mark.parametrize("piece", [100, 9_999, 100_000])
def test_the_head_is_limited_however_it_arrives(size: int, code: int, piece: int) -> None:
    def check(stage: Stage) -> None:
        sent = get("/", f"A: {'x' * size}")
        for start in range(0, len(sent), piece):
            stage.connection.data_received(sent[start : start + piece])
        assert stage.wire.codes == [code]

    staged(check)


def test_a_large_body_is_refused_before_it_is_sent() -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(b"PUT / HTTP/1.1\r\nContent-Length: 1073741824\r\nExpect: 100-continue\r\n\r\n")
        assert (stage.wire.codes, stage.echo.asked) == ([413], [])
        # What a client sends before it reads the response is dropped, up to a limit.
        stage.connection.data_received(b"x" * 5_000)
        assert (stage.wire.codes, stage.wire.aborted) == ([413], False)
        stage.connection.data_received(b"x")
        assert stage.wire.aborted

    staged(check)


def test_a_large_body_in_chunks_is_refused() -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(10):
            stage.connection.data_received(b"c8\r\n" + b"x" * 200 + b"\r\n")
        assert (stage.wire.codes, stage.echo.asked) == ([413], [])

    staged(check)


def test_bodies_of_all_clients_together_are_limited_and_counted_no_more_when_they_end() -> None:
    def check(stage: Stage) -> None:
        served, others = stage.served, [stage.wired(float("inf")) for _ in range(2)]
        for wire in others:
            wire.connection.data_received(b"PUT / HTTP/1.1\r\nContent-Length: 900\r\n\r\n" + b"x" * 800)
        assert served.received == 1600
        stage.connection.data_received(b"PUT / HTTP/1.1\r\nContent-Length: 900\r\n\r\n" + b"x" * 500)
        assert (stage.wire.codes, served.received) == ([503], 1600)
        others[0].connection.data_received(b"x" * 100)
        assert (others[0].codes, served.received) == ([200], 800)
        others[1].connection.connection_lost(None)
        assert served.received == 0

    staged(check, all_body_bytes=2000)


LENGTHS = ["1_0", "+1", "-1", "0x1", "1\r\nContent-Length: 2", "1\r\nTransfer-Encoding: chunked"]


@pytest.mark.parametrize("length", LENGTHS)
def test_an_ambiguous_length_is_refused(length: str) -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(f"PUT / HTTP/1.1\r\nContent-Length: {length}\r\n\r\nx".encode())
        assert (stage.wire.codes, stage.echo.asked) == ([400], [])

    staged(check)


WAITING = {"many bytes": (b"PUT / HTTP/1.1\r\nContent-Length: 900\r\n\r\n" + b"x" * 900, 5), "many": (get("/"), 20)}


@pytest.mark.parametrize("request_, most", WAITING.values(), ids=WAITING)
def test_requests_that_wait_for_a_response_are_bounded(request_: bytes, most: int) -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/later"))
        for _ in range(most):
            stage.connection.data_received(request_)
        assert not stage.wire.aborted
        stage.connection.data_received(request_)
        assert stage.wire.aborted

    staged(check)


def test_a_client_that_does_not_read_is_not_answered_further() -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/size/1000") * 10)
        assert (len(stage.echo.asked), stage.wire.reads) == (10, False)
        stage.connection.data_received(get("/size/300000") * 10)
        assert len(stage.echo.asked) == 10
        for read in range(1, 11):
            stage.wire.more(1)
            assert len(stage.echo.asked) == 10 + read
            stage.wire.more(1)
        stage.wire.more(1)
        assert stage.wire.reads
        assert stage.wire.codes == [200] * 20

    staged(check, room=1)


def test_a_large_response_is_passed_on_as_it_is_read() -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/size/3000000"))
        assert len(stage.wire.said) < 600_000 < 2_400_000 < stage.connection.unsent
        while stage.connection.unsent:
            stage.wire.more(1)
        assert stage.wire.said.endswith(b"\r\n\r\n" + b"x" * 3_000_000)

    staged(check, room=1)


@pytest.mark.parametrize("taken, is_cut", [(0, True), (100, True), (10_000_000, False)])
def test_a_client_that_reads_too_slowly_is_disconnected(taken: int, is_cut: bool) -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/size/20000000"))
        now = stage.connection.since
        stage.connection.sweep(now)
        if taken:
            stage.wire.more(taken)
        stage.connection.sweep(now + 29.9)
        assert not stage.wire.aborted
        stage.connection.sweep(now + 30.1)
        assert stage.wire.aborted is is_cut

    staged(check, room=1)


def test_the_last_response_of_a_connection_waits_no_longer_than_others() -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/", "Connection: close"))
        assert stage.wire.closed
        assert b"Connection: close\r\n" in stage.wire.said
        assert not stage.after(29.9)
        # Closing alone waits for a client that does not read.
        assert stage.after(30.1)

    staged(check)


def test_a_stream_that_is_not_read_is_cut() -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/later"))
        for _ in range(12):
            stage.connection.write(b"x" * 300_000)
        assert stage.wire.aborted

    staged(check, room=1, unsent_bytes=3_000_000)


def test_of_all_clients_the_one_that_reads_least_is_cut_where_too_much_is_unsent() -> None:
    def check(stage: Stage) -> None:
        slow, wires = stage.wire, [stage.wired(room=1) for _ in range(3)]
        slow.connection.data_received(get("/size/2000000"))
        slow.connection.sweep(slow.connection.since)
        for wire in wires[:2]:
            wire.connection.data_received(get("/size/3000000"))
        assert not any(wire.aborted for wire in (slow, *wires))
        wires[2].connection.data_received(get("/size/3000000"))
        assert [wire.aborted for wire in (slow, *wires)] == [True, False, False, False]
        slow.connection.connection_lost(None)
        assert stage.served.unsent == sum(wire.connection.unsent for wire in wires)
        for wire in wires:
            wire.connection.connection_lost(None)
        assert stage.served.unsent == 0

    staged(check, room=1, all_unsent_bytes=8_000_000)


def test_a_stream_counts_for_all_clients_too() -> None:
    def check(stage: Stage) -> None:
        other = stage.wired(room=1)
        for wire in (stage.wire, other):
            wire.connection.data_received(get("/later"))
        other.connection.write(b"x" * 3_000_000)
        stage.connection.write(b"x" * 2_000_000)
        stage.connection.write(b"x" * 4_000_000)
        assert (stage.wire.aborted, other.aborted) == (True, False)

    staged(check, room=1, all_unsent_bytes=8_000_000)


def test_one_response_may_be_larger_than_what_all_clients_may_leave_unread() -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/size/3000000"))
        while stage.connection.unsent:
            stage.wire.more(1)
        assert (stage.wire.aborted, stage.served.unsent) == (False, 0)
        assert stage.wire.said.endswith(b"\r\n\r\n" + b"x" * 3_000_000)

    staged(check, room=1, all_unsent_bytes=1_000_000)


def test_what_is_pending_ends_with_its_client() -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/later"))
        stage.connection.connection_lost(None)
        assert stage.echo.later.closed

    staged(check)


def test_after_a_pending_response_the_waiting_ones_follow_in_order() -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/later") + get("/a") + get("/b"))
        assert stage.echo.asked == ["/later"]
        stage.connection.finish(Response(202, b""))
        assert (stage.echo.asked, stage.wire.codes) == (["/later", "/a", "/b"], [202, 200, 200])

    staged(check)


def test_a_failure_of_the_application_ends_one_connection(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Echo, request: Request) -> Response:
        raise RuntimeError("broken")

    monkeypatch.setattr(Echo, "answer", broken)

    def check(stage: Stage) -> None:
        with caplog.at_level(logging.ERROR):
            stage.connection.data_received(get("/"))
        assert stage.wire.aborted
        assert "broken" in caplog.text

    staged(check)
