"""Which texts are quantities, what they amount to and how they print: as apimachinery's resource.Quantity has it."""

import copy
import pickle
from decimal import Decimal
from typing import Any

import pytest

from numalign.api.decode import quantity
from numalign.api.decode.quantity import Format

MAX = 2**63 - 1

# Text, canonical text, whole units, thousandths: recorded from apimachinery v0.37.1.
RECORDED = [
    ("0", "0", 0, 0),
    ("1", "1", 1, 1000),
    ("+1", "1", 1, 1000),
    ("-1", "-1", -1, -1000),
    ("01", "1", 1, 1000),
    ("1.", "1", 1, 1000),
    (".5", "500m", 1, 500),
    ("0.5", "500m", 1, 500),
    ("-0.5", "-500m", -1, -500),
    ("1.5", "1500m", 2, 1500),
    ("100m", "100m", 1, 100),
    ("1000m", "1", 1, 1000),
    ("1n", "1n", 1, 1),
    ("0.1n", "1n", 1, 1),
    ("0.0000000001", "1n", 1, 1),
    ("1u", "1u", 1, 1),
    ("1k", "1k", 1000, 10**6),
    ("1000k", "1M", 10**6, 10**9),
    ("1G", "1G", 10**9, 10**12),
    ("1T", "1T", 10**12, 10**15),
    ("1P", "1P", 10**15, 10**18),
    ("1Ki", "1Ki", 1024, 1024000),
    ("1Pi", "1Pi", 2**50, 2**50 * 1000),
    ("1.5Gi", "1536Mi", 1610612736, 1610612736000),
    ("0.1Ki", "102400m", 103, 102400),
    ("0.5Ki", "512", 512, 512000),
    ("1.5Ki", "1536", 1536, 1536000),
    ("1024", "1024", 1024, 1024000),
    ("1024Ki", "1Mi", 2**20, 2**20 * 1000),
    ("1000Ki", "1000Ki", 1024000, 1024000000),
    ("1.0001Ki", "1024102400u", 1025, 1024103),
    ("1e3", "1e3", 1000, 10**6),
    ("1E3", "1e3", 1000, 10**6),
    ("1e0", "1", 1, 1000),
    ("1e-3", "1e-3", 1, 1),
    ("1.5e3", "1500", 1500, 1500000),
    ("1e-10", "1e-9", 1, 1),
    ("100e-1", "10", 10, 10000),
    ("+", "0", 0, 0),
    (".", "0", 0, 0),
    ("Ti", "0", 0, 0),
    ("e-9", "0", 0, 0),
]


@pytest.mark.parametrize("text, canonical, value, milli", RECORDED)
def test_amount_and_canonical_text(text: str, canonical: str, value: int, milli: int) -> None:
    parsed = quantity.parse(text)
    assert (str(parsed), parsed.value, parsed.milli) == (canonical, value, milli)


FORMATS = {
    "plain": ("1024", Format.DECIMAL_SI),
    "decimal suffix": ("1M", Format.DECIMAL_SI),
    "binary suffix": ("1Mi", Format.BINARY_SI),
    "exponent": ("1e3", Format.DECIMAL_EXPONENT),
    "binary below one unit": ("0.0001Ki", Format.DECIMAL_SI),
    "binary zero": ("0Ki", Format.BINARY_SI),
}


@pytest.mark.parametrize("text, notation", FORMATS.values(), ids=FORMATS)
def test_the_notation_is_kept(text: str, notation: Format) -> None:
    assert quantity.parse(text).format is notation


# fmt: off
REFUSED = [
    "", " 1", "1 ", "1\n", "\t1", "1 Gi", "aoeu", "1e", "1e+", "1i", "1mi", "1K", "1ki", "1g", "1Ei2", "1.1.1", "1,5",
    "--1", "1-1", "5m5", "0x10", "1_000", "Inf", "NaN", "1e1.5", "Pi", "Ei", "e-10", "٣", "１", "½", "1e٣", "1\0",
    "\ud800", "1m\u200b",
]
# fmt: on


@pytest.mark.parametrize("text", REFUSED)
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(quantity.QuantityError, match='write a number like "2", "1500m" or "4Gi"'):
        quantity.parse(text)


@pytest.mark.parametrize(
    "thing", [None, True, False, float("nan"), float("inf"), b"1", [], {}, (1,), 1j, Decimal("NaN")]
)
def test_other_things_are_refused(thing: Any) -> None:
    with pytest.raises(quantity.QuantityError, match="is not a quantity"):
        quantity.parse(thing)


NUMBERS = {
    "whole": (2, "2"),
    "fraction": (0.1, "100m"),
    "large": (1e22, "10e21"),
    "small": (1e-7, "100e-9"),
    "exact": (Decimal("0.123456789"), "123456789n"),
}


@pytest.mark.parametrize("number, canonical", NUMBERS.values(), ids=NUMBERS)
def test_an_unquoted_number_is_read_as_its_text(number: Any, canonical: str) -> None:
    assert str(quantity.parse(number)) == canonical


LIMITS = {
    "binary amounts are capped": ("8Ei", str(MAX), MAX, MAX),
    "below zero too": ("-9Ei", str(-MAX), -MAX, -MAX),
    "thousandths stop at int64": ("7Ei", "7Ei", 7 * 2**60, MAX),
    "units stop at int64": ("1e30", "1e30", MAX, MAX),
    "below zero as well": ("-100E", "-100E", -MAX, -MAX),
    "what is past E stays in E": ("5000000E", "5000000E", MAX, MAX),
    "digits are kept": ("123456789012345678901", "123456789012345678901", MAX, MAX),
    "rounding is away from zero": ("-0.1n", "-1n", -1, -1),
}


@pytest.mark.parametrize("text, canonical, value, milli", LIMITS.values(), ids=LIMITS)
def test_where_our_limits_differ_from_overflow(text: str, canonical: str, value: int, milli: int) -> None:
    parsed = quantity.parse(text)
    assert (str(parsed), parsed.value, parsed.milli) == (canonical, value, milli)


ABSURD: dict[str, Any] = {
    "exponent": "1e999999999",
    "exponent past int32": "1e4294967299",
    "exponent past int64": "0e99999999999999999999",
    "a megabyte of digits": "9" * 10**6,
    "a megabyte of zeros": "0." + "0" * 10**6 + "1",
    "number of thousands of digits": 10**5000,
    "number below zero of thousands of digits": -(10**5000),
}


@pytest.mark.parametrize("written", ABSURD.values(), ids=ABSURD)
def test_absurd_sizes_are_refused_in_few_words(written: Any) -> None:
    with pytest.raises(quantity.QuantityError) as refusal:
        quantity.parse(written)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    "text, nanos", [("1e-999999999", 1), ("-1e-999999999", -1), ("0e999999999", 0), ("0e-999999999", 0)]
)
def test_absurd_exponents_that_mean_nothing_are_harmless(text: str, nanos: int) -> None:
    assert quantity.parse(text).nanos == nanos


@pytest.mark.parametrize(
    "text, whole", [("2", True), ("2000m", True), ("1500m", False), ("1n", False), ("0", True), ("1.5Ki", True)]
)
def test_whole(text: str, whole: bool) -> None:
    assert quantity.parse(text).is_whole is whole


SUMS = {
    "left notation": ("1Gi", "500m", "1073741824500m", "1073741823500m"),
    "zero has no notation": ("0", "2Gi", "2Gi", "-2Gi"),
    "exponent": ("1e3", "1k", "2e3", "0"),
}


@pytest.mark.parametrize("left, right, total, difference", SUMS.values(), ids=SUMS)
def test_sums_and_differences_keep_the_left_notation(left: str, right: str, total: str, difference: str) -> None:
    a, b = quantity.parse(left), quantity.parse(right)
    assert (str(a + b), str(a - b)) == (total, difference)


def test_equal_amounts_are_equal_however_written() -> None:
    assert len({quantity.parse(text) for text in ("1", "1000m", "1e0", "0.001k")}) == 1
    assert quantity.parse("1") != 1


@pytest.mark.parametrize("name", ["nanos", "format", "anything"])
def test_a_quantity_cannot_be_changed(name: str) -> None:
    with pytest.raises(AttributeError, match="make a new one"):
        setattr(quantity.parse("1"), name, 2)


def test_copies_are_equal_in_amount_and_notation() -> None:
    original = quantity.parse("1536Mi")
    for copied in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        assert (copied, copied.format) == (original, Format.BINARY_SI)


def test_from_whole_units_and_thousandths() -> None:
    assert str(quantity.of(2048, Format.BINARY_SI)) == "2Ki"
    assert repr(quantity.of_milli(1500)) == 'Quantity("1500m")'
