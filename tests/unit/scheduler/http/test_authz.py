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
from numalign.kube.request import Request
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
