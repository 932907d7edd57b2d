"""`numalign lab replay`: what it refuses before a lab starts, and what its exit code says of the kubelets."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec import structs
from typer.testing import CliRunner, Result

from numalign.cli import main
from numalign.cli.devkit import labs
from numalign.kubelet import predicates
from numalign.lab.errors import LabError
from numalign.lab.lab import Say
from numalign.lab.replay import run
from numalign.lab.replay.run import PolicyRun, ReplayOptions
from numalign.lab.spec import LabSpec
from numalign.plan.agreement import Agreement
from tests.unit.plan import traces

AGREED = Agreement(admitted=5, pinned=4, rejected=2, contradictions=())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return traces.written(tmp_path, traces.small())


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Callable[[Agreement | LabError], None]:
    """Sets what kubelets did, in place of asking them."""

    def put(found: Agreement | LabError) -> None:
        async def ran(asked: ReplayOptions, say: Say) -> Sequence[PolicyRun]:
            if isinstance(found, LabError):
                raise found
            return [PolicyRun(policy=policy, kubelets=found) for policy in asked.policies]

        def allowed(_: LabSpec) -> None:
            return

        monkeypatch.setattr(run, "run", ran)
        monkeypatch.setattr(labs, "require", allowed)

    return put


def numalign(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main.app, ["lab", "replay", str(folder), "--list", "small", *words])


def test_each_policy_has_a_line(folder: Path, results: Callable[[Agreement | LabError], None]) -> None:
    results(AGREED)
    ran = numalign(folder, "--policy", "fgd, zone-fgd,fgd")
    assert ran.exit_code == 0, ran.output
    assert [line.split() for line in ran.stdout.splitlines()[2:]] == [
        ["fgd", "7", "5", "4", "2", "0"],
        ["zone-fgd", "7", "5", "4", "2", "0"],
    ]
    found = json.loads(numalign(folder, "--policy", "fgd", "-o", "json").stdout)
    assert found[0]["kubelets"]["admitted"] == 5


def test_a_contradiction_is_named_and_ends_with_1(
    folder: Path, results: Callable[[Agreement | LabError], None]
) -> None:
    results(structs.replace(AGREED, contradictions=("pod a on node b: otherwise",)))
    ran = numalign(folder, "--policy", "fgd")
    assert ran.exit_code == 1
    assert "pod a on node b: otherwise" in ran.stderr


def test_a_lab_that_fails_ends_with_1(folder: Path, results: Callable[[Agreement | LabError], None]) -> None:
    results(LabError("etcd does not start"))
    ran = numalign(folder)
    assert ran.exit_code == 1
    assert "etcd does not start" in ran.stderr


@pytest.mark.parametrize(
    "words, says",
    [
        (["--policy", "best"], "write one of least-blind"),
        (["--list", "large"], "has the pod lists small"),
        (["--nodes", "51"], "51"),
        (["--read-requests", "half"], "half"),
    ],
    ids=str,
)
def test_what_cannot_be_replayed_is_refused(folder: Path, words: list[str], says: str) -> None:
    ran = numalign(folder, *words)
    assert ran.exit_code == 2
    assert says in ran.stderr


def test_kubelets_of_the_lab_offer_what_the_planner_knows(folder: Path) -> None:
    asked = ReplayOptions(folder=folder, list="small", policies=(), nodes=5, zones=2, seed=42)
    nodes = run.lab(asked).nodes
    listed = {node.name: node for node in traces.small().nodes}
    assert len(nodes) == 5
    for node in nodes:
        offered = predicates.allocatable(node.modelled, node.modelled.initial())
        assert offered["cpu"] == listed[node.name].cpu_milli
        assert offered["memory"] == listed[node.name].memory_mib << 20
        assert node.settings.topology_policy == "restricted"
