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
    """Runs all parts until `main` ends; raises the first failure of any part."""
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
    """The first failure of a group."""
    failure: BaseException = failures
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


@contextlib.contextmanager
def ended_by_signals(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> Iterator[list[str]]:
    """Inside the block SIGTERM and SIGINT cancel the task instead of killing the process; yields the signals
    received."""
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
    """Awaits `work` until it ends or a signal arrives; a signal is not a failure."""
    task = asyncio.ensure_future(work)
    assert isinstance(task, asyncio.Task)
    with ended_by_signals(asyncio.get_running_loop(), task) as came:
        try:
            await task
        except asyncio.CancelledError:
            # The message of a cancellation can get lost: a cancelled gRPC call raises a CancelledError of its own.
            if not came:
                raise
