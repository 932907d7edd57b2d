"""Summarises a campaign: counts, and every violation. Pure, from the history.

`run` builds it, `numalign lab campaign` prints it."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from numalign.lab.campaign import history, judge
from numalign.lab.campaign.history import HistoryLine, Holding, PodHistory
from numalign.lab.campaign.judge import Explained, Finding

EVICTED: Final = "EvictionByEvictionAPI"
OF_OPERATIONS: Final = ("leave", "roll-out")
"""Why programs are down during an operation, which counts once."""


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
    preempted: int
    evicted: int
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
    unforeseeable: tuple[Explained, ...]
    mispredicted: tuple[Finding, ...]
    overtaken: tuple[Explained, ...]
    explained_share: float
    """The share of placed pods that are unforeseeable or overtaken; at most 0.01 is good."""
    unproven: tuple[str, ...]
    """The pods among them whose explanation the record does not prove."""
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
        explained_share=verdict.explained_share,
        unproven=tuple(dict.fromkeys(each.pod for each in verdict.unproven)),
        lost=verdict.lost,
        late_reports=verdict.late,
        longest_lag=max((seconds for _, _, seconds in judge.lags(lines)), default=0.0),
        faults=dict(sorted(Counter(filter(None, map(_kind, lines))).items())),
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
        (
            "disruptions",
            f"{pods.preempted} preempted, {pods.evicted} evicted, {pods.deleted} deleted or evicted by request",
        ),
        ("faults", f"{sum(report.faults.values())}: {faults}"),
        ("waits", f"{pods.median_wait:.1f} s from creation to start in the median, {pods.longest_wait:.1f} s at most"),
        ("reports", f"at most {report.longest_lag:.1f} s behind their kubelet"),
        ("rejected", _count(report.rejected, pods.placed, "placed pods")),
        ("unforeseeable", f"{len(report.unforeseeable)} more, for reasons that no scheduler can foresee"),
        ("mispredicted", _count(report.mispredicted, pods.compared, "containers")),
        ("overtaken", f"{len(report.overtaken)} more, whose node other pods had just left or joined"),
        ("explained", _explained(report)),
        ("lost", _count(report.lost, pods.created, "pods")),
        ("late reports", str(len(report.late_reports))),
    ]
    lines_shown = [f"{name:<14} {words}" for name, words in rows]
    for title in ("rejected", "unforeseeable", "mispredicted", "overtaken", "lost", "late_reports"):
        for each in getattr(report, title):
            lines_shown += [f"{title.upper().replace('_', ' ')}: {_line(each)}", *_evidence(each)]
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
        preempted=sum(pod.disrupted == judge.BY_SCHEDULER for pod in pods),
        evicted=sum(pod.disrupted == EVICTED for pod in pods),
        compared=sum(each != Holding() for pod in pods if pod.bound and not pod.loose for each in pod.holds.values()),
        longest_wait=waits[-1] if waits else 0.0,
        median_wait=waits[len(waits) // 2] if waits else 0.0,
    )


def _kind(line: HistoryLine) -> str:
    """The kind of a fault: the program and what happened to it, or the operation; empty if the line is no fault."""
    if line.what == "operation":
        return line.why
    if line.what != "down" or line.why in OF_OPERATIONS:
        return ""
    name = line.name.rpartition("/")[2].removesuffix("-2")
    return f"{name} {line.why}"


def _count(found: Sequence[Finding], among: int, what: str) -> str:
    return f"{len(found)} of {among} {what}"


def _explained(report: CampaignReport) -> str:
    share = f"{report.explained_share:.1%} of placed pods are unforeseeable or overtaken, at most 1% may be"
    return f"{share}; without evidence: {', '.join(report.unproven) or 'none'}"


def _evidence(finding: Finding) -> Iterator[str]:
    if not isinstance(finding, Explained):
        return
    evidence = finding.evidence
    names = {line.uid: line.name for line in (*evidence.pod, *evidence.happened) if line.uid}
    for title, lines in (("known", evidence.known), ("pod", evidence.pod), ("happened", evidence.happened)):
        yield from (f"    {title:<9} {line.at:.1f} s  {_said(line, names)}" for line in lines)


def _said(line: HistoryLine, names: Mapping[str, str]) -> str:
    """A line of the record in words."""
    match line.what:
        case "reported":
            pods = ", ".join(name for uid, name in names.items() if uid in line.uids) or "neither pod"
            return f"report of {line.node} with {len(line.uids)} pods names {pods}; {line.words}"
        case "offers":
            devices = ", ".join(f"{name} {count}" for name, count in line.devices.items()) or "no devices"
            return f"{line.why} of {line.node} offers {devices}"
        case "bound":
            zones = "; ".join(f"{each} in {judge.zone_sets(sets)}" for each, sets in line.predicted.items())
            return f"{line.name} bound to {line.node}, predicted: {zones or 'no zones'}"
        case "holds":
            held = "; ".join(f"{each} in {judge.zone_set(sorted(found.zones))}" for each, found in line.holds.items())
            return f"{line.name} in the checkpoint of {line.node}: {held}"
        case "freed":
            return f"{line.name} no longer in the checkpoint of {line.node}"
        case "ended":
            return " ".join(filter(None, (line.name, line.phase, line.why, line.words)))
        case "lacks":
            return f"log of the kubelet of {line.node}: {line.name} {line.words}"
        case "down":
            return line.words or f"{line.name} down ({line.why})"
        case _:
            return " ".join(filter(None, (line.name or line.node, line.what, line.why)))


def _line(finding: Finding) -> str:
    where = " on ".join(filter(None, (finding.pod, finding.node)))
    return f"{finding.at:.1f} s  {where}: {finding.why}"
