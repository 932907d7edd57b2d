"""Alerts and the dashboard speak of metrics that the programs have: names and labels are those of their registries."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as grafana

from numalign.agent import cycle
from numalign.deploy import alerts, dashboard
from numalign.kube.client import Client
from numalign.kube.leader import leading
from numalign.process.metrics import Family
from numalign.scheduler.main import Scheduler, Setup
from tests import conftest
from tests.unit.kube.stub import Stub, access, serving

ROOT = Path(__file__).parents[3]
METRIC = re.compile(r"\b(?:numalign|scheduler|leader_election)_[a-z_]+")
BY = re.compile(r"by \(([a-z_, ]+)\)")
SELECTED = re.compile(r"([a-z_]+)(?:=~|=|!=)\"")
OF_TARGETS = {"le", "pod", "job"}
"""Labels that Prometheus adds to every sample of a target, or to buckets."""
EXPRESSIONS = {
    **{str(each["alert"]): str(each["expr"]) for each in alerts.RULES},
    **{each.title: each.expression for each in dashboard.PANELS},
}


@cache
def families() -> dict[str, Family]:
    """All that scheduler and agent register when they start."""

    async def made() -> dict[str, Family]:
        stub = Stub()
        async with serving(stub), Client(access(stub)) as client:
            election = leading.election("numalign", "kube-system")
            agent = cycle.Metrics()
            agent.watch(lambda: None, client.sender.metrics)
            return Scheduler(Setup(), client, election).metrics.registry.families() | agent.registry.families()

    return asyncio.run(made())


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_expression_names_metrics_and_labels_that_the_programs_have(expression: str) -> None:
    named = {name.removesuffix("_bucket") for name in METRIC.findall(expression)}
    assert named
    assert named <= families().keys()
    labels = {label for name in named for label in families()[name].labels} | OF_TARGETS
    grouped = {label.strip() for group in BY.findall(expression) for label in group.split(",")}
    assert grouped | set(SELECTED.findall(expression)) <= labels


def test_every_metric_is_on_the_page_about_metrics() -> None:
    pages = "".join((ROOT / "docs/use" / page).read_text() for page in ("scheduler-metrics.md", "agent.md"))
    ours = {name for name in families() if name.startswith("numalign_")}
    assert ours <= set(METRIC.findall(pages))


def test_every_alert_has_something_to_do_about_it() -> None:
    page = (ROOT / "docs/use/operate.md").read_text()
    assert [each["alert"] for each in alerts.RULES if f"`{each['alert']}`" not in page] == []


def test_panels_lie_beside_and_below_each_other() -> None:
    places = [panel["gridPos"] for panel in dashboard.dashboard()["panels"]]
    assert len({(place["x"], place["y"]) for place in places}) == len(places)
    assert all(place["x"] + place["w"] <= 24 for place in places)


@pytest.mark.built
def test_prometheus_accepts_the_rules() -> None:
    promtool = shutil.which("promtool")
    conftest.require(promtool, "promtool, of the Debian package prometheus")
    assert promtool is not None
    command = [promtool, "check", "rules", str(ROOT / "examples/prometheus-rules.yaml")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, f"SUCCESS: {len(alerts.RULES)} rules found" in ran.stdout) == (0, True), ran.stderr


def test_grafana_s_own_model_of_dashboards_has_every_field_of_ours() -> None:
    written = json.loads((ROOT / "examples/grafana-dashboard.json").read_text())
    read = json.loads(JSONEncoder(sort_keys=True).encode(grafana.Dashboard.from_json(written)))
    assert lost(written, read) == []


def test_a_field_that_grafana_does_not_know_is_found() -> None:
    written = dashboard.dashboard()
    written["panels"][0]["fieldConfig"]["defaults"]["unti"] = "s"
    read = json.loads(JSONEncoder(sort_keys=True).encode(grafana.Dashboard.from_json(written)))
    assert lost(written, read) == ["panels.0.fieldConfig.defaults.unti"]


def lost(written: Any, read: Any, place: str = "") -> list[str]:
    """Where Grafana's model has something else than we wrote."""
    if isinstance(written, dict) and isinstance(read, dict):
        return [found for key in written for found in lost(written[key], read.get(key), f"{place}.{key}".strip("."))]
    if isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        return [found for number, each in enumerate(written) for found in lost(each, read[number], f"{place}.{number}")]
    return [] if written == read else [place]
