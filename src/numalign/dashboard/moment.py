"""What the dashboard shows, as plain data about one moment.

A `source.Source` makes a `Moment`; `pages` draws it. Amounts are thousandths of a CPU for the resource cpu, bytes for
memory and hugepages, and numbers of devices otherwise. Times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class Share(Struct, frozen=True, gc=False):
    """One resource of one zone."""

    size: int
    """With what the kubelet reserves."""
    allocatable: int
    free: int
    """With all known pods charged."""


class Zone(Struct, frozen=True):
    id: int
    shares: Mapping[str, Share]
    """By resource name."""
    stranded: frozenset[str] = frozenset()
    """Resources that are free here and of no use for any waiting pod, nor for any container that asks for CPUs."""


class Total(Struct, frozen=True, gc=False):
    """One resource of a node as a whole."""

    allocatable: int
    free: int


class ReportState(StrEnum):
    """What can be said of a node's report, the worst first."""

    DIVERGED = "diverged"
    """It contradicts what was predicted."""
    STALE = "stale"
    """It was not written for a long time."""
    MISSING = "missing"
    ASSUMED = "assumed"
    """It leaves things open that had to be assumed."""
    GOOD = "good"


class Report(Struct, frozen=True, kw_only=True):
    state: ReportState = ReportState.GOOD
    written: float | None = None
    """When it was written, as far as the API server knows."""
    publisher: str = ""
    notes: tuple[str, ...] = ()
    """What was assumed, repaired or contradicted, as sentences."""


class Node(Struct, frozen=True, kw_only=True):
    name: str
    status: str
    """As kubectl shows it: Ready, NotReady, with SchedulingDisabled."""
    policy: str = ""
    """Of the Topology Manager; empty: unknown."""
    scope: str = ""
    labels: Mapping[str, str] = {}
    zones: tuple[Zone, ...] = ()
    totals: Mapping[str, Total] = {}
    pods: int = 0
    report: Report = Report(state=ReportState.MISSING)


class WaitingPod(Struct, frozen=True, kw_only=True):
    name: str
    """namespace/name"""
    scheduler: str
    queue: str
    """active, backoff, unschedulable, gated; empty: no scheduler says."""
    since: float | None = None
    attempts: int = 0
    priority: int = 0
    requests: Mapping[str, int] = {}
    message: str = ""
    """Why it waits, as its Event says it."""


class Decision(Struct, frozen=True, kw_only=True):
    """One attempt to place a pod."""

    key: str
    """Finds it again."""
    pod: str
    at: float
    attempt: int
    node: str = ""
    """Empty: there was none."""
    zones: str = ""
    message: str = ""
    nodes: int = 0
    fitting: int = 0


class Health(Struct, frozen=True, kw_only=True):
    """What the scheduler counts about itself since it started. None: the source has no scheduler."""

    leads: bool | None = None
    queue: Mapping[str, int] = {}
    """Waiting pods by queue."""
    bound: float = 0
    unschedulable: float = 0
    failed: float = 0
    """Attempts that ended with an error."""
    rejections: Mapping[str, float] = {}
    """Pods that kubelets rejected, by reason."""
    divergences: Mapping[str, float] = {}
    """Reports that contradict predictions, by kind."""
    skipped: Mapping[str, float] = {}
    """Objects that could not be used, by resource."""
    guarded: tuple[GuardedNode, ...] = ()


class GuardedNode(Struct, frozen=True, kw_only=True):
    """Pods of a shape avoid a node for a while, because its kubelet rejected one."""

    node: str
    like: str
    """A pod of the shape."""
    seconds: float
    rejections: int
    reason: str = ""


class Moment(Struct, frozen=True, kw_only=True):
    at: float
    origin: str
    """Where it comes from, in words: the scheduler, cluster, file or recording."""
    version: str = ""
    """Differs between moments that differ; empty: unknown."""
    nodes: Mapping[str, Node] = {}
    """By name, in the order of names."""
    waiting: tuple[WaitingPod, ...] = ()
    decisions: tuple[Decision, ...] = ()
    """The newest first."""
    health: Health | None = None
    problems: tuple[str, ...] = ()
    """What could not be read, as sentences."""
