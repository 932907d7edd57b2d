"""Codes stand for refusals."""

import pytest

from numalign.placement.rules.rule import FITS, Refusal, Refusals

TAINTED, FULL = Refusal(("tainted",), unresolvable=True), Refusal(("full",))


def test_codes_start_behind_the_one_for_no_refusal_and_equal_refusals_share_one() -> None:
    refusals = Refusals(TAINTED)
    assert (refusals.code(TAINTED), refusals.code(FULL), refusals.code(Refusal(("full",)))) == (1, 2, 2)
    assert (refusals[1], refusals[2]) == (TAINTED, FULL)


def test_a_node_that_fits_has_no_refusal() -> None:
    with pytest.raises(IndexError, match="fits"):
        Refusals(TAINTED)[FITS]
