"""What the pages of one node, of waiting pods and of one decision show, as plain data.

A source implements `Details`; `pages` and `drawing` read nothing else. Amounts are thousandths of a CPU for the
resource cpu, bytes for memory and hugepages, and numbers of devices otherwise. Zones are real ids, and no zone means
devices that belong to none."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from numalign.api.nrt.topologymanager import Policy, Scope
from numalign.dashboard.moment import Decision, Report

Zones = tuple[int, ...]


class Held(Struct, frozen=True, kw_only=True):
    """What a pod holds of one resource."""

    resource: str
    amount: int
    zones: Zones
    certain: bool = True
    """False: it may hold it or not."""


class Decided(Struct, frozen=True, kw_only=True):
    """What the scheduler decided for a container in direct mode, beside what the agent did with it."""

    cpus: str = ""
    """Of its own, in the kernel's list format; empty: it runs in shared pools."""
    mems: str = ""
    """Zones to which its memory is limited; empty: it is not."""
    devices: tuple[str, ...] = ()
    is_applied: bool | None = None
    """None: the agent has not acknowledged it."""
    in_effect: str = ""
    """The CPUs that the kernel lets it use."""
    failure: str = ""


class Container(Struct, frozen=True, kw_only=True):
    """A container of a pod on the node."""

    name: str
    zones: tuple[Zones, ...] = ()
    """The zones that it is aligned to, or all sets that are possible; none: it is not aligned."""
    cpus: tuple[int, ...] = ()
    """Its exclusive CPUs, as far as the report says."""
    devices: tuple[str, ...] = ()
    """Ids of its devices, as far as the report says."""
    decided: Decided | None = None
    """None: the kubelet decides for it."""


class NodePod(Struct, frozen=True, kw_only=True):
    name: str
    """namespace/name"""
    source: str
    """observed, predicted or unknown: how its zones are known."""
    arrived: bool = True
    """Whether the node is known to have admitted it."""
    leaving: bool = False
    containers: tuple[Container, ...] = ()
    holds: tuple[Held, ...] = ()


class Core(Struct, frozen=True):
    """A physical core by its hardware threads."""

    cpus: tuple[int, ...]
    zone: int
    socket: int
    l3: int | None = None


class CpuUse(StrEnum):
    FREE = "free"
    """Free for a container that asks for CPUs of its own; shared by all others until then."""
    SHARED = "shared"
    """Shared: the CPU manager gives no container CPUs of its own."""
    RESERVED = "reserved"
    HELD = "held"
    TAKEN = "taken"
    """Not free, and no pod that the report names has it."""
    UNKNOWN = "unknown"


class Cpu(Struct, frozen=True):
    id: int
    use: CpuUse
    pod: str = ""
    container: str = ""


class Part(Struct, frozen=True, kw_only=True):
    """One resource of one zone, of devices that touch several zones, or of those that touch none."""

    resource: str
    zones: Zones
    size: int
    """With what the kubelet reserves, and unhealthy devices."""
    allocatable: int
    free: int
    """With all known pods charged."""


class Setting(Struct, frozen=True):
    name: str
    value: str
    note: str = ""
    """Where the value comes from, if the report does not say it."""


class NodeDetail(Struct, frozen=True, kw_only=True):
    name: str
    exists: bool = True
    """False: there is a report, and no Node."""
    status: str = ""
    taints: tuple[str, ...] = ()
    policy: str = ""
    """Of the Topology Manager; empty: there is no report."""
    scope: str = ""
    is_direct: bool = False
    """Whether the scheduler decides here; policy and scope are defaults for pods then."""
    zones: Zones = ()
    sockets: Mapping[int, Zones] = {}
    """Zones by socket; empty: the report does not say."""
    cores: tuple[Core, ...] | None = None
    """None: the report does not say."""
    cpus: Mapping[int, Cpu] = {}
    """By id, all CPUs of the cores."""
    parts: tuple[Part, ...] = ()
    totals: Mapping[str, tuple[int, int]] = {}
    """Allocatable and free by resource, of the node as a whole."""
    groups: tuple[Zones, ...] = ()
    """Zones that the memory manager has bound together."""
    distances: Mapping[int, Mapping[int, int]] = {}
    pods: tuple[NodePod, ...] = ()
    pod_count: int = 0
    settings: tuple[Setting, ...] = ()
    report: Report | None = None
    """None: there is none."""
    heartbeat: float | None = None
    """When the agent last said that it lives."""
    away: bool = False
    """Whether the kubelet does not answer the agent."""
    assumed: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()


class Answer(StrEnum):
    """What a node says to a pod, the best first."""

    FITS = "fits"
    MAYBE = "may fit"
    """It was not tried, or it is not certain."""
    SHORT = "too full"
    RULE = "a rule"
    """A taint, a cordon, a selector or another rule keeps the pod away."""
    NEVER = "too small"


class ZoneShort(Struct, frozen=True):
    zone: int
    free: int
    short: int


class Lack(Struct, frozen=True, kw_only=True):
    """One of the resources that are needed together."""

    resource: str
    need: int
    in_zones: int = 0
    """How many zones have to hold it together; 0: the node as a whole."""
    most: int | None = None
    zones: tuple[ZoneShort, ...] = ()

    @property
    def short(self) -> int:
        return max(0, self.need - self.most) if self.most is not None else 0

    @property
    def closest(self) -> ZoneShort | None:
        """The zone that lacks least."""
        return min(self.zones, key=lambda each: (each.short, each.zone), default=None)


class NodeAnswer(Struct, frozen=True, kw_only=True):
    node: str
    answer: Answer
    why: str = ""
    plugin: str = ""
    says: tuple[str, ...] = ()
    """In the stock scheduler's words."""
    policy: str = ""
    scope: str = ""
    container: str = ""
    lacks: tuple[Lack, ...] = ()
    like: tuple[str, ...] = ()
    """Other nodes that answer the same, where equal answers are given once."""

    @property
    def worst(self) -> Lack | None:
        """What is short by the largest part."""
        short = [each for each in self.lacks if each.short]
        return max(short, key=lambda each: each.short / each.need, default=None)


class Ask(Struct, frozen=True):
    """What a container asks for."""

    container: str
    resource: str
    amount: int


class WaitingShape(Struct, frozen=True, kw_only=True):
    """Waiting pods that ask for the same and get the same answers."""

    pods: tuple[str, ...]
    """namespace/name, the one that waits longest first."""
    requests: Mapping[str, int]
    headline: str
    help: str = ""
    fitting: int = 0
    never: bool = False


class NodeGroup(Struct, frozen=True, kw_only=True):
    """Nodes that give the same answer to every shape."""

    nodes: tuple[str, ...]


class WaitingMatrix(Struct, frozen=True, kw_only=True):
    shapes: tuple[WaitingShape, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    """The nodes that are closest to taking a pod first."""
    answers: tuple[tuple[NodeAnswer, ...], ...] = ()
    """By shape and group."""
    left_out: int = 0
    """Shapes that were not asked, because there are too many."""
    unserved: tuple[str, ...] = ()
    """Waiting pods of other schedulers."""
    gated: tuple[str, ...] = ()
    """Pods that no scheduler tries before their scheduling gates are removed."""


class Change(Struct, frozen=True, kw_only=True):
    """What would be different."""

    asks: tuple[Ask, ...] = ()
    """Other amounts than the pod asks for."""
    gone: tuple[str, ...] = ()
    """Pods that would not be there."""
    node: str = ""
    """The node with another policy or scope; empty: all nodes."""
    policy: Policy | None = None
    scope: Scope | None = None

    @property
    def is_none(self) -> bool:
        return not (self.asks or self.gone or self.policy or self.scope)


class Cause(Struct, frozen=True, kw_only=True):
    """Nodes that refuse for one kind of reason."""

    nodes: int
    why: str
    plugin: str
    examples: tuple[str, ...]


class Suggestion(Struct, frozen=True):
    """What would make the pod fit, and the change to try; None: it cannot be tried here."""

    text: str
    change: Change | None = None


class PodAnswer(Struct, frozen=True, kw_only=True):
    """What the nodes say to one pod, as it is or under a change."""

    pod: str
    scheduler: str
    profile: str
    """The profile whose plugins decided."""
    stage: str
    node: str = ""
    """Where it is already; then no node was asked."""
    containers: tuple[Container, ...] = ()
    """Where it is already, on a node in direct mode."""
    message: str = ""
    """Its Event, or the condition that a scheduler left on it."""
    unattended: str = ""
    asks: tuple[Ask, ...] = ()
    headline: str = ""
    never: str = ""
    nodes: int = 0
    fitting: tuple[str, ...] = ()
    untried: int = 0
    causes: tuple[Cause, ...] = ()
    closest: tuple[NodeAnswer, ...] = ()
    """Different answers, the closest nodes first."""
    changed: tuple[NodeAnswer, ...] = ()
    """What the nodes say that the change is about, if it is about some."""
    suggestions: tuple[Suggestion, ...] = ()
    holders: Mapping[str, tuple[str, ...]] = {}
    """Pods that hold something, by one of the closest nodes."""
    notes: tuple[str, ...] = ()
    problem: str = ""
    """Why the change cannot be asked about."""


class StoryStep(Struct, frozen=True):
    """One entry of a pod's history."""

    at: float
    what: str
    about: tuple[tuple[str, str], ...] = ()


class DecisionStory(Struct, frozen=True):
    """What happened to a pod, the earliest first."""

    steps: tuple[StoryStep, ...] = ()
    left_out: int = 0
    """Steps in the middle that were dropped."""


class Score(Struct, frozen=True):
    """A node that was scored: the total, and what each plugin added."""

    node: str
    total: int
    plugins: Mapping[str, int]


class Repetition(Struct, frozen=True, kw_only=True):
    """The decision once more, by the same code on the same facts, with what every node said."""

    agrees: bool | None
    """None: there is nothing to compare with."""
    node: str = ""
    zones: str = ""
    message: str = ""
    scores: tuple[Score, ...] = ()
    """The best first."""
    causes: tuple[Cause, ...] = ()
    refused: tuple[NodeAnswer, ...] = ()
    problems: tuple[str, ...] = ()


class DecisionDetail(Struct, frozen=True, kw_only=True):
    decision: Decision
    scores: tuple[Score, ...] = ()
    """The chosen node and the next best ones, as they were kept."""
    others: tuple[Decision, ...] = ()
    """The other attempts for this pod."""
    story: DecisionStory = DecisionStory()
    repeats: str = ""
    """What it can be repeated from, in words; empty: from nothing."""


class Details(Protocol):
    """Each answer is None where there is no such thing, and SourceFailed if the source cannot be read."""

    async def node(self, name: str, at: float | None = None) -> NodeDetail | None: ...

    async def waiting(self, at: float | None = None) -> WaitingMatrix: ...

    async def asked(self, pod: str, change: Change, at: float | None = None) -> PodAnswer | None: ...

    async def decision(self, key: str, at: float | None = None) -> DecisionDetail | None: ...

    async def repeated(self, key: str, at: float | None = None) -> Repetition | None: ...
