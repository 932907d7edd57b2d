"""Conditions: one of three holds, all are of the generation that was looked at, and times change with flips only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numalign.api.objects.statusconditions import Condition
from numalign.deploy.operator import conditions
from numalign.deploy.operator.conditions import Extra, Outcome

OUTCOMES = st.builds(
    Outcome,
    st.sampled_from(["Available", "Progressing", "Degraded"]),
    st.sampled_from(["AsExpected", "Bad"]),
    st.sampled_from(["", "words"]),
)


@given(st.lists(OUTCOMES, min_size=1, max_size=8), st.booleans())
def test_a_history_of_outcomes(history: list[Outcome], paused: bool) -> None:
    old: tuple[Condition, ...] = ()
    for number, outcome in enumerate(history):
        extra = Extra("Paused", paused, "Because")
        new = conditions.written(old, outcome, [extra], number, f"t{number}")
        by_type = {each.type: each for each in new}
        assert list(by_type) == ["Available", "Upgradeable", "Progressing", "Degraded", "Paused"]
        held = [each.type for each in new if each.status == "True" and each.type not in ("Upgradeable", "Paused")]
        assert held == [outcome.state]
        assert by_type["Upgradeable"].status == by_type["Available"].status
        assert {each.observed_generation for each in new} == {number}
        for each in old:
            flipped = each.status != by_type[each.type].status
            assert by_type[each.type].last_transition_time == (f"t{number}" if flipped else each.last_transition_time)
        assert conditions.current(new) == outcome
        old = new


def test_the_same_outcome_changes_nothing_and_conditions_of_others_stay() -> None:
    foreign = Condition("Foreign", "True", "x", "y", "t", 1)
    once = conditions.written((foreign,), Outcome("Available"), [], 3, "t1")
    assert foreign in once
    assert conditions.written(once, Outcome("Available"), [], 3, "t2") == once
