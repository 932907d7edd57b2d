from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from numalign.cli.main import app
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


@pytest.mark.parametrize(
    "options, says",
    [
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
