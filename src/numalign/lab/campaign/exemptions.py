"""Exemptions: failures of a campaign's pods that no scheduler can foresee. Pure.

`judge` calls it. There are three rules. Devices: the node's last report before the binding offered the missing
devices, and the kubelet or the device plugin was down at that time. Leftovers: a starting kubelet admits all waiting
pods before it removes the assignments of pods that are gone. Order: another pod, whose change was not yet known at the
decision, freed or took zones; a placement is predicted once, at the decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from numalign.lab.campaign import history
from numalign.lab.campaign.history import HistoryLine, PodHistory

NO_DEVICES: Final = ("UnexpectedAdmissionError", "TopologyAffinityError")
"""Reasons of a kubelet whose device manager is unavailable or has no devices in any zone."""
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


def unforeseeable(pod: PodHistory, others: Iterable[PodHistory], lines: Sequence[HistoryLine]) -> str:
    """The unforeseeable reason of a rejection; empty if there is none."""
    if _lacked_devices(pod, lines):
        return "its devices were unavailable"
    who = _leftovers(pod, others, lines)
    return f"the kubelet still held resources of {who}" if who else ""


def _lacked_devices(pod: PodHistory, lines: Sequence[HistoryLine]) -> bool:
    if pod.why not in NO_DEVICES or not pod.devices or pod.bound is None or pod.ended is None:
        return False
    known = pod.bound - LAST
    offers = [line for line in lines if line.what == "offers" and line.node == pod.node and line.at <= known]
    last = {line.why: line.devices for line in offers}
    away = history.absences(lines, (f"{pod.node}/kubelet", f"{pod.node}/device-plugin"))
    lately = any(begun <= pod.ended and ended >= pod.bound - REGISTERING for begun, ended in away)
    return lately and all(each.get(name, 0) >= count for each in last.values() for name, count in pod.devices.items())


def _leftovers(pod: PodHistory, others: Iterable[PodHistory], lines: Sequence[HistoryLine]) -> str:
    """The name of a pod that had ended and was still in the checkpoint of a kubelet that started after the binding."""
    met = pod.held or pod.ended
    if pod.bound is None or met is None:
        return ""
    away = history.absences(lines, (f"{pod.node}/kubelet",))
    starts = [back for _, back in away if pod.bound <= back + STARTING and met >= back]
    for other in others:
        had_left = other.node == pod.node and other.left <= met and bool(other.zones & pod.wanted)
        if had_left and any(other.freed is None or other.freed >= back for back in starts):
            return other.name
    return ""


def overtaker(pod: PodHistory, others: Sequence[PodHistory], lines: Sequence[HistoryLine]) -> str:
    """The pod that explains a different placement; empty if there is none."""
    if pod.bound is None or pod.held is None:
        return ""
    reports = _ReportsBefore.before(pod.bound, lines, pod.node)
    for other in others:
        if other is not pod and other.node == pod.node and (why := _met(pod, pod.bound, pod.held, other, reports)):
            return f"{other.name} {why}"
    who = _leftovers(pod, others, lines)
    return f"{who} was still in the checkpoint" if who else ""


def _met(pod: PodHistory, bound: float, held: float, other: PodHistory, reports: _ReportsBefore) -> str:
    """How `other` explains the placement; empty if it does not."""
    if other.bound is None or other.held is None:
        return ""
    was_there = bool(other.zones & pod.zones)
    if was_there and other.freed is not None and bound - JUST <= other.freed <= held + LOOK:
        if reports.takes_for_there(other.uid):
            return "had just left"
        if other.left <= bound and other.freed >= bound - LAST:
            # A kubelet removes devices of ended pods when the next pod arrives, and no report shows them as free
            # before.
            return "was still in the checkpoint"
    if other.bound >= bound - TOGETHER and other.held <= held + SAME_LOOK and other.zones & pod.wanted:
        return "came first"
    if not other.bound <= bound < other.left or other.uid in reports.uids:
        return ""
    # The other pod is judged for its own placement.
    if not was_there and other.wanted & pod.zones:
        return "was expected there"
    unexpected = pod.wanted & other.zones and not pod.wanted & other.wanted
    return "was in zones where it was not expected" if unexpected and other.held <= held + SAME_LOOK else ""


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
