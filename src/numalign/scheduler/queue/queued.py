"""A pod in the scheduling queue: its attempts, its last rejection, and the gates that hold it.

`queue` makes and changes them; `cycle` gets one for every attempt and returns a `Rejection` if no node fits. Gates
are kube-scheduler's PreEnqueue plugins: `queue` asks them before a pod becomes active or backs off. The API server
reports gated pods itself (kube-scheduler spec 1.3). Times are seconds of the clock that `now` comes from."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from numalign.api.objects.pod import Pod

EVERYWHERE: Final = None
SCHEDULING_GATES: Final = "SchedulingGates"


class Rejection(Struct, frozen=True, kw_only=True):
    """Why an attempt failed. Without plugins the cause was an error, not a rejection (kube-scheduler spec 3.4)."""

    reasons: Mapping[str, tuple[str, ...]]
    """The messages of the plugins that rejected the pod, by plugin."""
    pending: frozenset[str] = frozenset()
    """Plugins that wait for an event; once it occurs, the pod is scheduled without backoff."""
    zones_of: Container[str] | None = EVERYWHERE
    """Nodes that only zones rejected; None: not known, so a wake-up of any node may help."""

    @property
    def plugins(self) -> frozenset[str]:
        return self.pending.union(self.reasons)

    @property
    def is_error(self) -> bool:
        return not self.reasons and not self.pending


ERROR: Final = Rejection(reasons={})


class QueuedPod(Struct, eq=False, kw_only=True):
    pod: Pod
    added: float
    """When the pod was added."""
    since: float
    """When the pod was added or returned from its last attempt; orders pods of one priority."""
    number: int
    """Orders pods with equal times."""
    ready: float | None = None
    """When the pod first had no gates."""
    attempts: int = 0
    refused: int = 0
    """Attempts that ended with a rejection."""
    errors: int = 0
    """Attempts in a row that ended with an error."""
    expiry: float | None = None
    """When the backoff ends; None: not computed yet."""
    cause: str = ""
    """Label of the event that moved the pod to the active or the backoff pool."""
    gate: str = ""
    """The gate that holds the pod."""
    rejection: Rejection = ERROR
    flushed: float | None = None
    """When the pod was last flushed because it had waited for long; None: not since its last attempt."""
    by_flush: bool = False
    """Whether only the flush woke the pod since its last attempt."""
    uid: str = ""
    """The pod's, kept because every step of an attempt looks the pod up by it."""

    def __post_init__(self) -> None:
        self.uid = self.pod.metadata.uid

    def came_back(self, pod: Pod, rejection: Rejection, now: float) -> None:
        """Records the end of an attempt; `pod`: its latest version (kube-scheduler spec 3.3)."""
        self.pod, self.rejection, self.gate = pod, rejection, ""
        self.since, self.expiry, self.flushed, self.by_flush = now, None, None, False
        self.errors = self.errors + 1 if rejection.is_error else 0
        self.refused += not rejection.is_error

    @property
    def profile(self) -> str:
        return self.pod.spec.scheduler_name

    @property
    def rejecting(self) -> frozenset[str]:
        """The plugins of which at least one must be woken before the pod is tried again."""
        return self.rejection.plugins | {self.gate} if self.gate else self.rejection.plugins

    @property
    def order(self) -> tuple[int, float, int]:
        """Higher priority first, then the earlier time (kube-scheduler spec 1.3)."""
        return -self.pod.spec.priority, self.since, self.number


class Gate(Protocol):
    @property
    def name(self) -> str:
        """The plugin's name, by which `wakeups` finds the events that may open the gate."""

    def holds(self, pod: Pod) -> bool: ...


class SchedulingGates:
    """The scheduling gates in the pod's spec."""

    name: Final = SCHEDULING_GATES

    def holds(self, pod: Pod) -> bool:
        return bool(pod.spec.scheduling_gates)


def holding(gates: Iterable[Gate], pod: Pod) -> str:
    """The first gate that holds the pod; empty: none does."""
    for gate in gates:
        if gate.holds(pod):
            return gate.name
    return ""
