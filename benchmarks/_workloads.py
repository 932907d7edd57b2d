"""The workloads of the stock scheduler's own benchmark, scheduler_perf, and ours beside them: how many of what.

`scheduling` lists them with the floors that scheduler_perf has to keep (kube-scheduler spec 8.2); `_inprocess` carries
one out. Pods and nodes are in `_templates`. For another number of nodes, the pods that are there before grow along."""

from __future__ import annotations

from typing import Final, TypedDict

from msgspec import Struct, structs

NODES: Final = 5000
ZONE: Final = ("zone1",)
SIZES: Final = 8
MOONS: Final = ("moon-1", "moon-2", "moon-3")


class Batch(Struct, frozen=True):
    """So many pods of a template; `spread` over so many namespaces, whose names then have a number. `sizes`: of so many
    templates in turn, whose names have one, too."""

    template: str
    count: int
    namespace: str = "default"
    spread: int = 0
    sizes: int = 0


class Churn(Struct, frozen=True):
    """What happens beside: every so many seconds, `templates` come; `again`: those of last time go first."""

    templates: tuple[str, ...]
    seconds: float
    again: bool = False


class Workload(Struct, frozen=True, kw_only=True):
    words: str
    floor: float
    """Pods per second that scheduler_perf has to reach."""
    goal: float
    """How many times that we want."""
    measured: Batch
    before: tuple[Batch, ...] = ()
    nodes: int = NODES
    zones: tuple[str, ...] = ()
    """Values of the nodes' zone label, in turn; nothing: no label."""
    tainted: int = 0
    """How many of the nodes have a taint."""
    numa: int = 0
    """NUMA zones of a node, which reports them; 0: no reports."""
    unlike: bool = False
    """Whether of every zone another part is in use already."""
    service: bool = False
    churn: Churn | None = None

    def sized(self, nodes: int, measured: int) -> Workload:
        """The same with so many nodes and as many pods for each; of those measured, no more than that."""
        before = tuple(structs.replace(each, count=each.count * nodes // self.nodes) for each in self.before)
        count = min(measured, self.measured.count * nodes // self.nodes)
        return structs.replace(
            self,
            nodes=nodes,
            before=before,
            tainted=self.tainted * nodes // self.nodes,
            measured=structs.replace(self.measured, count=count),
        )


class Pods(TypedDict):
    before: tuple[Batch, ...]
    measured: Batch


def _colours(template: str, before: int, measured: int) -> Pods:
    """Pods of one template in two namespaces that know of each other."""
    return {"before": (Batch(template, before, "sched-0"),), "measured": Batch(template, measured, "sched-1")}


def _teams(template: str, each: int, measured: int) -> Pods:
    """Pods in a hundred namespaces of one team, and in one more."""
    return {
        "before": (Batch(template, 100 * each, "init-ns", spread=100),),
        "measured": Batch(template, measured, "measure-ns-0"),
    }


def _zoned(template: str) -> Pods:
    return {"before": (Batch(template, 1000),), "measured": Batch(template, 10_000)}


MIXED: Final = tuple(
    Batch(template, 2000, "sched-0")
    for template in ("default", "affinity", "anti-affinity", "preferred-affinity", "preferred-anti-affinity")
)
FEW_HIGH: Final = Churn(("large-cpu",), 0.2)

WORKLOADS: Final[dict[str, Workload]] = {
    "basic": Workload(
        words="basic, 10,000 pods",
        floor=680,
        goal=10,
        before=(Batch("default", 1000),),
        measured=Batch("default", 10_000),
    ),
    "basic-50000": Workload(
        words="basic, 50,000 pods",
        floor=790,
        goal=10,
        before=(Batch("default", 5000),),
        measured=Batch("default", 50_000),
    ),
    "churn": Workload(
        words="mixed churn",
        floor=710,
        goal=2,
        measured=Batch("default", 10_000),
        churn=Churn(("large-cpu", "service", "node"), 1.0, again=True),
    ),
    "daemonset": Workload(
        words="pods of a DaemonSet", floor=1100, goal=2, nodes=15_000, measured=Batch("daemonset", 30_000)
    ),
    "node-affinity": Workload(
        words="node affinity",
        floor=540,
        goal=2,
        zones=ZONE,
        before=(Batch("node-affinity", 5000),),
        measured=Batch("node-affinity", 10_000),
    ),
    "anti-affinity": Workload(words="anti-affinity", floor=180, goal=2, **_colours("anti-affinity", 1000, 2000)),
    "matching-anti-affinity": Workload(
        words="others' anti-affinity",
        floor=540,
        goal=2,
        before=(Batch("anti-affinity", 1000, "sched-0"),),
        measured=Batch("green", 5000, "sched-1"),
    ),
    "affinity": Workload(words="affinity", floor=70, goal=2, zones=ZONE, **_colours("affinity", 5000, 5000)),
    "preferred-affinity": Workload(
        words="preferred affinity", floor=160, goal=2, **_colours("preferred-affinity", 5000, 5000)
    ),
    "preferred-anti-affinity": Workload(
        words="preferred anti-affinity", floor=190, goal=2, **_colours("preferred-anti-affinity", 5000, 5000)
    ),
    "mixed": Workload(
        words="mixed", floor=540, goal=2, zones=ZONE, before=MIXED, measured=Batch("default", 5000, "measured")
    ),
    "team-anti-affinity": Workload(
        words="anti-affinity to namespaces by label",
        floor=140,
        goal=2,
        nodes=6000,
        **_teams("team-anti-affinity", 40, 2000),
    ),
    "team-affinity": Workload(
        words="affinity to namespaces by label", floor=180, goal=2, zones=ZONE, **_teams("team-affinity", 50, 2000)
    ),
    "team-preferred-affinity": Workload(
        words="preferred affinity to namespaces by label",
        floor=190,
        goal=2,
        **_teams("team-preferred-affinity", 50, 5000),
    ),
    "spreading": Workload(
        words="spreading",
        floor=460,
        goal=2,
        zones=MOONS,
        before=(Batch("default", 5000),),
        measured=Batch("spreading", 5000),
    ),
    "preferred-spreading": Workload(
        words="preferred spreading",
        floor=340,
        goal=2,
        zones=MOONS,
        before=(Batch("default", 5000),),
        measured=Batch("preferred-spreading", 5000),
    ),
    "default-spreading": Workload(
        words="default spreading",
        floor=160,
        goal=2,
        zones=MOONS,
        before=(Batch("default", 5000),),
        measured=Batch("of-service", 50_000),
        service=True,
    ),
    "inclusion": Workload(
        words="spreading, taints honoured",
        floor=270,
        goal=2,
        tainted=1000,
        measured=Batch("inclusion", 4000),
    ),
    "unschedulable": Workload(
        words="beside unschedulable ones",
        floor=590,
        goal=2,
        before=(Batch("default", 100),),
        measured=Batch("default", 10_000),
        churn=FEW_HIGH,
    ),
    "unschedulable-20000": Workload(
        words="beside unschedulable ones, among 20,000",
        floor=600,
        goal=2,
        before=(Batch("default", 20_000),),
        measured=Batch("default", 10_000),
        churn=FEW_HIGH,
    ),
    "preemption": Workload(
        words="beside preemption",
        floor=570,
        goal=1,
        before=(Batch("low-priority", 20_000),),
        measured=Batch("default", 5000),
        churn=Churn(("high-priority",), 0.2),
    ),
    "numa-2": Workload(words="2 NUMA zones", floor=680, goal=10, numa=2, **_zoned("pinned")),
    "numa-8": Workload(words="8 NUMA zones", floor=680, goal=10, numa=8, **_zoned("pinned")),
    "numa-2-gpu": Workload(words="2 NUMA zones, GPUs", floor=680, goal=10, numa=2, **_zoned("gpu")),
    "numa-2-unlike": Workload(
        words="2 NUMA zones, unlike nodes, 8 sizes in turn",
        floor=680,
        goal=10,
        numa=2,
        unlike=True,
        before=(Batch("size", 1000, sizes=SIZES),),
        measured=Batch("size", 10_000, sizes=SIZES),
    ),
    "numa-8-gpu": Workload(words="8 NUMA zones, GPUs", floor=680, goal=10, numa=8, **_zoned("gpu")),
}
