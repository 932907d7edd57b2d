"""`numalign scenario run` as people type it: how it ends, and what is kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from numalign.cli import main
from numalign.cli.commands import scenario
from numalign.simulator.scenarios import play
from numalign.simulator.scenarios.history import HistoryEntry
from numalign.simulator.scenarios.scenario import SCHEDULERS
from tests import histories

STORY = """
name: one-pod
title: A pod on a node
lasts: 20s
nodes: [{name: worker, machine: 2x16}]
traffic: [{at: 1s, pods: 1, mix: [{name: web, spec: {containers: [{name: main, image: "web:1"}]}}]}]
expect: {any: {running: %d}}
"""


def numalign(folder: Path, running: int, *options: str) -> Result:
    story = folder / "story.yaml"
    story.write_text(STORY % running)
    return CliRunner().invoke(main.app, ["scenario", "run", str(story), *options])


@pytest.mark.parametrize("running, code", [(1, 0), (2, 1)], ids=["held", "did not hold"])
def test_the_exit_code_depends_on_the_expectations(tmp_path: Path, running: int, code: int) -> None:
    assert numalign(tmp_path, running).exit_code == code


def test_what_happened_can_be_kept(tmp_path: Path) -> None:
    numalign(tmp_path, 1, "--record", str(tmp_path / "seen"))
    assert {"created", "bound", "started"} <= {
        line.what for line in histories.read((tmp_path / "seen").read_bytes(), HistoryEntry)
    }


def test_an_unwritable_file_is_refused_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "play", lambda *_: pytest.fail("it was played"))
    told = numalign(tmp_path, 1, "--record", str(tmp_path / "nowhere" / "seen"))
    assert (told.exit_code, "seen cannot be written: No such file or directory" in told.output) == (2, True)


def played(folder: Path, *options: str, **changes: str) -> Result:
    """Plays the scenario with other texts in it."""
    story = folder / "story.yaml"
    text = STORY % 1
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    story.write_text(text)
    return CliRunner().invoke(main.app, ["scenario", "run", str(story), *options])


def test_a_misspelt_scheduler_does_not_pass(tmp_path: Path) -> None:
    said = played(tmp_path, "--scheduler", "foo")
    assert said.exit_code == 2
    assert "'foo' is not one of 'default-scheduler', 'numalign'" in said.output


def test_the_schedulers_to_choose_from_are_those_of_the_simulator() -> None:
    assert tuple(map(str, scenario.Player)) == SCHEDULERS


def test_pods_that_the_api_server_refuses_fail_the_run_and_are_named_once(tmp_path: Path) -> None:
    said = played(tmp_path, **{"containers:": "contianers:", "pods: 1": "pods: 20", "running: 1": "created: 0"})
    (failed,) = [line for line in said.stdout.splitlines() if "FAILED" in line]
    assert said.exit_code == 1
    assert failed.startswith("FAILED: a call of the scenario failed: at 1 s: ")
    assert "(and 19 more)" in " ".join(said.stdout.split())
    assert "all expectations hold" not in said.stdout


def test_a_run_of_which_nothing_is_expected_proves_nothing(tmp_path: Path) -> None:
    said = played(tmp_path, "--scheduler", "numalign", any="default-scheduler")
    assert said.exit_code == 1
    assert "FAILED: nothing is expected of numalign; write for example expect: {numalign: {rejected: 0}}" in said.stdout


def test_pods_of_a_scheduler_that_does_not_run_fail_the_run(tmp_path: Path) -> None:
    said = played(tmp_path, **{"{containers": "{schedulerName: my-own, containers", "running: 1": "pending: 1"})
    assert said.exit_code == 1
    assert "no scheduler my-own runs in a scenario, so 1 pods that name it stay pending" in said.stdout


def test_what_was_expected_is_shown_where_it_held(tmp_path: Path) -> None:
    assert "held: running == 1\nall expectations hold" in played(tmp_path).stdout


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("at: 1s", "at: 90s", "traffic[0].at: 1m30s is after the end of the scenario; lasts is 20s"),
        ("{any: {running: 1}}", "{rejected: 0}", "expect.rejected: belongs to a scheduler; write for example {any: "),
        ("any:", "numalgin:", "expect.numalgin: no scheduler of this name plays scenarios; did you mean numalign?"),
    ],
    ids=["after the end", "no scheduler", "misspelt"],
)
def test_a_scenario_that_cannot_mean_what_it_says_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    said = played(tmp_path, **{old: new})
    assert (said.exit_code, words in said.output) == (2, True)


def test_pods_that_come_after_the_end_fail_the_run(tmp_path: Path) -> None:
    said = played(tmp_path, **{"pods: 1": "pods: 5, every: 10s", "running: 1": "created: 2"})
    assert said.exit_code == 1
    assert "3 pods would arrive after the end at 20s; make lasts longer" in said.stdout


def test_seconds_have_a_unit_and_columns_are_straight(tmp_path: Path) -> None:
    lines = played(tmp_path).stdout.splitlines()
    (wait,) = (line for line in lines if line.startswith("longest-wait"))
    (created,) = (line for line in lines if line.startswith("created"))
    assert re.fullmatch(r"longest-wait +[0-9.]+ s  longest time from creation to start, of pods that started", wait)
    assert wait.index("longest time") == created.index("pods that")


def test_a_pod_that_waited_is_named_with_its_reason_and_the_notes_of_the_scenario() -> None:
    said = CliRunner().invoke(main.app, ["scenario", "run", "lagging-exporter", "--scheduler", "numalign"])
    text = " ".join(said.stdout.split())
    assert said.exit_code == 0
    assert re.search(r"pod default/half-\d+ waited [0-9.]+ s; last reason: 0/6 nodes are available", text)
    assert "note: All pods complete, and the cluster is too small to run all of them at once" in text


def test_lists_are_lists_in_json() -> None:
    listed = json.loads(CliRunner().invoke(main.app, ["scenario", "list", "-o", "json"]).stdout)
    assert {"name", "title"} == set(listed[0])
