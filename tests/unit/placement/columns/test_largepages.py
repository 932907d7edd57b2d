"""Tables are zeros that can be written to, whatever pages they lie on."""

from __future__ import annotations

import numpy as np
import pytest

from numalign.placement.columns import largepages
from numalign.placement.columns.largepages import LARGE

REFUSED = 1 << 20
"""Advice that no kernel knows."""


@pytest.mark.parametrize("advice", [largepages.ON_LARGE_PAGES, None, REFUSED], ids=["large", "none", "refused"])
@pytest.mark.parametrize("rows", [3, LARGE // 64 + 1], ids=["small table", "large table"])
def test_a_table_is_empty_and_takes_numbers(rows: int, advice: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(largepages, "ON_LARGE_PAGES", advice)
    table = largepages.zeros((rows, 2, 4), np.int64)
    assert (table.shape, str(table.dtype), table.flags.c_contiguous) == ((rows, 2, 4), "int64", True)
    assert not table.any()
    table[-1, 1, 3] = -7
    assert table.sum() == -7
