from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.apiserver.tables import columns

NOW = datetime(2026, 11, 16, 5, 0, tzinfo=UTC)
M, H, D, Y = 60, 3600, 86400, 365 * 86400
TEXTS = {
    -2: "<invalid>",
    -1.5: "0s",
    0: "0s",
    119: "119s",
    120: "2m",
    121: "2m1s",
    9 * M + 59: "9m59s",
    10 * M + 5: "10m",
    3 * H - 1: "179m",
    3 * H: "3h",
    3 * H + 5 * M: "3h5m",
    8 * H + 5 * M: "8h",
    2 * D - 1: "47h",
    2 * D: "2d",
    2 * D + 3 * H: "2d3h",
    8 * D + 3 * H: "8d",
    2 * Y - 1: "729d",
    2 * Y: "2y",
    2 * Y + 5 * D: "2y5d",
    8 * Y + 5 * D: "8y",
}


@pytest.mark.parametrize("seconds, text", TEXTS.items(), ids=TEXTS.values())
def test_a_duration_keeps_two_or_three_figures(seconds: float, text: str) -> None:
    assert columns.human_duration(seconds) == text


@given(st.floats(min_value=0, max_value=10**9))
def test_every_age_fits_its_column(seconds: float) -> None:
    assert 2 <= len(columns.human_duration(seconds)) <= 6


def test_what_was_never_stamped_has_an_unknown_age() -> None:
    assert columns.age_since(None, NOW) == "<unknown>"


def test_a_stamp_that_cannot_be_read_is_invalid() -> None:
    assert columns.age_since("yesterday", NOW) == "<invalid>"


@pytest.mark.parametrize("stamp", ["2026-11-16T04:59:30Z", "2026-11-16T04:59:30.000000Z", "2026-11-16T05:59:30+01:00"])
def test_all_spellings_of_a_moment_are_the_same_age(stamp: str) -> None:
    assert columns.age_since(stamp, NOW) == "30s"


def test_a_duration_between_two_stamps() -> None:
    end = (NOW + timedelta(seconds=75)).isoformat()
    assert columns.duration_between(NOW.isoformat(), end) == "75s"
