"""A row of the ledger as numbers: which rows kernels can decide, and what is known of pending pods."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.placement.columns.columns import NONE_PENDING, NOT_EXACT, SEVERAL_SHAPES
from numalign.placement.columns.holdings import Entry, Holding, Source
from numalign.placement.columns.nodefacts import DeviceClass, Groups, RowFacts
from numalign.placement.columns.resources import CPU
from numalign.placement.ledger import rows
from numalign.placement.ledger.nodeledger import Row
from tests.unit.placement import ledgerwords as words

APART = Groups((0b01, 0b10))


def row(facts: RowFacts, **more: Any) -> Row:
    free = [8, 0, 8, 0]
    given: dict[str, Any] = {
        "free": free,
        "settled": free,
        "homeless": [0, 0],
        "settled_homeless": [0, 0],
        "entries": (),
        "settled_entries": (),
        "pending": (),
        "groups": APART,
        "settled_groups": APART,
    }
    return Row(facts=facts, **given | more)


def held(shape: int, entry: Entry | None = None, **more: Any) -> Holding:
    return words.holding(words.pod("a"), (entry or Entry(CPU, 2, 0b01),), shape=shape, **more)


PENDING = {
    "none": ([], NONE_PENDING),
    "pods of one shape": ([held(3), held(3)], 3),
    "several shapes, each certain of its zones": ([held(3), held(4)], SEVERAL_SHAPES),
    "one of which is interchangeable": ([held(3, interchangeable=True), held(4)], SEVERAL_SHAPES),
    "two of which are": ([held(3, interchangeable=True), held(4, interchangeable=True)], NOT_EXACT),
    "a pod that may be in two zones": ([held(3, Entry(CPU, 2, 0b11))], NOT_EXACT),
    "a pod that others can move": ([held(3, unsteady=True)], NOT_EXACT),
    "a pod that is not predicted": ([held(3, source=Source.UNKNOWN)], NOT_EXACT),
}


@pytest.mark.parametrize("pending, expected", PENDING.values(), ids=PENDING)
def test_what_is_known_of_pending_pods(pending: list[Holding], expected: int) -> None:
    assert rows.pending_shape(pending) == expected


CLASS = DeviceClass(resource=words.NIC, zones=0b11, size=1, free=1)
LOOSE = {
    "amounts are exact": (row(words.facts()), False),
    "an amount lies in several zones": (row(words.facts(), entries=(Entry(CPU, 2, 0b11),)), True),
    "devices lie in several zones": (row(words.facts(classes=(CLASS,))), True),
    "there are more zones than arrays have": (row(words.facts((8,) * 9, range(9))), True),
    "sizes are not known": (row(words.facts(policy="restricted", unknown_size={"cpu": 1})), True),
    "sizes do not count": (row(words.facts(unknown_size={"cpu": 1})), False),
    "groups are not known": (row(words.facts(policy="restricted", static_memory=True), groups=None), True),
    "groups cannot arise": (row(words.facts(static_memory=True), groups=None), False),
}


@pytest.mark.parametrize("made, expected", LOOSE.values(), ids=LOOSE)
def test_a_row_is_left_to_the_row_model_unless(made: Row, expected: bool) -> None:
    assert rows.is_loose(made) is expected


FULL_CORES = {
    "nothing changed since the report": ([8, 0, 8, 0], 12, 12),
    "CPUs were taken, on whole cores all of them": ([6, 0, 8, 0], 16, 14),
    "CPUs were taken, perhaps beside reserved ones": ([6, 0, 8, 0], 12, -1),
    "the report does not say": ([8, 0, 8, 0], None, -1),
}


@pytest.mark.parametrize("free, reported, expected", FULL_CORES.values(), ids=FULL_CORES)
def test_free_cpus_on_full_cores_are_known_if(free: list[int], reported: int | None, expected: int) -> None:
    made = row(words.facts(free_full_core_cpus=reported), free=free)
    assert rows.free_state(made).full_core_cpus == expected
