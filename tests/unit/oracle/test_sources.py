"""Which real code is meant by what a person writes, and what can be done with it."""

import pickle
from pathlib import Path

import pytest
from typer.testing import CliRunner

from numalign.api.errors import BadObject
from numalign.cli.devkit import oracle
from numalign.kubelet.versions import Minor
from numalign.oracle import fuzz, sources
from tests.unit.oracle import pretending


@pytest.mark.parametrize(
    "text, version, binary",
    [
        ("kubelet", sources.NEWEST, f"oracle-kubelet-{sources.NEWEST}"),
        ("kubelet@1.35", "1.35", "oracle-kubelet-1.35"),
        ("reference", "reference", "oracle-reference"),
        ("scheduler", "scheduler", "oracle-scheduler"),
        ("rte", "rte", "oracle-exporter"),
        ("nfd", "nfd", "oracle-exporter"),
    ],
)
def test_a_source_is_named(text: str, version: str, binary: str) -> None:
    source = sources.of(text)
    assert (source.version, source.binary.name) == (version, binary)


@pytest.mark.parametrize("text", ["kubelet@1.20", "scheduler@1.37", "reference@1", ""])
def test_anything_else_is_refused_with_what_is_known(text: str) -> None:
    with pytest.raises(BadObject, match=r"known are kubelet and kubelet@1\.34, .*, reference, scheduler, rte, nfd"):
        sources.of(text)


def test_a_kubelet_draws_and_judges_cases_of_its_minor() -> None:
    source = sources.kubelet("kubelet@1.35")
    assert source.minor == Minor(1, 35)
    assert "sequence_podlevel" not in {source.draw(1, number)[0] for number in range(1000)}


@pytest.mark.parametrize("text", ["kubelet@1.36", "reference", "rte"])
def test_a_source_can_travel_to_a_worker_process(text: str) -> None:
    source = pickle.loads(pickle.dumps(sources.of(text)))
    assert source.draw(3, 5) == sources.of(text).draw(3, 5)


def test_recording_prints_what_was_answered_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = '\n    case = {"id": case["id"], "timeout": True} if case["id"].endswith("1") else case\n'
    monkeypatch.setattr(sources.Source, "program", lambda self: pretending.program(tmp_path, silent))
    result = CliRunner().invoke(oracle.app, ["record", "--against", "reference", "--seed", "4", "--cases", "3"])
    assert result.exit_code == 0
    assert [line[:15] for line in result.stdout.splitlines()] == ['{"id":"ref-4-0"', '{"id":"ref-4-2"']


def test_a_disagreement_is_made_small_and_saved_under_its_version(tmp_path: Path) -> None:
    source = sources.kubelet("kubelet@1.36")
    wrong = '\n    case = {"id": case["id"], "panic": "nil"}\n'
    plan = fuzz.FuzzPlan(program=pretending.program(tmp_path, wrong), source=source, seed=1, cases=3, workers=1)
    (judged, *_) = fuzz.campaign(plan, lambda _: None).found
    small = fuzz.reduced(plan, judged)
    assert len(str(small.case)) < len(str(judged.case))
    assert fuzz.save(small, tmp_path / "found", source).parent == tmp_path / "found" / "1.36"
