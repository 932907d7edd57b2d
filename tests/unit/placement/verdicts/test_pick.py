"""The best row is found through block maxima, and equals have equal chances."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.placement.verdicts import peaking, pick
from numalign.placement.verdicts.pick import Codes, Peaks

BLOCKS = 70
ROWS = BLOCKS * pick.BLOCK


def codes_of(values: list[int]) -> Codes:
    return np.array(values, np.int8)


def drawn(seed: int, best: int) -> Codes:
    """Few rows above the others, so that blocks and tops without any of them come up."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(ROWS) < 0.002, rng.integers(-6, best + 1, ROWS), rng.integers(-6, -2, ROWS)).astype(
        np.int8
    )


tables = st.builds(drawn, st.integers(0, 1 << 32), st.integers(-3, 4))
chances = st.floats(0, 1, exclude_max=True)
ARRAYS = ("best", "count", "tops", "tops_count")
Put = Callable[[Peaks, Codes, int, int], None]


@given(tables, chances)
def test_a_pick_is_a_row_of_the_best_code(codes: Codes, chance: float) -> None:
    row = Peaks.of(codes).pick(codes, chance)
    best = codes.max()
    assert (row == pick.NO_ROW) if best < 0 else codes[row] == best


def updated(peaks: Peaks, codes: Codes, row: int, code: int) -> None:
    before, codes[row] = int(codes[row]), code
    if before != code:
        peaks.update(codes, row, before)


def told(peaks: Peaks) -> dict[str, list[int]]:
    return {name: getattr(peaks, name).tolist() for name in ARRAYS}


def put_by_machine_code(peaks: Peaks, codes: Codes, row: int, code: int) -> None:
    peaking.put(SimpleNamespace(codes=codes, **vars(peaks)), row, code)


@pytest.mark.parametrize("put", [updated, put_by_machine_code])
@given(codes=tables, changes=st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(-6, 5)), max_size=20))
def test_updates_lead_where_rebuilding_does(put: Put, codes: Codes, changes: list[tuple[int, int]]) -> None:
    peaks = Peaks.of(codes)
    for row, code in changes:
        put(peaks, codes, row, code)
    assert told(peaks) == told(Peaks.of(codes))


@given(tables, chances)
def test_one_look_at_all_codes_finds_the_same_row(codes: Codes, chance: float) -> None:
    assert pick.best_row(codes, chance) == Peaks.of(codes).pick(codes, chance)


@given(tables, chances)
def test_machine_code_picks_the_same_row(codes: Codes, chance: float) -> None:
    peaks = Peaks.of(codes)
    job = SimpleNamespace(codes=codes, **vars(peaks))
    assert peaking.best(job, chance) == peaks.pick(codes, chance)


def test_equals_are_picked_equally_often() -> None:
    codes = codes_of([-1] * (BLOCKS * pick.BLOCK))
    equals = [3, 4, 70, 200, 255]
    codes[equals] = 7
    peaks = Peaks.of(codes)
    found = Counter(peaks.pick(codes, number / 1000) for number in range(1000))
    assert found == dict.fromkeys(equals, 200)


def test_nothing_is_picked_where_nothing_fits() -> None:
    codes = codes_of([-1] * pick.BLOCK)
    assert Peaks.of(codes).pick(codes, 0.5) == pick.NO_ROW
