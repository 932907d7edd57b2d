"""What our programs ask of an API server, held against the rights that their pages say they need."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from numalign.simulator import virtualtime
from numalign.simulator.apiserver import paths
from numalign.simulator.apiserver.calls import Answer, Call, Following
from numalign.simulator.apiserver.serving import Serving
from tests.embedded import schedulerstories as stories
from tests.embedded.schedulerstories import Stage
from tests.embedded.test_scheduler_preemption import crowd, servers, trainer
from tests.unit.agent.clusters import Script, Town

DOCS = Path(__file__).parents[2] / "docs"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
KNOWN = {"get", "list", "watch", *VERBS.values()}
WORD = re.compile("`([^`]+)`")
Rights = set[tuple[str, str, str]]
"""Group, resource with its part, verb."""


def documented(page: str) -> Rights:
    """The table under the heading `What it needs`."""
    section = (DOCS / page).read_text().partition("## What it needs\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:4] for row in section.splitlines() if row.startswith("| ")][1:]
    return {
        (group.strip(" `"), resource, verb)
        for group, resources, verbs in rows
        for resource in WORD.findall(resources)
        for verb in WORD.findall(verbs)
        if verb in KNOWN
    }


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Rights:
    """What came over the wire; the embedded cluster's own parts use no wire."""
    found: Rights = set()
    answer = Serving.answer

    def noted(serving: Serving, call: Call) -> Answer | Following:
        place = paths.located(serving.state.registry, call.path)
        verb = VERBS.get(call.method) or ("get" if place.name else "watch" if call.flag("watch") else "list")
        resource = f"{place.resource.plural}/{place.part}" if place.part else place.resource.plural
        found.add((place.resource.group, resource, verb))
        return answer(serving, call)

    monkeypatch.setattr(Serving, "answer", noted)
    return found


def test_the_scheduler_asks_for_nothing_but_what_it_is_said_to_need(asked: Rights) -> None:
    async def plot(stage: Stage) -> None:
        await crowd(stage, 8)
        trainer(stage, "big", 4, "high")
        await stage.clock.sleep(60)

    stories.told(plot, servers(1))
    assert {("", "pods/binding", "create"), ("", "pods", "delete"), ("events.k8s.io", "events", "create")} <= asked
    assert asked - documented("scheduler.md") == set()


def test_the_agent_asks_for_nothing_but_what_it_is_said_to_need(asked: Rights) -> None:
    async def story() -> None:
        town = Town()
        async with town.agent(Script()), town.agent(Script(), "second"):
            await asyncio.sleep(600)

    virtualtime.run(story())
    assert {("topology.node.k8s.io", "noderesourcetopologies", "patch"), ("events.k8s.io", "events", "create")} <= asked
    assert asked - documented("agent.md") == set()
