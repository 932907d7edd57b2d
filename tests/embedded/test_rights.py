"""What our programs ask of an API server, held against the rights that a lab grants them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from numalign.lab import accounts
from numalign.lab.accounts import Right
from numalign.process.http.messages import Request, Response
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.http import requests
from numalign.simulator.apiserver.http.requests import WatchRequest
from numalign.simulator.apiserver.http.routes import Router
from tests.embedded import schedulerstories as stories
from tests.embedded.schedulerstories import Stage
from tests.embedded.test_scheduler_preemption import crowd, servers, trainer
from tests.unit.agent.clusters import Script, Town

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
Rights = set[tuple[str, str, str]]
"""Group, resource with its part, verb."""


def listed(rights: Iterable[Right]) -> Rights:
    return {(each.group, resource, verb) for each in rights for resource in each.resources for verb in each.verbs}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Rights:
    """What came over the wire; the embedded cluster's own parts use no wire."""
    found: Rights = set()
    answer = Router.answer

    def noted(serving: Router, call: Request) -> Response | WatchRequest:
        place = requests.request_info(serving.state.registry, call.path)
        verb = VERBS.get(call.method) or ("get" if place.name else "watch" if call.flag("watch") else "list")
        resource = f"{place.resource.plural}/{place.subresource}" if place.subresource else place.resource.plural
        found.add((place.resource.group, resource, verb))
        return answer(serving, call)

    monkeypatch.setattr(Router, "answer", noted)
    return found


def test_the_scheduler_asks_for_nothing_but_what_it_is_said_to_need(asked: Rights) -> None:
    async def plot(stage: Stage) -> None:
        await crowd(stage, 8)
        trainer(stage, "big", 4, "high")
        await stage.clock.sleep(60)

    stories.told(plot, servers(1))
    assert {("", "pods/binding", "create"), ("", "pods", "delete"), ("events.k8s.io", "events", "create")} <= asked
    assert asked - listed(accounts.SCHEDULER_RIGHTS) == set()


def test_the_agent_asks_for_nothing_but_what_it_is_said_to_need(asked: Rights) -> None:
    async def story() -> None:
        town = Town()
        async with town.agent(Script()), town.agent(Script(), "second"):
            await asyncio.sleep(600)

    virtualtime.run(story())
    assert {("topology.node.k8s.io", "noderesourcetopologies", "patch"), ("events.k8s.io", "events", "create")} <= asked
    assert asked - listed(accounts.AGENT_RIGHTS) == set()
