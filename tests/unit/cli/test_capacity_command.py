"""`numalign capacity` prints counts of a snapshot, and exits with 1 where nothing fits."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from numalign.api.decode.structs import encode
from numalign.api.nrt import normalise
from numalign.cli.main import app
from tests.unit.placement.test_engine import node, report


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    """Two nodes of two zones with 8 CPUs each, as kubectl prints them."""
    items = []
    for name in ("worker-0", "worker-1"):
        items.append(msgspec.json.decode(encode(node(name, cpus=32))) | {"apiVersion": "v1", "kind": "Node"})
        written = msgspec.json.decode(encode(normalise.encode(report(name))))
        kind = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology"}
        items.append(written | kind)
    file = tmp_path / "cluster.json"
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def run(*arguments: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, ["capacity", *arguments])
    return found.exit_code, found.stdout, found.stderr


def test_wide_lists_groups_of_nodes_with_zones_and_reasons(snapshot: str) -> None:
    code, text, _ = run("--snapshot", snapshot, "--requests", "cpu=6,memory=1Gi", "-o", "wide")
    assert code == 0
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "cpu=6,memory=1Gi 4 2" in lines
    assert any(line.startswith("worker-0, worker-1 2 0: 1, 1: 1 container container needs 6 CPUs") for line in lines)


def test_a_pod_that_fits_nowhere(snapshot: str) -> None:
    code, text, _ = run("--snapshot", snapshot, "--requests", "cpu=9,memory=1Gi")
    assert code == 1
    assert "needs 9 CPUs in one NUMA zone" in " ".join(text.split())


def test_structured_output_chooses_nodes_by_name(snapshot: str) -> None:
    code, text, _ = run("--snapshot", snapshot, "--requests", "cpu=6,memory=1Gi", "--node", "worker-1", "-o", "json")
    (shape,) = msgspec.json.decode(text)["shapes"]
    assert (code, shape["count"], shape["nodes"][0]["nodes"]) == (0, 2, ["worker-1"])


@pytest.mark.parametrize(
    "arguments, why",
    [
        ((), "give --requests or -f"),
        (("--requests", "cpu"), "write NAME=AMOUNT"),
        (("--requests", "cpu=1", "--node", "nowhere"), "nowhere not known"),
        (("--requests", "cpu=1", "-l", ","), "--selector"),
        (("--requests", "cpu=1", "--machine", "x"), "no such preset and no such file"),
    ],
)
def test_bad_options_exit_with_2(snapshot: str, arguments: tuple[str, ...], why: str) -> None:
    code, _, said = run("--snapshot", snapshot, *arguments)
    assert code == 2
    assert why in said


def test_nodes_by_label_and_machines(snapshot: str) -> None:
    code, text, _ = run("--snapshot", snapshot, "--requests", "cpu=6,memory=1Gi", "-l", "a=b", "--machine", "2x16")
    assert code == 0
    assert "cpu=6,memory=1Gi 0 0" in [" ".join(line.split()) for line in text.splitlines()]
    assert "2x16" in text
