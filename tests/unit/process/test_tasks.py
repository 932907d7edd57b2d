"""Parts of a process run together: one failure ends them all and is raised."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

import pytest

from numalign.process import log, tasks


class Broken(Exception):
    pass


async def fails() -> None:
    await asyncio.sleep(0)
    raise Broken


async def forever(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("ended")


def test_when_the_main_part_ends_the_others_are_ended() -> None:
    ended: list[str] = []
    asyncio.run(tasks.together(asyncio.sleep(0), {"beside": forever(ended)}))
    assert ended == ["ended"]


def test_a_part_that_fails_ends_the_main_one_and_its_failure_is_raised() -> None:
    ended: list[str] = []
    with pytest.raises(Broken):
        asyncio.run(tasks.together(forever(ended), {"broken": fails()}))
    assert ended == ["ended"]


def test_a_failure_of_the_main_part_ends_the_others() -> None:
    ended: list[str] = []
    with pytest.raises(Broken):
        asyncio.run(tasks.together(fails(), {"beside": forever(ended)}))
    assert ended == ["ended"]


def test_a_part_that_ends_by_itself_ends_nothing_else() -> None:
    async def main(done: list[str]) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        done.append("main")

    done: list[str] = []
    asyncio.run(tasks.together(main(done), {"short": asyncio.sleep(0)}))
    assert done == ["main"]


@pytest.mark.parametrize("number", tasks.ENDING)
def test_a_signal_ends_the_work_and_is_no_failure(number: signal.Signals) -> None:
    async def main() -> None:
        ended: list[str] = []
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
        await tasks.until_signalled(forever(ended))
        assert ended == ["ended"]

    asyncio.run(main())


def test_sigusr1_has_a_process_log_debug_lines_until_it_comes_again() -> None:
    seen: list[bool] = []

    async def looks() -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGUSR1)
            async with asyncio.timeout(30):
                while len(seen) == len(log.VERBOSITY.rules()):
                    await asyncio.sleep(0)
            seen.append(logging.getLogger(log.ROOT).isEnabledFor(logging.DEBUG))

    before = logging.getLogger(log.ROOT).level
    try:
        asyncio.run(tasks.until_signalled(looks()))
    finally:
        logging.getLogger(log.ROOT).setLevel(before)
    assert (seen, log.VERBOSITY.rules()) == ([True, False], [])


def test_a_part_that_is_cancelled_in_its_own_words_ends_in_order_too() -> None:
    """As calls of gRPC are: an agent that was ended during one ended with a traceback."""

    async def wordless() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise asyncio.CancelledError from None

    async def main() -> None:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
        await tasks.until_signalled(tasks.together(wordless(), {}))

    asyncio.run(main())
