"""Exponential back-off: the law that every retry follows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kube.backoff import Exponential


@pytest.mark.parametrize("failures, seconds", [(0, 0.0), (1, 1.0), (2, 2.0), (4, 8.0), (5, 10.0), (10_000, 10.0)])
def test_a_pause_doubles_with_each_failure_up_to_the_longest(failures: int, seconds: float) -> None:
    assert Exponential(first=1.0, longest=10.0).pause(failures) == seconds


def test_a_factor_other_than_two() -> None:
    assert [Exponential(0.01, 60.0, factor=5.0).pause(failures) for failures in (1, 2, 3)] == [0.01, 0.05, 0.25]


@given(st.floats(0.001, 60), st.floats(0, 600), st.floats(1, 10), st.integers(1, 500))
def test_a_pause_never_shrinks_and_never_passes_the_longest(
    first: float, more: float, factor: float, failures: int
) -> None:
    backoff = Exponential(first, first + more, factor)
    assert first <= backoff.pause(failures) <= backoff.pause(failures + 1) <= first + more
