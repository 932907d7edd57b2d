"""Zones by real id and by position are two names for the same thing, as long as the zone is there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numalign.placement.columns import zonesets
from numalign.placement.columns.holdings import ContainerZones, Entry, Holding, Source

zones = st.sets(st.integers(0, 63), min_size=1, max_size=8).map(lambda found: tuple(sorted(found)))


@given(zones, st.integers(0, 255))
def test_positions_and_ids_lead_to_each_other(ids: tuple[int, ...], mask: int) -> None:
    mask &= (1 << len(ids)) - 1
    real = sum(1 << ids[position] for position in zonesets.positions(mask))
    assert zonesets.from_ids(real, ids) == mask


@given(zones, zones, st.integers(0, 255))
def test_only_zones_that_remain_move(old: tuple[int, ...], new: tuple[int, ...], mask: int) -> None:
    moved = zonesets.moved(mask, old, new)
    named = {old[position] for position in zonesets.positions(mask) if position < len(old)}
    assert {new[position] for position in zonesets.positions(moved)} == named & set(new)


def test_a_holding_moves_with_all_that_it_says_about_zones() -> None:
    containers = (ContainerZones("app", (0b01, 0b10)),)
    entries = (Entry(0, 4, 0b01), Entry(0, 2, 0b11), Entry(2, 1, 0))
    holding = Holding(uid="u", name="a", source=Source.PREDICTED, entries=entries, containers=containers)
    moved = zonesets.moved_holding(holding, (3, 5), (4, 5))
    assert moved.entries == (Entry(0, 2, 0b10), Entry(2, 1, 0))
    assert moved.containers == (ContainerZones("app", (0b10,)),)
