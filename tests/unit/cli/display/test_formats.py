"""Amounts and zones as people say them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode import quantity
from numalign.cli.display import formats
from numalign.cli.display.values import Amount

GIB = 1 << 30

AMOUNTS = [
    ("cpu", 16, "16"),
    ("cpu", 30.5, "30.5"),
    ("cpu", 0.001, "0.001"),
    ("nvidia.com/gpu", 2**63 - 1, "9223372036854775807"),
    ("memory", 0, "0"),
    ("memory", -GIB, "-1Gi"),
    ("memory", 1023, "1023"),
    ("memory", 64 * GIB, "64Gi"),
    ("memory", 64 * GIB - 1, "63.99Gi"),
    ("memory", 3 * GIB // 2, "1.5Gi"),
    ("memory", 1024 * GIB, "1Ti"),
    ("hugepages-2Mi", 2 << 20, "2Mi"),
]


@pytest.mark.parametrize("resource, value, text", AMOUNTS)
def test_amounts_are_short_and_never_look_like_more(resource: str, value: Amount, text: str) -> None:
    assert formats.amount(resource, value) == text


@given(st.integers(0, 2**62))
def test_bytes_are_never_rounded_up_and_by_less_than_a_hundredth(size: int) -> None:
    shown = quantity.parse(formats.amount("memory", size))
    assert shown.value <= size + 1
    assert shown.value >= size * 0.99


CHOICES = [
    ([(0,)], "zone 0"),
    ([(0,), (2,)], "zone 0 or 2"),
    ([(zone,) for zone in range(8)], "one of zones 0-7"),
    ([(0, 1)], "zones 0+1"),
    ([(0, 1), (2, 3)], "zones 0+1 or 2+3"),
    ([(0, 1), (0, 2), (1, 2), (0, 3), (1, 3)], "zones 0+1, 0+2, 1+2 or 2 more"),
]


@pytest.mark.parametrize("sets, text", CHOICES)
def test_choices_of_zones_stay_readable(sets: list[tuple[int, ...]], text: str) -> None:
    assert formats.choices(sets) == text


@pytest.mark.parametrize(
    "free, allocatable, text",
    [(46, 94, "46 of 94 free"), (508 * GIB, 1020 * GIB, "508 of 1020Gi free"), (GIB, 1024 * GIB, "1Gi of 1Ti free")],
)
def test_a_shared_unit_is_written_once(free: int, allocatable: int, text: str) -> None:
    assert formats.free_of("memory" if free > 100 else "cpu", free, allocatable) == text


def test_zones_are_named_by_their_ids() -> None:
    assert [formats.zones(ids) for ids in ([], [3], [0, 1, 2, 5])] == ["no zone", "zone 3", "zones 0-2,5"]
