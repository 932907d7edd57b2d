"""Who may look: asked of the API server once in a while, and never twice in ten seconds."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from numalign.api.errors import BadObject
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.clock import SystemClock
from numalign.kube.request import Request
from numalign.kube.transport import auth, dial
from numalign.kube.transport.connection import Connection
from numalign.process.serve import PageRequest, PageResponse
from numalign.scheduler.http import authz

USERS: dict[str, dict[str, Any]] = {
    "alice": {"username": "alice", "groups": ["monitoring"], "extra": {"scopes": ["a"]}},
    "root": {"username": "root", "groups": ["system:masters"]},
    "bob": {"username": "bob"},
}
FAULTS = {"unreachable": errors.Unreachable("create", "review", "away"), "odd": BadObject("Review", "", "", "odd")}


class Server:
    """Knows three tokens, and lets alice look at metrics."""

    def __init__(self, fault: Exception | None = None, beyond: int = 0) -> None:
        self.time, self.asked, self._fault, self._beyond = 0.0, list[str](), fault, beyond
        self.clock = SimpleNamespace(now=lambda: self.time)

    async def call(self, request: Request) -> bytes:
        spec = json.loads(request.body)["spec"]
        self.asked.append(request.path.rpartition("/")[2])
        if self._fault is not None and len(self.asked) > self._beyond:
            raise self._fault
        if "token" in spec:
            user = USERS.get(spec["token"])
            return json.dumps({"status": {"authenticated": True, "user": user} if user else {}}).encode()
        what = spec["nonResourceAttributes"]
        allowed = (spec["user"], what["path"], what["verb"]) == ("alice", "/metrics", "get")
        return json.dumps({"metadata": {}, "status": {"allowed": allowed}}).encode()


def asked(path: str, token: str = "", method: str = "GET") -> PageRequest:
    return PageRequest(method=method, path=path, headers={"authorization": f"Bearer {token}"} if token else {})


def answers(server: Server, *questions: PageRequest, **how: Any) -> list[PageResponse | None]:
    async def ask() -> list[PageResponse | None]:
        guard = authz.guard(cast(Client, SimpleNamespace(sender=server)), **how)
        return [await guard(each) for each in questions]

    return asyncio.run(ask())


CASES = {
    "health is for all": (asked("/healthz"), 200, []),
    "a single check is not": (asked("/readyz/informer-sync"), 403, ["subjectaccessreviews"]),
    "nobody in particular": (asked("/metrics"), 403, ["subjectaccessreviews"]),
    "somebody unknown": (asked("/metrics", "mallory"), 401, ["tokenreviews"]),
    "somebody who may": (asked("/metrics", "alice"), 200, ["tokenreviews", "subjectaccessreviews"]),
    "somebody who may not": (asked("/metrics", "bob"), 403, ["tokenreviews", "subjectaccessreviews"]),
    "somebody who may look, not touch": (
        asked("/metrics", "alice", "HEAD"),
        403,
        ["tokenreviews", "subjectaccessreviews"],
    ),
    "somebody who may everything": (asked("/debug/dump", "root"), 200, ["tokenreviews"]),
}


@pytest.mark.parametrize("question, status, reviews", CASES.values(), ids=CASES)
def test_the_api_server_decides(question: PageRequest, status: int, reviews: list[str]) -> None:
    server = Server()
    (answer,) = answers(server, question)
    assert (answer.status if answer is not None else 200, server.asked) == (status, reviews)


def test_a_refusal_is_worded_as_the_stock_scheduler_words_it() -> None:
    (answer,) = answers(Server(), asked("/metrics", "bob"))
    assert answer is not None
    result = json.loads(answer.body)
    assert (result["kind"], result["reason"], result["code"]) == ("Status", "Forbidden", 403)
    assert result["message"] == 'forbidden: User "bob" cannot get path "/metrics"'


def test_what_is_open_to_all_can_be_said() -> None:
    questions = (asked("/metrics"), asked("/debug/state"), asked("/debugging"), asked("/healthz"))
    found = answers(Server(), *questions, open_to_all=("/metrics", "/debug/*"))
    assert [answer is None for answer in found] == [True, True, False, False]


def test_answers_are_kept_for_ten_seconds() -> None:
    server = Server()

    async def ask() -> list[int]:
        guard, counts = authz.guard(cast(Client, SimpleNamespace(sender=server))), []
        for moment in (0.0, 9.9, 10.1):
            server.time = moment
            assert await guard(asked("/metrics", "alice")) is None
            counts.append(len(server.asked))
        return counts

    assert asyncio.run(ask()) == [2, 2, 4]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("beyond, status", [(0, 401), (1, 500)], ids=["who", "whether"])
def test_without_an_answer_access_is_denied(fault: Exception, beyond: int, status: int) -> None:
    (answer,) = answers(Server(fault, beyond), asked("/metrics", "alice"))
    assert answer is not None
    assert answer.status == status


def test_however_many_tokens_are_tried_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authz, "MOST_KEPT", 2)
    server = Server()
    answers(server, *(asked("/metrics", token) for token in ("a", "b", "c", "a", "c")))
    assert server.asked == ["tokenreviews"] * 4


def test_strangers_cause_few_reviews() -> None:
    """400 requests at once, each with a token of its own, and again a second later."""
    server = Server()
    tried = [asked("/metrics", f"guess-{number}") for number in range(400)]

    async def ask() -> list[int]:
        guard, counts = authz.guard(cast(Client, SimpleNamespace(sender=server))), []
        for moment in (0.0, 1.0):
            server.time = moment
            refused = await asyncio.gather(*map(guard, tried))
            assert {each.status for each in refused if each is not None} == {401, 429}
            counts.append(len(server.asked))
        return counts

    first, second = asyncio.run(ask())
    assert 0 < first <= authz.AT_ONCE
    assert 0 < second - first <= authz.PER_SECOND


def test_strangers_do_not_use_up_the_reviews_of_known_clients() -> None:
    server = Server()

    async def ask() -> list[PageResponse | None]:
        guard, found = authz.guard(cast(Client, SimpleNamespace(sender=server))), []
        for moment in range(0, 60, 11):
            server.time = float(moment)
            found.append(await guard(asked("/metrics", "alice")))
            await asyncio.gather(*(guard(asked("/metrics", f"guess-{moment}-{number}")) for number in range(100)))
        return found

    assert asyncio.run(ask()) == [None] * 6


def test_the_same_question_is_asked_once_at_a_time() -> None:
    server = Server()

    async def ask() -> None:
        guard = authz.guard(cast(Client, SimpleNamespace(sender=server)))
        await asyncio.gather(*(guard(asked("/metrics", "bob")) for _ in range(400)))

    asyncio.run(ask())
    assert server.asked == ["tokenreviews", "subjectaccessreviews"]


def test_a_client_that_hangs_up_does_not_take_the_answer_from_others() -> None:
    server = Server()

    async def ask() -> PageResponse | None:
        guard = authz.guard(cast(Client, SimpleNamespace(sender=server)))
        first = asyncio.ensure_future(guard(asked("/metrics", "alice")))
        second = asyncio.ensure_future(guard(asked("/metrics", "alice")))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(ask()) is None


def test_reviews_do_not_share_connections_with_anything_else() -> None:
    """A guard is made of what is needed to reach the API server, and not of a client."""
    dialled: list[str] = []

    async def refuse(server: dial.Server, context: object, seconds: float) -> Connection:
        dialled.append(server.authority)
        raise dial.CannotConnect("no")

    async def ask() -> PageResponse | None:
        login = auth.Login(auth.unchanging(auth.Identity()), SystemClock())
        access = auth.Access(dial.Server("api", 1, secure=False), login, dial=refuse)
        async with authz.guarding(access) as guard:
            return await guard(asked("/metrics", "alice"))

    answer = asyncio.run(ask())
    assert answer is not None
    assert (answer.status, set(dialled)) == (401, {"api:1"})
