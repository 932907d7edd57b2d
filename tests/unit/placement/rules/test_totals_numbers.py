"""Rows have the same number if they offer the same and have as much of it taken, and only then."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode import quantity
from numalign.api.objects.node import Node, NodeStatus
from numalign.placement.rules.totals import CPU, MEMORY, Charge, Totals

ROWS = 3
CHARGES = [Charge(((CPU, 100),), (100, 200)), Charge(((CPU, 100), (MEMORY, 5)), (100, 5)), Charge((), (100, 200))]
NODES = [Node(status=NodeStatus(allocatable={"cpu": quantity.of(cpus), "pods": quantity.of(9)})) for cpus in (1, 2)]

rows = st.integers(0, ROWS - 1)
changes = st.one_of(
    st.tuples(st.just("offer"), rows, st.sampled_from([*NODES, None])),
    st.tuples(st.just("add"), rows, st.sampled_from(CHARGES)),
    st.tuples(st.just("subtract"), rows, st.sampled_from(CHARGES)),
)


def amounts(totals: Totals, row: int) -> tuple[object, ...]:
    columns = totals.allocatable[:, row], totals.requested[:, row], totals.scored[:, row]
    return *(tuple(each.tolist()) for each in columns), int(totals.pods[row]), int(totals.most_pods[row])


@given(st.lists(changes, max_size=30))
def test_numbers_follow_amounts(played: list[tuple[str, int, object]]) -> None:
    totals, stands_for = Totals(ROWS), dict[int, tuple[object, ...]]()
    for verb, row, what in played:
        getattr(totals, verb)(row, what)
        assert stands_for.setdefault(totals.likes[row], amounts(totals, row)) == amounts(totals, row)
    moved = [row for row in range(ROWS) if totals.likes[row]]
    assert len({totals.likes[row] for row in moved}) == len({amounts(totals, row) for row in moved})
