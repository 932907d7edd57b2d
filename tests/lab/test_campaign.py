"""A short campaign on real kubelets: pods and faults by chance, and nothing that was promised is broken."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from numalign.kube import clock
from numalign.lab import preflight
from numalign.lab.campaign import history, judge, run
from numalign.lab.campaign import report as reports
from numalign.lab.campaign.history import HistoryLine
from numalign.lab.campaign.report import CampaignReport
from numalign.lab.campaign.run import CampaignOptions
from tests import histories
from tests.lab.labs import Labs

SECONDS = 25.0
SEED = 10


@pytest.fixture(scope="module")
def played(labs: Labs) -> Iterator[tuple[CampaignReport, list[HistoryLine]]]:
    asked = CampaignOptions(minutes=SECONDS / 60, seed=SEED, name=f"campaign-{os.getpid()}")
    nodes = len(run.lab(asked).nodes)
    labs.make_room(preflight.instances(nodes, nodes))
    said: list[str] = []
    with clock.event_loop_runner() as runner:
        yield runner.run(run.run(asked, said.append))


def test_no_pod_is_rejected_mispredicted_or_lost(played: tuple[CampaignReport, list[HistoryLine]]) -> None:
    """One explained pod is already more than 1% of so few, so that the share is not asked for."""
    report, _ = played
    broken = (report.rejected, report.mispredicted, report.lost, report.late_reports, report.unproven)
    assert not any(broken), reports.text(report)


def test_pods_came_and_ended_while_programs_were_away(played: tuple[CampaignReport, list[HistoryLine]]) -> None:
    report, _ = played
    assert report.pods.created > 10
    assert report.pods.started > 10
    assert report.pods.compared > 10
    assert sum(report.faults.values()) > 1


def test_the_history_alone_gives_the_same_verdict(played: tuple[CampaignReport, list[HistoryLine]]) -> None:
    report, lines = played
    again = judge.judge(histories.read(history.encode(lines), HistoryLine))
    assert (again.good, again.overtaken) == (report.good, report.overtaken)
