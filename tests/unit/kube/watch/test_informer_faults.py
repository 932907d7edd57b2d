"""An informer's store converges to the server's state through any fault, and no change is delivered twice."""

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import strategies as st

from numalign.kube.watch.informer import Options
from tests.campaigns import holds_for
from tests.unit.kube.clocks import run
from tests.unit.kube.stub import Fault, Stub, once
from tests.unit.kube.stubhttp import Reply, status
from tests.unit.kube.watching import BY_LIST, Watcher, pod, watching

THROTTLED = Reply(429, {"kind": "Status", "code": 429, "reason": "TooManyRequests"}, {"Retry-After": "1"})

ANSWERS: dict[str, Fault] = {
    "a reset": "reset",
    "half an answer": "cut",
    "silence": "stall",
    "throttling": THROTTLED,
    "an internal error": status(500, "InternalError"),
    "an unavailable server": status(503, "ServiceUnavailable"),
    "a proxy's error page": Reply(502, raw=b"<html>bad gateway</html>"),
    "a forgotten version": status(410, "Expired"),
    "a version of the future": status(504, "Timeout", "", causes=[{"reason": "ResourceVersionTooLarge"}]),
    "a refusal": status(403, "Forbidden"),
    "no JSON": Reply(200, raw=b'{"kind": "PodLi'),
    "another thing": Reply(200, raw=b"[]"),
    "a refusal that never ends": Reply(403, raw=b"", headers={"Content-Length": "7"}),
}
STREAMS: dict[str, Fault] = {
    "a reset": "reset",
    "half an event": "cut",
    "silence": "stall",
    "an event twice": "twice",
    "the whole past again": "again",
    "an early end": "end",
}
WAYS = {"list": BY_LIST, "stream": Options()}


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("fault", ANSWERS.values(), ids=ANSWERS)
def test_it_survives_an_answer_like(fault: Fault, options: Options) -> None:
    stub = Stub(offers_initial=True, faults=once(None, fault, fault, None, fault))
    assert run(_lived_through(stub, options)) == ["+a", "+b", "+c", "-a", "~bn"]


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("fault", STREAMS.values(), ids=STREAMS)
def test_it_survives_a_stream_with(fault: Fault, options: Options) -> None:
    stub = Stub(offers_initial=True, event_faults=once(fault, None, None, fault, None, fault))
    assert run(_lived_through(stub, options)) == ["+a", "+b", "+c", "-a", "~bn"]


async def _lived_through(stub: Stub, options: Options) -> list[str]:
    for name in "abc":
        stub.put("pods", pod(name))
    async with watching(stub, options) as watcher:
        stub.delete("pods", "a", "default")
        await watcher.heard_of("-a")
        stub.put("pods", pod("b", "n"))
        await watcher.until(stub)
        return watcher.heard


NAMES = st.sampled_from("abcd")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, st.sampled_from(["", "n1", "n2"])),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("make again"), NAMES),
        st.tuples(st.just("forget")),
        st.tuples(st.just("look away"), st.integers(1, 5)),
        st.tuples(st.just("catch up")),
    ),
    max_size=25,
)


def faults(kinds: dict[str, Fault]) -> st.SearchStrategy[list[Fault]]:
    """Mostly none, and silence seldom, as it takes the longest."""
    swift = [fault for fault in kinds.values() if fault != "stall"]
    return st.lists(st.sampled_from([None] * 12 + swift * 2 + ["stall"]), max_size=12)


@holds_for(STEPS, faults(ANSWERS), faults(STREAMS), st.booleans(), examples=25)
def test_the_store_converges_and_every_change_is_delivered_once(
    steps: list[tuple[Any, ...]], answers: list[Fault], streams: list[Fault], by_list: bool
) -> None:
    async def check() -> None:
        stub = Stub(offers_initial=True, faults=once(*answers), event_faults=once(*streams))
        stub.put("pods", pod("a"))
        async with watching(stub, BY_LIST if by_list else Options()) as watcher:
            for step in steps:
                await _done(stub, watcher, step)
            await watcher.until(stub)
            assert _replayed(watcher) == watcher.versions()

    run(check())


async def _done(stub: Stub, watcher: Watcher, step: tuple[Any, ...]) -> None:
    there = ("default", step[1]) in stub.objects["pods"] if len(step) > 1 else False
    match step:
        case ("put", name, node):
            stub.put("pods", pod(name, node))
        case ("delete", name) if there:
            stub.delete("pods", name, "default")
        case ("make again", name) if there:
            stub.delete("pods", name, "default")
            stub.put("pods", pod(name, "n3"))
        case ("forget",):
            stub.forget_history()
        case ("look away", turns):
            for _ in range(turns):
                await asyncio.sleep(0)
        case ("catch up",):
            await watcher.until(stub)


def _replayed(watcher: Watcher) -> dict[tuple[str, str], str]:
    """What one who only hears the changes knows in the end; each has to fit what was heard before it."""
    known: dict[tuple[str, str], Any] = {}
    for change in watcher.changes:
        thing = change.new or change.old
        assert thing is not None
        key = (thing.metadata.namespace, thing.metadata.name)
        assert known.pop(key, None) is change.old
        if change.new is not None:
            known[key] = change.new
    return {key: each.metadata.resource_version for key, each in known.items()}


def test_an_outage_is_logged_at_its_start_rarely_later_and_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def check() -> None:
        stub = Stub(faults=once(None, *[status(503, "ServiceUnavailable")] * 40))
        stub.put("pods", pod("a"))
        async with watching(stub) as watcher:
            stub.put("pods", pod("b"))
            await watcher.until(stub)

    with caplog.at_level(logging.INFO, "numalign.kube.watch.informer"):
        run(check())
    first, *others = [record.getMessage() for record in caplog.records]
    assert first.startswith("watch pods: 503")
    assert "failing for" not in first
    assert others[-1].startswith("pods: the API server answers again after ")
    assert all("; failing for " in line for line in others[:-1])
    assert 2 <= len(others) <= 10
