"""What pods request counts for their node once, wherever the node's row comes and goes."""

from __future__ import annotations

from numalign.placement.columns.columns import Columns
from numalign.placement.columns.nodetotals import NodeTotals

CPU = ((0, 500),)


def requested(columns: Columns, node: str) -> tuple[int, int]:
    row = columns.rows[node]
    return columns.requested(row, 0), int(columns.pods[row])


def made(*nodes: str) -> tuple[Columns, NodeTotals]:
    columns = Columns()
    for node in nodes:
        columns.row(node)
    return columns, NodeTotals(columns)


def test_a_pod_counts_once_however_often_it_is_told() -> None:
    columns, totals = made("a", "b")
    for node in ("a", "a", "b"):
        totals.put("p", node, CPU)
    assert (requested(columns, "a"), requested(columns, "b")) == ((0, 0), (500, 1))


def test_pods_of_a_node_that_is_not_there_yet_wait_for_it() -> None:
    columns, totals = made()
    totals.put("p", "a", CPU)
    totals.put("q", "a", CPU)
    totals.drop("q")
    columns.row("a")
    totals.arrived("a")
    assert requested(columns, "a") == (500, 1)


def test_a_node_that_comes_back_has_the_pods_that_outlived_it() -> None:
    columns, totals = made("a", "b")
    for uid in ("p", "q"):
        totals.put(uid, "a", CPU)
    columns.drop("a")
    totals.left("a")
    totals.put("q", "b", CPU)
    columns.row("a")
    totals.arrived("a")
    assert (requested(columns, "a"), requested(columns, "b")) == ((500, 1), (500, 1))
