"""The podium has the rows of the best rank at hand, in their order, however ranks change."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from numalign.placement.rules.nodeamounts import OUT
from numalign.scheduler.choose.rankcache import BestRanks

ranks = st.integers(OUT, 4)


@given(st.lists(ranks, min_size=1, max_size=12), st.lists(st.tuples(st.integers(0, 11), ranks), max_size=40))
def test_the_first_rows_are_those_that_a_look_at_all_would_find(
    held: list[int], changes: list[tuple[int, int]]
) -> None:
    known = np.array(held, np.int32)
    podium = BestRanks(known)
    for row, rank in [(row % len(held), rank) for row, rank in changes]:
        before, held[row], known[row] = held[row], rank, rank
        if rank != before:
            podium.move(row, before, rank)
        best = max(held)
        assert list(podium.first) == [each for each, at in enumerate(held) if at == best != OUT]


def test_where_no_row_is_to_be_picked_there_is_none() -> None:
    assert not BestRanks(np.full(3, OUT, np.int32)).first
