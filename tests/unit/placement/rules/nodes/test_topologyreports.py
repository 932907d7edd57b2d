"""Nodes whose zones are not known: who is kept off them, and until when."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.objects.pod import Pod
from numalign.placement.rules.awaited import AwaitedNodes
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodes.topologyreports import (
    AWAITED,
    AWAY,
    AnsweringKubelets,
    AwaitedNodesFilter,
    TopologyReports,
)
from tests import nodes
from tests.unit.scheduler import servers

ALIGNED, SHARED = nodes.simple("aligned"), nodes.pod("shared", nodes.burstable("main"))
WITH_DEVICE = nodes.pod("device", nodes.burstable("main", nic=1))


def world(*, ready: bool = True) -> ClusterState:
    """Rows 0 and 1 have nodes, and row 1 has no report since time 10."""
    found = ClusterState()
    for row, name in enumerate("ab"):
        found.put_node(row, servers.node(name))
    found.unreported.put(1, 10.0, is_ready=ready)
    return found


def kept_off(rule: AwaitedNodesFilter, pod: Pod, found: ClusterState) -> list[int]:
    return [row for row in range(2) if rule.holds(pod, row, found)]


@pytest.mark.parametrize(
    "pod, rows", [(ALIGNED, [1]), (WITH_DEVICE, [1]), (SHARED, [])], ids=lambda each: str(each)[:0]
)
def test_only_pods_that_a_kubelet_may_align_are_kept_off(pod: Pod, rows: list[int]) -> None:
    found = world()
    assert kept_off(TopologyReports(found.unreported, "wait"), pod, found) == rows


def test_a_node_that_waits_cannot_be_helped_by_preemption() -> None:
    found = world()
    rule = TopologyReports(found.unreported, "wait")
    prepared = rule.prepare(ALIGNED, found)
    assert prepared is not None
    assert (prepared.refusals[1].reasons, prepared.refusals[1].unresolvable) == ((AWAITED,), True)


def test_the_wait_ends_with_the_report_the_node_or_the_grace_period() -> None:
    ends: dict[str, Any] = {
        "report": lambda found: found.unreported.drop(1),
        "node": lambda found: found.drop_node(1),
        "grace": lambda found: found.unreported.tick(70.0),
    }
    for what, end in ends.items():
        found = world()
        rule, before = TopologyReports(found.unreported, "wait"), found.description
        assert kept_off(rule, ALIGNED, found) == [1]
        end(found)
        assert (kept_off(rule, ALIGNED, found), found.description > before) == ([], True), what


def test_the_grace_period_begins_when_the_node_becomes_ready_and_again_when_it_does_so_again() -> None:
    found = world(ready=False)
    rule, unreported = TopologyReports(found.unreported, "wait", 60.0), found.unreported
    assert unreported.tick(1000.0) == []
    unreported.put(1, 1000.0, is_ready=True)
    unreported.put(1, 1030.0, is_ready=True)
    assert (unreported.tick(1059.0), kept_off(rule, ALIGNED, found)) == ([], [1])
    assert (unreported.tick(1060.0), kept_off(rule, ALIGNED, found)) == ([1], [])
    unreported.put(1, 2000.0, is_ready=False)
    unreported.put(1, 2010.0, is_ready=True)
    assert kept_off(rule, ALIGNED, found) == [1]


def test_pods_are_kept_off_a_kubelet_that_does_not_answer_until_it_does_or_for_two_minutes() -> None:
    found = ClusterState()
    for row, name in enumerate("ab"):
        found.put_node(row, servers.node(name))
    rule, away, before = AnsweringKubelets(found.kubelets_away), found.kubelets_away, found.description
    away.put(1, 10.0, is_ready=True)
    assert (kept_off(rule, ALIGNED, found), kept_off(rule, SHARED, found)) == ([1], [])
    assert found.description > before
    prepared = rule.prepare(ALIGNED, found)
    assert prepared is not None
    assert (prepared.refusals[1].reasons, prepared.refusals[1].unresolvable) == ((AWAY,), True)
    assert (away.tick(129.0), kept_off(rule, ALIGNED, found)) == ([], [1])
    assert (away.tick(130.0), kept_off(rule, ALIGNED, found)) == ([1], [])
    away.drop(1)
    away.put(1, 200.0, is_ready=True)
    assert kept_off(rule, ALIGNED, found) == [1]
    away.drop(1)
    assert kept_off(rule, ALIGNED, found) == []


def test_a_profile_that_refuses_does_so_for_good() -> None:
    found = world()
    rule = TopologyReports(found.unreported, "refuse")
    found.unreported.tick(1e9)
    assert kept_off(rule, ALIGNED, found) == [1]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.floats(0, 30)), max_size=20), st.floats(0, 50))
def test_whenever_a_node_stops_waiting_a_tick_says_so(steps: list[tuple[int, bool, float]], grace: float) -> None:
    unreported, now = AwaitedNodes(), 0.0
    unreported.watch(grace)
    for row, ready, later in steps:
        unreported.put(row, now, is_ready=ready)
        waiting, now = set(unreported.waiting(grace)), now + later
        assert waiting - set(unreported.waiting(grace)) == set()
        ended = set(unreported.tick(now))
        assert waiting - set(unreported.waiting(grace)) == ended & waiting
