"""A missing tool skips a test on a desk and fails it in a pipeline, so that no tier is lost in silence."""

import pytest

from tests import conftest


@pytest.mark.parametrize("pipeline", ["true", ""])
def test_what_is_there_lets_the_test_go_on(monkeypatch: pytest.MonkeyPatch, pipeline: str) -> None:
    monkeypatch.setenv(conftest.IN_PIPELINE, pipeline)
    conftest.require("/usr/bin/go", "Go")


def test_what_is_missing_skips_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(conftest.IN_PIPELINE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs Go"):
        conftest.require(None, "Go")


def test_what_is_missing_fails_in_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(conftest.IN_PIPELINE, "true")
    with pytest.raises(pytest.fail.Exception, match="has to provide Go"):
        conftest.require(None, "Go")
