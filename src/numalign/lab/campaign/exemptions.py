"""Exemptions: failures of a campaign's pods that no scheduler can foresee. Pure.

`judge` calls it. There are four rules. Devices: the node's last report before the binding offered the devices, the
kubelet or the device plugin was down at that time, and the kubelet's message or log says that devices were missing.
Leftovers: a starting kubelet admits all waiting pods before it removes the assignments of pods that are gone.
Departure: a pod left other zones after the binding, and the first container of a pod of several went there. Order:
another pod, whose change was not yet known at the decision, freed or took zones; a placement is predicted once, at the
decision. An `Explanation` contains the lines of the record that prove it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, structs

from numalign.lab.campaign import history
from numalign.lab.campaign.history import HistoryLine, PodHistory

NO_ZONES: Final = "TopologyAffinityError"
NO_DEVICES: Final = ("UnexpectedAdmissionError", NO_ZONES)
"""Reasons of a kubelet whose device manager is unavailable or has no devices in any zone."""
CALL_FAILED: Final = "Allocate failed due to rpc error"
"""In the message of a kubelet whose device plugin ended during the call."""
CPUS: Final = "not enough cpus"
"""In the message of a kubelet whose CPU manager rejects a pod."""
REGISTERING: Final = 10.0
"""Seconds until a kubelet and its device plugins have registered."""
STARTING: Final = 5.0
"""Seconds from a kubelet's start to its first pod sync."""
LAST: Final = 2.0
"""Seconds before an observed binding: later reports may be too late for its decision."""
TOGETHER: Final = 1.0
"""Seconds within which bindings may appear in another order than their decisions."""
JUST: Final = 5.0
"""Seconds before an observed binding within which a release counts as recent."""
LOOK: Final = 0.5
"""Seconds until a change in a kubelet's checkpoint is observed; `SAME_LOOK`: for changes observed at the same time."""
SAME_LOOK: Final = 0.05


class Explanation(Struct, frozen=True):
    """Why the scheduler could not know what happened to a pod, with the lines of the record that show it."""

    why: str
    known: tuple[HistoryLine, ...]
    """What was known of the node at the decision."""
    pod: tuple[HistoryLine, ...]
    """The pod itself: its binding, and what its kubelet did."""
    happened: tuple[HistoryLine, ...]
    """What the scheduler could not know, and what decided at the kubelet."""

    @property
    def proven(self) -> bool:
        return bool(self.known and self.pod and self.happened)


def unforeseeable(pod: PodHistory, others: Iterable[PodHistory], lines: Sequence[HistoryLine]) -> Explanation | None:
    """The explanation of a rejection; None if there is none."""
    return (
        _lacked_devices(pod, lines)
        or _leftovers(pod, others, lines, "the kubelet still held resources of {}")
        or _departure(pod, others, lines)
    )


def _lacked_devices(pod: PodHistory, lines: Sequence[HistoryLine]) -> Explanation | None:
    if pod.why not in NO_DEVICES or not pod.devices or pod.bound is None or pod.ended is None:
        return None
    known = pod.bound - LAST
    offers = [line for line in lines if line.what == "offers" and line.node == pod.node and line.at <= pod.bound]
    # The last one that was known for sure, or a later one that offers the devices and may have been known.
    last = {line.why: line for line in offers if line.at <= known or _offers(line, pod)}
    parts = (f"{pod.node}/kubelet", f"{pod.node}/device-plugin")
    away = [
        (begun, ended)
        for begun, ended in history.absences(lines, parts)
        if begun <= pod.ended and ended >= pod.bound - REGISTERING
    ]
    offered = all(_offers(each, pod) for each in last.values())
    named = any(name in pod.words for name in (*pod.devices, CALL_FAILED))
    logged = tuple(each for each in lines if each.what == "lacks" and (each.name, each.node) == (pod.name, pod.node))
    if not away or not offered or not (named or logged):
        return None
    happened = _in_order((*_absence_lines(lines, parts, away), *logged))
    return Explanation("its devices were unavailable", tuple(last.values()), _life(pod, pod.ended, lines), happened)


def _offers(line: HistoryLine, pod: PodHistory) -> bool:
    return all(line.devices.get(name, 0) >= count for name, count in pod.devices.items())


def _leftovers(
    pod: PodHistory, others: Iterable[PodHistory], lines: Sequence[HistoryLine], why: str
) -> Explanation | None:
    """By a pod that had ended and was still in the checkpoint of a kubelet that started after the binding."""
    met = pod.held or pod.ended
    if pod.bound is None or met is None:
        return None
    parts = (f"{pod.node}/kubelet",)
    away = [
        (begun, back) for begun, back in history.absences(lines, parts) if pod.bound <= back + STARTING and met >= back
    ]
    # The last to leave is the least likely to have been removed from the checkpoint before.
    for other in sorted(others, key=lambda each: each.left, reverse=True):
        had_left = other.node == pod.node and other.left <= met and bool(other.zones & pod.wanted)
        freed = other.cpus_freed if CPUS in pod.words else other.freed
        if had_left and any(freed is None or freed >= back for _, back in away):
            happened = (*_life(other, met, lines), *_absence_lines(lines, parts, away))
            own = _life(pod, pod.ended if pod.failed else met, lines)
            return Explanation(why.format(other.name), _known(pod, lines), own, _in_order(happened))
    return None


def _departure(pod: PodHistory, others: Iterable[PodHistory], lines: Sequence[HistoryLine]) -> Explanation | None:
    """By a pod that left other zones than the predicted ones between the binding and the rejection. Containers after
    the first must include its zones, and these have no room for them."""
    if pod.why != NO_ZONES or len(pod.predicted) < 2 or pod.bound is None or pod.ended is None:
        return None
    for other in others:
        left = min(other.left, other.cpus_freed or other.left)
        elsewhere = bool(other.zones) and not other.zones & pod.wanted
        if other.node == pod.node and elsewhere and pod.bound - TOGETHER <= left <= pod.ended + LOOK:
            why = f"{other.name} had just left other zones, which the first container was given"
            own, happened = (_life(each, pod.ended, lines) for each in (pod, other))
            return Explanation(why, _known(pod, lines), own, happened)
    return None


def overtaker(pod: PodHistory, others: Sequence[PodHistory], lines: Sequence[HistoryLine]) -> Explanation | None:
    """The explanation of a different placement by another pod; None if there is none."""
    if pod.bound is None or pod.held is None:
        return None
    reports = _ReportsBefore.before(pod.bound, lines, pod.node)
    beside = [each for each in others if each is not pod and each.node == pod.node]
    found = ((why, each) for each in beside if (why := _met(pod, pod.bound, pod.held, each, reports)))
    # Where several pods explain it: zones that another pod took first are not free, whatever else became free.
    why, other = min(found, key=lambda each: MEETINGS.index(each[0]), default=("", None))
    if other is None:
        return _leftovers(pod, others, lines, "{} was still in the checkpoint")
    own, happened = (_life(each, pod.held, lines) for each in (pod, other))
    return Explanation(f"{other.name} {why}", _known(pod, lines), own, happened)


MEETINGS: Final = (
    CAME_FIRST := "came first",
    NOT_EXPECTED := "was in zones where it was not expected",
    WAS_EXPECTED := "was expected there",
    HAD_LEFT := "had just left",
    STILL_THERE := "was still in the checkpoint",
)
"""How another pod explains a placement, the most likely explanation first."""
OF_A_POD: Final = ("bound", "holds", "cpus-freed", "freed", "ended", "deletion-requested", "disrupted", "gone")


def _life(pod: PodHistory, admitted: float | None, lines: Iterable[HistoryLine]) -> tuple[HistoryLine, ...]:
    """What happened to the pod until then. Kubelets' checkpoints have uids only, so the name is added."""
    until = (admitted or 0.0) + LOOK
    own = (each for each in lines if each.uid == pod.uid and each.what in OF_A_POD and each.at <= until)
    return tuple(structs.replace(each, name=pod.name) for each in own)


def _known(pod: PodHistory, lines: Iterable[HistoryLine]) -> tuple[HistoryLine, ...]:
    """The node's last report that was known at the decision for sure, and those that may have been."""
    bound = pod.bound or 0.0
    reports = [each for each in lines if each.what == "reported" and each.node == pod.node and each.at <= bound]
    sure = sum(each.at <= bound - LAST for each in reports)
    known = reports[max(0, sure - 1) :]
    gone = [each for each in lines if each.what == "report-deleted" and each.node == pod.node]
    return _in_order((*known, *(each for each in gone if known and known[0].at <= each.at <= bound)))


def _absence_lines(
    lines: Iterable[HistoryLine], parts: Sequence[str], away: Sequence[tuple[float, float]]
) -> tuple[HistoryLine, ...]:
    times = {at for each in away for at in each}
    return tuple(each for each in lines if each.what in ("down", "up") and each.name in parts and each.at in times)


def _in_order(lines: Iterable[HistoryLine]) -> tuple[HistoryLine, ...]:
    return tuple(sorted(lines, key=lambda each: each.at))


def _met(pod: PodHistory, bound: float, held: float, other: PodHistory, reports: _ReportsBefore) -> str:
    """How `other` explains the placement; empty if it does not."""
    if other.bound is None or other.held is None:
        return ""
    was_there = bool(other.zones & pod.zones)
    # Kubelets keep devices of pods that are gone in the checkpoint for longer than CPUs.
    moments = [each for each in (other.cpus_freed, other.freed) if each is not None]
    if was_there and other.freed is not None and any(bound - JUST <= each <= held + LOOK for each in moments):
        if reports.takes_for_there(other.uid):
            return HAD_LEFT
        if other.left <= bound and other.freed >= bound - LAST:
            # A kubelet removes devices of ended pods when the next pod arrives, and no report shows them as free
            # before.
            return STILL_THERE
    if other.bound >= bound - TOGETHER and other.held <= held + SAME_LOOK and other.zones & pod.wanted:
        return CAME_FIRST
    if not other.bound <= bound < other.left or other.uid in reports.uids:
        return ""
    # The other pod is judged for its own placement.
    if not was_there and other.wanted & pod.zones:
        return WAS_EXPECTED
    unexpected = pod.wanted & other.zones and not pod.wanted & other.wanted
    return NOT_EXPECTED if unexpected and other.held <= held + SAME_LOOK else ""


class _ReportsBefore(Struct):
    """What a node's reports said at that time: the pods they named, and whether one was behind its kubelet."""

    uids: frozenset[str] = frozenset()
    behind: bool = False

    @staticmethod
    def before(bound: float, lines: Iterable[HistoryLine], node: str) -> _ReportsBefore:
        """The last report that was known for sure, and all later ones."""
        reports = _ReportsBefore()
        for line in lines:
            late = line.at > bound - LAST
            if line.node != node or line.at > bound:
                continue
            if line.what == "reported":
                reports.uids = reports.uids.union(line.uids) if late else frozenset(line.uids)
            elif line.what in ("behind", "level"):
                reports.behind = line.what == "behind" or (late and reports.behind)
        return reports

    def takes_for_there(self, uid: str) -> bool:
        return self.behind or uid in self.uids
