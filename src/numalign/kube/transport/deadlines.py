"""Answers that have to come in time, all watched by one timer.

`transport` hands every answer that it waits for to `Deadlines`. All are given the same time, so that the one that was
asked for first is due first; a timer for each would cost more than reading an answer does."""

import asyncio
from collections import deque

from numalign.kube.transport.exchange import Answer


class Deadlines:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: deque[tuple[float, Answer]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, answer: Answer) -> None:
        """Starts the time limit of an answer; its reader gets a TimeoutError if it is not complete in time."""
        loop, waiting = asyncio.get_running_loop(), self._waiting
        while waiting and waiting[0][1].is_over:
            waiting.popleft()
        waiting.append((loop.time() + self._seconds, answer))
        if self._timer is None:
            self._timer = loop.call_at(waiting[0][0], self._look)

    def _look(self) -> None:
        loop, waiting = asyncio.get_running_loop(), self._waiting
        while waiting and (waiting[0][1].is_over or waiting[0][0] <= loop.time()):
            waiting.popleft()[1].expire()
        self._timer = loop.call_at(waiting[0][0], self._look) if waiting else None
