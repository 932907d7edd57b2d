"""The benchmark that puts the model beside the real code: its large cases, and what it says without Go."""

import pytest

from benchmarks import oracles
from numalign.kubelet.versions import Minor
from numalign.oracle.kubelet import validity, vectors
from numalign.oracle.kubelet.family import CaseOrigin


@pytest.mark.parametrize("family, case", oracles.LARGE.values(), ids=oracles.LARGE)
def test_large_cases_could_be_and_the_model_answers_them(family: str, case: oracles.Case) -> None:
    known = next(each for each in vectors.FAMILIES if each.name == family)
    assert validity.flaws(case) == frozenset()
    assert known.answer(vectors.typed(known.case, case), CaseOrigin({}, Minor(1, 37))) is not None


def test_without_go_it_says_so_and_measures_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("numalign.lab.build.found", lambda: False)
    assert list(oracles.rows()) == []
    assert "oracles: left out, the real kubelet cannot be asked; install Go" in capsys.readouterr().err
