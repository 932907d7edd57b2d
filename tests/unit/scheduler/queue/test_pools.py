"""How long pods stay out of the way: the check vectors, and the law behind them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.scheduler.queue.pools import NEVER, PodBackoff
from numalign.scheduler.queue.queued import QueuedPod
from tests.unit.scheduler import waitingpods

# kube-scheduler spec A.9: initial, longest, attempts, seconds
VECTORS = [
    (1, 10, 1, 1),
    (1, 10, 2, 2),
    (1, 10, 3, 4),
    (1, 10, 4, 8),
    (1, 10, 5, 10),
    (1, 10, 9, 10),
    (3, 1000, 5, 48),
    (1, 32, 16, 32),
    (1, 0, 1, 0),
    (1, 0, 9, 0),
    (1, 10, 0, 0),
]


@pytest.mark.parametrize("initial, longest, attempts, seconds", VECTORS)
def test_duration(initial: float, longest: float, attempts: int, seconds: float) -> None:
    assert PodBackoff(initial, longest).duration(attempts) == seconds


@given(st.integers(1, 60), st.integers(0, 600), st.integers(1, 200))
def test_a_duration_never_shrinks_and_never_passes_the_longest(initial: int, more: int, attempts: int) -> None:
    backoff = PodBackoff(initial, initial + more)
    assert initial <= backoff.duration(attempts) <= backoff.duration(attempts + 1) <= initial + more


def queued(since: float, refused: int = 0, errors: int = 0) -> QueuedPod:
    return QueuedPod(pod=waitingpods.pod("a"), added=0, since=since, number=1, refused=refused, errors=errors)


@pytest.mark.parametrize(
    "since, refused, errors, expiry", [(7.9, 1, 0, 8), (7.9, 3, 0, 11), (7.9, 3, 1, 8), (7, 0, 2, 9)]
)
def test_the_end_is_cut_to_a_whole_second_and_errors_in_a_row_count_first(
    since: float, refused: int, errors: int, expiry: float
) -> None:
    assert PodBackoff().expiry(queued(since, refused, errors)) == expiry


def test_a_pod_waits_through_the_second_in_which_its_backoff_ends() -> None:
    pod = queued(7.9, refused=1)
    assert [PodBackoff().is_on(pod, now) for now in (7.9, 8.0, 8.999, 9.0)] == [True, True, True, False]


def test_a_pod_that_was_never_refused_has_no_backoff() -> None:
    assert PodBackoff().expiry(queued(5)) == NEVER
    assert not PodBackoff().is_on(queued(5), 5)


def test_a_longest_of_nothing_switches_backoff_off() -> None:
    assert not PodBackoff(1, 0).is_on(queued(5, refused=4), 5)


@given(st.floats(0, 1e6), st.integers(1, 30))
def test_backoff_lasts_as_long_as_it_says_but_for_the_fraction_of_a_second(since: float, refused: int) -> None:
    expiry = PodBackoff().expiry(queued(since, refused))
    assert expiry == math.floor(since + PodBackoff().duration(refused))
