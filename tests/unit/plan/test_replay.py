from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from numalign.cli.main import app
from numalign.plan.agreement import Answer
from numalign.simulator import kubelets
from tests.unit.plan import traces

RUNNER = CliRunner()


def replayed(folder: Path, *options: str) -> str:
    ran = RUNNER.invoke(app, ["plan", "replay", str(folder), "--list", "small", *options])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return traces.written(tmp_path, traces.small())


def test_runs_come_in_the_order_of_the_question(folder: Path) -> None:
    found = json.loads(replayed(folder, "--policy", "fgd,random", "--seeds", "43-44,42", "-o", "json"))
    assert [(run["policy"], run["seed"]) for run in found] == [
        (policy, seed) for policy in ("fgd", "random") for seed in (43, 44, 42)
    ]
    wanted = {"list", "policy", "zones", "seed", "allocated_100", "allocated_130", "unallocated_gpus"}
    assert wanted | {"fragmented_130", "rejected", "stranded_gpus", "seconds"} <= set(found[0])


def test_results_do_not_depend_on_the_number_of_processes(folder: Path) -> None:
    alone, together = (
        json.loads(replayed(folder, "--policy", "fgd,random", "--seeds", "42-43", "--workers", workers, "-o", "json"))
        for workers in ("1", "2")
    )
    for run in (*alone, *together):
        run.pop("seconds")
    assert alone == together


def test_a_table_has_a_line_by_policy(folder: Path) -> None:
    lines = replayed(folder, "--policy", "all", "--workers", "1").splitlines()
    assert len(lines) == 2 + 6
    assert lines[-1].split()[:2] == ["small", "fgd"]


def test_csv_has_a_line_by_run(folder: Path) -> None:
    lines = replayed(folder, "--seeds", "42-44", "--workers", "1", "-o", "csv").splitlines()
    assert lines[0].startswith("list,policy,zones,seed,allocated_100")
    assert len(lines) == 4


WITH_KUBELETS = ("--zones", "2", "--read-requests", "guaranteed", "--policy", "least-blind,zone-fgd", "--kubelets")


def test_with_kubelets_every_binding_is_put_to_them(tmp_path: Path) -> None:
    folder = traces.written(tmp_path, traces.small(nodes=9, pods=60, seed=2, shares=False))
    options = (*WITH_KUBELETS, "--workers", "2")
    blind, ours = json.loads(replayed(folder, *options, "-o", "json"))
    assert blind["kubelets"]["rejected"] == blind["rejected"] > 0
    assert ours["kubelets"]["rejected"] == ours["rejected"] == 0
    for run in (blind, ours):
        assert run["kubelets"]["admitted"] == run["pods"] - run["dropped"]
        assert run["kubelets"]["contradictions"] == []


def test_numbers_of_bindings_are_in_the_table_and_in_csv(folder: Path) -> None:
    options = (*WITH_KUBELETS, "--workers", "1")
    head, first, second = replayed(folder, *options, "-o", "csv").splitlines()
    assert head.endswith("seconds,bindings,contradictions")
    assert first.endswith(",0")
    assert second.endswith(",0")
    lines = replayed(folder, *options).splitlines()
    assert lines[0].split()[-2:] == ["BOUND", "DIFFER"]
    assert lines[-1].split()[-2:] == second.split(",")[-2:]


def test_a_kubelet_that_does_otherwise_is_named_and_ends_with_1(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(_: object, __: object, ___: object, bindings: list[object]) -> list[Answer]:
        return [Answer(why="out of luck")] * len(bindings)

    monkeypatch.setattr(kubelets, "ask", reject)
    options = ["--list", "small", *WITH_KUBELETS, "--workers", "1"]
    ran = RUNNER.invoke(app, ["plan", "replay", str(folder), *options])
    assert ran.exit_code == 1
    assert "says that it is admitted, and the kubelet rejected it: out of luck" in ran.stderr


@pytest.mark.parametrize(
    "options, says",
    [
        (["--list", "small", "--kubelets"], "give --whole-gpus, or --zones 2"),
        (["--policy", "best"], "write one of random, dotprod"),
        (["--seeds", "a"], "'a' is no seed"),
        (["--seeds", "9-1"], "is not a range"),
        (["--list", "large"], "has the pod lists small"),
        (["--list", ","], "has an empty name"),
    ],
    ids=str,
)
def test_what_cannot_be_replayed_is_refused(folder: Path, options: list[str], says: str) -> None:
    ran = RUNNER.invoke(app, ["plan", "replay", str(folder), *options])
    assert ran.exit_code == 2
    assert says in ran.stderr
