"""Made-up clusters for the dashboard's tests: empty, small, large, hostile, and one that tests change as they like."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from numalign.dashboard.moment import (
    Decision,
    GuardedNode,
    Health,
    Moment,
    Node,
    Report,
    ReportState,
    Share,
    Total,
    WaitingPod,
    Zone,
)
from numalign.dashboard.source import Period, SourceFailed
from tests.browser.madeupdetails import MadeUpDetails

AT = 1_795_000_000.0
"""When the moments are."""
GIB = 1 << 30
GPU = "nvidia.com/gpu"
RIGHT_TO_LEFT = "\u202etxet"
MARKUP = "<script>alert(1)</script>\"'&amp;<img src=x onerror=alert(2)>"
LONG = "a" * 63 + ".b" * 95
"""253 characters, the longest name of an object."""


def zone(id: int, cpus: int = 48, used: int = 0, gpus: int = 4, gpus_used: int = 0) -> Zone:
    free = (cpus - 2 - used) * 1000
    shares = {
        "cpu": Share(cpus * 1000, (cpus - 2) * 1000, free),
        "memory": Share(256 * GIB, 250 * GIB, max(0, 250 - 5 * used) * GIB),
    }
    if gpus:
        shares[GPU] = Share(gpus, gpus, gpus - gpus_used)
    stranded = frozenset({GPU}) if gpus > gpus_used and free <= 0 else frozenset[str]()
    return Zone(id=id, shares=shares, stranded=stranded)


def node(name: str, zones: tuple[Zone, ...], **more: object) -> Node:
    totals: dict[str, Total] = {}
    for each in zones:
        for resource, share in each.shares.items():
            known = totals.get(resource, Total(0, 0))
            totals[resource] = Total(known.allocatable + share.allocatable, known.free + share.free)
    made = Node(
        name=name,
        status="Ready",
        policy="single-numa-node",
        scope="container",
        labels={"pool": "gpu"},
        zones=zones,
        totals=totals,
        pods=3,
        report=Report(written=AT - 20, publisher="numalign"),
    )
    return structs.replace(made, **more)


def small() -> Moment:
    """Four nodes, one of each kind; waiting pods and decisions."""
    stale = Report(state=ReportState.STALE, written=AT - 7200, publisher="nfd-master", notes=("no news for 2h",))
    diverged = Report(
        state=ReportState.DIVERGED, written=AT - 9, publisher="numalign", notes=("default/x is elsewhere",)
    )
    nodes = (
        node("gpu-0", (zone(0, used=40, gpus_used=4), zone(1, used=8, gpus_used=1))),
        node("gpu-1", (zone(0, used=46, gpus_used=1), zone(1, used=0)), report=stale),
        node("gpu-2", (zone(0), zone(1)), report=diverged, status="Ready,SchedulingDisabled"),
        node("plain-0", (), policy="", scope="", report=Report(state=ReportState.MISSING), status="NotReady"),
    )
    return moment(
        nodes,
        waiting=(
            WaitingPod(
                name="ml/train-7",
                scheduler="numalign",
                queue="unschedulable",
                since=AT - 300,
                attempts=4,
                requests={"cpu": 32000, "memory": 64 * GIB, GPU: 4},
                message="0/4 nodes are available: 3 no NUMA zone has 4 nvidia.com/gpu, 1 node is not ready.",
            ),
        ),
        decisions=(
            Decision(
                key="1", pod="ml/train-6", at=AT - 12, attempt=1, node="gpu-0", zones="main=0", nodes=4, fitting=2
            ),
            Decision(key="2", pod="ml/train-7", at=AT - 30, attempt=4, message="no node fits", nodes=4),
        ),
        health=Health(
            leads=True,
            queue={"active": 0, "backoff": 1, "unschedulable": 1, "gated": 0},
            bound=127,
            unschedulable=9,
            rejections={"TopologyAffinityError": 2.0, "OutOfcpu": 1.0},
            divergences={"zones": 1.0},
            skipped={"pods": 1.0},
            guarded=(
                GuardedNode(node="gpu-2", like="ml/train-1", seconds=42, rejections=2, reason="TopologyAffinityError"),
            ),
        ),
        problems=("pods: one object could not be read",),
    )


def empty() -> Moment:
    return moment(())


def large(count: int = 5000) -> Moment:
    """Nodes of two zones in all states of use."""
    nodes = []
    for number in range(count):
        first = number * 7 % 47
        zones = (zone(0, used=first, gpus_used=number % 5), zone(1, used=number * 3 % 47, gpus_used=number % 4))
        report = Report(state=ReportState.STALE if number % 97 == 0 else ReportState.GOOD, written=AT - number % 60)
        nodes.append(node(f"node-{number:04d}", zones, report=report))
    return moment(tuple(nodes))


def busy(count: int = 150) -> Moment:
    """A fleet of GPU nodes with all that a glyph can say."""
    nodes = []
    for number in range(count):
        first, second = number * 11 % 47, number * 5 % 47
        zones = (
            zone(0, used=46 if number % 9 == 4 else first, gpus_used=number * 3 % 5),
            zone(1, used=46 if number % 14 == 3 else second, gpus_used=number * 2 % 5),
        )
        state = {17: ReportState.STALE, 41: ReportState.DIVERGED, 58: ReportState.MISSING}.get(number % 61)
        report = Report(state=state or ReportState.GOOD, written=AT - number % 60, publisher="numalign")
        status = "Ready,SchedulingDisabled" if number % 37 == 5 else "Ready"
        nodes.append(node(f"gpu-{number:03d}", zones, report=report, status=status))
    return moment(tuple(nodes))


def wide() -> Moment:
    """A node with 34 zones, as a superchip with 32 devices has."""
    zones = tuple(zone(each, cpus=72 if each < 2 else 2, used=each % 2, gpus=0) for each in range(34))
    return moment((node("superchip", zones),))


def hostile() -> Moment:
    names = (MARKUP, RIGHT_TO_LEFT, LONG)
    return moment(
        tuple(node(name, (zone(0), zone(1)), labels={MARKUP: MARKUP}) for name in names),
        waiting=tuple(WaitingPod(name=f"x/{name}", scheduler=MARKUP, queue="active", message=MARKUP) for name in names),
        decisions=(Decision(key="1", pod=f"x/{MARKUP}", at=AT, attempt=1, node=MARKUP, message=MARKUP),),
        problems=(MARKUP,),
    )


def moment(nodes: tuple[Node, ...], **more: object) -> Moment:
    made = Moment(at=AT, origin="a made-up cluster", version="1", nodes={each.name: each for each in nodes})
    return structs.replace(made, **more)


class MadeUp(MadeUpDetails):
    """A source of moments that tests set."""

    def __init__(self, shown: Moment, past: Mapping[float, Moment] | None = None) -> None:
        self.shown = shown
        self.past = dict(past or {})
        self.is_live = True
        self.fails = ""

    @property
    def period(self) -> Period | None:
        return Period(min(self.past), max(self.past), tuple(self.past)) if self.past else None

    async def moment(self, at: float | None = None) -> Moment:
        if self.fails:
            raise SourceFailed(self.fails)
        if at is None or not self.past:
            return self.shown
        return self.past[max((each for each in self.past if each <= at), default=min(self.past))]
