"""Operations of a campaign on a lab that only notes what is done to it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from numalign.api.decode import decode
from numalign.api.objects.node import Node
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.request import Request
from numalign.kube.resources import Status, Target
from numalign.lab import up
from numalign.lab.campaign import operations
from numalign.lab.campaign.actions import Actions
from numalign.lab.campaign.history import History
from numalign.lab.campaign.operations import Operations
from numalign.lab.campaign.script import JOINING, DeleteReports, Drain, Join, Leave, Operation, RollOut
from numalign.lab.campaign.watch import Observer
from numalign.lab.lab import Lab

READY = decode.decode(
    Node, {"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
)


class World:
    """Two nodes, an API server and an observer; `did` is what happened to them, in order."""

    def __init__(self, folder: Path, *pods: str) -> None:
        self.did: list[str] = []
        self.history = History()
        self.pods = {uid: SimpleNamespace(metadata=_meta(uid), spec=SimpleNamespace(node_name="n")) for uid in pods}
        nodes = {name: self._node(name, folder / name) for name in ("n", "m", JOINING)}
        parts = [part for node in nodes.values() for part in node.parts.values()]
        lab = cast(Lab, SimpleNamespace(nodes=nodes, every_part=lambda: iter(parts)))
        watching = cast(Observer, SimpleNamespace(history=self.history, pods=self.pods, forget=self._forget))
        client = cast(Client, self)
        self.operations = Operations(lab, client, watching, Actions(lab, client, watching))

    def perform(self, *steps: Operation) -> list[str]:
        async def all_of_them() -> None:
            for step in steps:
                await self.operations.perform(step)

        asyncio.run(all_of_them())
        return self.did

    async def get(self, target: Target[Any]) -> Node:
        return READY

    async def delete(self, target: Target[Any], *options: object) -> None:
        self.did.append(f"delete {target.words}")
        if target.resource.kind == "NodeResourceTopology" and target.name == "m":
            raise errors.NotFound("delete", "report", 404, Status())

    async def patch(self, target: Target[Any], kind: str, changes: dict[str, Any]) -> None:
        self.did.append("cordon" if changes["spec"]["unschedulable"] else "uncordon")

    @property
    def sender(self) -> SimpleNamespace:
        return SimpleNamespace(call=self._evict)

    async def _evict(self, asked: Request) -> bytes:
        name, _, part = asked.path.partition("/pods/")[2].partition("/")
        self.did.append(f"{part} {name}")
        self.pods.pop(name)
        return b"{}"

    def _forget(self, node: str) -> None:
        self.did.append(f"forget {node}")

    def _node(self, name: str, folder: Path) -> SimpleNamespace:
        folder.mkdir()
        files = {kind: folder / kind for kind in ("cpu_state", "memory_state", "device_state")}
        for file in files.values():
            file.touch()
        parts = {each: self._part(f"{name}/{each}") for each in ("runtime", "kubelet", "agent")}
        return SimpleNamespace(name=name, parts=parts, **files)

    def _part(self, title: str) -> SimpleNamespace:
        return SimpleNamespace(
            program=SimpleNamespace(title=title),
            start=lambda: self.did.append(f"start {title}"),
            stop=lambda *how: self.did.append(f"stop {title}"),
        )


def _meta(uid: str) -> SimpleNamespace:
    return SimpleNamespace(name=uid, uid=uid)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "LOOK", 0.001)
    monkeypatch.setattr(operations, "BETWEEN", 0.0)


def test_the_report_of_a_node_is_deleted_or_those_of_all(tmp_path: Path) -> None:
    one, every = DeleteReports(0.0, "n"), DeleteReports(0.0, "")
    reports = [f"delete NodeResourceTopology {name}" for name in ("n", "n", "m", JOINING)]
    assert World(tmp_path).perform(one, every) == reports


def test_agents_are_rolled_out_one_after_the_other(tmp_path: Path) -> None:
    expected = [f"{deed} {node}/agent" for node in ("n", "m") for deed in ("stop", "start")]
    assert World(tmp_path).perform(RollOut(0.0, 0.0)) == expected


def test_a_drained_node_is_cordoned_its_pods_are_evicted_and_it_is_uncordoned(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")
    assert world.perform(Drain(0.0, "n", 0.1)) == ["cordon", "eviction a", "eviction b", "uncordon"]
    asked = [line for line in world.history.lines if line.what == "deletion-requested"]
    assert [(line.uid, line.why) for line in asked] == [("a", "evicted"), ("b", "evicted")]


def test_a_node_that_leaves_takes_its_objects_and_its_state_with_it(tmp_path: Path) -> None:
    left = World(tmp_path, "a").perform(Leave(0.0, "n"))
    stopped = ["stop n/agent", "stop n/kubelet", "stop n/runtime"]
    deleted = ["delete Node n", "delete NodeResourceTopology n"]
    assert left == ["cordon", "eviction a", *stopped, *deleted, "forget n"]
    assert list((tmp_path / "n").iterdir()) == []


def test_the_agent_of_a_node_that_joins_starts_last(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.perform(Leave(0.0, "n"))
    world.did.clear()
    assert world.perform(Join(0.0, "n", 0.0)) == ["start n/runtime", "start n/kubelet", "start n/agent"]


def test_a_node_that_is_not_there_has_no_report_to_delete(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.perform(Leave(0.0, JOINING))
    world.did.clear()
    assert world.perform(DeleteReports(0.0, "")) == [f"delete NodeResourceTopology {name}" for name in ("n", "m")]


def test_a_node_that_does_not_become_ready_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "READY_AFTER", 0.005)
    world = World(tmp_path)
    monkeypatch.setattr(up, "is_ready", lambda node: False)
    world.perform(Join(0.0, "n", 0.0))
    assert [line.node for line in world.history.lines if line.what == "stuck"] == ["n"]
