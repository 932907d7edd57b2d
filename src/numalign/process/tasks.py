"""Runs the parts of a process as one task group, stops them on signals, and tunes the garbage collector.

`together` is called by the main function of a process: a failure of one part cancels the others and becomes the
process's failure; the end of a part ends the process only if it is `main`. `settle` freezes the objects that exist once
the process has synced. Python would otherwise traverse thousands of nodes and pods in every full collection, thirty
times a second in a burst of pods."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import Awaitable, Coroutine, Iterator, Mapping
from typing import Any, Final

from numalign.process import log

YOUNG: Final = 10_000
"""Allocations between two collections of the youngest generation; Python's default is 700."""


def settle() -> None:
    """Freezes all objects that exist now; later cycles are still collected."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)


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
    """Inside the block SIGTERM and SIGINT cancel the task instead of killing the process, and SIGUSR1 has it log debug
    lines for a while; yields the ending signals received."""
    came: list[str] = []
    for number in ENDING:
        loop.add_signal_handler(number, _ask_to_end, task, number.name, came)
    loop.add_signal_handler(signal.SIGUSR1, log.toggle_debugging)
    try:
        yield came
    finally:
        for number in (*ENDING, signal.SIGUSR1):
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
