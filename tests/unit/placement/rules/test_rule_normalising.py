"""Raw scores become scores from 0 to 100."""

import numpy as np
import pytest

from numalign.placement.rules import rule


@pytest.mark.parametrize(
    "raw, scores",
    [
        ([3, 7, 0, 10], [30, 70, 0, 100]),
        ([5, 10, 3], [50, 100, 30]),
        ([1, 3], [33, 100]),
        ([0, 0], [0, 0]),
        ([], []),
    ],
)
def test_the_largest_counts_as_100(raw: list[int], scores: list[int]) -> None:
    """Kube-scheduler spec A.5."""
    assert rule.by_largest(np.array(raw, np.int64)).tolist() == scores


@pytest.mark.parametrize(
    "raw, scores", [([0, 1, 2, 3], [100, 67, 34, 0]), ([2, 0, 5], [60, 100, 0]), ([0, 0], [100, 100]), ([], [])]
)
def test_reversed_the_largest_counts_as_0(raw: list[int], scores: list[int]) -> None:
    """Kube-scheduler spec A.5."""
    assert rule.by_largest_reversed(np.array(raw, np.int64)).tolist() == scores
