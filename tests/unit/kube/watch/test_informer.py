"""An informer's store is what the server has, and its handler learns every change once and in order."""

import asyncio
import logging

import pytest

from numalign.kube.client import Client
from numalign.kube.clock import SystemClock
from numalign.kube.resources import PODS
from numalign.kube.watch.informer import Informer, Options
from tests.unit.kube.clocks import FastClock, run
from tests.unit.kube.stub import Stub, access, once, serving
from tests.unit.kube.watching import BY_LIST, Watcher, pod, watching

WAYS = {"by list": (False, BY_LIST), "by stream": (True, Options()), "stream refused": (False, Options(page=2))}


@pytest.mark.parametrize("offered, options", WAYS.values(), ids=WAYS)
def test_what_is_there_is_added_and_then_followed(offered: bool, options: Options) -> None:
    async def check() -> list[str]:
        stub = Stub(offers_initial=offered)
        for name in "abc":
            stub.put("pods", pod(name))
        async with watching(stub, options) as watcher:
            stub.put("pods", pod("b", "n1"))
            stub.delete("pods", "a", "default")
            stub.put("pods", pod("d"))
            await watcher.until(stub)
            return watcher.heard

    assert run(check()) == ["+a", "+b", "+c", "~bn1", "-a", "+d"]


def test_it_has_synced_once_the_last_page_is_in_the_store() -> None:
    async def check() -> tuple[bool, bool, int]:
        stub = Stub()
        for number in range(7):
            stub.put("pods", pod(f"p{number}"))
        async with watching(stub) as watcher:
            never_run = Watcher(watcher.client, BY_LIST).informer
            return never_run.has_synced, watcher.informer.has_synced, len(watcher.informer.store)

    assert run(check()) == (False, True, 7)


@pytest.mark.parametrize("offered, options", WAYS.values(), ids=WAYS)
def test_a_relist_does_not_depend_on_a_silent_stream(offered: bool, options: Options) -> None:
    async def check() -> list[str]:
        stub = Stub(offers_initial=offered)
        stub.put("pods", pod("a"))
        async with watching(stub, options) as watcher:
            stub.event_faults = once("stall")
            stub.put("pods", pod("a", "n1"))
            await watcher.informer.relisted()
            return list(watcher.heard)

    assert run(check()) == ["+a", "~an1"]


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8])
def test_a_relist_can_be_requested_in_every_state(turns: int) -> None:
    """Right after the first look it opens a stream, which it would follow for minutes."""

    async def check() -> int:
        stub = Stub()
        stub.put("pods", pod("a"))
        async with watching(stub, clock=SystemClock()) as watcher:
            for _ in range(turns):
                await asyncio.sleep(0)
            await asyncio.wait_for(watcher.informer.relisted(), 30)
            return watcher.metrics.relists["pods"]

    assert run(check()) == 2


class Unhurried(SystemClock):
    """Whoever waits for a turn waits for ever."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


def test_a_stream_that_a_relist_ends_causes_no_back_off() -> None:
    """As it was for a new leader: it looked again up to a minute later, and pods waited."""

    async def check() -> int:
        stub = Stub()
        stub.put("pods", pod("a"))
        async with watching(stub, clock=Unhurried()) as watcher:
            for name in "bcd":
                stub.put("pods", pod(name))
                await watcher.until(stub)
                await watcher.informer.relisted()
            return watcher.metrics.relists["pods"]

    assert run(check()) == 4


def test_a_relist_skips_the_back_off_of_a_failed_informer() -> None:
    async def check() -> list[str]:
        stub = Stub()
        stub.put("pods", pod("a"))
        async with watching(stub, clock=Unhurried()) as watcher:
            stub.event_faults = once("cut")
            stub.put("pods", pod("b"))
            await asyncio.wait_for(watcher.informer.relisted(), 30)
            return list(watcher.heard)

    assert run(check()) == ["+a", "+b"]


def test_a_list_that_began_before_the_request_does_not_count() -> None:
    async def check() -> int:
        stub = Stub()
        stub.put("pods", pod("a"))
        async with watching(stub) as watcher:
            await asyncio.gather(watcher.informer.relisted(), watcher.informer.relisted())
            return watcher.metrics.relists["pods"]

    assert run(check()) >= 2


def test_a_deleted_object_is_delivered_with_its_final_state() -> None:
    async def check() -> tuple[str | None, str | None]:
        stub = Stub()
        stub.put("pods", pod("a"))
        async with watching(stub) as watcher:
            stub.delete("pods", "a", "default")
            await watcher.until(stub)
            last = watcher.changes[-1]
            assert last.old is not None
            assert last.final is not None
            return last.old.metadata.resource_version, last.final.metadata.resource_version

    assert run(check()) == ("101", "102")


def test_a_pod_made_again_under_its_name_is_a_deletion_and_an_addition() -> None:
    async def check() -> list[str]:
        stub = Stub()
        stub.put("pods", pod("a"))
        async with watching(stub) as watcher:
            stub.delete("pods", "a", "default")
            stub.put("pods", pod("a", "n2"))
            await watcher.until(stub)
            return watcher.heard

    assert run(check()) == ["+a", "-a", "+an2"]


def test_a_forgotten_history_is_repaired_without_a_missed_deletion() -> None:
    async def check() -> tuple[list[str], int]:
        stub = Stub()
        for name in "ab":
            stub.put("pods", pod(name))
        async with watching(stub) as watcher:
            stub.event_faults = once("reset")
            stub.delete("pods", "a", "default")
            stub.forget_history()
            stub.put("pods", pod("c"))
            await watcher.until(stub)
            return watcher.heard, watcher.metrics.relists["pods"]

    assert run(check()) == (["+a", "+b", "-a", "+c"], 2)


def test_a_hostile_object_is_reported_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> tuple[list[str], int]:
        stub = Stub()
        stub.put("pods", pod("good"))
        stub.put("pods", pod("bad") | {"spec": {"containers": "none"}})
        async with watching(stub) as watcher:
            stub.put("pods", pod("later") | {"spec": 7})
            stub.put("pods", pod("fine"))
            await watcher.heard_of("+fine")
            return watcher.heard, watcher.metrics.unreadable["pods"]

    with caplog.at_level(logging.WARNING):
        assert run(check()) == (["+good", "+fine"], 2)
    assert "Pod default/bad, spec.containers: expected a list" in caplog.text


def test_an_object_that_turns_hostile_keeps_its_last_state_until_it_is_deleted() -> None:
    async def check() -> list[str]:
        stub = Stub()
        stub.put("pods", pod("a", "n1"))
        async with watching(stub) as watcher:
            stub.event_faults = once("reset")
            stub.put("pods", pod("a") | {"spec": 7})
            stub.forget_history()
            stub.put("pods", pod("b"))
            await watcher.heard_of("+b")
            stub.delete("pods", "a", "default")
            await watcher.heard_of("-an1")
            return watcher.heard

    assert run(check()) == ["+an1", "+b", "-an1"]


def test_a_resync_repairs_a_store_that_was_tampered_with() -> None:
    async def check() -> list[str]:
        stub = Stub()
        stub.put("pods", pod("a"))
        async with watching(stub, Options(initial_events=False, resync=5.0)) as watcher:
            (kept,) = watcher.informer.store
            watcher.informer.store.remove(kept)
            await watcher.until(stub)
            return watcher.heard

    assert run(check()) == ["+a", "+a"]


def test_a_handler_that_fails_ends_the_informer() -> None:
    async def check() -> None:
        stub = Stub()
        stub.put("pods", pod("a"))
        async with serving(stub), Client(access(stub), clock=FastClock()) as client:
            await Informer(client, PODS.everywhere(), _fail, BY_LIST).run()

    with pytest.raises(ZeroDivisionError):
        run(check())


def _fail(change: object) -> None:
    raise ZeroDivisionError
