"""Where order counts, it takes a search whether a pod is certain: put off while there are other nodes, and bounded."""

import pytest

from numalign.placement import exact
from numalign.placement.decisions import Code
from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen, ReportSeen
from tests.unit.placement.test_engine import decided, engine, node, pod, report


def crowded(*nodes: str) -> Engine:
    """On the first node a pod is on its way that gets another zone if a smaller one comes first."""
    known = engine(nodes[0], strategy="MostAllocated")
    decided(known, pod("large", cpu=6))
    for name in nodes[1:]:
        for fact in (NodeSeen(node(name)), ReportSeen(report(name), 0.0)):
            known.apply(fact)
    return known


def test_a_node_where_order_counts_is_left_for_another_though_it_is_better() -> None:
    assert decided(crowded("n", "m"), pod("small", cpu=4)).node == "m"


def test_the_search_is_made_where_no_other_node_is_left() -> None:
    assert decided(crowded("n"), pod("small", cpu=4)).node == "n"


def test_a_pod_is_not_certain_where_searches_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_SEARCHES", 0)
    assert decided(crowded("n"), pod("small", cpu=4)).refused == {Code.NOT_CERTAIN: 1}
