"""The queue: each key once, the earliest time counts, failed keys come later and later."""

from __future__ import annotations

import random

import pytest

from numalign.deploy.operator.workqueue import WorkQueue
from numalign.simulator import virtualtime


def test_keys_come_once_in_the_order_of_their_times() -> None:
    async def main() -> None:
        clock = virtualtime.clock(random.Random(1))
        queue: WorkQueue[str] = WorkQueue(clock)
        queue.add("a", 5.0)
        queue.add("b", 1.0)
        queue.add("a", 3.0)
        queue.add("a", 9.0)
        assert [(await queue.get(), clock.now()), (await queue.get(), clock.now())] == [("b", 1.0), ("a", 3.0)]
        with pytest.raises(TimeoutError):
            async with clock.timeout(100.0):
                await queue.get()

    virtualtime.run(main())


def test_a_failed_key_waits_longer_each_time_and_a_change_does_not_hurry_it() -> None:
    async def main() -> None:
        clock = virtualtime.clock(random.Random(1))
        queue: WorkQueue[str] = WorkQueue(clock)
        queue.add("a")
        pauses = []
        for _ in range(8):
            assert await queue.get() == "a"
            before = clock.now()
            queue.failed("a")
            queue.add("a")
            assert await queue.get() == "a"
            pauses.append(clock.now() - before)
            queue.add("a", 0.0)
        assert all(0.8 * 2**n <= pause <= 2**n for n, pause in enumerate(pauses[:4]))
        assert max(pauses) <= 30.0
        queue.succeeded("a")
        assert queue.failures("a") == 0

    virtualtime.run(main())
