"""Judges a campaign from its history. Pure, so that a saved history can be judged again.

`report` calls it. Rejected: a kubelet rejected a pod that numalign's scheduler bound. Mispredicted: a container has
CPUs, memory or devices outside every predicted set of zones; compared only where the topology manager enforces zones.
Both exclude what `exemptions` explains; these pods have evidence and are at most one in 100. Lost: a pod that at a rest
neither runs nor has a reason to wait, or that ended or vanished by itself. Late: a report behind its kubelet."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from numalign.lab.campaign import exemptions, history
from numalign.lab.campaign.exemptions import Explanation
from numalign.lab.campaign.history import HistoryLine, Holding, PodHistory, Zones

PERIOD: Final = 60.0
"""The agent's period in seconds. A report may be at most a second older, once the cause is gone."""


MOST_EXPLAINED: Final = 0.01


class Finding(Struct, frozen=True):
    """One violation."""

    pod: str
    node: str
    at: float
    why: str


class Explained(Finding, frozen=True):
    """A pod that was rejected or is elsewhere, and the lines of the record that explain it."""

    evidence: Explanation


class CampaignVerdict(Struct, frozen=True, kw_only=True):
    placed: int
    rejected: tuple[Finding, ...]
    unforeseeable: tuple[Explained, ...]
    mispredicted: tuple[Finding, ...]
    overtaken: tuple[Explained, ...]
    lost: tuple[Finding, ...]
    late: tuple[Finding, ...]
    """Late reports; these have no pod."""

    @property
    def explained_share(self) -> float:
        """The share of placed pods that are unforeseeable or overtaken."""
        pods = {each.pod for each in (*self.unforeseeable, *self.overtaken)}
        return len(pods) / self.placed if pods else 0.0

    @property
    def unproven(self) -> tuple[Finding, ...]:
        """Explanations without evidence: the record lacks a part of it."""
        return tuple(each for each in (*self.unforeseeable, *self.overtaken) if not each.evidence.proven)

    @property
    def good(self) -> bool:
        broken = self.rejected or self.mispredicted or self.lost or self.late or self.unproven
        return not broken and self.explained_share <= MOST_EXPLAINED


def judge(lines: Sequence[HistoryLine]) -> CampaignVerdict:
    pods = list(history.of(lines).values())
    preempted = {pod.uid for pod in pods if is_preempted(pod, pods, lines)}
    turned_away = [pod for pod in pods if pod.failed and pod.why]
    unforeseen = {pod.uid: exemptions.unforeseeable(pod, pods, lines) for pod in turned_away}
    elsewhere = [(pod, found) for pod in pods for found in misplaced(pod)]
    overtakers = {pod.uid: exemptions.overtaker(pod, pods, lines) for pod, _ in elsewhere}
    return CampaignVerdict(
        placed=sum(pod.bound is not None for pod in pods),
        rejected=tuple(_refusal(pod) for pod in turned_away if not unforeseen[pod.uid]),
        unforeseeable=tuple(_explained(_refusal(pod), why) for pod in turned_away if (why := unforeseen[pod.uid])),
        mispredicted=tuple(found for pod, found in elsewhere if not overtakers[pod.uid]),
        overtaken=tuple(_explained(found, who) for pod, found in elsewhere if (who := overtakers[pod.uid])),
        lost=(*_stuck(lines), *(found for pod in pods for found in _vanished(pod, preempted))),
        late=tuple(_late(lines)),
    )


def misplaced(pod: PodHistory) -> Iterator[Finding]:
    """The containers outside their predicted zones."""
    for container, holding in sorted(pod.holds.items()) if not pod.loose else ():
        choices = pod.predicted.get(container, ())
        if pod.bound is not None and holding != Holding() and not any(_within(holding, each) for each in choices):
            predicted = zone_sets(choices)
            where = f"CPUs in {zone_set(holding.cpus)}, memory in {zone_set(holding.memory)}"
            devices = ", ".join(map(zone_set, holding.devices)) or "none"
            yield Finding(
                pod.name, pod.node, pod.bound, f"{container}: predicted {predicted}; {where}, devices: {devices}"
            )


def _within(holding: Holding, choice: Zones) -> bool:
    zones = set(choice)
    aligned = all(zones.intersection(each) for each in holding.devices)
    return aligned and zones.issuperset(holding.cpus) and zones.issuperset(holding.memory)


def zone_sets(choices: Iterable[Zones]) -> str:
    return " or ".join(map(zone_set, choices)) or "nothing"


def zone_set(zones: Iterable[int]) -> str:
    return "{" + ",".join(map(str, zones)) + "}"


def _refusal(pod: PodHistory) -> Finding:
    return Finding(pod.name, pod.node, pod.ended or 0.0, f"{pod.why}: {pod.words}")


def _explained(found: Finding, evidence: Explanation) -> Explained:
    return Explained(found.pod, found.node, found.at, f"{found.why}; {evidence.why}", evidence)


def _stuck(lines: Iterable[HistoryLine]) -> Iterator[Finding]:
    return (Finding(line.name, line.node, line.at, line.words) for line in lines if line.what == "stuck")


def _vanished(pod: PodHistory, preempted: Collection[str]) -> Iterator[Finding]:
    if pod.asked is not None or pod.uid in preempted:
        return
    who = f" ({pod.disrupted})" if pod.disrupted else ""
    if pod.failed and not pod.why:
        yield Finding(pod.name, pod.node, pod.ended or 0.0, f"failed by itself: {pod.words}{who}")
    if pod.gone is not None and pod.ended is None:
        yield Finding(pod.name, pod.node, pod.gone, f"disappeared without a request{who}")


BY_SCHEDULER: Final = "PreemptionByScheduler"
NOMINATING: Final = 10.0
"""Seconds between the nomination of a pod, or its binding, and the condition of its victims, in either order."""


def is_preempted(pod: PodHistory, others: Iterable[PodHistory], lines: Iterable[HistoryLine]) -> bool:
    """Whether the record proves a preemption: a pod of higher priority was nominated or bound to the node then."""
    if pod.disrupted != BY_SCHEDULER or pod.disrupted_at is None:
        return False
    higher = {other.uid for other in others if other.priority > pod.priority}
    moved = (each for each in lines if each.what in ("nominated", "bound") and each.node == pod.node)
    return any(each.uid in higher and abs(each.at - pod.disrupted_at) <= NOMINATING for each in moved)


def lags(lines: Sequence[HistoryLine]) -> Iterator[tuple[str, float, float]]:
    """By node, the start and duration of each lag of its report, counted from the end of the last fault that explains
    it."""
    last = lines[-1].at if lines else 0.0
    for node in sorted({line.node for line in lines if line.what == "behind"}):
        causes = ("kube-apiserver", f"{node}/agent", f"{node}/kubelet")
        away = list(history.absences(lines, causes))
        for begun, until in _stretches(lines, node, last):
            gone = [min(ended, until) for start, ended in away if start <= until]
            explained = max([begun, *gone])
            yield node, explained, until - explained


def _stretches(lines: Iterable[HistoryLine], node: str, last: float) -> Iterator[tuple[float, float]]:
    since: float | None = None
    for line in lines:
        if line.node == node and line.what == "behind":
            since = line.at
        elif line.node == node and line.what == "level" and since is not None:
            yield since, line.at
            since = None
    if since is not None:
        yield since, last


def _late(lines: Sequence[HistoryLine]) -> Iterator[Finding]:
    for node, at, seconds in lags(lines):
        if seconds > PERIOD + 1:
            yield Finding("", node, at, f"its report was behind for {seconds:.1f} s")
