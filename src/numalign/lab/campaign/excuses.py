"""What no scheduler can know: when a pod that went wrong is not counted against ours. Pure, and no more than two rules.

Devices: when the pod was bound, the node's last words offered the devices that it lacks, and the kubelet or the device
plugin was away about then. Order: a place that the pod was not foretold became free, or the foretold one was taken,
by somebody of whom it was not known yet when it was decided. A forecast is written once, with the decision."""

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
LAST: Final = 1.0
"""Seconds before a binding is seen: what is told later may come too late for its decision."""
TOGETHER: Final = 1.0
"""Seconds in which bindings leave in another order than they were decided in."""
LOOK: Final = 0.5
"""Seconds from a change in a kubelet's books until it was surely seen; `SAME_LOOK`: of what was seen at once."""
SAME_LOOK: Final = 0.05


def is_unforeseeable(pod: PodStory, lines: Sequence[Line]) -> bool:
    """Whether the pod was turned away for devices that nobody could know to be gone."""
    if pod.why not in NO_DEVICES or not pod.devices or pod.bound is None or pod.ended is None:
        return False
    known = pod.bound - LAST
    offers = [line for line in lines if line.what == "offers" and line.node == pod.node and line.at <= known]
    last = {line.why: line.devices for line in offers}
    away = stories.absences(lines, (f"{pod.node}/kubelet", f"{pod.node}/device-plugin"))
    lately = any(begun <= pod.ended and ended >= pod.bound - REGISTERING for begun, ended in away)
    return lately and all(each.get(name, 0) >= count for each in last.values() for name, count in pod.devices.items())


def overtaker(pod: PodStory, others: Iterable[PodStory], lines: Iterable[Line]) -> str:
    """Who explains that a pod is elsewhere; empty: nobody."""
    if pod.bound is None or pod.held is None:
        return ""
    told = _Told.until(pod.bound - LAST, lines, pod.node)
    for other in others:
        if other is pod or other.node != pod.node or other.bound is None or other.held is None:
            continue
        has_left = other.freed is not None and other.freed <= pod.held + LOOK
        if has_left and other.zones & pod.zones and told.takes_for_there(other.uid):
            return f"{other.name} had just left"
        if other.bound >= pod.bound - TOGETHER and other.held <= pod.held + SAME_LOOK:
            return f"{other.name} came first"
    return ""


class _Told(Struct):
    """What was known of a node at some moment: whom its report named, and whether it was behind its kubelet."""

    uids: tuple[str, ...] = ()
    behind: bool = False

    @staticmethod
    def until(moment: float, lines: Iterable[Line], node: str) -> _Told:
        told = _Told()
        for line in lines:
            if line.node != node or line.at > moment:
                continue
            if line.what == "told":
                told.uids = line.uids
            elif line.what in ("behind", "level"):
                told.behind = line.what == "behind"
        return told

    def takes_for_there(self, uid: str) -> bool:
        return self.behind or uid in self.uids
