"""`numalign plan defrag` prints a plan for a snapshot, and exits with 1 where there is none."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import structs
from typer.testing import CliRunner

from numalign.api.decode.structs import encode
from numalign.api.nrt import normalise
from numalign.api.objects.pod import Pod
from numalign.cli.main import app
from tests.unit.placement.test_engine import node, report
from tests.unit.plan.defrag.towns import Tenant, pod

RUNNING = (Tenant("left", "a", 5), Tenant("right", "a", 5), Tenant("other", "b", 2, owner=""))


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    """Two nodes of two zones with 8 CPUs each, as kubectl prints them, and pods that no report covers yet."""
    items = []
    for name in ("a", "b"):
        items.append(msgspec.json.decode(encode(node(name))) | {"apiVersion": "v1", "kind": "Node"})
        written = msgspec.json.decode(encode(normalise.encode(report(name))))
        items.append(written | {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology"})
    for tenant in RUNNING:
        items.append(msgspec.json.decode(encode(_runs(tenant))) | {"apiVersion": "v1", "kind": "Pod"})
    file = tmp_path / "cluster.json"
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def _runs(tenant: Tenant) -> Pod:
    plain = pod(tenant)
    spec, status = structs.replace(plain.spec, node_name=tenant.node), structs.replace(plain.status, phase="Running")
    return structs.replace(plain, spec=spec, status=status)


@pytest.fixture
def shape(tmp_path: Path) -> str:
    file = tmp_path / "shape.yaml"
    amounts = "{cpu: 8, memory: 1Gi}"
    resources = f"resources: {{requests: {amounts}, limits: {amounts}}}"
    container = f"{{name: main, image: work, {resources}}}"
    file.write_text(f"apiVersion: v1\nkind: Pod\nmetadata: {{name: whole}}\nspec: {{containers: [{container}]}}\n")
    return str(file)


def run(*arguments: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, ["plan", "defrag", *arguments])
    return found.exit_code, found.stdout, found.stderr


def test_a_plan_as_a_table(snapshot: str, shape: str) -> None:
    code, text, _ = run("--snapshot", snapshot, "--goal", f"2 x {shape}")
    assert code == 0, text
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "A plan was found." in lines
    assert any(line.startswith("1 default/") and " b 0 likely a has " in line for line in lines)
    assert "1 evictions; no plan needs fewer than 1." in lines


def test_a_plan_as_an_object(snapshot: str, shape: str) -> None:
    code, text, _ = run("--snapshot", snapshot, "--goal", f"2 x {shape}", "-o", "json")
    plan = msgspec.json.decode(text)
    assert (code, plan["verdict"], plan["schema"]) == (0, "found", "numalign.io/defrag-plan/v1")
    assert plan["steps"][0]["pods"][0]["lands"]["node"] == "b"


def test_what_is_impossible_is_said_with_its_bound(snapshot: str, shape: str) -> None:
    code, text, _ = run("--snapshot", snapshot, "--goal", f"9 x {shape}")
    assert code == 1
    assert "all nodes together have 20 of cpu free; 72 are wanted" in " ".join(text.split())


def test_free_zones_and_empty_nodes(snapshot: str) -> None:
    assert run("--snapshot", snapshot, "--free-sockets", "2")[0] == 0
    code, text, _ = run("--snapshot", snapshot, "--empty", "b")
    assert code == 1
    assert "has no controller that would create it again" in text


@pytest.mark.parametrize(
    "arguments, why",
    [
        ((), "give one of --goal, --free-sockets and --empty"),
        (("--goal", "2"), "write a number, an x and a file"),
        (("--goal", "0 x {shape}"), "asks for 0 pods"),
        (("--empty", "nowhere"), "is not there"),
        (("--free-sockets", "1", "--empty", "a"), "give one of"),
    ],
)
def test_options_that_make_no_sense(arguments: tuple[str, ...], why: str, snapshot: str, shape: str) -> None:
    given = [each.format(shape=shape) for each in arguments]
    code, _, said = run("--snapshot", snapshot, *given)
    assert code == 2
    assert why in " ".join(said.split())
