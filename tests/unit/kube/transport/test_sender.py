"""Calls that are answered, late, refused or broken, and what is done about it."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from numalign.api.errors import BadObject
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.resources import NODES, PODS
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Identity, Login, Obtained
from numalign.kube.transport.dial import Server
from numalign.kube.transport.sender import Bucket
from numalign.kube.transport.transport import DEFAULT_LIMITS, USER_AGENT, Limits
from tests.unit.kube.clocks import HandClock, run
from tests.unit.kube.stub import Stub, access, once, serving
from tests.unit.kube.stubhttp import Reply, status

N1 = NODES.at("n1")
BRIEF = Limits(call_seconds=0.1, connect_seconds=0.1)


def stubbed(**how: Any) -> Stub:
    stub = Stub(**how)
    stub.put("nodes", {"metadata": {"name": "n1"}})
    return stub


Check = Callable[[Stub, Client, HandClock], Coroutine[Any, Any, Any]]


def with_client(check: Check, limits: Limits = DEFAULT_LIMITS, bucket: Bucket | None = None, **how: Any) -> Any:
    async def ready() -> Any:
        clock = HandClock()
        async with serving(stubbed(**how)) as stub, Client(access(stub), limits, bucket=bucket, clock=clock) as client:
            return await check(stub, client, clock)

    return run(ready())


def test_one_connection_serves_calls_that_follow_each_other() -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> tuple[int, int]:
        for _ in range(5):
            await client.get(N1)
        return stub.connections, client.sender.metrics.connections

    assert with_client(check) == (1, 1)


def test_no_more_connections_than_allowed_are_opened() -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> int:
        await asyncio.gather(*(client.get(N1) for _ in range(20)))
        return stub.connections

    assert with_client(check, Limits(connections=3)) == 3


def test_a_call_finds_the_connection_that_was_opened_for_it() -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> tuple[int, int]:
        await asyncio.gather(*(client.sender.prepare() for _ in range(9)))
        before = stub.connections
        await asyncio.gather(*(client.get(N1) for _ in range(3)))
        return before, stub.connections

    assert with_client(check, Limits(connections=3)) == (3, 3)


def test_connections_that_are_in_use_count_among_those_that_may_be_opened_beforehand() -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> int:
        calls = [asyncio.ensure_future(client.get(N1)) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.gather(*(client.sender.prepare() for _ in range(3)), *calls)
        return stub.connections

    assert with_client(check, Limits(connections=3)) == 3


def test_a_connection_that_cannot_be_opened_beforehand_is_the_calls_own_affair() -> None:
    async def check() -> None:
        async with Client(access(Stub(port=1)), BRIEF, clock=HandClock()) as client:
            await client.sender.prepare()
            with pytest.raises(errors.Unreachable):
                await client.create(NODES.everywhere(), {"metadata": {"name": "n1"}})

    run(check())


def test_a_connection_that_was_idle_for_long_is_not_trusted() -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> int:
        await client.get(N1)
        clock.time += 60
        await client.get(N1)
        return stub.connections

    assert with_client(check) == 2


def test_whom_to_trust_is_asked_again_every_second_and_not_for_every_call() -> None:
    class Contexts:
        looks = 0

        def context(self, certificate: object) -> None:
            self.looks += 1

    async def check() -> list[int]:
        async with serving(stubbed()) as stub:
            contexts, clock, looks = Contexts(), HandClock(), list[int]()
            trusting = dataclasses.replace(access(stub), contexts=cast(Any, contexts))
            async with Client(trusting, clock=clock) as client:
                for clock.time in (0.0, 0.5, 0.9, 1.0, 1.5, 3.0):
                    await client.get(N1)
                    looks.append(contexts.looks)
            return looks

    assert run(check()) == [1, 1, 1, 2, 2, 3]


def test_the_server_learns_who_calls() -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> tuple[str, str]:
        await client.get(N1)
        headers = stub.asked[0].headers
        return headers["user-agent"], headers["accept"]

    assert with_client(check) == (USER_AGENT, "application/json")


def test_a_silent_server_times_out() -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> None:
        await client.get(N1)

    with pytest.raises(errors.TimedOut, match="get Node n1: no answer in time"):
        with_client(check, BRIEF, faults=lambda asked: "stall")


def test_a_call_that_is_late_does_not_spoil_the_next() -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> str:
        with pytest.raises(errors.TimedOut):
            await client.get(N1)
        return (await client.get(N1)).metadata.name

    assert with_client(check, Limits(call_seconds=0.3), faults=once("stall")) == "n1"


REPEATED: dict[str, tuple[Any, float]] = {
    "throttled": (Reply(429, {}, {"Retry-After": "3"}), 3.0),
    "an internal error": (status(500, "InternalError"), 0.01),
    "a reset": ("reset", 0.01),
    "half an answer": ("cut", 0.01),
}


@pytest.mark.parametrize("fault, pause", REPEATED.values(), ids=REPEATED)
def test_a_read_is_repeated_after(fault: Any, pause: float) -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> tuple[str, list[float]]:
        return (await client.get(N1)).metadata.name, clock.slept

    assert with_client(check, faults=once(fault)) == ("n1", [pytest.approx(pause)])


@pytest.mark.parametrize("fault", ["reset", "cut", status(500, "InternalError")], ids=["reset", "cut", "500"])
def test_a_creation_of_unknown_outcome_is_not_repeated(fault: Any) -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> int:
        with pytest.raises(errors.KubeError):
            await client.create(PODS.within("default"), {"metadata": {"name": "a", "namespace": "default"}})
        return len(stub.asked)

    assert with_client(check, faults=once(fault)) == 1


def test_a_server_that_is_not_there_is_named() -> None:
    async def check() -> None:
        async with Client(access(Stub(port=1)), BRIEF, clock=HandClock()) as client:
            await client.get(N1)

    with pytest.raises(
        errors.Unreachable, match=r"get Node n1: no connection to 127.0.0.1:1: Connection refused"
    ) as raised:
        run(check())
    assert not raised.value.sent


def test_calls_are_counted_by_verb_and_code() -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> Any:
        await client.get(N1)
        with pytest.raises(errors.NotFound):
            await client.get(NODES.at("n2"))
        return client.sender.metrics

    metrics = with_client(check, faults=once("reset"))
    assert metrics.requests == {("get", "<error>"): 1, ("get", "200"): 1, ("get", "404"): 1}
    assert metrics.retries == {"get": 1}


def test_a_limit_makes_calls_wait() -> None:
    async def check(stub: Stub, client: Client, clock: HandClock) -> list[float]:
        for _ in range(4):
            await client.get(N1)
        return clock.slept

    assert with_client(check, bucket=Bucket(rate=10, burst=2)) == pytest.approx([0.1, 0.1])


def rotating(tokens: list[str]) -> auth.Source:
    left = iter(tokens)

    async def obtain() -> Obtained:
        return Obtained(Identity(auth.bearer(auth.token_text(next(left), "test", "token"))))

    return obtain


def believing(token: str) -> Callable[[Any], Any]:
    refused = status(401, "Unauthorized")
    return lambda asked: None if asked.headers["authorization"] == f"Bearer {token}" else refused


def asked_with(tokens: list[str], believed: str) -> list[str]:
    async def check() -> list[str]:
        clock = HandClock()
        async with serving(stubbed(faults=believing(believed))) as stub:
            way = auth.Access(Server("127.0.0.1", stub.port, secure=False), Login(rotating(tokens), clock))
            async with Client(way, clock=clock) as client:
                await client.get(N1)
                await client.get(N1)
            return [asked.headers["authorization"] for asked in stub.asked]

    return run(check())


def test_a_refused_login_is_renewed_once_and_kept() -> None:
    assert asked_with(["old", "new"], "new") == ["Bearer old", "Bearer new", "Bearer new"]


def test_a_login_that_is_refused_twice_is_an_error() -> None:
    with pytest.raises(errors.Unauthorized):
        asked_with(["old", "older", "oldest"], "new")


def test_a_login_that_cannot_be_renewed_for_a_while_is_waited_for() -> None:
    """Like a server that is away; only a first login that fails is a mistake in the settings."""
    assert asked_with(["old", "", "", "new"], "new") == ["Bearer old", "Bearer new", "Bearer new"]
    with pytest.raises(BadObject, match="holds no token"):
        asked_with(["", "new"], "new")
