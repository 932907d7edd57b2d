"""What pods request counts for their node once, wherever the node's row comes and goes."""

from __future__ import annotations

from numalign.placement.columns.columns import Columns
from numalign.placement.columns.tenants import Tenants

CPU = ((0, 500),)


def requested(columns: Columns, node: str) -> tuple[int, int]:
    row = columns.rows[node]
    return int(columns.requested[row, 0]), int(columns.pods[row])


def made(*nodes: str) -> tuple[Columns, Tenants]:
    columns = Columns()
    for node in nodes:
        columns.row(node)
    return columns, Tenants(columns)


def test_a_pod_counts_once_however_often_it_is_told() -> None:
    columns, tenants = made("a", "b")
    for node in ("a", "a", "b"):
        tenants.put("p", node, CPU)
    assert (requested(columns, "a"), requested(columns, "b")) == ((0, 0), (500, 1))


def test_pods_of_a_node_that_is_not_there_yet_wait_for_it() -> None:
    columns, tenants = made()
    tenants.put("p", "a", CPU)
    tenants.put("q", "a", CPU)
    tenants.drop("q")
    columns.row("a")
    tenants.arrived("a")
    assert requested(columns, "a") == (500, 1)


def test_a_node_that_comes_back_has_the_pods_that_outlived_it() -> None:
    columns, tenants = made("a", "b")
    for uid in ("p", "q"):
        tenants.put(uid, "a", CPU)
    columns.drop("a")
    tenants.left("a")
    tenants.put("q", "b", CPU)
    columns.row("a")
    tenants.arrived("a")
    assert (requested(columns, "a"), requested(columns, "b")) == ((500, 1), (500, 1))


def test_pods_that_were_placed_by_numbers_can_be_taken_back() -> None:
    columns, tenants = made("a")
    columns.charge_totals(0, CPU, 1)
    tenants.note("p", "a", CPU)
    assert tenants.requests("p", "a") == CPU
    tenants.drop("p")
    assert requested(columns, "a") == (0, 0)
