"""Alerts and the dashboard speak of metrics that exist: those that the pages about metrics list."""

import re
from pathlib import Path

import pytest

from numalign.deploy import alerts, dashboard

DOCS = Path(__file__).parents[3] / "docs/use"
METRIC = re.compile(r"\b(?:numalign|scheduler|leader_election)_[a-z_]+")
LISTED = set(METRIC.findall("".join((DOCS / page).read_text() for page in ("scheduler-metrics.md", "agent.md"))))
EXPRESSIONS = {
    **{str(each["alert"]): str(each["expr"]) for each in alerts.RULES},
    **{each.title: each.expression for each in dashboard.PANELS},
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_expression_names_metrics_that_the_pages_list(expression: str) -> None:
    named = {name.removesuffix("_bucket") for name in METRIC.findall(expression)}
    assert named
    assert named <= LISTED


def test_panels_lie_beside_and_below_each_other() -> None:
    places = [panel["gridPos"] for panel in dashboard.dashboard()["panels"]]
    assert len({(place["x"], place["y"]) for place in places}) == len(places)
    assert all(place["x"] + place["w"] <= 24 for place in places)
