"""Through faults of the kubelet, its files and the clock, the agent publishes only states that the node has or had. The
current state is published at most a period and a second after the fault."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from numalign.agent.inventory.readings import BROKEN_FOR
from numalign.api.nrt import publishers
from numalign.deploy import crds
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS
from numalign.simulator.apiserver.verbs.api import Patch
from numalign.simulator.clock import Clock
from numalign.simulator.nodes.publisher import crd
from tests.unit.agent.clusters import NODE, PERIOD, Town
from tests.unit.agent.file_nodes import FileNode

OLDER = dataclasses.replace(crd.RESOURCE, version="v1alpha1")
Story = Callable[[FileNode], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
def without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    async def here(work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", here)


def played(folder: Path, story: Story) -> None:
    async def main() -> None:
        await story(FileNode(folder, Town()))

    virtualtime.run(main())


async def later(node: FileNode, seconds: float) -> None:
    """Time passes, and all the while the cluster knows nothing that never was. Whether the kubelet answers is no part
    of a state."""
    for _ in range(round(seconds)):
        await asyncio.sleep(1)
        if node.town.report() is not None:
            told = node.town.read()
            assert structs.replace(told, facts=structs.replace(told.facts, kubelet_away=None)) in node.truths


async def mended(node: FileNode) -> None:
    await later(node, PERIOD + 1)
    assert node.town.read() == node.truth()


def test_a_new_pod_is_published_within_seconds(tmp_path: Path) -> None:
    async def story(node: FileNode) -> None:
        async with node.agent():
            await later(node, 3)
            node.admit("web", 4, gpus=2)
            await later(node, 3)
            assert node.town.read() == node.truth()

    played(tmp_path, story)


@pytest.mark.parametrize("silence, forgetting", [(0, 5), (20, 0), (20, 5), (300, 40)])
def test_a_kubelet_that_starts_again_frees_nothing(tmp_path: Path, silence: int, forgetting: int) -> None:
    async def story(node: FileNode) -> None:
        async with node.agent():
            node.admit("web", 4)
            await later(node, 5)
            node.truths[:] = [node.truth()]
            node.silent = True
            await later(node, silence)
            assert bool(node.town.read().facts.kubelet_away) == (silence > PERIOD)
            node.silent, node.forgetful = False, True
            node.restart()
            await later(node, forgetting)
            node.forgetful = False
            node.admit("next", 2)
            await mended(node)

    played(tmp_path, story)


def test_a_kubelet_that_falls_silent_between_two_answers_is_asked_again(tmp_path: Path) -> None:
    async def story(node: FileNode) -> None:
        answers = [False, True]
        asked = node._answer

        def every_other() -> None:
            answers.reverse()
            node.silent = answers[0]
            asked()

        async with node.agent() as agent:
            await later(node, 5)
            node._answer = every_other  # type: ignore[method-assign]
            node.admit("web", 4)
            await later(node, 30)
            assert agent.metrics.podresources.values[("unavailable",)] > 1
            node._answer, node.silent = asked, False  # type: ignore[method-assign]
            await mended(node)

    played(tmp_path, story)


@pytest.mark.parametrize("seconds", [2, 50])
def test_a_half_written_checkpoint_is_waited_for(tmp_path: Path, seconds: int) -> None:
    async def story(node: FileNode) -> None:
        async with node.agent() as agent:
            node.admit("web", 4)
            await later(node, 5)
            node.tear()
            await later(node, seconds)
            assert any("broken" in why for why in agent.standing.withheld)
            node.admit("next", 2)
            await mended(node)

    played(tmp_path, story)


def test_one_that_stays_broken_is_done_without(tmp_path: Path) -> None:
    async def story(node: FileNode) -> None:
        async with node.agent() as agent:
            await later(node, 5)
            node.admit("web", 4)
            node.tear()
            await later(node, BROKEN_FOR + PERIOD + 1)
            assert agent.standing.withheld == ()
            assert node.town.read() == node.truth()

    played(tmp_path, story)


def test_a_device_that_comes_and_goes_is_published_in_its_final_state(tmp_path: Path) -> None:
    async def story(node: FileNode) -> None:
        async with node.agent() as agent:
            await later(node, 5)
            for count in range(60):
                node.set_health(count % 2 == 1)
                await asyncio.sleep(0.5)
            await later(node, 3)
            assert node.town.read() == node.truth()
            assert agent.metrics.reports.values[("written",)] <= 35

    played(tmp_path, story)


def test_a_changed_file_counts_from_the_next_start_of_the_kubelet(tmp_path: Path) -> None:
    async def story(node: FileNode) -> None:
        node.restart()
        async with node.agent():
            await later(node, 5)
            node.configure(topologyManagerPolicy="restricted")
            node.admit("web", 4)
            await mended(node)
        async with node.agent() as another:
            node.admit("next", 2)
            await later(node, 3 * PERIOD)
            assert node.town.read() != node.truth()
            assert any("restart the kubelet" in why for why in another.standing.withheld)
            node.restart()
            await mended(node)
            assert node.town.read().manager.policy == "restricted"

    played(tmp_path, story)


def test_a_changed_file_with_equal_settings_is_published(tmp_path: Path) -> None:
    async def story(node: FileNode) -> None:
        node.restart()
        async with node.agent():
            await later(node, 5)
        node.configure(maxPods=200)
        node.town.away = True
        async with node.agent():
            node.admit("web", 4)
            await later(node, PERIOD)
            node.town.away = False
            await mended(node)

    played(tmp_path, story)


def test_a_changed_file_is_withheld_if_the_previous_settings_are_unknown(tmp_path: Path) -> None:
    async def story(node: FileNode) -> None:
        node.restart()
        node.configure()
        async with node.agent():
            await later(node, PERIOD)
            assert node.town.report() is None

    played(tmp_path, story)


class JumpingClock(Clock):
    """Somebody sets the time of day."""

    jump = timedelta()

    def wall(self) -> datetime:
        return super().wall() + self.jump


@pytest.mark.parametrize("days", [-400.0, -0.04, 0.04, 400.0])
def test_a_clock_that_is_set_changes_no_period_and_the_next_sign_of_life_has_the_new_time(
    tmp_path: Path, days: float
) -> None:
    async def story(node: FileNode) -> None:
        clock = JumpingClock(node.town.clock.now, node.town.clock.wall(), node.town.clock._chances)
        async with node.agent(clock) as agent:
            await later(node, 30)
            clock.jump = timedelta(days=days)
            looks = sum(agent.metrics.looks.values.values())
            await later(node, 600)
            assert 10 <= sum(agent.metrics.looks.values.values()) - looks <= 13
            node.admit("web", 4)
            await later(node, 3)
            assert node.town.read() == node.truth()
            report = node.town.report()
            assert report is not None
            said = datetime.fromisoformat(report["metadata"]["annotations"][publishers.HEARTBEAT])
            assert abs(said - clock.wall()) < timedelta(seconds=4)

    played(tmp_path, story)


def test_a_definition_of_the_older_version_alone_gets_zones_until_there_is_the_newer(tmp_path: Path) -> None:
    async def story(node: FileNode) -> None:
        name, api = f"{crds.PLURAL}.topology.node.k8s.io", node.town.api
        versions = crd.crd()["spec"]["versions"]
        older = crd.crd()
        older["spec"]["versions"] = [versions[0] | {"storage": True}]
        api.delete(CUSTOMRESOURCEDEFINITIONS, name)
        api.create(CUSTOMRESOURCEDEFINITIONS, older)
        async with node.agent() as agent:
            await asyncio.sleep(5)
            assert agent.standing.failure == ""
            assert agent.metrics.pruned.values[()] >= 4
            zones = api.get(OLDER, NODE)["zones"]
            assert [zone["name"] for zone in zones] == ["node-0", "node-1"]
            both = [versions[0] | {"storage": True}, versions[1] | {"storage": False}]
            api.patch(CUSTOMRESOURCEDEFINITIONS, name, "", Patch("merge", {"spec": {"versions": both}}))
            await asyncio.sleep(PERIOD + 1)
            assert agent.metrics.pruned.values[()] == 0
        assert node.town.read() == node.truth()

    played(tmp_path, story)
