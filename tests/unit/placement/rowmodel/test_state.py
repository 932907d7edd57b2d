"""Rows as numbers: bounds of what is free, and what a pod leaves behind."""

import pytest

from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.nodefacts import DeviceClass, Groups, RowFacts, Supply, supplies_of
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.resources import CPU, MEMORY, Resources
from numalign.placement.rowmodel import state
from numalign.placement.rowmodel.state import RowClass, RowState

NIC = 2
RULES = NodeRules(zones=(0, 1, 4), policy="restricted", static_cpus=True, static_memory=True)


def row(**more: object) -> RowState:
    given = {
        "size": {CPU: (8, 8, 8), MEMORY: (100, 100, 100)},
        "base": {CPU: (6, 4, 2), MEMORY: (100, 80, 60)},
        "memory": frozenset({MEMORY}),
        "groups": Groups((1, 2, 4)),
    }
    return RowState(rules=RULES, **(given | more))  # type: ignore[arg-type]


ENTRIES = (Entry(CPU, 3, 0b011), Entry(CPU, 1, 0b110, certain=False))
BOUNDS = {
    "a zone that an entry may be in": (0b001, 3, 6),
    "a zone that two entries may be in": (0b010, 0, 4),
    "all zones of a certain entry": (0b011, 6, 7),
    "all zones of an entry that may not be there": (0b110, 2, 6),
    "everywhere": (0b111, 8, 9),
}


@pytest.mark.parametrize("mask, least, most", BOUNDS.values(), ids=BOUNDS)
def test_what_is_free_lies_between_bounds(mask: int, least: int, most: int) -> None:
    vague = row(entries=ENTRIES)
    assert (vague.lo(CPU, mask), vague.hi(CPU, mask)) == (least, most)


def test_devices_of_several_zones_are_free_in_each_of_them() -> None:
    wide = row(size={NIC: (1, 0, 0)}, base={NIC: (1, 0, 0)}, classes=(RowClass(NIC, 0b011, 2, 2),))
    assert [wide.lo(NIC, mask) for mask in (0b001, 0b010, 0b100)] == [3, 2, 0]


def test_an_exact_charge_is_taken_from_its_zone() -> None:
    after = state.charged(row(), [Entry(CPU, 2, 0b010)])
    assert after.base[CPU] == (6, 2, 2)
    assert not after.entries


def test_a_vague_charge_stays_beside_the_amounts() -> None:
    after = state.charged(row(), [Entry(CPU, 2, 0b011)])
    assert after.base[CPU] == (6, 4, 2)
    assert after.entries == (Entry(CPU, 2, 0b011),)


def test_memory_in_a_group_is_drained_from_the_lowest_zone_and_binds_all() -> None:
    after = state.charged(row(), [Entry(MEMORY, 120, 0b011, span=2)])
    assert after.base[MEMORY] == (0, 60, 60)
    assert after.groups == Groups((0b011, 0b011, 0b100), busy=0b011)


def test_devices_without_a_zone_are_counted_apart() -> None:
    after = state.charged(row(homeless={NIC: 3}), [Entry(NIC, 2, 0)])
    assert after.homeless == {NIC: 1}


def test_cores_are_not_known_any_more_once_cpus_are_charged() -> None:
    cores = ((0, 3), (0, 2), (0, 1))
    assert state.charged(row(cores=cores), [Entry(MEMORY, 10, 0b001)]).cores == cores
    assert state.charged(row(cores=cores), [Entry(CPU, 2, 0b001)]).cores is None


FULL_CORES = {"all CPUs are on full cores": (12, (9, 9)), "two are beside reserved ones": (10, (7, 9))}


@pytest.mark.parametrize("before, after", FULL_CORES.values(), ids=FULL_CORES)
def test_a_charge_may_take_cpus_beside_reserved_ones(before: int, after: tuple[int, int]) -> None:
    assert state.charged(row(full_core_cpus=(before, before)), [Entry(CPU, 3, 0b001)]).full_core_cpus == after


def test_groups_follow_from_blocks() -> None:
    assert state.grouped(3, [0b011, 0b011, 0b100]) == Groups((0b011, 0b011, 0b100), busy=0b111)


def facts(**more: object) -> RowFacts:
    supplies = {
        "cpu": Supply(size=(8, 8, 8), allocatable=(7, 8, 8), free=(6, 4, 2)),
        "memory": Supply(size=(100, 100, 100), allocatable=(100, 100, 100), free=(100, 80, 60)),
        "nic": Supply(size=(1, 0, 0), allocatable=(0, 0, 0), free=(0, 0, 0)),
    }
    return RowFacts(node="n", rules=RULES, supplies=supplies_of(supplies), **more)  # type: ignore[arg-type]


def test_a_report_becomes_a_row() -> None:
    resources = Resources()
    made = state.of(facts(free_full_core_cpus=12, groups=Groups((1, 2, 4), 0b110)), resources)
    assert made.base == {CPU: (6, 4, 2), MEMORY: (100, 80, 60), resources.column("nic"): (0, 0, 0)}
    assert made.memory == {MEMORY}
    assert made.full_core_cpus == (12, 12)


def test_devices_of_which_none_is_healthy_are_distinguished() -> None:
    resources = Resources()
    assert state.of(facts(), resources).broken == {resources.column("nic")}
    wide = (DeviceClass(resource="nic", zones=0b011, size=1, free=0),)
    assert not state.of(facts(classes=wide), resources).broken


def test_what_the_ledger_knows_since_replaces_the_report() -> None:
    base = {CPU: (6, 1, 2), MEMORY: (100, 80, 60)}
    made = state.of(facts(free_full_core_cpus=12), Resources(), base=base, entries=ENTRIES)
    assert made.base[CPU] == (6, 1, 2)
    assert made.entries == ENTRIES
    assert made.full_core_cpus == (9, 9)
