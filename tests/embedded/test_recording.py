"""A recording repeats every decision that the scheduler made, bit for bit, whatever befell the cluster meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from typer.testing import CliRunner, Result

from numalign.cli.main import app
from numalign.kube.client import Client
from numalign.kube.leader.lease import Election
from numalign.scheduler.http import serving
from numalign.scheduler.http.serving import Recording
from numalign.scheduler.main import Scheduler, Setup
from numalign.scheduler.playback import recordings
from numalign.scheduler.playback.player import Played
from numalign.scheduler.record.recorder import RecordingLimits
from numalign.scheduler.record.taps import Tape
from tests.embedded import schedulerhavoc as havoc
from tests.embedded import schedulerreplicas

SMALL = RecordingLimits(size=1 << 30, age=160.0)
"""A segment lasts twenty seconds."""


async def at_once(write: Callable[[], None]) -> None:
    write()


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every replica of a story records into this folder."""

    def made(setup: Setup, client: Client, election: Election | None = None) -> Scheduler:
        tape = Tape()
        scheduler = Scheduler(structs.replace(setup, tape=tape), client, election)
        recording = Recording(folder=tmp_path, limits=SMALL, off_loop=at_once)
        serving.record(scheduler, tape, recording, client.sender.clock)
        return scheduler

    monkeypatch.setattr(schedulerreplicas, "Scheduler", made)
    return tmp_path


def every_attempt(folder: Path) -> list[Played]:
    return [each.played for each in recordings.repeated(folder)]


def told(played: Played) -> tuple[Any, ...]:
    again, before = played.again, played.record
    assert again is not None
    return (before.pod, before.at, before.node, before.zones, before.message, again.node, again.zones, again.message)


def record(*words: object) -> Result:
    return CliRunner().invoke(app, ["record", *map(str, words)])


MOST_ALLOCATED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: numalign
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def test_the_commands_show_repeat_compare_export_and_trim_a_recording(recorded: Path, tmp_path: Path) -> None:
    havoc.played(3)
    decisions = len(every_attempt(recorded))
    assert record("list", recorded).output.count("Z-000 ") == len(list(recorded.glob("*.jsonl.gz")))
    assert len(json.loads(record("show", recorded, "-o", "json").stdout)) == decisions
    repeated = record("repeat", recorded)
    assert (repeated.exit_code, "the same, 0 different" in repeated.stdout) == (0, True)
    one = json.loads(record("repeat", recorded, "--pod", "p-3", "-o", "json").stdout)
    assert {each["recorded"]["pod"] for each in one} == {"default/p-3"}
    config = tmp_path / "other.yaml"
    config.write_text(MOST_ALLOCATED)
    compared = record("compare", recorded, "--config", config)
    assert (compared.exit_code, " compared: " in compared.stdout) == (0, True)
    exported = tmp_path / "all.gz"
    assert record("export", recorded, "-f", exported).exit_code == 0
    assert record("repeat", exported).stdout == repeated.stdout
    assert record("export", recorded, "-f", "-").stdout_bytes == exported.read_bytes()
    assert record("trim", recorded, "--keep-size", "0").exit_code == 0
    assert record("list", recorded).exit_code == 2


@pytest.mark.parametrize(
    "words, why",
    [
        (("list", "{}/nowhere"), "does not exist"),
        (("list", "{}"), "has no segments"),
        (("repeat", "{}/odd/x.jsonl.gz"), "is not a recording"),
        (("show", "{}/odd/x.jsonl.gz", "--since", "soon"), "--since: is not a length of time"),
        (("show", "{}/odd/x.jsonl.gz", "--since-time", "noon"), "--since-time: is not a time"),
        (("repeat", "{}/odd/x.jsonl.gz", "--node", "a"), "--node: needs --pod"),
        (("export", "{}/odd", "-f", "{}/odd/x.jsonl.gz"), "cannot be written"),
        (("trim", "{}"), "--older-than: is missing"),
        (("trim", "{}", "--keep-size", "much"), "--keep-size: is not a size"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "x.jsonl.gz").write_bytes(b"no recording")
    said = record(*(word.format(tmp_path) for word in words))
    assert said.exit_code == 2
    assert why in " ".join(said.output.split())


def judged(folder: Path) -> None:
    attempts = every_attempt(folder)
    assert len([each for each in attempts if each.record.node]) >= havoc.PODS // 2
    assert [told(each) for each in attempts if each.again is not None and not each.again.agrees] == []
    missed = [each.record.pod for each in attempts if each.again is None and not each.record.is_held]
    assert missed == []


@pytest.mark.parametrize("seed", [0, 3])
def test_each_decision_of_a_troubled_history_comes_out_the_same(seed: int, recorded: Path) -> None:
    havoc.played(seed)
    judged(recorded)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_each_decision_of_many_troubled_histories_comes_out_the_same(seed: int, recorded: Path) -> None:
    with havoc.in_haste():
        havoc.played(seed)
    judged(recorded)
