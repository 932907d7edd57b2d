"""After any history the ledger's sums are those gathered from nothing, and the truth lies between its bounds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.attributes.podplacements import MemoryBlock, PodPlacement
from numalign.api.objects.pod import Pod
from numalign.placement.columns.holdings import ContainerZones, Entry, Holding
from numalign.placement.columns.nodefacts import RowFacts, Supply
from numalign.placement.columns.resources import CPU, MEMORY
from numalign.placement.ledger.ledger import Ledger
from tests import ledgers
from tests.unit.placement import ledgerwords as words
from tests.unit.placement.ledgerwords import GIB, NIC
from tests.unit.placement.ledgerworld import ACTIONS, KINDS, World


def check(world: World) -> None:
    for zone, (least, most) in enumerate(words.bounds(world.ledger)):
        surely, possibly = world.truth(zone)
        assert least <= surely
        assert possibly <= most
    sums_are_those_from_nothing(world.ledger)


def sums_are_those_from_nothing(ledger: Ledger) -> None:
    for node_ledger in ledger.nodes():
        assert node_ledger.sums == ledgers.recomputed(node_ledger)
        restless = {uid for uid, record in node_ledger.records.items() if not record.is_quiet}
        assert restless <= set(node_ledger.restless) <= set(node_ledger.records) or node_ledger.named is None
        assert set(node_ledger.pending) == {uid for uid, record in node_ledger.records.items() if record.is_pending}


@pytest.mark.parametrize("kind", KINDS)
@given(steps=st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 41)), max_size=60))
@settings(max_examples=25)
def test_the_truth_lies_between_the_bounds(kind: str, steps: list[tuple[str, int]]) -> None:
    world = World(kind)
    for action, number in steps:
        getattr(world, action)(number)
        check(world)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_truth_lies_between_the_bounds_in_long_campaigns(kind: str, seed: int) -> None:
    for number in range(1000):
        rng = random.Random(f"{seed} {number}")
        world, weights = World(kind), [rng.random() for _ in ACTIONS]
        for _ in range(rng.randrange(60)):
            getattr(world, rng.choices(ACTIONS, weights)[0])(rng.randrange(42))
            check(world)


# Anything at all: two nodes whose zones and policies change, pods with init containers, devices and equal names.

NODES = ("n1", "n2")
zones = st.sampled_from([(), (0,), (0, 1), (1, 4), (0, 1, 4)])
names = st.sampled_from(["a", "b", "c"])
policies = st.sampled_from(["single-numa-node", "restricted", "best-effort", "none"])


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    """One of a few pods, in some state, on some node or on none."""
    name, again = draw(names), draw(st.sampled_from(["", "again"]))
    init = (words.container("setup", 3),) if name == "b" else ()
    devices = {"nic": 1} if name == "c" else {}
    node = draw(st.sampled_from((*NODES, "")))
    made = words.pod(name, 2, node=node, uid=f"{name}{again}", init=init, devices=devices)
    states = (made, words.running(made), words.terminated(made), words.finished(made))
    return draw(st.sampled_from(states))


@st.composite
def reports(draw: st.DrawFn) -> RowFacts:
    ids = draw(zones)
    amounts = st.tuples(*(st.integers(0, 8) for _ in ids))
    nics = Supply(size=(4,) * len(ids), allocatable=(4,) * len(ids), free=draw(amounts), homeless=1, homeless_size=2)
    memory = tuple(amount * GIB for amount in draw(amounts))
    supplies = {NIC: nics, "memory": Supply(size=(8 * GIB,) * len(ids), allocatable=(8 * GIB,) * len(ids), free=memory)}
    more: dict[str, Any] = {
        "supplies": supplies,
        "node": draw(st.sampled_from(NODES)),
        "policy": draw(policies),
        "zones": ids,
    }
    kind = draw(st.sampled_from(KINDS))
    if kind == "plain":
        return words.facts(draw(amounts), **more)
    if kind != "agent":
        return words.signed(draw(amounts), *draw(st.lists(names, max_size=3)), **more)
    block = MemoryBlock(type="memory", zones=draw(st.integers(1, 31)), size=GIB)
    listed = (words.placed(words.pod(name), 0, uid=draw(names), memory=(block,)) for name in draw(st.sets(names)))
    return words.agent(draw(amounts), *listed, **more)


@st.composite
def holdings(draw: st.DrawFn, pod: Pod) -> Holding:
    entries = draw(st.lists(st.builds(Entry, st.sampled_from((CPU, MEMORY, 2)), st.integers(0, 9), st.integers(0, 7))))
    zones = (ContainerZones("app", tuple(draw(st.lists(st.integers(1, 7), max_size=2)))),)
    swaps = draw(st.booleans())
    return words.holding(pod, entries, containers=zones, shape=draw(st.integers(0, 1)), interchangeable=swaps)


@given(data=st.data())
@settings(max_examples=50)
def test_nothing_that_comes_in_makes_it_raise(data: st.DataObject) -> None:
    ledger, now = words.ledger(lambda pod, row: ()), 0.0
    for _ in range(data.draw(st.integers(0, 25))):
        now += data.draw(st.integers(0, 30))
        one_event(ledger, data, now)
        sums_are_those_from_nothing(ledger)
    leaving_out_and_putting_back_changes_nothing(ledger, data.draw(st.sets(names)))


def one_event(ledger: Ledger | Pair, data: st.DataObject, now: float) -> None:
    pod = data.draw(pods())
    match data.draw(st.integers(0, 7)):
        case 0 | 1:
            ledger.report(data.draw(reports()))
        case 2 | 3:
            ledger.seen(pod, now)
        case 4:
            ledger.gone(pod, now)
        case 5:
            ledger.predict(data.draw(st.sampled_from(NODES)), pod, data.draw(holdings(pod)))
        case 6:
            ledger.bind_failed(pod.metadata.uid)
        case 7:
            ledger.report_gone(data.draw(st.sampled_from(NODES)))
    ledger.tick(now)
    if data.draw(st.booleans()):
        ledger.row(data.draw(st.sampled_from(NODES)))


class Pair:
    """Two ledgers that hear the same. To one of them what a report says again is the same object, as it is for whoever
    decodes reports; the other remembers of no report what it said."""

    def __init__(self) -> None:
        self.one, self.other = (words.ledger(lambda pod, row: ()) for _ in range(2))
        self._said: dict[PodPlacement, PodPlacement] = {}

    def report(self, facts: RowFacts) -> None:
        for node_ledger in self.other.nodes():
            node_ledger.name(None)
        said = facts.placements
        same = None if said is None else tuple(self._said.setdefault(each, each) for each in said)
        self.one.report(structs.replace(facts, placements=same))
        self.other.report(facts)

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            getattr(self.one, name)(*arguments)
            getattr(self.other, name)(*arguments)

        return call


said = [
    words.placed(words.pod(name), position, uid=uid)
    for name, uid in (("a", "a"), ("a", "aagain"), ("b", "b"), ("c", "c"), ("c", "b"), ("c", ""))
    for position in (0, 1)
]
"""Each pod in one zone or the other; one of them under another's uid, and one under none."""
lists = st.lists(st.sampled_from(said), max_size=4, unique_by=lambda each: (each.name, each.uid))


@given(data=st.data())
@settings(max_examples=50)
def test_unchanged_pods_are_skipped_and_nothing_is_missed(data: st.DataObject) -> None:
    pair, now = Pair(), 0.0
    for uid in ("a", "aagain", "c"):
        pair.seen(words.running(words.pod(uid[0], 2, node="n1", uid=uid)), now)
    for _ in range(data.draw(st.integers(2, 12))):
        now += data.draw(st.integers(0, 30))
        if data.draw(st.integers(0, 3)):
            listed = sorted(data.draw(lists), key=lambda each: (each.name, each.uid))
            pair.report(words.agent((8, 8), *listed, node="n1"))
        else:
            one_event(pair, data, now)
        assert known(pair.one) == known(pair.other)


def known(ledger: Ledger) -> list[Any]:
    books = sorted(ledger.nodes(), key=lambda node_ledger: node_ledger.node)
    pods = [{uid: structs.astuple(record) for uid, record in node_ledger.records.items()} for node_ledger in books]
    return [pods, [ledger.row(node_ledger.node) for node_ledger in books], ledger.divergences.counts, ledger.problems]


def leaving_out_and_putting_back_changes_nothing(ledger: Ledger, uids: set[str]) -> None:
    before = [ledger.row(node) for node in NODES]
    with ledger.without(uids), ledger.without(["a"]):
        sums_are_those_from_nothing(ledger)
        assert [row is None for row in map(ledger.row, NODES)] == [row is None for row in before]
    assert [ledger.row(node) for node in NODES] == before
