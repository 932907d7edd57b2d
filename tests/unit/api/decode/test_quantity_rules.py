"""What holds for every quantity, checked against exact fractions."""

import math
from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode import quantity
from numalign.api.decode.quantity import Format
from tests.strategies import api

CAP = quantity.INT64_MAX * quantity.NANO


@given(api.written_quantities())
def test_the_amount_is_exact_up_to_a_billionth_and_never_less(written: api.Written) -> None:
    expected = math.ceil(abs(written.amount) * quantity.NANO)
    if written.text.endswith("i"):
        expected = min(expected, CAP)
    assert quantity.parse(written.text).nanos == (expected if written.amount >= 0 else -expected)


@given(api.quantities())
def test_the_canonical_text_names_the_same_amount(amount: quantity.Quantity) -> None:
    assert quantity.parse(str(amount)) == amount


@given(api.quantities())
def test_the_canonical_text_is_its_own_canonical_text(amount: quantity.Quantity) -> None:
    # A binary amount that no binary suffix divides is printed as a plain number, which is decimal from then on.
    again = quantity.parse(str(amount))
    assert str(quantity.parse(str(again))) == str(again)
    assert amount.format is Format.BINARY_SI or str(again) == str(amount)


@given(st.lists(api.written_quantities(), min_size=2))
def test_order_follows_the_exact_amounts(written: list[api.Written]) -> None:
    decimal = sorted((one for one in written if not one.text.endswith("i")), key=lambda one: one.amount)
    parsed = [quantity.parse(one.text) for one in decimal]
    assert all(left <= right and not left > right for left, right in pairwise(parsed))


@given(api.quantities(), api.quantities())
def test_comparisons_agree_with_each_other(left: quantity.Quantity, right: quantity.Quantity) -> None:
    assert (left < right) + (left == right) + (left > right) == 1
    assert (left <= right, left >= right) == (not left > right, not left < right)


@given(api.quantities(), api.quantities())
def test_sums_are_exact(left: quantity.Quantity, right: quantity.Quantity) -> None:
    assert (left + right) - right == left


@given(api.quantities())
def test_units_and_thousandths_round_away_from_zero_within_int64(amount: quantity.Quantity) -> None:
    for rounded, unit in ((amount.value, quantity.NANO), (amount.milli, quantity.NANO // 1000)):
        exact = math.ceil(Fraction(abs(amount.nanos), unit))
        assert abs(rounded) == min(exact, quantity.INT64_MAX)
        assert rounded == 0 or (rounded > 0) == (amount.nanos > 0)


def answer(text: str) -> str:
    try:
        return str(quantity.parse(text))
    except quantity.QuantityError as refusal:
        return str(refusal)


@given(st.text(max_size=12) | st.text("0123456789.+-eEinumkKMGTP", max_size=6))
def test_any_text_is_a_quantity_or_refused_with_help(text: str) -> None:
    assert quantity.HELP in answer(text) or quantity.parse(answer(text)) == quantity.parse(text)
