"""Events behind bindings: they let a burst pass, not for ever, in order, and tell when they happened."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import datetime

from numalign.kube.client import Client
from numalign.kube.events.events import Occurrence, Reporter
from numalign.kube.objects import ObjectReference
from numalign.scheduler.events import eventqueue
from numalign.scheduler.events.eventqueue import Lines
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import NEW_EVENTS
from numalign.simulator.trees import Tree

Written = Callable[[], list[Tree]]
"""The events there are, the first one first."""
Play = Callable[[Lines, Written], Awaitable[None]]


def version(event: Tree) -> int:
    return int(event["metadata"]["resourceVersion"])


def notes(written: Written) -> list[str]:
    return [each["note"] for each in written()]


def played(play: Play, is_busy: Callable[[], bool]) -> None:
    async def run() -> None:
        clock = virtualtime.clock(random.Random(1))
        async with (
            cluster.running([], clock, random.Random(1)) as embedded,
            Client(embedded.access(), clock=clock) as client,
        ):
            lines = Lines(client, Reporter("numalign", "host"), is_busy)
            running = asyncio.ensure_future(lines.run())
            await play(lines, lambda: sorted(embedded.api.list(NEW_EVENTS).items, key=version))
            running.cancel()

    virtualtime.run(run())


def happened(note: str, pod: str = "p0", reason: str = "Scheduled") -> Occurrence:
    regarding = ObjectReference(api_version="v1", kind="Pod", namespace="default", name=pod, uid=pod)
    return Occurrence(regarding=regarding, reason=reason, action="Binding", note=note)


def test_while_there_is_much_to_bind_events_wait_and_then_all_are_written() -> None:
    busy = [True]

    async def play(lines: Lines, written: Written) -> None:
        for number in range(100):
            lines.record(happened("bound", f"p{number}"))
        await asyncio.sleep(5)
        assert written() == []
        busy[0] = False
        await asyncio.sleep(1)
        assert len(written()) == 100

    played(play, lambda: busy[0])


def test_a_load_that_does_not_end_holds_an_event_up_for_a_while_only() -> None:
    async def play(lines: Lines, written: Written) -> None:
        lines.record(happened("bound"))
        await asyncio.sleep(eventqueue.LONGEST_WAIT - 1)
        assert notes(written) == []
        await asyncio.sleep(2)
        assert notes(written) == ["bound"]

    played(play, lambda: True)


def test_events_of_one_pod_are_written_in_the_order_in_which_they_happened() -> None:
    async def play(lines: Lines, written: Written) -> None:
        told = [f"reason {number}" for number in range(3 * eventqueue.AT_ONCE)]
        for note in told:
            lines.record(happened(note, reason=note.replace(" ", "")))
        await lines.drained()
        assert notes(written) == told

    played(play, lambda: False)


def test_whoever_waits_for_them_to_be_written_waits_for_those_that_are_held_up_too() -> None:
    async def play(lines: Lines, written: Written) -> None:
        lines.record(happened("bound"))
        await lines.drained()
        assert notes(written) == ["bound"]

    played(play, lambda: True)


def test_an_event_that_was_held_up_tells_when_it_happened() -> None:
    async def play(lines: Lines, written: Written) -> None:
        lines.record(happened("bound"))
        await lines.drained()
        (event,) = written()
        created = datetime.fromisoformat(event["metadata"]["creationTimestamp"])
        late = created - datetime.fromisoformat(event["eventTime"])
        assert round(late.total_seconds()) == eventqueue.LONGEST_WAIT

    played(play, lambda: True)
