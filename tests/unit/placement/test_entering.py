"""Decisions that the ledger does not know yet: whoever looks finds them there, as if each had been entered at once."""

from random import Random
from typing import Any

import pytest
from msgspec import structs

from numalign.api.pod import Pod
from numalign.placement.decisions import Decision
from numalign.placement.engine import Engine
from numalign.placement.exactflavour import ExactFlavour
from numalign.placement.facts import BindFailed, NodeSeen, PodGone, PodSeen, ReportSeen, Tick
from numalign.placement.mirror import Mirror
from tests.campaigns import campaign
from tests.unit.placement import test_engine as engines
from tests.unit.placement.test_engine_state import snapshot

NAMES = ("a", "b", "c", "d")


def mirror_of(engine: Engine) -> Mirror:
    assert isinstance(engine.flavour, ExactFlavour)
    return engine.flavour.mirror


def seen(rng: Random, decision: Decision) -> Pod:
    """The pod on its node, mostly as it was decided; else it is elsewhere, has begun or ended, or was resized."""
    assert decision.pod is not None
    pod, drawn = engines.bound(decision.pod, decision.node or ""), rng.random()
    if drawn < 0.6:
        return pod
    if drawn < 0.7:
        return engines.bound(pod, rng.choice(NAMES))
    if drawn < 0.9:
        return engines.bound(pod, pod.spec.node_name, rng.choice(("Running", "Failed", "Succeeded")))
    larger = engines.pod(pod.metadata.name, cpu=4).spec.containers
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=larger))


def happen(rng: Random, engine: Engine, decision: Decision, now: float) -> None:
    """What may become of a decision."""
    pod, chance = seen(rng, decision), rng.random()
    if chance < 0.8:
        engine.apply(PodSeen(pod, now))
    if chance < 0.1:
        engine.apply(PodGone(pod, now))
    elif chance > 0.9:
        engine.apply(BindFailed(decision.uid))
    if rng.random() < 0.05:
        engine.apply(Tick(now))
    if rng.random() < 0.05:
        engine.apply(ReportSeen(engines.report(rng.choice(NAMES)), now))


def without_reports() -> Engine:
    engine = Engine()
    for name in NAMES:
        engine.apply(NodeSeen(engines.node(name)))
    return engine


def state_after(seed: int, *, looks: bool, reported: bool) -> tuple[Any, ...]:
    """After many pods came and went; `looks`: somebody looks into the ledger after every decision. `reported`: so are
    all nodes from the start."""
    rng, engine = Random(seed), engines.engine(*NAMES) if reported else without_reports()
    for number in range(30):
        pod = engines.pod(f"p{rng.randrange(20)}", cpu=rng.randint(1, 3))
        decision = engine.decide(pod, float(number), rng)
        if looks:
            mirror_of(engine).ledger.books()
        if decision.node is not None:
            happen(rng, engine, decision, float(number))
    mirror_of(engine).refresh()
    books, columns = mirror_of(engine).ledger.books(), engine.columns
    records = {book.node: [structs.asdict(record) for record in book.records.values()] for book in books}
    return records, snapshot(columns), columns.requested.tolist(), columns.pods.tolist()


@pytest.mark.parametrize("reported", [True, False], ids=["reports", "no reports at first"])
@pytest.mark.parametrize("count", [pytest.param(20, id="quick"), campaign(20)])
def test_it_makes_no_difference_when_decisions_are_entered(count: int, reported: bool) -> None:
    for seed in range(count):
        assert state_after(seed, looks=False, reported=reported) == state_after(seed, looks=True, reported=reported)


@pytest.mark.parametrize("engine", [engines.engine("a"), without_reports()], ids=["report", "no report"])
def test_a_pod_that_is_seen_as_it_was_decided_is_entered_as_bound(engine: Engine) -> None:
    pod = engines.pod("p")
    node = engines.decided(engine, pod).node or ""
    there = engines.bound(pod, node)
    assert engine.apply(PodSeen(there, 0.0)) == []
    book = mirror_of(engine).ledger.book(node)
    assert book is not None
    assert (book.records["p"].bound, book.records["p"].pod) == (True, there)
