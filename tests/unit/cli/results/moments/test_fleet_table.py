"""The nodes of a moment: what is stranded, what is kept from moment to moment, and the pages as files."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from msgspec import structs

from numalign.api.errors import BadObject
from numalign.cli.results.moments import files
from numalign.cli.results.moments.fleet import FleetTable
from numalign.cli.results.moments.scene import Scene
from numalign.cli.results.moments.sources import FixedSource
from numalign.dashboard.moment import Node
from tests import machinescenes

GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def scene() -> Scene:
    return machinescenes.busy()


def nodes(scene: Scene, table: FleetTable | None = None) -> dict[str, Node]:
    return {node.name: node for node in (table or FleetTable()).nodes(scene)}


def late(scene: Scene) -> Scene:
    waiting = {name: pod for name, pod in scene.waiting.items() if name.startswith("default/late")}
    return structs.replace(scene, waiting=waiting)


def stranded(node: Node) -> int:
    return sum(zone.shares[GPU].free for zone in node.zones if GPU in zone.stranded)


def test_devices_that_no_waiting_pod_can_use_are_stranded(scene: Scene) -> None:
    """Pods of three GPUs wait, and no zone has more than two left; a pod that fits there makes all of them useful."""
    assert stranded(nodes(late(scene))["gpu-a"]) == 3
    assert stranded(nodes(scene)["gpu-a"]) == 0


def test_nothing_is_stranded_for_pods_that_the_empty_node_could_not_take(scene: Scene) -> None:
    huge = {name: pod for name, pod in scene.waiting.items() if name == "default/huge"}
    assert huge
    found = nodes(structs.replace(scene, waiting=huge))
    assert all(stranded(node) == 0 for node in found.values())


def test_nothing_is_stranded_where_nobody_waits(scene: Scene) -> None:
    found = nodes(structs.replace(scene, waiting={}))
    assert all(stranded(node) == 0 for node in found.values())


def test_nodes_that_did_not_change_are_the_same_objects(scene: Scene) -> None:
    table = FleetTable()
    nodes(late(scene), table)
    before, version = nodes(late(scene), table), table.version
    again = nodes(late(scene), table)
    assert all(again[name] is node for name, node in before.items())
    assert table.version == version
    # Without waiting pods, what was stranded is another node.
    nodes(structs.replace(scene, waiting={}), table)
    assert table.version > version


def test_exported_pages_lead_to_one_another_and_nowhere_else(scene: Scene, tmp_path: Path) -> None:
    count = asyncio.run(files.export(FixedSource(scene), tmp_path / "report"))
    written = {file.name: file for file in (tmp_path / "report").iterdir()}
    assert count == len(written)
    assert {"fleet.html", "waiting.html", "decisions.html", "health.html"} <= written.keys()
    for file in written.values():
        if file.suffix == ".html":
            targets = re.findall(r'(?:href|src)="([^"#]+)"', file.read_text())
            assert set(targets) - written.keys() == set(), file.name
    filled = written[files.file_name("fleet", "nvidia.com/gpu")].read_text()
    assert f'href="{files.file_name("fleet", "nvidia.com/gpu")}" aria-current="page"' in filled
    assert "gpu free" in filled
    names = re.findall(r"<bdi>([^<]+)</bdi></a>", written["fleet.html"].read_text())
    assert set(names) == {"gpu-a", "gpu-b", "plain"}


def test_an_export_replaces_nothing(scene: Scene, tmp_path: Path) -> None:
    with pytest.raises(BadObject, match="--export: cannot be written"):
        asyncio.run(files.export(FixedSource(scene), tmp_path))
