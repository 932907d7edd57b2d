"""The parts of a process as tasks of one group: where one fails, all end, and its failure is the process's.

`together` is what a process's main calls. A part that ends by itself ends nothing else, unless it is the `main` one.
Signals become a wish to end: parts are cancelled and get their time to say goodbye."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Coroutine, Iterator, Mapping
from typing import Any, Final

LOG: Final = logging.getLogger(__name__)
ENDING: Final = (signal.SIGTERM, signal.SIGINT)

Part = Coroutine[Any, Any, object]


async def together(main: Part, beside: Mapping[str, Part]) -> None:
    """Until `main` ends, with the others running beside it; the first failure of any is raised alone."""
    try:
        async with asyncio.TaskGroup() as group:
            started = [group.create_task(part, name=name) for name, part in beside.items()]
            try:
                await main
            finally:
                for task in started:
                    task.cancel()
    except BaseExceptionGroup as failures:
        raise first_of(failures) from failures


def first_of(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure that began it."""
    failure: BaseException = failures
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


@contextlib.contextmanager
def ended_by_signals(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> Iterator[list[str]]:
    """Inside, SIGTERM and SIGINT cancel the task instead of killing the process; those that came are told."""
    came: list[str] = []
    for number in ENDING:
        loop.add_signal_handler(number, _ask_to_end, task, number.name, came)
    try:
        yield came
    finally:
        for number in ENDING:
            loop.remove_signal_handler(number)


def _ask_to_end(task: asyncio.Task[Any], why: str, came: list[str]) -> None:
    LOG.info("ending: %s", why)
    came.append(why)
    task.cancel(why)


async def until_signalled(work: Awaitable[object]) -> None:
    """`work` to its end, or to the first signal that asks for one, which is no failure."""
    task = asyncio.ensure_future(work)
    assert isinstance(task, asyncio.Task)
    with ended_by_signals(asyncio.get_running_loop(), task) as came:
        try:
            await task
        except asyncio.CancelledError:
            # What is said with it does not always arrive: a call of gRPC that is cancelled raises one of its own.
            if not came:
                raise
