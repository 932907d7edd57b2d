"""Pods that a former leader bound and that no report has yet: charged where both it and the model say, or with care."""

from __future__ import annotations

import pytest

from numalign.api.objects.pod import Pod
from numalign.placement.columns.holdings import Source
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.facts import Forecast
from numalign.placement.ledger.divergences import Problem
from numalign.placement.ledger.ledger import Ledger
from tests.unit.placement import ledgerwords as words

A, B, C = words.pod("a", 5), words.pod("b", 5), words.pod("c", 3)
ZERO, ONE = {"app": ((0,),)}, {"app": ((1,),)}
ANYWHERE = [(3, 8), (3, 8)]


def seen(report: RowFacts, *pods: tuple[Pod, Forecast | None]) -> Ledger:
    ledger = words.ledger()
    ledger.report(report)
    for pod, forecast in pods:
        ledger.seen(pod, 1.0, forecast)
    return ledger


AGREEING: dict[str, list[tuple[Pod, Forecast | None]]] = {
    "as they come": [(A, ZERO), (B, ONE)],
    "in another order than they were bound": [(B, ONE), (A, ZERO)],
    "with one that says nothing": [(B, ONE), (C, None), (A, ZERO)],
}


@pytest.mark.parametrize("pods", AGREEING.values(), ids=AGREEING)
def test_a_forecast_that_the_model_confirms_is_predicted(pods: list[tuple[Pod, Forecast | None]]) -> None:
    ledger = seen(words.facts(), *pods)
    ledger.row(words.NODE)
    found = {uid: ledger.holding(uid) for uid in ("uid-a", "uid-b")}
    assert {uid: each.containers[0].possible for uid, each in found.items() if each} == {"uid-a": (1,), "uid-b": (2,)}
    assert {each.source for each in found.values() if each} == {Source.PREDICTED}


def test_a_pod_on_its_way_of_which_the_model_says_something_else_may_be_anywhere() -> None:
    assert words.bounds(seen(words.facts(), (A, ONE))) == ANYWHERE


def test_then_others_that_the_model_was_asked_about_may_be_anywhere_too() -> None:
    ledger = seen(words.facts(), (C, ZERO), (A, ONE))
    ledger.row(words.NODE)
    found = [ledger.holding(uid) for uid in ("uid-a", "uid-c")]
    assert [each.source for each in found if each is not None] == [Source.UNKNOWN, Source.UNKNOWN]


def test_a_running_pod_is_in_the_zones_that_either_names() -> None:
    report = words.facts((8, 8, 8), (0, 1, 2))
    ledger = seen(report, (words.running(A), {"app": ((2,),)}))
    assert words.bounds(ledger) == [(3, 8), (8, 8), (3, 8)]


def test_a_running_pod_that_the_model_has_no_place_for_is_where_its_forecast_says() -> None:
    """Somebody who sat there has gone since the report."""
    ledger = seen(words.agent((4, 4)), (words.running(A), ONE))
    assert words.bounds(ledger) == [(4, 4), (-1, -1)]


def test_under_a_policy_that_enforces_nothing_it_may_be_anywhere() -> None:
    ledger = seen(words.facts(policy="best-effort"), (words.running(A), ONE))
    assert words.bounds(ledger) == ANYWHERE


IMPOSSIBLE: dict[str, tuple[RowFacts, Forecast]] = {
    "a container that it does not have": (words.facts(), {"other": ((0,),)}),
    "a zone that the node does not have": (words.facts(), {"app": ((7,),)}),
    "two zones where only one is given": (words.facts(), {"app": ((0, 1),)}),
    "no zone at all": (words.facts(), {"app": ((),)}),
    "a node that aligns nobody": (words.facts(policy="none"), ZERO),
}


@pytest.mark.parametrize("report, forecast", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_the_kubelet_cannot_have_done_is_counted_and_left_out(report: RowFacts, forecast: Forecast) -> None:
    ledger = seen(report, (A, forecast))
    assert words.bounds(ledger) == words.bounds(seen(report, (A, None)))
    assert ledger.problems[Problem.FORECAST_IMPOSSIBLE] == 1


def test_more_than_a_zone_has_is_impossible_too() -> None:
    large = words.pod("large", 12)
    ledger = seen(words.facts(policy="restricted"), (large, ZERO))
    ledger.row(words.NODE)
    assert ledger.problems[Problem.FORECAST_IMPOSSIBLE] == 1


def test_what_a_report_says_counts_more() -> None:
    ledger = seen(words.facts(), (A, ONE))
    ledger.report(words.agent((3, 8), words.placed(A, 0, 5)))
    assert words.free(ledger) == [3, 8]
    found = ledger.holding("uid-a")
    assert found is not None
    assert found.source is Source.OBSERVED
