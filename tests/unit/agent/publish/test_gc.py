"""Reports whose node is gone go; those that may still get one stay."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from typing import Any

import pytest

from numalign.agent.publish import gc
from numalign.agent.publish.gc import Swept
from numalign.api.nrt import publishers
from numalign.api.objects.meta import ObjectMeta
from numalign.deploy import crds
from numalign.kube.client import Client
from numalign.process.serve import PageRequest, PageResponse
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, NODES
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.nodes.publisher.crd import RESOURCE
from tests.unit.agent.clusters import NODE, Town


def played(story: Callable[[Town, Client], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        town = Town()
        for name in (NODE, "gone"):
            report = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "zones": []}
            town.api.create(RESOURCE, {**report, "metadata": {"name": name}})
        async with Client(town.access(), clock=town.clock) as client:
            await story(town, client)

    virtualtime.run(main())


def left(town: Town) -> list[str]:
    return [each["metadata"]["name"] for each in town.api.list(RESOURCE).items]


def test_a_report_without_a_node_goes_once_it_is_old_enough() -> None:
    async def story(town: Town, client: Client) -> None:
        assert await gc.sweep(client) == Swept()
        await asyncio.sleep(publishers.GRACE + 1)
        assert await gc.sweep(client) == Swept(stale=("gone",), deleted=("gone",))
        assert left(town) == [NODE]

    played(story)


def test_a_dry_run_deletes_nothing() -> None:
    async def story(town: Town, client: Client) -> None:
        await asyncio.sleep(publishers.GRACE + 1)
        assert await gc.sweep(client, dry_run=True) == Swept(stale=("gone",))
        assert left(town) == ["gone", NODE]

    played(story)


def test_without_the_definition_there_is_nothing_to_do() -> None:
    async def story(town: Town, client: Client) -> None:
        town.api.delete(CUSTOMRESOURCEDEFINITIONS, f"{crds.PLURAL}.topology.node.k8s.io")
        assert await gc.sweep(client, 0.0) == Swept()

    played(story)


def test_reports_of_the_older_version_go_too() -> None:
    async def story(town: Town, client: Client) -> None:
        older = crd.crd()
        older["spec"]["versions"] = [older["spec"]["versions"][0] | {"storage": True}]
        town.api.delete(CUSTOMRESOURCEDEFINITIONS, older["metadata"]["name"])
        town.api.create(CUSTOMRESOURCEDEFINITIONS, older)
        kind = dataclasses.replace(RESOURCE, version="v1alpha1")
        for name in (NODE, "gone", "late"):
            report = {"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology"}
            town.api.create(kind, {**report, "metadata": {"name": name}, "topologyPolicies": ["None"], "zones": []})
        assert await gc.forget(client, "late") == Swept(stale=("late",), deleted=("late",))
        assert await gc.sweep(client, 0.0) == Swept(stale=("gone",), deleted=("gone",))
        assert [each["metadata"]["name"] for each in town.api.list(kind).items] == [NODE]

    played(story)


def test_where_a_node_is_deleted_its_report_goes_at_once() -> None:
    async def story(town: Town, client: Client) -> None:
        sweeps = list[Swept]()
        task = asyncio.create_task(gc.run(client, 3600.0, 3600.0, sweeps.append))
        await asyncio.sleep(10)
        town.api.delete(NODES, NODE)
        await asyncio.sleep(1)
        task.cancel()
        assert sweeps == [Swept(), Swept(stale=(NODE,), deleted=(NODE,))]
        assert left(town) == ["gone"]

    played(story)


def test_the_report_of_a_node_that_came_back_stays() -> None:
    async def story(town: Town, client: Client) -> None:
        assert await gc.forget(client, NODE) == Swept()
        assert await gc.forget(client, "never") == Swept()
        assert left(town) == ["gone", NODE]

    played(story)


def test_so_does_one_whose_node_comes_back_while_a_sweep_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(town: Town, client: Client) -> None:
        def seen_without(nodes: Iterable[str], reports: Iterable[ObjectMeta], before: datetime) -> list[ObjectMeta]:
            """What was true when the nodes were listed: n1 was not there."""
            return found_stale(set(nodes) - {NODE}, reports, before)

        found_stale = publishers.orphans
        monkeypatch.setattr(publishers, "orphans", seen_without)
        await asyncio.sleep(publishers.GRACE + 1)
        assert await gc.sweep(client) == Swept(stale=("gone",), deleted=("gone",))
        assert left(town) == [NODE]

    played(story)


def test_a_report_that_was_created_again_is_kept() -> None:
    async def story(town: Town, client: Client) -> None:
        kind = gc.REPORTS[0]
        old = (await client.get(kind.at("gone"))).metadata
        town.api.delete(RESOURCE, "gone")
        report = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "zones": []}
        town.api.create(RESOURCE, {**report, "metadata": {"name": "gone"}})
        assert not await gc._delete(client, kind, old)
        assert left(town) == ["gone", NODE]

    played(story)


def test_what_became_of_it_is_counted() -> None:
    counts = gc.Counts()
    counts.note(Swept(stale=("a", "b"), deleted=("a",), problems=("no right to delete b",)))
    told = counts.pages()["/metrics"](PageRequest(method="GET", path="/metrics"))
    assert isinstance(told, PageResponse)
    assert "numalign_agent_gc_deleted_total 1" in str(told.body)
    assert "numalign_agent_gc_failures_total 1" in str(told.body)


def test_it_goes_on_when_the_server_was_away() -> None:
    async def story(town: Town, client: Client) -> None:
        sweeps = list[Swept]()
        town.away = True
        task = asyncio.create_task(gc.run(client, 60.0, 0.0, sweeps.append))
        await asyncio.sleep(100)
        town.away = False
        await asyncio.sleep(100)
        task.cancel()
        assert [each for each in sweeps if each.deleted] == [Swept(stale=("gone",), deleted=("gone",))]

    played(story)
