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
    """Why an attempt came to nothing. No plugin at all: it was an error, not a refusal (kube-scheduler spec 3.4)."""

    reasons: Mapping[str, tuple[str, ...]]
    """By plugin that refused the pod, what it said."""
    pending: frozenset[str] = frozenset()
    """Plugins that only wait for something: when it comes, the pod is tried without backoff."""
    zones_of: Container[str] | None = EVERYWHERE
    """Nodes that would do but for their zones; None: not known, so that each of them may help."""

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
    """When it came."""
    since: float
    """When it came, or came back from its last attempt: the order of pods of one priority."""
    number: int
    """Of two that came at the same moment, the lower one is first."""
    ready: float | None = None
    """When it could first have been tried: it had no gates any more."""
    attempts: int = 0
    refused: int = 0
    """Attempts that ended with a refusal."""
    errors: int = 0
    """Attempts in a row that ended with an error."""
    expiry: float | None = None
    """When its backoff is over; None: to be worked out."""
    cause: str = ""
    """Label of the event that made it ready, or made it wait for the end of its backoff."""
    gate: str = ""
    """The plugin that does not let it into the queue."""
    rejection: Rejection = ERROR
    flushed: float | None = None
    """When it was last woken only because it had waited so long; None: not since its last attempt."""
    by_flush: bool = False
    """Nothing else woke it since its last attempt."""

    def came_back(self, pod: Pod, rejection: Rejection, now: float) -> None:
        """From an attempt, as the pod is by now (kube-scheduler spec 3.3)."""
        self.pod, self.rejection, self.gate = pod, rejection, ""
        self.since, self.expiry, self.flushed, self.by_flush = now, None, None, False
        self.errors = self.errors + 1 if rejection.is_error else 0
        self.refused += not rejection.is_error

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def profile(self) -> str:
        return self.pod.spec.scheduler_name

    @property
    def rejecting(self) -> frozenset[str]:
        """The plugins of which at least one must be woken before the pod is tried again."""
        return self.rejection.plugins | {self.gate} if self.gate else self.rejection.plugins

    @property
    def order(self) -> tuple[int, float, int]:
        """Higher priority first, then who waits longer (kube-scheduler spec 1.3)."""
        return -self.pod.spec.priority, self.since, self.number


class Gate(Protocol):
    @property
    def name(self) -> str:
        """The plugin's, under which `wakeups` knows what may open it."""

    def holds(self, pod: Pod) -> bool: ...


class SchedulingGates:
    """The pod's own."""

    name: Final = SCHEDULING_GATES

    def holds(self, pod: Pod) -> bool:
        return bool(pod.spec.scheduling_gates)


def holding(gates: Iterable[Gate], pod: Pod) -> str:
    """The first gate that holds the pod; empty: none does."""
    for gate in gates:
        if gate.holds(pod):
            return gate.name
    return ""
