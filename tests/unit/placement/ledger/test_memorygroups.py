"""Blocks of memory bind zones together; the groups of a row are those of the pods that are on it now."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.attributes.podplacements import MemoryBlock, PodPlacement
from numalign.api.objects.pod import Pod
from numalign.placement.columns.holdings import Entry, Holding
from numalign.placement.columns.nodefacts import Groups, RowFacts
from numalign.placement.columns.resources import MEMORY
from numalign.placement.ledger.ledger import Ledger
from numalign.placement.ledger.nodeledger import Row
from tests.unit.placement import ledgerwords as words
from tests.unit.placement.ledgerwords import GIB, NODE

APART = Groups((0b001, 0b010, 0b100))
A, B = words.pod("a"), words.pod("b")


def facts(
    *placements: PodPlacement,
    groups: Groups | None = APART,
    policy: str = "restricted",
    free: tuple[int, int, int] = (8, 8, 8),
    **more: Any,
) -> RowFacts:
    given = {"groups": groups, "policy": policy, "zones": (0, 1, 2), **more}
    return words.with_memory((8, 8, 8), free, placements=placements, zone_cpus=(0xFF, 0xFF00, 0xFF0000), **given)


def block(pod: Pod, zones: int, amount: int = 1, span: int | None = None) -> Holding:
    return words.holding(pod, [Entry(MEMORY, amount * GIB, zones, span=zones.bit_count() if span is None else span)])


def holds(pod: Pod, zones: int) -> PodPlacement:
    return words.placed(pod, 0, memory=(MemoryBlock(type="memory", zones=zones, size=GIB),))


def row(ledger: Ledger) -> Row:
    found = ledger.row(NODE)
    assert found is not None
    return found


def test_a_pending_block_binds_its_zones_and_nothing_is_vague() -> None:
    ledger = words.ledger()
    ledger.report(facts())
    ledger.predict(NODE, A, block(A, 0b011, 9))
    assert (row(ledger).groups, row(ledger).settled_groups) == (Groups((0b011, 0b011, 0b100), 0b011), APART)
    assert (row(ledger).entries, [amount // GIB for amount in words.by_zone(row(ledger), MEMORY)]) == ((), [0, 7, 8])


def test_on_a_node_that_reports_no_groups_they_follow_from_pods() -> None:
    ledger = words.ledger()
    ledger.report(facts(holds(B, 0b100), groups=None, free=(8, 8, 7)))
    ledger.seen(words.running(B), 1.0)
    ledger.predict(NODE, A, block(A, 0b011))
    assert row(ledger).groups == Groups((0b011, 0b011, 0b100), 0b111)
    assert row(ledger).settled_groups == Groups((0b001, 0b010, 0b100), 0b100)


@pytest.mark.parametrize("free", [(8, 7, 7), (8, 8, 7)], ids=["has it still", "has it no more"])
def test_a_deleted_pod_may_still_be_in_the_report_that_pods_explain(free: tuple[int, int, int]) -> None:
    ledger = words.ledger()
    ledger.report(facts(holds(A, 0b010), holds(B, 0b100), groups=None, free=(8, 7, 7)))
    for pod in (A, B):
        ledger.seen(words.running(pod), 1.0)
    ledger.gone(words.running(A), 2.0)
    ledger.report(facts(holds(B, 0b100), groups=None, free=free))
    assert row(ledger).groups == Groups((0b001, 0b010, 0b100), 0b100)


@pytest.mark.parametrize("free", [(8, 7, 7), (8, 8, 8)], ids=["more is in use", "less is in use"])
def test_no_groups_follow_from_pods_that_do_not_explain_the_report(free: tuple[int, int, int]) -> None:
    ledger = words.ledger()
    ledger.report(facts(holds(B, 0b100), groups=None, free=free))
    ledger.seen(words.running(B), 1.0)
    assert row(ledger).groups is None


def test_memory_that_is_not_managed_has_no_groups() -> None:
    ledger = words.ledger()
    ledger.report(facts(groups=None, policy="none", static_memory=False))
    ledger.predict(NODE, A, block(A, 0b011))
    assert (row(ledger).groups, row(ledger).entries) == (None, (Entry(MEMORY, GIB, 0b011, span=2),))


def test_a_block_that_may_be_in_either_zone_binds_none() -> None:
    ledger = words.ledger()
    ledger.report(facts())
    ledger.predict(NODE, A, block(A, 0b011, span=1))
    assert (row(ledger).groups, row(ledger).entries) == (APART, (Entry(MEMORY, GIB, 0b011, span=1),))


def test_the_report_says_how_covered_pods_are_grouped() -> None:
    groups = Groups((0b111, 0b111, 0b111), 0b111)
    ledger = words.ledger()
    ledger.report(facts(holds(A, 0b011), groups=groups))
    ledger.seen(A, 1.0)
    assert row(ledger).groups == groups


def test_a_group_ends_with_its_last_block() -> None:
    ledger = words.ledger()
    ledger.report(facts(holds(A, 0b011), holds(B, 0b100), groups=Groups((0b011, 0b011, 0b100), 0b111)))
    for pod in (A, B):
        ledger.seen(words.running(pod), 1.0)
    ledger.seen(words.finished(A), 2.0)
    assert row(ledger).groups == Groups((0b001, 0b010, 0b100), 0b100)


def test_a_group_lasts_while_a_block_of_it_does() -> None:
    groups = Groups((0b011, 0b011, 0b100), 0b011)
    ledger = words.ledger()
    ledger.report(facts(holds(A, 0b011), holds(B, 0b011), groups=groups))
    for pod in (A, B):
        ledger.seen(words.running(pod), 1.0)
    ledger.seen(words.finished(A), 2.0)
    assert row(ledger).groups == groups


def test_a_group_of_an_unknown_pod_may_have_ended_with_it() -> None:
    groups = Groups((0b011, 0b011, 0b100), 0b111)
    ledger = words.ledger()
    ledger.report(facts(holds(A, 0b011), holds(B, 0b100), groups=groups))
    ledger.seen(words.running(B), 1.0)
    assert row(ledger).groups is None
    ledger.seen(words.running(A), 1.0)
    assert row(ledger).groups == groups


def test_blocks_that_overlap_leave_the_groups_open() -> None:
    ledger, third = words.ledger(), words.pod("c")
    ledger.report(facts(holds(A, 0b100), holds(B, 0b011), holds(third, 0b001), groups=Groups((1, 3, 4), 0b111)))
    for pod in (A, B, third):
        ledger.seen(words.running(pod), 1.0)
    ledger.seen(words.finished(A), 2.0)
    assert row(ledger).groups is None


def test_under_single_numa_node_no_zones_are_ever_bound() -> None:
    ledger = words.ledger()
    ledger.report(facts(policy="single-numa-node"))
    ledger.predict(NODE, A, block(A, 0b010))
    assert row(ledger).groups == APART
