"""The reason of a count is that of the node with the counted pods on it."""

from __future__ import annotations

from numalign.api.objects.pod import Pod
from numalign.placement.capacity import count, reasons
from numalign.placement.engine import Engine
from numalign.placement.explain import wording
from numalign.placement.facts import NodeSeen
from tests.unit.placement.test_engine import engine, node, pod


def sentence(known: Engine, asked: Pod) -> str:
    (found,) = count.count(known, [known.shape(asked)])
    return wording.sentence(reasons.of(known, found).reason(0))


def roomy(policy: str = "single-numa-node") -> Engine:
    """Two zones of 8 CPUs on a node whose totals have more."""
    known = engine("a", policy=policy)
    known.apply(NodeSeen(node("a", cpus=64)))
    return known


def test_zones_that_are_full_after_the_counted_pods() -> None:
    assert sentence(roomy(), pod("x", cpu=6)) == "container c needs 6 CPUs in one NUMA zone, best zone has 2"


def test_totals_that_are_used_up_by_the_counted_pods() -> None:
    known = engine("a")
    known.apply(NodeSeen(node("a", cpus=7)))
    assert sentence(known, pod("x", cpu=6)) == "the pod requests 6 CPUs, at most 1 left on a node"


def test_a_limit_on_the_number_of_pods() -> None:
    known = engine("a")
    known.apply(NodeSeen(node("a", pods=1)))
    assert sentence(known, pod("x", cpu=6)) == "no more pods are allowed on a node"


def test_pods_on_their_way_that_the_count_depends_on_are_named() -> None:
    known = roomy("restricted")
    assert known.place(pod("p", cpu=7), known.shape(pod("p", cpu=7)), 0, 0.0) is not None
    said = sentence(known, pod("x", cpu=6))
    assert said == "container c fits or not depending on where other pods settle: default/p"
