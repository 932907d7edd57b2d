"""The best row is found through block maxima, and equals have equal chances."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from numalign.placement import pick
from numalign.placement.pick import Codes, Peaks

BLOCKS = 4


def codes_of(values: list[int]) -> Codes:
    return np.array(values, np.int32)


tables = st.lists(st.integers(-6, 4), min_size=BLOCKS * pick.BLOCK, max_size=BLOCKS * pick.BLOCK).map(codes_of)
chances = st.floats(0, 1, exclude_max=True)


@given(tables, chances)
def test_a_pick_is_a_row_of_the_best_code(codes: Codes, chance: float) -> None:
    row = Peaks(codes).pick(codes, chance)
    best = codes.max()
    assert (row == pick.NO_ROW) if best < 0 else codes[row] == best


@given(tables, st.lists(st.tuples(st.integers(0, BLOCKS * pick.BLOCK - 1), st.integers(-6, 5)), max_size=20))
def test_updates_lead_where_rebuilding_does(codes: Codes, changes: list[tuple[int, int]]) -> None:
    peaks = Peaks(codes)
    for row, code in changes:
        codes[row] = code
        peaks.update(codes, row)
    fresh = Peaks(codes)
    assert (peaks.best.tolist(), peaks.count.tolist()) == (fresh.best.tolist(), fresh.count.tolist())


def test_equals_are_picked_equally_often() -> None:
    codes = codes_of([-1] * (BLOCKS * pick.BLOCK))
    equals = [3, 4, 70, 200, 255]
    codes[equals] = 7
    peaks = Peaks(codes)
    found = Counter(peaks.pick(codes, number / 1000) for number in range(1000))
    assert found == dict.fromkeys(equals, 200)


def test_nothing_is_picked_where_nothing_fits() -> None:
    codes = codes_of([-1] * pick.BLOCK)
    assert Peaks(codes).pick(codes, 0.5) == pick.NO_ROW
