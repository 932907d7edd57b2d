"""Leadership performed against a server: gained, kept, lost in time, given back."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from numalign.kube.client import Client
from numalign.kube.events.events import Reporter
from numalign.kube.leader import leading
from numalign.kube.leader.leading import LeadershipLost
from numalign.kube.leader.lease import Election
from tests.unit.kube.clocks import FastClock, run
from tests.unit.kube.stub import Stub, access, once, serving
from tests.unit.kube.stubhttp import status


class BriskClock(FastClock):
    """Slow enough that a busy machine does not lose a lease by itself."""

    speed = 5.0


@asynccontextmanager
async def candidates(stub: Stub, *names: str) -> AsyncIterator[list[tuple[Client, Election]]]:
    async with serving(stub):
        clients = [Client(access(stub), clock=BriskClock()) for _ in names]
        yield [
            (each, leading.election("numalign", "kube-system", identity=name))
            for each, name in zip(clients, names, strict=True)
        ]
        for each in clients:
            each.sender.close()


def spec(stub: Stub) -> dict[str, Any]:
    found: dict[str, Any] = stub.objects["leases"]["kube-system", "numalign"]["spec"]
    return found


def test_who_leads_works_and_gives_the_lease_back() -> None:
    async def check() -> tuple[str, str]:
        stub = Stub()
        async with candidates(stub, "me") as [(client, me)]:
            during = []

            async def work() -> None:
                during.append(spec(stub)["holderIdentity"])

            await leading.lead(client, me, work)
            return during[0], spec(stub)["holderIdentity"]

    assert run(check()) == ("me", "")


def test_becoming_and_ceasing_to_be_leader_are_events_on_the_lease() -> None:
    async def check() -> list[tuple[str, str, str]]:
        stub = Stub()
        async with candidates(stub, "me") as [(client, me)]:

            async def work() -> None:
                while not stub.objects.get("events"):
                    await asyncio.sleep(0.001)

            await leading.lead(client, me, work, Reporter("numalign", "host"))
        found = stub.objects["events"].values()
        return [(each["note"], each["regarding"]["kind"], each["reportingController"]) for each in found]

    told = [(f"me {what}", "Lease", "numalign") for what in ("became leader", "stopped leading")]
    assert run(check()) == told


def test_a_failure_to_write_an_event_is_ignored() -> None:
    async def check() -> str:
        stub = Stub(faults=lambda asked: status(403, "Forbidden") if "/events" in asked.path else None)
        async with candidates(stub, "me") as [(client, me)]:
            await leading.lead(client, me, lambda: asyncio.sleep(0.01), Reporter("numalign", "host"))
        return str(spec(stub)["holderIdentity"])

    assert run(check()) == ""


def test_the_next_takes_over_at_once_when_the_lease_is_given_back() -> None:
    async def check() -> tuple[list[str], int]:
        stub, order = Stub(), list[str]()
        async with candidates(stub, "a", "b") as [(first, a), (second, b)]:

            async def work(name: str) -> None:
                order.append(name)

            await leading.lead(first, a, lambda: work("a"))
            await leading.lead(second, b, lambda: work("b"))
        return order, spec(stub)["leaseTransitions"]

    assert run(check()) == (["a", "b"], 1)


def test_while_one_leads_the_other_waits() -> None:
    async def check() -> bool:
        stub = Stub()
        async with candidates(stub, "a", "b") as [(first, a), (second, b)]:
            await leading.acquire(first, a)
            return await leading.attempt(second, b)

    assert run(check()) is False


@pytest.mark.parametrize("fault", ["stall", "reset"], ids=["silence", "resets"])
def test_work_ends_within_the_deadline_when_the_lease_cannot_be_renewed(fault: Any) -> None:
    async def check() -> float:
        stub = Stub()
        async with candidates(stub, "me") as [(client, me)]:
            clock = client.sender.clock
            ended = list[float]()

            async def work() -> None:
                started = clock.now()
                stub.faults = lambda asked: fault
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append(clock.now() - started)

            with pytest.raises(LeadershipLost, match="me stopped leading: not renewed within 10 s"):
                await leading.lead(client, me, work)
            return ended[0]

    # A little over, for a busy machine to cancel the task in: 5 s of this clock are one of ours.
    assert run(check()) < 10 + 2


def test_a_renewal_that_fails_once_is_made_up_for() -> None:
    async def check() -> int:
        stub = Stub()
        async with candidates(stub, "me") as [(client, me)]:

            async def work() -> None:
                stub.faults = once(status(409, "Conflict"), None, status(500, "InternalError"))
                before = stub.version
                while stub.version < before + 2:
                    await client.sender.clock.sleep(1.0)

            await leading.lead(client, me, work)
            return int(spec(stub)["leaseTransitions"])

    assert run(check()) == 0


def test_an_error_of_the_work_is_raised_and_the_lease_is_released() -> None:
    async def check() -> str:
        stub = Stub()
        async with candidates(stub, "me") as [(client, me)]:

            async def work() -> None:
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await leading.lead(client, me, work)
        return str(spec(stub)["holderIdentity"])

    assert run(check()) == ""


def test_work_ends_even_if_the_leader_is_stopped_twice() -> None:
    """The second signal arrives while the leader waits for its tasks to end."""

    async def check() -> bool:
        stub = Stub()
        async with candidates(stub, "me") as [(client, me)]:
            started, works = asyncio.Event(), []

            async def work() -> None:
                works.append(asyncio.current_task())
                started.set()
                await asyncio.Event().wait()

            leader = asyncio.ensure_future(leading.lead(client, me, work))
            await started.wait()
            leader.cancel()
            await asyncio.sleep(0)
            leader.cancel()
            await asyncio.wait((leader,))
            await asyncio.sleep(0)
            return all(each is not None and each.done() for each in works)

    assert run(check())


def test_identities_are_unique() -> None:
    assert leading.own_identity() != leading.own_identity()


def test_a_replica_that_waits_says_for_whom(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        stub = Stub()
        async with candidates(stub, "me", "other") as [(mine, me), (theirs, other)]:
            assert await leading.attempt(theirs, other)
            waiting = asyncio.ensure_future(leading.acquire(mine, me))
            while not caplog.records:
                await asyncio.sleep(0.001)
            waiting.cancel()

    with caplog.at_level(logging.INFO, leading.LOG.name):
        run(check())
    assert [each.getMessage() for each in caplog.records] == [
        "Waiting for lease kube-system/numalign, which other holds"
    ]


def test_a_lease_that_cannot_be_written_is_a_warning_once_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    missing = status(404, "NotFound", 'namespaces "kube-system" not found')

    async def check() -> None:
        stub = Stub(faults=once(*[missing] * 8))
        async with candidates(stub, "me") as [(client, me)]:
            for _ in range(4):
                assert not await leading.attempt(client, me)

    with caplog.at_level(logging.INFO, leading.LOG.name):
        run(check())
    (warned,) = caplog.records
    assert warned.levelno == logging.WARNING
    assert "create the namespace kube-system, or set leaderElection.resourceNamespace" in warned.getMessage()
