"""Summarises a campaign: counts, and every violation. Pure, from the history.

`run` builds it, `numalign lab campaign` prints it."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from numalign.lab.campaign import history, judge
from numalign.lab.campaign.history import HistoryLine, Holding, PodHistory
from numalign.lab.campaign.judge import Finding


class CampaignRun(Struct, frozen=True, kw_only=True):
    """The parameters of the campaign."""

    seed: int
    minutes: float
    nodes: tuple[str, ...]
    interrupted: bool = False
    ended_by_themselves: Mapping[str, int] = {}
    """Programs that ended unexpectedly, by title: how often they were restarted."""


class PodCounts(Struct, frozen=True, kw_only=True):
    created: int
    placed: int
    started: int
    ended: int
    """Pods that ended by themselves."""
    deleted: int
    compared: int
    """Containers with both a holding and a prediction."""
    longest_wait: float
    """Seconds from a pod's creation to its start."""
    median_wait: float


class CampaignReport(Struct, frozen=True, kw_only=True):
    run: CampaignRun
    seconds: float
    pods: PodCounts
    rejected: tuple[Finding, ...]
    unforeseeable: tuple[Finding, ...]
    mispredicted: tuple[Finding, ...]
    overtaken: tuple[Finding, ...]
    lost: tuple[Finding, ...]
    late_reports: tuple[Finding, ...]
    longest_lag: float
    """Seconds for which a report was behind its kubelet without a fault."""
    faults: Mapping[str, int]
    good: bool


def of(run: CampaignRun, lines: Sequence[HistoryLine]) -> CampaignReport:
    verdict, pods = judge.judge(lines), list(history.of(lines).values())
    return CampaignReport(
        run=run,
        seconds=lines[-1].at if lines else 0.0,
        pods=_pods(pods),
        rejected=verdict.rejected,
        unforeseeable=verdict.unforeseeable,
        mispredicted=verdict.mispredicted,
        overtaken=verdict.overtaken,
        lost=verdict.lost,
        late_reports=verdict.late,
        longest_lag=max((seconds for _, _, seconds in judge.lags(lines)), default=0.0),
        faults=dict(sorted(Counter(_kind(line) for line in lines if line.what == "down").items())),
        good=verdict.good,
    )


def text(report: CampaignReport) -> str:
    run, pods = report.run, report.pods
    ended = f"interrupted after {report.seconds:.0f} s" if run.interrupted else f"{report.seconds:.0f} s"
    faults = ", ".join(f"{name} {count}" for name, count in report.faults.items()) or "none"
    rows = [
        ("seed", f"{run.seed}, {run.minutes:g} minutes; {ended} on {', '.join(run.nodes)}"),
        (
            "pods",
            f"{pods.created} created, {pods.placed} placed, {pods.started} started, {pods.ended} ended by themselves",
        ),
        ("faults", f"{sum(report.faults.values())}: {faults}"),
        ("waits", f"{pods.median_wait:.1f} s from creation to start in the median, {pods.longest_wait:.1f} s at most"),
        ("reports", f"at most {report.longest_lag:.1f} s behind their kubelet"),
        ("rejected", _count(report.rejected, pods.placed, "placed pods")),
        ("unforeseeable", f"{len(report.unforeseeable)} more, for reasons that no scheduler can foresee"),
        ("mispredicted", _count(report.mispredicted, pods.compared, "containers")),
        ("overtaken", f"{len(report.overtaken)} more, whose node other pods had just left or joined"),
        ("lost", _count(report.lost, pods.created, "pods")),
        ("late reports", str(len(report.late_reports))),
    ]
    lines_shown = [f"{name:<14} {words}" for name, words in rows]
    for title in ("rejected", "unforeseeable", "mispredicted", "overtaken", "lost", "late_reports"):
        lines_shown += [f"{title.upper().replace('_', ' ')}: {_line(each)}" for each in getattr(report, title)]
    by_themselves = [f"{name} {count}" for name, count in run.ended_by_themselves.items()]
    return "\n".join([*lines_shown, *([f"ended by themselves: {', '.join(by_themselves)}"] if by_themselves else [])])


def _pods(pods: Sequence[PodHistory]) -> PodCounts:
    waits = sorted(pod.started - pod.created for pod in pods if pod.started is not None)
    return PodCounts(
        created=len(pods),
        placed=sum(pod.bound is not None for pod in pods),
        started=len(waits),
        ended=sum(pod.ended is not None and not pod.failed and pod.ended < (pod.asked or math.inf) for pod in pods),
        deleted=sum(pod.asked is not None for pod in pods),
        compared=sum(each != Holding() for pod in pods if pod.bound and not pod.loose for each in pod.holds.values()),
        longest_wait=waits[-1] if waits else 0.0,
        median_wait=waits[len(waits) // 2] if waits else 0.0,
    )


def _kind(line: HistoryLine) -> str:
    """The kind of a fault: the program and what happened to it."""
    name = line.name.rpartition("/")[2].removesuffix("-2")
    return f"{name} {line.why}"


def _count(found: Sequence[Finding], among: int, what: str) -> str:
    return f"{len(found)} of {among} {what}"


def _line(finding: Finding) -> str:
    where = " on ".join(filter(None, (finding.pod, finding.node)))
    return f"{finding.at:.1f} s  {where}: {finding.why}"
