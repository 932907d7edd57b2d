"""Events: each kind written once, counted after that, and never in the way."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kube.client import Client
from numalign.kube.events import events
from numalign.kube.events.events import Correlator, Count, Create, Occurrence, Reporter, Write
from numalign.kube.events.recorder import LONGEST_QUEUE, Recorder
from numalign.kube.resources import ObjectReference
from tests.unit.kube.clocks import START, FastClock, HandClock, run
from tests.unit.kube.stub import Stub, access, once, serving
from tests.unit.kube.stubhttp import status

WEB = ObjectReference(api_version="v1", kind="Pod", namespace="default", name="web", uid="u1")
REPORTER = Reporter("numalign", "numalign-host")


def failed(note: str = "no node", thing: ObjectReference = WEB) -> Occurrence:
    return Occurrence(regarding=thing, reason="FailedScheduling", action="Scheduling", note=note, type="Warning")


def at(correlator: Correlator, seconds: float, what: Occurrence | None = None) -> Write | None:
    return correlator.happened(what or failed(), seconds, START + timedelta(seconds=seconds))


def test_events_of_one_moment_have_names_of_their_own() -> None:
    correlator = Correlator(REPORTER)
    reasons = ("Scheduled", "FailedScheduling", "Preempted")
    writes = [at(correlator, 0.0, msgspec.structs.replace(failed(), reason=reason)) for reason in reasons]
    names = [write.event.metadata.name for write in writes if isinstance(write, Create)]
    assert names == ["web.18e85d72ff6b004d", "web.18e85d72ff6b004e", "web.18e85d72ff6b004f"]


def test_two_reporters_choose_two_names_in_the_same_moment() -> None:
    writes = [at(Correlator(Reporter(name, "host")), 0.0) for name in ("kubelet", "numalign")]
    assert len({write.event.metadata.name for write in writes if isinstance(write, Create)}) == 2


def test_the_first_one_is_created_as_the_api_wants_it() -> None:
    first = at(Correlator(REPORTER), 0.0)
    assert isinstance(first, Create)
    event = first.event
    assert (event.metadata.name, event.metadata.namespace) == ("web.18e85d72ff6b004d", "default")
    assert event.event_time == "2026-11-16T00:00:00.000000Z"
    assert (event.reporting_controller, event.reporting_instance) == ("numalign", "numalign-host")


def test_a_repeated_one_begins_a_series_and_is_only_counted_after_that() -> None:
    correlator = Correlator(REPORTER)
    at(correlator, 0.0)
    second = at(correlator, 1.0, failed("another note"))
    assert isinstance(second, Count)
    assert second.event.series is not None
    assert (second.event.series.count, second.event.note) == (2, "no node")
    assert [at(correlator, 2.0), at(correlator, 3.0)] == [None, None]


def test_a_series_that_is_over_is_written_and_forgotten() -> None:
    correlator = Correlator(REPORTER)
    for second in (0.0, 1.0, 2.0):
        at(correlator, second)
    assert correlator.due(300.0) == []
    (last,) = correlator.due(362.0)
    assert last.event.series is not None
    assert (last.event.series.count, len(correlator)) == (3, 0)


def test_one_that_happens_again_much_later_is_new() -> None:
    correlator = Correlator(REPORTER)
    at(correlator, 0.0)
    assert isinstance(at(correlator, events.SERIES_ENDS), Create)


def test_a_single_one_is_forgotten_without_a_word() -> None:
    correlator = Correlator(REPORTER)
    at(correlator, 0.0)
    assert (correlator.due(360.0), len(correlator)) == ([], 0)


def test_a_series_that_goes_on_is_written_every_half_hour() -> None:
    correlator, written = Correlator(REPORTER), list[float]()
    for second in range(0, 7200, 60):
        at(correlator, second)
        written += [second for _ in correlator.due(second)]
    assert written == [1860, 3660, 5460]


def test_what_differs_in_more_than_the_note_is_another_event() -> None:
    correlator = Correlator(REPORTER)
    other = ObjectReference(kind="Node", name="n1")
    assert isinstance(at(correlator, 0.0), Create)
    node = at(correlator, 0.0, failed(thing=other))
    assert isinstance(node, Create)
    assert node.event.metadata.namespace == events.HOME


@given(st.text(max_size=2000))
def test_a_note_fits_and_is_cut_between_characters(note: str) -> None:
    cut = events.cut(note)
    assert len(cut.encode("utf-8", "replace")) <= events.LONGEST_NOTE
    assert cut == note or (cut.endswith(events.CUT) and note.startswith(cut.removesuffix(events.CUT)))


Check = Callable[[Stub, Recorder, Client], Coroutine[Any, Any, Any]]


def recording(check: Check, **how: Any) -> Any:
    async def ready() -> Any:
        async with serving(Stub(**how)) as stub, Client(access(stub), clock=FastClock()) as client:
            recorder = Recorder(client, REPORTER)
            task = asyncio.create_task(recorder.run())
            try:
                return await check(stub, recorder, client)
            finally:
                task.cancel()
                await asyncio.wait([task])

    return run(ready())


def test_events_arrive_and_a_series_is_patched() -> None:
    async def check(stub: Stub, recorder: Recorder, client: Client) -> tuple[int, list[str]]:
        recorder.record(failed())
        recorder.record(failed())
        await recorder.drained()
        (event,) = stub.objects["events"].values()
        return event["series"]["count"], [asked.method for asked in stub.asked][:2]

    assert recording(check) == (2, ["POST", "PATCH"])


def test_a_series_whose_event_was_deleted_is_created_again() -> None:
    async def check(stub: Stub, recorder: Recorder, client: Client) -> int:
        recorder.record(failed())
        await recorder.drained()
        stub.objects["events"].clear()
        recorder.record(failed())
        await recorder.drained()
        return len(stub.objects["events"])

    assert recording(check) == 1


FAULTS: dict[str, tuple[list[Any], int, int]] = {
    "a refusal drops it": ([status(403, "Forbidden")], 0, 1),
    "a reset is tried again": (["reset", "reset"], 1, 0),
    "a network that never comes back drops it": (["reset"] * 12, 0, 1),
}


@pytest.mark.parametrize("faults, written, dropped", FAULTS.values(), ids=FAULTS)
def test_what_the_server_does_to_an_event(faults: list[Any], written: int, dropped: int) -> None:
    async def check(stub: Stub, recorder: Recorder, client: Client) -> tuple[int, int]:
        recorder.record(failed())
        await recorder.drained()
        return len(stub.objects.get("events", {})), client.sender.metrics.events_dropped

    assert recording(check, faults=once(*faults)) == (written, dropped)


def test_too_many_are_dropped_instead_of_waited_for() -> None:
    async def check() -> int:
        async with Client(access(Stub(port=1)), clock=HandClock()) as client:
            recorder = Recorder(client, REPORTER)
            for number in range(LONGEST_QUEUE + 5):
                recorder.record(failed(thing=ObjectReference(name=f"p{number}")))
            return client.sender.metrics.events_dropped

    assert run(check()) == 5
