"""Every recorded case that the repository carries gets the recorded answer from the model."""

from __future__ import annotations

import pytest

from numalign.oracle.kubelet import replay, vectors
from numalign.oracle.kubelet.replay import FamilyTally
from numalign.oracle.kubelet.vectors import FAMILIES
from tests.oracle import recordings

OF_NO_FAMILY = {
    "topologies.json.xz",
    "scheduler_plugin.json.xz",
    "reference-histories.xz",
    "exporter.json.xz",
    "scheduler-default.json.gz",
    "scheduler-profiles.json.gz",
}


@pytest.mark.parametrize("family", recordings.COUNTS)
def test_the_model_answers_every_recorded_case_as_the_kubelet_did(family: str) -> None:
    report = replay.summed(replay.replay(vectors.load([recordings.file(family)])))
    assert {verdict.vector.id: verdict.differences for verdict in report.diverged} == {}
    assert report.families == {family: FamilyTally(cases=recordings.COUNTS[family], mismatches=0)}


def test_all_public_cases_are_here() -> None:
    counts = dict(recordings.COUNTS)
    assert counts.pop("cpu_livelock") == 1
    assert sum(counts.values()) == 7812


def test_every_family_has_its_recordings_and_no_file_is_left_out() -> None:
    files = {recordings.file(family.name).name for family in FAMILIES}
    assert files | OF_NO_FAMILY == {path.name for path in recordings.DATA.iterdir()}


def test_cases_in_several_files_add_up_and_count_once() -> None:
    distribute, livelock = recordings.file("cpu_distribute"), recordings.file("cpu_livelock")
    once = vectors.load([distribute, livelock])
    assert len(once) == 421
    assert vectors.load([distribute, livelock, distribute]) == once
