"""An asyncio event loop with virtual time: when no callback is ready, it advances to the next timer at once.

Scenarios and tests start a cluster with `run` and read the time from `clock`. The code on it is the same as in real
time. Runs are deterministic, so sockets, pipes and threads are rejected. If no callback is ready and no timer is set,
`Deadlock` names the waiting tasks. A loop can leave virtual time: `continue_in_real_time` lets its tasks go on at the
pace of the machine's clock, with sockets, pipes and threads."""

import asyncio
import math
import random
import selectors
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

from numalign.simulator.clock import Clock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The default start of virtual time."""

MOST_NAMED: Final = 5


class Deadlock(RuntimeError):
    """All tasks wait, and no timer is set."""


class OutsideWorld(RuntimeError):
    """Code requested a socket, a pipe or a thread."""


def run(main: Coroutine[Any, Any, T], *, start: datetime = START) -> T:
    """Like `asyncio.run`, in virtual time that starts at `start`."""
    with runner(start) as running:
        return running.run(main)


def runner(start: datetime) -> asyncio.Runner:
    return asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(start))


def clock(chances: random.Random) -> Clock:
    """The clock of the running virtual time."""
    loop = _loop()
    return Clock(loop.time, loop.wall(), chances)


def continue_in_real_time() -> None:
    """From now on, the running loop waits for its timers, and serves sockets."""
    _loop().leave_virtual_time()


def _loop() -> "VirtualTimeLoop":
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualTimeLoop):
        raise RuntimeError("the event loop has no virtual time; start it with virtualtime.run, or use clock.real")
    return loop


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self, start: datetime = START) -> None:
        self._elapsed = 0.0
        self._behind: float | None = None
        """Seconds by which the machine's clock is ahead of this one; None in virtual time."""
        self._start = start
        self._waiting = waiting = _NoWaiting(self._jump)
        super().__init__(waiting)
        # The loop has created its own socket pair for signals.
        waiting.closed_to_the_world = True
        self._jump(0.0)

    def time(self) -> float:
        return self._elapsed if self._behind is None else time.monotonic() - self._behind

    def wall(self) -> datetime:
        return self._start + timedelta(seconds=self.time())

    def leave_virtual_time(self) -> None:
        self._behind = time.monotonic() - self._elapsed
        self._clock_resolution = time.get_clock_info("monotonic").resolution
        self._waiting.is_real = True

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        if self._behind is not None:
            return super().run_in_executor(executor, func, *args)
        raise OutsideWorld("threads run in real time; call the function directly in virtual time")

    def _jump(self, seconds: float | None) -> None:
        if seconds is None:
            raise Deadlock(f"no callback is ready and no timer is set; waiting tasks: {_waiting(self)}")
        self._elapsed += seconds
        # A timer fires at its exact time, even after years of virtual time.
        self._clock_resolution = math.ulp(self._elapsed)


class _NoWaiting(selectors.DefaultSelector):
    """A selector that never waits and reports the requested timeout, until `is_real`; None means without limit."""

    def __init__(self, waited: Callable[[float | None], None]) -> None:
        super().__init__()
        self._waited = waited
        self.closed_to_the_world = self.is_real = False

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if self.closed_to_the_world and not self.is_real:
            raise OutsideWorld(
                "sockets and pipes run in real time; use in-process connections (pipes.dial) in virtual time"
            )
        return super().register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.is_real:
            return super().select(timeout)
        ready = super().select(0)
        if not ready and timeout != 0:
            self._waited(timeout)
        return ready


def _waiting(loop: asyncio.AbstractEventLoop) -> str:
    names = sorted(f"{task.get_name()} ({_where(task)})" for task in asyncio.all_tasks(loop))
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _where(task: asyncio.Task[Any]) -> str:
    stack = task.get_stack(limit=1)
    return f"{stack[0].f_code.co_qualname}, line {stack[0].f_lineno}" if stack else "not started"
