"""Answers of real kubelets that need the version table, or that the model once got wrong: replayed for ever."""

from pathlib import Path

import pytest

from numalign.kubelet.versions import Minor
from numalign.oracle.harness import files
from numalign.oracle.kubelet import replay, vectors

FOUND = Path(__file__).with_name("found")
CASES = {f"{path.parent.name}/{path.stem}": path for path in sorted(FOUND.glob("1.*/*.json"))}


@pytest.mark.parametrize("path", CASES.values(), ids=CASES)
def test_the_model_answers_as_the_kubelet_did(path: Path) -> None:
    major, minor = map(int, path.parent.name.split("."))
    (found,) = files.values(path)
    assert replay.judge(vectors.of(found, dict, Minor(major, minor))).differences == ()
