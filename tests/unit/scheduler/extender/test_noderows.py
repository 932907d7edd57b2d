"""Rows by name are those of the cluster at the moment, whether or not its nodes were copied."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numalign.placement.rules.clusterstate import ClusterState
from numalign.scheduler.extender.noderows import NodeRows
from tests.unit.scheduler import servers

NAMES = ("a", "b", "c", "d")


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=12))
def test_a_node_has_its_present_row_however_nodes_come_and_go(steps: list[tuple[str, bool]]) -> None:
    world = ClusterState()
    found, expected = NodeRows(world), dict[str, int]()
    free = list(range(len(NAMES)))
    for name, ticks in steps:
        if name in expected:
            free.append(expected.pop(name))
            world.drop_node(free[-1])
        else:
            # Rows that became vacant first are used again first.
            expected[name] = free.pop(0)
            world.put_node(expected[name], servers.node(name))
        if ticks:
            found.tick()
        assert found.of((*NAMES, "unknown")).tolist() == [expected.get(each, -1) for each in (*NAMES, "unknown")]
