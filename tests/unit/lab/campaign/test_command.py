"""`numalign lab campaign` as people type it, without a lab: what it prints, and how it ends."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from numalign.cli import main
from numalign.cli.devkit import labs
from numalign.lab import preflight
from numalign.lab.campaign import report
from numalign.lab.campaign import run as running
from numalign.lab.campaign.history import HistoryLine
from numalign.lab.campaign.report import CampaignReport, CampaignRun
from numalign.lab.campaign.run import CampaignOptions
from tests import histories

BAD = [
    HistoryLine(at=1.0, what="created", name="a", uid="a"),
    HistoryLine(at=2.0, what="bound", name="a", uid="a", node="n"),
    HistoryLine(at=3.0, what="ended", name="a", uid="a", node="n", phase="Failed", why="OutOfcpu", words="full"),
]


def numalign(line: str) -> Result:
    return CliRunner().invoke(main.app, ["lab", "campaign", *line.split()])


def plays(monkeypatch: pytest.MonkeyPatch, lines: list[HistoryLine], *, interrupted: bool = False) -> None:
    async def run(asked: CampaignOptions, say: object) -> tuple[CampaignReport, list[HistoryLine]]:
        told = CampaignRun(seed=asked.seed, minutes=asked.minutes, nodes=("n",), interrupted=interrupted)
        return report.of(told, lines), lines

    monkeypatch.setattr(running, "run", run)
    monkeypatch.setattr(labs, "require", lambda wanted: None)


ENDS = {
    "all went well": (BAD[:2], False, 0),
    "a pod was rejected": (BAD, False, 1),
    "interrupted before anything went wrong": (BAD[:2], True, 130),
    "interrupted after something did": (BAD, True, 1),
}


@pytest.mark.parametrize("lines, interrupted, code", ENDS.values(), ids=ENDS)
def test_the_exit_code_says_how_it_went(
    monkeypatch: pytest.MonkeyPatch, lines: list[HistoryLine], interrupted: bool, code: int
) -> None:
    plays(monkeypatch, lines, interrupted=interrupted)
    assert numalign("--minutes 1").exit_code == code


def test_the_report_can_be_read_by_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, BAD)
    told = msgspec.json.decode(numalign("--seed 7 -o json").stdout)
    assert (told["run"]["seed"], told["pods"]["placed"], told["good"]) == (7, 1, False)
    assert [each["pod"] for each in told["rejected"]] == ["a"]


def test_what_was_seen_can_be_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plays(monkeypatch, BAD)
    numalign(f"--record {tmp_path / 'seen'}")
    assert histories.read((tmp_path / "seen").read_bytes(), HistoryLine) == BAD


@pytest.mark.parametrize("option", ["--record", "--logs"])
def test_a_place_that_cannot_be_written_is_told_before_anything_is_played(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: str
) -> None:
    monkeypatch.setattr(labs, "require", lambda wanted: None)
    (tmp_path / "file").touch()
    told = numalign(f"{option} {tmp_path / 'file' / 'below'}")
    assert (told.exit_code, "below cannot be written: Not a directory" in told.output) == (2, True)


def test_a_machine_that_cannot_run_a_lab_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "missing", lambda *_, **__: "no root here")
    told = numalign("")
    assert (told.exit_code, "no root here" in told.output) == (2, True)
