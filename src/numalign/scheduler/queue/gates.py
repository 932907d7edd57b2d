"""What keeps a pod out of the queue before it is ever tried: PreEnqueue, in the stock scheduler's words.

`queue` asks every gate before a pod becomes ready or begins to back off; whoever evicts pods for a preemptor brings a
gate of its own. Nothing is written about gated pods: the API server does that (kube-scheduler spec 1.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from numalign.api.objects.pod import Pod
from numalign.scheduler.queue.interests import SCHEDULING_GATES


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
