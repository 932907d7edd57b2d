"""What an unobserved pod may hold: between what it certainly holds and all that it was ever given."""

from __future__ import annotations

import pytest

from numalign.api.objects.pod import Container, Pod
from numalign.placement.columns import requests
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.nodefacts import DeviceClass, RowFacts, Supply
from numalign.placement.columns.requests import Program
from numalign.placement.columns.resources import CPU, MEMORY, Resources
from numalign.placement.columns.shapes import Shapes
from numalign.placement.ledger import unobserved
from tests.unit.placement import ledgerwords as words
from tests.unit.placement.ledgerwords import GIB, NIC

NICS = 2
"""The column of the devices."""
SUPPLY = Supply(size=(4, 4), allocatable=(4, 4), free=(4, 4))


def program(pod: Pod, facts: RowFacts) -> tuple[Program, Resources]:
    resources = Resources()
    resources.column(NIC)
    return requests.program(Shapes().intern(pod), facts.rules, resources), resources


def anywhere(pod: Pod, facts: RowFacts) -> tuple[Entry, ...]:
    made, resources = program(pod, facts)
    return unobserved.anywhere(made, facts, resources)


def with_nics(supply: Supply = SUPPLY, *classes: DeviceClass) -> RowFacts:
    return words.facts(supplies={NIC: supply}, classes=classes)


def init(*containers: Container) -> Pod:
    return words.pod("a", init=containers)


SETUP, LARGE = words.container("setup", 1), words.container("large", 5)
PROXY = words.container("proxy", 3, "Always")
ANYWHERE: dict[str, tuple[Pod, RowFacts, list[Entry]]] = {
    "CPUs": (words.pod("a"), words.facts(), [Entry(CPU, 2, 0b11)]),
    "on a machine with one zone": (words.pod("a"), words.facts((8,), (0,)), [Entry(CPU, 2, 0b01)]),
    "nothing exclusive": (words.pod("a", 0), words.facts(), []),
    "CPUs and memory": (
        words.pod("a"),
        words.with_memory((8, 8), (8, 8)),
        [Entry(CPU, 2, 0b11), Entry(MEMORY, GIB, 0b11)],
    ),
    "a sidecar beside it": (init(PROXY), words.facts(), [Entry(CPU, 5, 0b11)]),
    "a smaller init container before it": (
        init(SETUP),
        words.facts(),
        [Entry(CPU, 2, 0b11), Entry(CPU, 1, 0b11, certain=False)],
    ),
    "a larger init container before it": (
        init(LARGE),
        words.facts(),
        [Entry(CPU, 5, 0b11), Entry(CPU, 2, 0b11, certain=False)],
    ),
    "devices": (
        words.pod("a", devices={"nic": 1}),
        with_nics(),
        [Entry(CPU, 2, 0b11), Entry(NICS, 1, 0b11)],
    ),
    "devices that only one zone has": (
        words.pod("a", devices={"nic": 1}),
        with_nics(Supply(size=(0, 4), allocatable=(0, 4), free=(0, 4))),
        [Entry(CPU, 2, 0b11), Entry(NICS, 1, 0b10)],
    ),
    "devices of several zones": (
        words.pod("a", devices={"nic": 1}),
        with_nics(
            Supply(size=(0, 0), allocatable=(0, 0), free=(0, 0)), DeviceClass(resource=NIC, zones=3, size=1, free=1)
        ),
        [Entry(CPU, 2, 0b11), Entry(NICS, 1, 0b11)],
    ),
    "devices, some of them without a zone": (
        words.pod("a", devices={"nic": 1}),
        with_nics(Supply(size=(4, 4), allocatable=(4, 4), free=(4, 4), homeless_size=1)),
        [Entry(CPU, 2, 0b11), Entry(NICS, 1, 0b11, certain=False)],
    ),
    "devices, all of them without a zone": (
        words.pod("a", devices={"nic": 1}),
        with_nics(Supply(size=(0, 0), allocatable=(0, 0), free=(0, 0), homeless_size=4)),
        [Entry(CPU, 2, 0b11), Entry(NICS, 1, 0)],
    ),
    "devices that the node does not have": (
        words.pod("a", devices={"nic": 1}),
        words.facts(),
        [Entry(CPU, 2, 0b11)],
    ),
}


@pytest.mark.parametrize("pod, facts, entries", ANYWHERE.values(), ids=ANYWHERE)
def test_an_unobserved_pod_may_hold(pod: Pod, facts: RowFacts, entries: list[Entry]) -> None:
    assert anywhere(pod, facts) == tuple(entries)


HIDDEN: dict[str, tuple[Pod, list[Entry]]] = {
    "no init container": (words.pod("a"), []),
    "a sidecar": (init(PROXY), []),
    "a smaller init container": (init(SETUP), [Entry(CPU, 1, 0b01, certain=False)]),
    "a larger init container": (init(LARGE), [Entry(CPU, 3, 0b01), Entry(CPU, 2, 0b01, certain=False)]),
    "two of them": (init(SETUP, LARGE), [Entry(CPU, 3, 0b01), Entry(CPU, 3, 0b01, certain=False)]),
}


@pytest.mark.parametrize("pod, entries", HIDDEN.values(), ids=HIDDEN)
def test_a_report_does_not_show(pod: Pod, entries: list[Entry]) -> None:
    facts = words.facts()
    made, resources = program(pod, facts)
    assert unobserved.hidden(made, 0b01, facts, resources, memory=True) == tuple(entries)


@pytest.mark.parametrize("memory, hidden", [(True, [CPU, MEMORY]), (False, [CPU])], ids=["before", "after"])
def test_memory_is_hidden_until_a_later_container_starts(memory: bool, hidden: list[int]) -> None:
    facts = words.with_memory((8, 8), (8, 8))
    made, resources = program(init(SETUP), facts)
    assert [each.column for each in unobserved.hidden(made, 0b01, facts, resources, memory=memory)] == hidden


def test_nothing_is_hidden_of_what_comes_from_the_managers_checkpoints() -> None:
    facts = words.with_memory((8, 8), (8, 8), from_checkpoints=frozenset({"cpu"}))
    made, resources = program(init(SETUP), facts)
    assert [each.column for each in unobserved.hidden(made, 0b01, facts, resources, memory=True)] == [MEMORY]
