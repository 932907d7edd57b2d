"""NodeResourcesFit with pods gone: the same as the rule itself says."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from numalign.placement.rules.resources.resourcesfit import NO_VICTIMS, FreedRow, FreedRows, NodeResourcesFit
from numalign.placement.rules.rule import FITS
from tests.unit.placement.rules import worlds

RULE = NodeResourcesFit()
AMOUNTS = st.fixed_dictionaries({"cpu": st.sampled_from("0123"), "memory": st.sampled_from("0123")})
PODS = st.lists(st.tuples(AMOUNTS, st.integers(0, 3)), max_size=5)


def node(pods: list[tuple[dict[str, str], int]]) -> Any:
    offered = {"cpu": "6", "memory": "6", "pods": "4"}
    there = [worlds.pod(amounts, priority=priority) for amounts, priority in pods]
    return worlds.world([worlds.node("n", allocatable=offered)], {"n": there})


@given(PODS, AMOUNTS, st.integers(0, 4))
def test_with_every_pod_of_a_lower_priority_gone(pods: Any, asked: dict[str, str], priority: int) -> None:
    world = node(pods)
    prepared = RULE.prepare(worlds.pod(asked), world)
    lower = [uid for uid, each in world.on_row[0].items() if each.pod.spec.priority < priority]
    expected = RULE.filter_row(prepared, 0, lower, ()) if lower else NO_VICTIMS
    assert FreedRows(prepared.refusals.wants, priority, world).codes()[0] == expected


@given(PODS, AMOUNTS, st.lists(AMOUNTS, max_size=2), st.data())
def test_with_some_gone_and_others_there(pods: Any, asked: Any, others: Any, data: st.DataObject) -> None:
    world = node(pods)
    prepared, added = RULE.prepare(worlds.pod(asked), world), [worlds.pod(each) for each in others]
    lower = [uid for uid, each in world.on_row[0].items() if each.pod.spec.priority < 2]
    gone = data.draw(st.sets(st.sampled_from(lower))) if lower else set[str]()
    row = FreedRow(FreedRows(prepared.refusals.wants, 2, world), 0, map(world.totals.charge_of, added))
    assert row.fits(gone) == (RULE.filter_row(prepared, 0, gone, added) == FITS)
