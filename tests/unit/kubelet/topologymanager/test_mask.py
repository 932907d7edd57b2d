"""Sets of zones: the order in which the kubelet lists them, and the order in which it compares them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kubelet.topologymanager import mask as masks
from tests.strategies.kubelet import zone_ids

ZONE_SETS = st.sets(st.integers(0, 63))


@given(ZONE_SETS)
def test_a_mask_has_the_zones_it_was_made_of_in_ascending_order(zones: set[int]) -> None:
    assert masks.members(masks.of(zones)) == tuple(sorted(zones))


NARROWER = {
    "fewer zones": ([3], [0, 1]),
    "lower zones where the number is the same": ([0, 1], [0, 2]),
    "the lower highest zone, not the lower lowest one": ([1, 2], [0, 3]),
    "one single zone before the next": ([0], [1]),
}


@pytest.mark.parametrize("narrow, wide", NARROWER.values(), ids=NARROWER)
def test_the_narrower_mask_sorts_first(narrow: list[int], wide: list[int]) -> None:
    assert masks.width(masks.of(narrow)) < masks.width(masks.of(wide))


ENUMERATED = {
    "one zone": ((5,), [(5,)]),
    "two zones": ((0, 1), [(0,), (1,), (0, 1)]),
    "lexicographic inside a size, which is not the order of values": (
        (0, 1, 2, 3),
        [
            *[(0,), (1,), (2,), (3,), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)],
            *[(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3), (0, 1, 2, 3)],
        ],
    ),
    "ids with gaps": ((1, 4, 9), [(1,), (4,), (9,), (1, 4), (1, 9), (4, 9), (1, 4, 9)]),
}


@pytest.mark.parametrize("zones, listed", ENUMERATED.values(), ids=ENUMERATED)
def test_masks_are_listed_by_size_and_then_by_combination(
    zones: tuple[int, ...], listed: list[tuple[int, ...]]
) -> None:
    assert [masks.members(mask) for mask, _ in masks.enumerated(zones)] == listed


@given(zone_ids(6))
def test_a_listed_mask_comes_with_the_places_of_its_zones(zones: tuple[int, ...]) -> None:
    for mask, index in masks.enumerated(zones):
        assert [zones[place] for place in masks.members(index)] == list(masks.members(mask))


@given(zone_ids(6), st.integers(0, 6))
def test_masks_of_one_size_come_lowest_value_first(zones: tuple[int, ...], size: int) -> None:
    expected = sorted(mask for mask, _ in masks.enumerated(zones) if mask.bit_count() == size)
    assert list(masks.of_size(zones, size)) == (expected if size else [0])
