"""Three written quantities: always consistent integers, never more than was promised, every repair noted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.decode import quantity
from numalign.api.decode.quantity import INT64_MAX
from numalign.api.nrt import normalise as nrtamounts
from numalign.api.nrt.nodetopology import Amounts
from numalign.api.nrt.wire import Resource
from tests import topology_strategies as some


def read(name: str, *written: Any) -> tuple[Amounts, list[Guess]]:
    guesses: list[Guess] = []
    capacity, allocatable, available = written
    resource = Resource(name=name, capacity=capacity, allocatable=allocatable, available=available)
    return nrtamounts.read_amount(resource, "r", guesses), guesses


CLEAN = {
    "cpu in thousandths": ("cpu", ("8", "7", "6500m"), (8000, 7000, 6500)),
    "memory in bytes": ("memory", ("4Gi", "2147483648", "1e9"), (4 << 30, 2 << 30, 10**9)),
    "devices by number": ("example.com/nic", ("4", "4", "0"), (4, 4, 0)),
    "numbers without quotes": ("cpu", (8, 8, 8), (8000, 8000, 8000)),
    "nothing there": ("hugepages-1Gi", ("0", "0", "0"), (0, 0, 0)),
}
REPAIRED = {
    "available over allocatable": (("8", "4", "6"), (8, 4, 4), ["available-lowered"]),
    "allocatable over capacity": (("0", "4", "4"), (4, 4, 4), ["capacity-raised"]),
    "only capacity and available filled": (("8", "0", "6"), (8, 8, 6), ["allocatable-assumed"]),
    "negative available": (("8", "8", "-1"), (8, 8, 0), ["quantity-negative"]),
    "everything negative": (("-1", "-1", "-1"), (0, 0, 0), ["quantity-negative"] * 3),
    "available missing": (("8", "8", None), (8, 8, 0), ["quantity-missing"]),
    "allocatable missing": (("8", None, "6"), (8, 8, 6), ["quantity-missing", "allocatable-assumed"]),
    "capacity missing": ((None, "8", "6"), (8, 8, 6), ["quantity-missing", "capacity-raised"]),
    "available unreadable": (("8", "8", "six"), (8, 8, 0), ["quantity-unreadable"]),
    "half a device": (("8", "8", "1500m"), (8, 8, 1), ["quantity-rounded"]),
    "a float": (("8", "8", 6.0), (8, 8, 6), ["quantity-float"]),
    "not even a number": (("8", "8", float("nan")), (8, 8, 0), ["quantity-float", "quantity-unreadable"]),
    "more than int64": (("9E", "9E", "1E"), (9 * 10**18, 9 * 10**18, 10**18), []),
    "far more than int64": (("1" * 30, "8", "8"), (INT64_MAX, 8, 8), ["quantity-clamped"]),
}
WRITTEN = st.none() | st.text(max_size=6) | st.integers() | st.floats() | st.sampled_from(
    ["0", "1", "-1", "1.5", "1Gi", "9E", "1e30", "1" * 200, "5n", "٣"]
)  # fmt: skip
NAMES = st.sampled_from(["cpu", "memory", "example.com/nic", "gpu"])


@pytest.mark.parametrize("name, written, expected", CLEAN.values(), ids=CLEAN)
def test_quantities_become_integers_of_the_resource(
    name: str, written: tuple[Any, ...], expected: tuple[int, ...]
) -> None:
    assert read(name, *written) == (Amounts(*expected), [])


@pytest.mark.parametrize("written, expected, codes", REPAIRED.values(), ids=REPAIRED)
def test_repairs_are_noted(written: tuple[Any, ...], expected: tuple[int, ...], codes: list[str]) -> None:
    amounts, guesses = read("example.com/nic", *written)
    assert amounts == Amounts(*expected)
    assert [guess.code for guess in guesses] == codes


def test_the_unit_of_a_name_without_a_domain_is_a_guess() -> None:
    amounts, guesses = read("gpu", "4", "4", "1")
    assert amounts == Amounts(4, 4, 1)
    assert guesses == [Guess(GuessCode.UNIT_ASSUMED, "r.name", '"gpu"', "units")]


@given(NAMES, st.tuples(WRITTEN, WRITTEN, WRITTEN))
def test_amounts_are_consistent_whatever_is_written(name: str, written: tuple[Any, ...]) -> None:
    amounts, _ = read(name, *written)
    assert 0 <= amounts.available <= amounts.allocatable <= amounts.capacity <= INT64_MAX


@given(NAMES, st.tuples(*[st.integers(0, 10**20)] * 3))
def test_available_is_never_more_than_was_written(name: str, written: tuple[int, ...]) -> None:
    amounts, _ = read(name, *map(str, written))
    assert amounts.available <= written[2] * (1000 if name == "cpu" else 1)


@given(NAMES, some.amounts())
def test_amounts_are_written_back(name: str, amounts: Amounts) -> None:
    written = (
        nrtamounts.amount_text(amount, name) for amount in (amounts.capacity, amounts.allocatable, amounts.available)
    )
    assert read(name, *written)[0] == amounts


@given(st.sampled_from(["cpu", "memory"]), some.amounts())
def test_the_text_is_a_quantity_of_that_amount(name: str, amounts: Amounts) -> None:
    amount = quantity.parse(nrtamounts.amount_text(amounts.capacity, name))
    assert amount == (quantity.of_milli if name == "cpu" else quantity.of)(amounts.capacity)
