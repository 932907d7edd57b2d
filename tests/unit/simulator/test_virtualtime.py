import asyncio
import random
import socket
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator import virtualtime

HOUR = 3600.0


async def naps(lengths: Sequence[float]) -> list[tuple[float, int]]:
    """When each sleeper woke up, and which one it was."""
    loop = asyncio.get_running_loop()
    woken: list[tuple[float, int]] = []

    async def nap(number: int, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append((loop.time(), number))

    await asyncio.gather(*(nap(number, seconds) for number, seconds in enumerate(lengths)))
    return woken


@given(st.lists(st.floats(min_value=0.0, max_value=1e7), max_size=20))
def test_sleepers_wake_in_the_order_of_their_timers(lengths: list[float]) -> None:
    woken = virtualtime.run(naps(lengths))
    assert [lengths[number] for _, number in woken] == sorted(lengths)
    assert [moment for moment, _ in woken] == pytest.approx(sorted(lengths))


# Not more than years: asyncio looks at the clock at least once a day.
@given(st.lists(st.floats(min_value=0.0, max_value=1e8), min_size=1, max_size=20))
def test_no_timer_fires_before_its_time(lengths: list[float]) -> None:
    async def early() -> list[float]:
        loop = asyncio.get_running_loop()
        found: list[float] = []
        for length in lengths:
            due = loop.time() + length
            loop.call_at(due, lambda due=due: found.append(due - loop.time()))  # type: ignore[misc]
            await asyncio.sleep(length / 2)
        await asyncio.sleep(1e8)
        return found

    assert max(virtualtime.run(early())) <= 0.0


def test_the_same_story_runs_the_same_way_twice() -> None:
    lengths = [random.Random(7).uniform(0, 100) for _ in range(200)]
    assert virtualtime.run(naps(lengths)) == virtualtime.run(naps(lengths))


def test_thousands_of_hours_pass_in_a_second() -> None:
    async def ticking(hours: int) -> float:
        for _ in range(hours):
            await asyncio.sleep(HOUR)
        return asyncio.get_running_loop().time()

    before = time.perf_counter()
    assert virtualtime.run(ticking(10_000)) == 10_000 * HOUR
    assert time.perf_counter() - before < 5.0


def test_one_sleep_may_last_for_years() -> None:
    # An event loop waits for a day at most before it looks again.
    assert virtualtime.run(naps([50_000 * HOUR])) == [(50_000 * HOUR, 0)]


def test_the_clock_goes_by_virtual_time_from_the_given_start() -> None:
    async def later() -> tuple[str, str]:
        clock = virtualtime.clock(random.Random(1))
        before = clock.rfc3339()
        await clock.sleep(90.0)
        return before, clock.rfc3339()

    start = datetime(2026, 11, 16, 5, 0, tzinfo=UTC)
    assert virtualtime.run(later(), start=start) == ("2026-11-16T05:00:00Z", "2026-11-16T05:01:30Z")


def test_a_clock_that_is_made_late_tells_the_same_time() -> None:
    async def made_late() -> str:
        await asyncio.sleep(HOUR)
        return virtualtime.clock(random.Random(1)).rfc3339()

    assert virtualtime.run(made_late()) == "2026-01-01T01:00:00Z"


def test_timeouts_end_what_never_comes() -> None:
    async def impatient() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(HOUR):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert virtualtime.run(impatient()) == HOUR


def test_a_deadlock_is_named_and_not_waited_for() -> None:
    async def stuck() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        await asyncio.create_task(stuck(), name="controller")

    with pytest.raises(virtualtime.Deadlock, match=r"controller \(.*stuck, line \d+\)"):
        virtualtime.run(story())


def test_a_long_list_of_waiting_tasks_is_cut() -> None:
    async def story() -> None:
        await asyncio.gather(*(asyncio.Event().wait() for _ in range(20)))

    with pytest.raises(virtualtime.Deadlock, match="and 16 more"):
        virtualtime.run(story())


def test_sockets_are_refused() -> None:
    async def story() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs, pytest.raises(virtualtime.OutsideWorld, match="real time"):
            asyncio.get_running_loop().add_reader(ours, lambda: None)

    virtualtime.run(story())


def test_threads_are_refused() -> None:
    async def story() -> None:
        with pytest.raises(virtualtime.OutsideWorld, match="thread"):
            await asyncio.to_thread(time.monotonic)

    virtualtime.run(story())


def test_there_is_no_virtual_clock_in_real_time() -> None:
    async def story() -> None:
        virtualtime.clock(random.Random(1))

    with pytest.raises(RuntimeError, match=r"virtualtime\.run"):
        asyncio.run(story())


def test_a_loop_goes_on_in_real_time_from_where_virtual_time_ended() -> None:
    async def left() -> tuple[float, float, str]:
        clock = virtualtime.clock(random.Random(1))
        await clock.sleep(HOUR)
        virtualtime.continue_in_real_time()
        before = time.monotonic(), clock.now()
        await clock.sleep(0.05)
        waited = await asyncio.to_thread(lambda: time.monotonic() - before[0])
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        server.close()
        return waited, clock.now() - before[1], clock.rfc3339()

    waited, passed, moment = virtualtime.run(left())
    assert waited >= 0.05
    assert passed >= 0.05
    assert moment.startswith("2026-01-01T01:00:")
