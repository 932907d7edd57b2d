"""What no scheduler can know: when a pod that went wrong is not counted against ours. Pure, and only three rules.

Devices: when the pod was bound, the node's last words offered the devices that it lacks, and the kubelet or the device
plugin was away about then. Leftovers: a kubelet that starts admits all pods that wait for it before it collects what
pods that are gone have left in its books. Order: a place that the pod was not foretold became free, or the foretold one
was taken, by somebody of whom that was not known yet when it was decided: a forecast is written once, with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from numalign.lab.campaign import stories
from numalign.lab.campaign.history import Line
from numalign.lab.campaign.stories import PodStory

NO_DEVICES: Final = ("UnexpectedAdmissionError", "TopologyAffinityError")
"""Reasons that a kubelet gives when its device manager cannot serve, or has nothing in any zone."""
REGISTERING: Final = 10.0
"""Seconds that a kubelet and its plugins take to find each other."""
STARTING: Final = 5.0
"""Seconds that a kubelet takes from its start to its first look at pods."""
LAST: Final = 2.0
"""Seconds before a binding is seen: what is told later may come too late for its decision."""
TOGETHER: Final = 1.0
"""Seconds in which bindings leave in another order than they were decided in."""
JUST: Final = 5.0
"""Seconds before a binding is seen in which what somebody held became free only just."""
LOOK: Final = 0.5
"""Seconds from a change in a kubelet's books until it was surely seen; `SAME_LOOK`: of what was seen at once."""
SAME_LOOK: Final = 0.05


def unforeseeable(pod: PodStory, others: Iterable[PodStory], lines: Sequence[Line]) -> str:
    """What a pod was turned away for that nobody could know; empty: nothing."""
    if _lacked_devices(pod, lines):
        return "its devices were gone"
    who = _leftovers(pod, others, lines)
    return f"what {who} had left behind was in its way" if who else ""


def _lacked_devices(pod: PodStory, lines: Sequence[Line]) -> bool:
    if pod.why not in NO_DEVICES or not pod.devices or pod.bound is None or pod.ended is None:
        return False
    known = pod.bound - LAST
    offers = [line for line in lines if line.what == "offers" and line.node == pod.node and line.at <= known]
    last = {line.why: line.devices for line in offers}
    away = stories.absences(lines, (f"{pod.node}/kubelet", f"{pod.node}/device-plugin"))
    lately = any(begun <= pod.ended and ended >= pod.bound - REGISTERING for begun, ended in away)
    return lately and all(each.get(name, 0) >= count for each in last.values() for name, count in pod.devices.items())


def _leftovers(pod: PodStory, others: Iterable[PodStory], lines: Sequence[Line]) -> str:
    """Who had left, and was still in the books of a kubelet that started with the pod before it."""
    met = pod.held or pod.ended
    if pod.bound is None or met is None:
        return ""
    away = stories.absences(lines, (f"{pod.node}/kubelet",))
    starts = [back for _, back in away if pod.bound <= back + STARTING and met >= back]
    for other in others:
        had_left = other.node == pod.node and other.left <= met and bool(other.zones & pod.wanted)
        if had_left and any(other.freed is None or other.freed >= back for back in starts):
            return other.name
    return ""


def overtaker(pod: PodStory, others: Sequence[PodStory], lines: Sequence[Line]) -> str:
    """Who explains that a pod is elsewhere; empty: nobody."""
    if pod.bound is None or pod.held is None:
        return ""
    told = _Told.before(pod.bound, lines, pod.node)
    for other in others:
        if other is not pod and other.node == pod.node and (why := _met(pod, pod.bound, pod.held, other, told)):
            return f"{other.name} {why}"
    who = _leftovers(pod, others, lines)
    return f"{who} was still in the books" if who else ""


def _met(pod: PodStory, bound: float, held: float, other: PodStory, told: _Told) -> str:
    """What the other one has to do with it; empty: nothing."""
    if other.bound is None or other.held is None:
        return ""
    was_there = bool(other.zones & pod.zones)
    if was_there and other.freed is not None and bound - JUST <= other.freed <= held + LOOK:
        if told.takes_for_there(other.uid):
            return "had just left"
        if other.left <= bound and other.freed >= bound - LAST:
            # A kubelet tidies up its books of devices when the next pod comes: no report takes the pod for gone before.
            return "was still in the books"
    if other.bound >= bound - TOGETHER and other.held <= held + SAME_LOOK and other.zones & pod.wanted:
        return "came first"
    if not other.bound <= bound < other.left or other.uid in told.uids:
        return ""
    # It is judged itself for being elsewhere.
    if not was_there and other.wanted & pod.zones:
        return "was expected there"
    unexpected = pod.wanted & other.zones and not pod.wanted & other.wanted
    return "sat where nobody expected it" if unexpected and other.held <= held + SAME_LOOK else ""


class _Told(Struct):
    """What a node's reports said about then: whom they named, and whether one was behind its kubelet."""

    uids: frozenset[str] = frozenset()
    behind: bool = False

    @staticmethod
    def before(bound: float, lines: Iterable[Line], node: str) -> _Told:
        """The last word early enough to be known for sure, and all that came after it."""
        told = _Told()
        for line in lines:
            late = line.at > bound - LAST
            if line.node != node or line.at > bound:
                continue
            if line.what == "told":
                told.uids = told.uids.union(line.uids) if late else frozenset(line.uids)
            elif line.what in ("behind", "level"):
                told.behind = line.what == "behind" or (late and told.behind)
        return told

    def takes_for_there(self, uid: str) -> bool:
        return self.behind or uid in self.uids
