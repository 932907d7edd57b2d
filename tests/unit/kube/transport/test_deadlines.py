"""Answers that do not come in time are given up, each at its own moment, and the others are waited for."""

from __future__ import annotations

import asyncio

from numalign.kube.transport.connection import Connection, Deadlines
from numalign.simulator import virtualtime
from tests.unit.kube.transport.test_connection import SIZED, connected

SECONDS = 30.0


async def asked(deadlines: Deadlines) -> tuple[Connection, asyncio.Task[float]]:
    """A call that leaves now; the task tells when it was given up."""
    connection, _ = connected()
    answer = connection.send(b"GET")
    deadlines.watch(answer)

    async def given_up() -> float:
        try:
            await answer.whole()
        except TimeoutError:
            return asyncio.get_running_loop().time()
        return 0.0

    return connection, asyncio.create_task(given_up())


def test_each_answer_has_the_same_time_from_its_own_start() -> None:
    async def check() -> list[float]:
        deadlines, begun, waiting = Deadlines(SECONDS), asyncio.get_running_loop().time(), []
        for _ in range(3):
            waiting.append((await asked(deadlines))[1])
            await asyncio.sleep(7.0)
        return [await each - begun for each in waiting]

    assert virtualtime.run(check()) == [30.0, 37.0, 44.0]


def test_one_that_came_neither_fails_later_nor_keeps_the_next_from_failing() -> None:
    async def check() -> tuple[float, float]:
        deadlines, begun = Deadlines(SECONDS), asyncio.get_running_loop().time()
        connection, first = await asked(deadlines)
        connection.data_received(SIZED)
        await asyncio.sleep(10.0)
        _, second = await asked(deadlines)
        await asyncio.sleep(100.0)
        return await first, await second - begun

    assert virtualtime.run(check()) == (0.0, 40.0)


def test_the_time_limit_restarts_after_a_pause() -> None:
    async def check() -> float:
        deadlines = Deadlines(SECONDS)
        await (await asked(deadlines))[1]
        await asyncio.sleep(1000.0)
        begun = asyncio.get_running_loop().time()
        return await (await asked(deadlines))[1] - begun

    assert virtualtime.run(check()) == SECONDS
