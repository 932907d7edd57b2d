"""The ledger has a decision as soon as it is made, and the pod's appearance on its node only confirms it."""

import pytest

from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.facts import NodeSeen, PodBound, PodSeen, Tick
from numalign.placement.ledger.nodeledger import NodeLedger
from tests.unit.placement import test_engine as engines


def book_of(engine: Engine, node: str) -> NodeLedger | None:
    assert isinstance(engine.flavour, ExactFlavour)
    return engine.flavour.mirror.ledger.node(node)


def without_report() -> Engine:
    engine = Engine()
    engine.apply(NodeSeen(engines.node("a")))
    return engine


def test_a_decision_is_in_the_ledger_at_once() -> None:
    engine, pod = engines.engine("a"), engines.pod("p")
    engines.decided(engine, pod)
    book = book_of(engine, "a")
    assert book is not None
    assert (book.records["p"].bound, book.records["p"].is_predicted) == (False, True)


def test_on_a_node_without_a_report_the_ledger_has_pods_once_they_are_seen_there() -> None:
    engine, pod = without_report(), engines.pod("p")
    engines.decided(engine, pod)
    assert book_of(engine, "a") is None
    engine.apply(PodSeen(engines.bound(pod, "a"), 0.0))
    assert book_of(engine, "a") is not None


@pytest.mark.parametrize("engine", [engines.engine("a"), without_report()], ids=["report", "no report"])
def test_a_pod_that_is_seen_as_it_was_decided_changes_nothing_but_that_it_is_bound(engine: Engine) -> None:
    pod = engines.pod("p")
    engines.decided(engine, pod)
    engine.apply(Tick(0.0))
    generation, there = engine.columns.log.generation, engines.bound(pod, "a")
    assert engine.apply(PodBound("p")) == engine.apply(PodSeen(there, 0.0)) == []
    engine.apply(Tick(0.0))
    assert engine.columns.log.generation == generation
    book = book_of(engine, "a")
    assert book is not None
    assert (book.records["p"].bound, book.records["p"].pod) == (True, there)
