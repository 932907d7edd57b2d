"""Lengths of time, written and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode import fields
from numalign.api.errors import BadObject
from numalign.simulator.scenarios import durations

WRITTEN = {"500ms": 0.5, "10s": 10.0, "1m30s": 90.0, "2h": 7200.0, "1.5s": 1.5, "1d": 86400.0}


def read(value: object) -> float:
    return durations.read(fields.root(value, "Scenario", "file"))


@pytest.mark.parametrize("text, seconds", WRITTEN.items())
def test_units_add_up(text: str, seconds: float) -> None:
    assert read(text) == pytest.approx(seconds)


@given(st.integers(0, 10**9))
def test_what_is_written_reads_back(milliseconds: int) -> None:
    assert read(durations.text(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@pytest.mark.parametrize("value", ["", "10", "ten", "10s5", "-1s", None, True, [], "400d", -1, float("nan")])
def test_what_is_no_length_of_time(value: object) -> None:
    with pytest.raises(BadObject, match=r"is not (a duration|between 0 and one year)"):
        read(value)
