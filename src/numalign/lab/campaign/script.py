"""Generates a campaign from a seed: its nodes, its pods, and the schedule of pods, faults and rests. Pure.

`run` performs the steps in order. Nodes are few and each of another kind, so that every manager of the kubelet is used.
Pods arrive in bursts that keep the nodes about full; every pod fits on at least one empty node according to the model,
so that none waits for ever. The lab's runtime runs nothing; an annotation sets how long containers take. No
program is stopped twice at the same time, and all run again before the next rest, in which the campaign checks every
pod. Operations are what people do to a cluster, beside the faults. The node of `joining` is not there at first; no pod
needs it."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet.machine import machinefile
from numalign.kubelet.machine.machine import Machine
from numalign.lab import spec
from numalign.lab.spec import NodeSpec
from numalign.scheduler import profiles

GPU: Final = "example.com/gpu"
NIC: Final = "example.com/nic"
PAGES: Final = "hugepages-2Mi"

EVERYTHING: Final = machinefile.read(
    {
        "name": "everything",
        "extends": "2x16",
        "zones": [{"id": 0, "hugepages": {"2Mi": "2Gi"}}, {"id": 1, "hugepages": {"2Mi": "2Gi"}}],
        "devices": {GPU: {0: 2, 1: 2, "preferredAllocation": True}, NIC: {0: 3, 1: 3, "0,1": ["wide"]}},
    },
    "everything",
)
EIGHT_ZONES: Final = machinefile.read(
    {
        "name": "eight-zones",
        "zones": [{"cpus": f"{4 * zone}-{4 * zone + 3}", "memory": "16Gi"} for zone in range(8)],
        "devices": {NIC: dict.fromkeys(range(8), 1)},
    },
    "eight-zones",
)
THREADS: Final = machinefile.read({"name": "threads", "extends": "2x32-smt"}, "threads")


def nodes() -> tuple[NodeSpec, ...]:
    return (
        _node("strict", EVERYTHING, "single-numa-node", "container"),
        _node("podwise", EVERYTHING, "restricted", "pod"),
        _node("eight", EIGHT_ZONES, "single-numa-node", "pod"),
        _node("cores", THREADS, "restricted", "container", cpuManagerPolicyOptions={"full-pcpus-only": "true"}),
        _node("loose", EVERYTHING, "best-effort", "container", memoryManagerPolicy="None", reservedMemory=[]),
    )


def _node(name: str, machine: Machine, policy: str, scope: str, **more: Any) -> NodeSpec:
    return spec.node(name, machine, more={"topologyManagerPolicy": policy, "topologyManagerScope": scope, **more})


JOINING: Final = "joiner"


def joining() -> NodeSpec:
    """The node that joins and leaves."""
    return _node(JOINING, EVERYTHING, "single-numa-node", "container")


SECONDS: Final = "numalign.io/lab-seconds"
"""Annotation: how long the runtime lets each container take. Without it, until the pod is deleted."""
PRIORITIES: Final = {"campaign-high": (1000, "PreemptLowerPriority"), "campaign-patient": (500, "Never")}
"""PriorityClasses by name: value and preemption policy. Other pods have priority 0."""
URGENT: Final = 0.15
"""The share of pods with each of these classes."""
PINNED: Final = 0.25
"""The share of pods that are bound to one node by a selector."""
PINNED_URGENT: Final = 0.75
"""The same for pods with a priority: another node may have room, and then none is preempted."""
TRIES: Final = 100

Body = dict[str, Any]
Amounts = dict[str, str]


def pod(name: str, nodes: Sequence[NodeSpec], chances: random.Random) -> Body:
    """A pod that fits on one of the empty nodes."""
    for _ in range(TRIES):
        home = chances.choice(nodes)
        body = _drawn(name, home, chances)
        if fits(home, body):
            return body
    raise AssertionError("no pod fits on these nodes")


def fits(node: NodeSpec, body: Body) -> bool:
    kubelet = node.modelled
    _, outcome = admission.admit(kubelet, kubelet.initial(), decode.decode(Pod, body))
    return outcome.admitted


def _drawn(name: str, home: NodeSpec, chances: random.Random) -> Body:
    spec: Body = {
        "schedulerName": profiles.NAME,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": chances.choice((0, 1, 30)),
        "containers": [_container("main", chances.choice(SORTS)(home.machine, chances))],
    }
    lasts: dict[str, float] = {}
    if chances.random() < 0.25:
        spec["containers"].append(_container("beside", chances.choice(SORTS)(home.machine, chances)))
    if chances.random() < 0.25:
        spec["initContainers"] = list(_before(home.machine, chances))
        lasts |= {each["name"]: chances.uniform(0.5, 4.0) for each in spec["initContainers"]}
    if chances.random() < 0.2:
        spec["initContainers"] = [*spec.get("initContainers", ()), _sidecar(home.machine, chances)]
    if chances.random() < 0.3:
        spec["restartPolicy"] = "Never"
        lasts |= {each["name"]: chances.uniform(3.0, 40.0) for each in spec["containers"]}
    pinned = PINNED
    if (chance := chances.random()) < URGENT * len(PRIORITIES):
        pinned, spec["priorityClassName"] = PINNED_URGENT, tuple(PRIORITIES)[int(chance / URGENT)]
    if chances.random() < pinned:
        spec["nodeSelector"] = {"kubernetes.io/hostname": home.name}
    annotations = {SECONDS: ",".join(f"{each}={seconds:.1f}" for each, seconds in lasts.items())} if lasts else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def _before(machine: Machine, chances: random.Random) -> Sequence[Body]:
    """Init containers that end; later containers reuse their resources."""
    return [_container(f"before-{n}", chances.choice(SORTS)(machine, chances)) for n in range(chances.randint(1, 2))]


def _sidecar(machine: Machine, chances: random.Random) -> Body:
    return {**_container("sidecar", _cpus(machine, chances)), "restartPolicy": "Always"}


def _container(name: str, amounts: Amounts) -> Body:
    """A container whose requests equal its limits, unless it has fractional CPUs or no resources."""
    bounded = {key: value for key, value in amounts.items() if not value.endswith("m")}
    resources = {"requests": amounts, "limits": bounded} if amounts else {}
    return {"name": name, "image": "none", "resources": resources}


def _cpus(machine: Machine, chances: random.Random) -> Amounts:
    """Odd numbers as well: nodes that allocate whole cores reject them."""
    most = min(sum(len(core.cpus) for core in zone.cores) for zone in machine.zones)
    return {"cpu": str(chances.randint(1, max(1, most * 2 // 3))), "memory": f"{chances.randint(1, 6)}Gi"}


def _memory(machine: Machine, chances: random.Random) -> Amounts:
    most = min(zone.memory for zone in machine.zones) >> 30
    return {"cpu": str(chances.randint(1, 2)), "memory": f"{chances.randint(most // 4, most * 3 // 4)}Gi"}


def _gpus(machine: Machine, chances: random.Random) -> Amounts:
    wanted = {GPU: str(chances.randint(1, 2))} if GPU in machine.devices else {}
    nic = {NIC: "1"} if NIC in machine.devices and chances.random() < 0.5 else {}
    return {**_cpus(machine, chances), **wanted, **nic}


def _nics(machine: Machine, chances: random.Random) -> Amounts:
    return {**_cpus(machine, chances), **({NIC: "1"} if NIC in machine.devices else {})}


def _pages(machine: Machine, chances: random.Random) -> Amounts:
    """Huge pages."""
    there = any(page.resource == PAGES and page.pages for zone in machine.zones for page in zone.hugepages)
    return {**_cpus(machine, chances), **({PAGES: f"{128 * chances.randint(1, 8)}Mi"} if there else {})}


def _shared(machine: Machine, chances: random.Random) -> Amounts:
    """Burstable: no exclusive CPUs."""
    return {"cpu": f"{100 * chances.randint(1, 9)}m", "memory": f"{chances.randint(1, 3)}Gi"}


def _nothing(machine: Machine, chances: random.Random) -> Amounts:
    return {}


Sort = Callable[[Machine, random.Random], Amounts]
SORTS: Final[tuple[Sort, ...]] = (_cpus, _cpus, _cpus, _memory, _gpus, _gpus, _nics, _pages, _shared, _nothing)


How = Literal["kill", "end", "hang", "roll-out"]

BURST_GAP: Final = 4.0
"""Seconds between bursts of pods, on average; `FAULT_GAP` likewise."""
BURSTS: Final = (1, 1, 2, 3, 6)
LIFETIME: Final = 45.0
FAULT_GAP: Final = 8.0
ROUND: Final = 120.0
"""Seconds between rests."""
SCHEDULERS: Final = ("scheduler", "scheduler-2")
LONGEST: Final = {"kubelet": 15.0, "agent": 20.0, "scheduler": 10.0, "device-plugin": 8.0, "kube-apiserver": 10.0}
"""Seconds that a program of this name is stopped at most."""
FAR_LONGER: Final = ("kube-apiserver", 60.0)
OPERATION_GAP: Final = 8.0
STAYING: Final = 30.0
"""Seconds that the node stays at least after it joined."""
LONGEST_CORDON: Final = 15.0
LATEST_REPORT: Final = 40.0
"""Seconds. The scheduler waits a minute for the first report of a node that is Ready."""
STARTING: Final = 15.0
"""Seconds that a kubelet takes to start or to be drained."""
MOST_AGENTS: Final = 5
WEIGHTS: Final = {"kubelet": 6, "scheduler": 5, "agent": 4, "device-plugin": 4, "kube-apiserver": 1}


class Create(Struct, frozen=True, tag=True):
    at: float
    name: str
    body: Body


class Delete(Struct, frozen=True, tag=True):
    at: float
    name: str
    forced: bool
    """Delete the object at once; the kubelet learns of it later."""


class Fault(Struct, frozen=True, tag=True):
    at: float
    part: str
    """The title of a program of the lab."""
    how: How
    away: float
    """Seconds until it runs again."""

    @property
    def words(self) -> str:
        deed = {"kill": "killed", "end": "ended", "hang": "hung", "roll-out": "rolled out"}[self.how]
        return f"{self.part} {deed}, away for {self.away:.1f} s"


class Rest(Struct, frozen=True, tag=True):
    at: float


class DeleteReports(Struct, frozen=True, tag=True):
    """Delete the NodeResourceTopology of one node, or of all. The agents write them again within their period."""

    at: float
    node: str
    """Empty: all nodes."""

    @property
    def words(self) -> str:
        return f"report of {self.node} deleted" if self.node else "all reports deleted"

    @property
    def lasts(self) -> float:
        return 1.0


class RollOut(Struct, frozen=True, tag=True):
    """Stop and start the agents of all nodes, one after the other. That of the joining node is left out."""

    at: float
    away: float
    """Seconds for which each agent is stopped."""

    @property
    def words(self) -> str:
        return f"agents rolled out, each away for {self.away:.1f} s"

    @property
    def lasts(self) -> float:
        return MOST_AGENTS * (self.away + 1)


class Drain(Struct, frozen=True, tag=True):
    """Cordon a node, evict its pods, and uncordon it."""

    at: float
    node: str
    away: float
    """Seconds for which it is cordoned."""

    @property
    def words(self) -> str:
        return f"{self.node} drained, cordoned for {self.away:.1f} s"

    @property
    def lasts(self) -> float:
        return self.away


class Join(Struct, frozen=True, tag=True):
    """Start a kubelet that was not there; its agent starts later."""

    at: float
    node: str
    late: float
    """Seconds from the Ready node to the start of its agent."""

    @property
    def words(self) -> str:
        return f"{self.node} joins, its agent starts {self.late:.1f} s after it is Ready"

    @property
    def lasts(self) -> float:
        return self.late + STARTING


class Leave(Struct, frozen=True, tag=True):
    """Drain the node, stop it, and remove its Node and report."""

    at: float
    node: str

    @property
    def words(self) -> str:
        return f"{self.node} leaves"

    @property
    def lasts(self) -> float:
        return STARTING


Operation = DeleteReports | RollOut | Drain | Join | Leave
Step = Create | Delete | Fault | Operation | Rest


def drawn(seed: int, seconds: float, nodes: Sequence[NodeSpec]) -> tuple[Step, ...]:
    """The steps of a campaign of this length, in order. It ends with a rest."""
    rests = [*(ROUND * n for n in range(1, int(seconds // ROUND) + 1) if ROUND * n < seconds - ROUND / 4), seconds]
    steps: list[Step] = [*map(Rest, rests)]
    steps += _pods(random.Random(f"{seed}/pods"), seconds, nodes)
    steps += _faults(random.Random(f"{seed}/faults"), rests, nodes)
    steps += _operations(random.Random(f"{seed}/operations"), rests, nodes)
    steps += _moves(random.Random(f"{seed}/moves"), rests)
    return tuple(sorted(steps, key=lambda step: step.at))


def _pods(chances: random.Random, seconds: float, nodes: Sequence[NodeSpec]) -> Iterator[Step]:
    at, number = 0.0, 0
    while at < seconds:
        for _ in range(chances.choice(BURSTS)):
            number += 1
            name = f"p-{number}"
            yield Create(at, name, pod(name, nodes, chances))
            gone = at + chances.expovariate(1 / LIFETIME)
            if gone < seconds:
                yield Delete(gone, name, chances.random() < 0.2)
        at += chances.expovariate(1 / BURST_GAP)


def _faults(chances: random.Random, rests: Sequence[float], nodes: Sequence[NodeSpec]) -> Iterator[Fault]:
    back: dict[str, float] = {}
    at = chances.uniform(3.0, FAULT_GAP)
    while at < rests[-1]:
        fault = _fault(chances, at, nodes)
        rest = next(rest for rest in rests if rest > at)
        if back.get(fault.part, 0.0) < at and at + fault.away < rest:
            back[fault.part] = at + fault.away
            yield fault
        at += chances.expovariate(1 / FAULT_GAP)


def _fault(chances: random.Random, at: float, nodes: Sequence[NodeSpec]) -> Fault:
    (name,) = chances.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))
    away = chances.uniform(0.0, LONGEST[name])
    if name == FAR_LONGER[0] and chances.random() < 0.25:
        away = chances.uniform(LONGEST[name], FAR_LONGER[1])
    return Fault(at, _part(name, chances, nodes), chances.choice(("kill", "kill", "end", "hang")), away)


def _part(name: str, chances: random.Random, nodes: Sequence[NodeSpec]) -> str:
    if name == "scheduler":
        return chances.choice(SCHEDULERS)
    if name == "kube-apiserver":
        return name
    able = [node.name for node in nodes if name != "device-plugin" or node.machine.devices]
    return f"{chances.choice(able)}/{name}"


Draw = Callable[[float, str, random.Random], Operation]
DECK: Final[tuple[Draw, ...]] = (
    lambda at, node, chances: Drain(at, node, chances.uniform(1.0, LONGEST_CORDON)),
    lambda at, node, chances: Drain(at, node, chances.uniform(1.0, LONGEST_CORDON)),
    lambda at, node, chances: RollOut(at, chances.uniform(0.5, 2.0)),
    lambda at, node, chances: DeleteReports(at, node),
    lambda at, node, chances: DeleteReports(at, node),
    lambda at, node, chances: DeleteReports(at, ""),
)


def _operations(chances: random.Random, rests: Sequence[float], nodes: Sequence[NodeSpec]) -> Iterator[Operation]:
    """Each of the deck once, in random order, and again: so that short campaigns have all of them."""
    deck: list[Draw] = []
    at = chances.uniform(2.0, OPERATION_GAP)
    while at < rests[-1]:
        deck = deck or chances.sample(DECK, len(DECK))
        operation = deck[-1](at, chances.choice(nodes).name, chances)
        if _is_over(operation, rests):
            deck.pop()
            yield operation
            at += operation.lasts
        at += chances.expovariate(1 / OPERATION_GAP)


def _moves(chances: random.Random, rests: Sequence[float]) -> Iterator[Operation]:
    """A node joins, leaves, and joins again."""
    joined = False
    at = chances.uniform(2.0, OPERATION_GAP)
    while at < rests[-1]:
        move: Operation = Leave(at, JOINING) if joined else Join(at, JOINING, chances.uniform(0.0, LATEST_REPORT))
        if _is_over(move, rests):
            joined = not joined
            yield move
            at += move.lasts + (STAYING if joined else 0.0)
        at += chances.expovariate(1 / OPERATION_GAP)


def _is_over(operation: Operation, rests: Sequence[float]) -> bool:
    """Whether it is over before the next rest."""
    return operation.at + operation.lasts < next(rest for rest in rests if rest > operation.at)
