"""The clock of the embedded cluster, for real time, virtual time and tests.

`cluster` passes one clock to all components. It implements `kube.clock.Clock`, so that our client runs on it too. The
seconds come from the machine, from an event loop with virtual time (`virtualtime.clock`) or from a test. No module of
this room reads `time` or `random` directly."""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta


class Clock:
    """`seconds` returns monotonic seconds; `began` is the wall time at the current value of `seconds`."""

    def __init__(self, seconds: Callable[[], float], began: datetime, chances: random.Random) -> None:
        self._seconds = seconds
        self._zero = began.astimezone(UTC) - timedelta(seconds=seconds())
        self._epoch = self._zero.timestamp()
        self._chances = chances
        self._text = (-1, "")

    def now(self) -> float:
        """Monotonic seconds."""
        return self._seconds()

    def wall(self) -> datetime:
        """Wall time in UTC."""
        return self._zero + timedelta(seconds=self._seconds())

    def rfc3339(self, moment: float | None = None) -> str:
        """Wall time in the format of API objects, now or at a `moment` of `now`: 2026-11-16T05:00:00Z."""
        # Every write asks for it, and thousands of writes share a second.
        second = int(self._epoch + (self._seconds() if moment is None else moment))
        if self._text[0] != second:
            self._text = (second, text(datetime.fromtimestamp(second, UTC)))
        return self._text[1]

    def chance(self) -> float:
        """A random number in [0, 1), for jitter."""
        return self._chances.random()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """A context manager that raises TimeoutError after this time."""
        return asyncio.timeout(seconds)


def real(chances: random.Random) -> Clock:
    """Real time."""
    return Clock(time.monotonic, datetime.now(UTC), chances)


def text(moment: datetime) -> str:
    """RFC 3339 with whole seconds, as in `metadata.creationTimestamp`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parsed(stamp: str | None) -> datetime | None:
    """The time of an RFC 3339 timestamp; None if it is absent or invalid."""
    try:
        then = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return then if then.tzinfo else then.replace(tzinfo=UTC)


def seconds_since(stamp: str | None, now: datetime) -> float | None:
    """Seconds from the timestamp to now; None if it is absent or invalid. Timestamps have whole seconds, so a wait that
    depends on one may end up to a second late."""
    then = parsed(stamp)
    return None if then is None else (now - then).total_seconds()
