"""`numalign scenario run` as people type it: how it ends, and what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from numalign.cli import main
from numalign.simulator.scenarios import play
from numalign.simulator.scenarios.history import HistoryEntry
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
