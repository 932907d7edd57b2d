"""Events use the calls that bindings leave free, in order, and carry the time at which they happened."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import datetime

import pytest

from numalign.kube.client import Client
from numalign.kube.events.events import Occurrence, Reporter
from numalign.kube.events.recorder import Recorder
from numalign.kube.resources import ObjectReference
from numalign.scheduler.events import publish
from numalign.scheduler.events.publish import EventQueue
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import NEW_EVENTS
from numalign.simulator.trees import Tree

Written = Callable[[], list[Tree]]
"""The events there are, the first one first."""
Play = Callable[[EventQueue, Written], Awaitable[None]]


def version(event: Tree) -> int:
    return int(event["metadata"]["resourceVersion"])


def notes(written: Written) -> list[str]:
    return [each["note"] for each in written()]


def played(play: Play, free_calls: Callable[[], int]) -> None:
    async def run() -> None:
        clock = virtualtime.clock(random.Random(1))
        async with (
            cluster.running([], clock, random.Random(1)) as embedded,
            Client(embedded.access(), clock=clock) as client,
        ):
            queue = EventQueue(client, Reporter("numalign", "host"), free_calls)
            running = asyncio.ensure_future(queue.run())
            await play(queue, lambda: sorted(embedded.api.list(NEW_EVENTS).items, key=version))
            running.cancel()

    virtualtime.run(run())


def happened(note: str, pod: str = "p0", reason: str = "Scheduled") -> Occurrence:
    regarding = ObjectReference(api_version="v1", kind="Pod", namespace="default", name=pod, uid=pod)
    return Occurrence(regarding=regarding, reason=reason, action="Binding", note=note)


def test_while_bindings_use_all_calls_events_wait_and_then_all_are_written() -> None:
    free = [0]

    async def play(queue: EventQueue, written: Written) -> None:
        for number in range(100):
            queue.record(happened("bound", f"p{number}"))
        await asyncio.sleep(5)
        assert written() == []
        free[0] = 64
        await asyncio.sleep(1)
        assert len(written()) == 100

    played(play, lambda: free[0])


def test_as_many_events_are_written_at_a_time_as_bindings_leave_calls_free(monkeypatch: pytest.MonkeyPatch) -> None:
    free, being_written = [0], set[str]()

    async def write(_: Recorder, what: Occurrence, *__: object) -> None:
        being_written.add(what.regarding.uid)
        await asyncio.sleep(1)
        being_written.discard(what.regarding.uid)

    async def play(queue: EventQueue, written: Written) -> None:
        for number in range(100):
            queue.record(happened("bound", f"p{number}"))
        for free[0] in (3, 10, 0, 2):
            await asyncio.sleep(1.5)
            assert len(being_written) == free[0]

    monkeypatch.setattr(Recorder, "write", write)
    played(play, lambda: free[0])


def test_under_a_load_that_does_not_end_an_event_waits_for_a_limited_time() -> None:
    async def play(queue: EventQueue, written: Written) -> None:
        queue.record(happened("bound"))
        await asyncio.sleep(publish.LONGEST_WAIT - 1)
        assert notes(written) == []
        await asyncio.sleep(2)
        assert notes(written) == ["bound"]

    played(play, lambda: 0)


@pytest.mark.parametrize("free", [1, 64])
def test_events_of_one_pod_are_written_in_the_order_in_which_they_happened(free: int) -> None:
    async def play(queue: EventQueue, written: Written) -> None:
        result = [f"reason {number}" for number in range(48)]
        for note in result:
            queue.record(happened(note, reason=note.replace(" ", "")))
        await queue.drained()
        assert notes(written) == result

    played(play, lambda: free)


def test_drained_waits_for_events_that_bindings_hold_back() -> None:
    async def play(queue: EventQueue, written: Written) -> None:
        queue.record(happened("bound"))
        await queue.drained()
        assert notes(written) == ["bound"]

    played(play, lambda: 0)


def test_an_event_that_waited_carries_the_time_at_which_it_happened() -> None:
    async def play(queue: EventQueue, written: Written) -> None:
        queue.record(happened("bound"))
        await queue.drained()
        (event,) = written()
        created = datetime.fromisoformat(event["metadata"]["creationTimestamp"])
        late = created - datetime.fromisoformat(event["eventTime"])
        assert round(late.total_seconds()) == publish.LONGEST_WAIT

    played(play, lambda: 0)
