"""The simulated runtime of a node in direct mode: applies the decisions on pods, and acknowledges them.

`loop` tells it which pods come and go and which containers run, the publisher asks what was applied. It does what
docs/concepts/direct-mode.md asks of an agent: CPUs of its own as the decision says, shared pools for everything else,
and a failure instead of CPUs that the node does not have or that another pod runs on. On any other node it does
nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from numalign.api import errors
from numalign.api.attributes import directresult
from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.attributes.directresult import ContainerResult, DirectResult
from numalign.api.decode import cpuset
from numalign.api.objects.pod import Pod
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.topologymanager import mask as masks


class DirectRuntime:
    """The containers of one node."""

    def __init__(self, machine: Machine, reserved: int) -> None:
        self._cpus = machine.cpus & ~reserved
        self._every_cpu = machine.cpus
        self._zones = {zone.id: cpuset.of(cpu for core in zone.cores for cpu in core.cpus) for zone in machine.zones}
        self._reserved = reserved
        self._decisions: dict[str, DirectResult | None] = {}
        """By uid, of every pod on the node."""
        self._running: dict[tuple[str, str], str] = {}
        """By uid and container why its decision was not applied; empty: it was."""

    def admit(self, pod: Pod) -> None:
        """A pod is on the node. A decision that cannot be read counts as none."""
        try:
            self._decisions[pod.metadata.uid] = directresult.of_pod(pod)
        except errors.BadObject:
            self._decisions[pod.metadata.uid] = None

    def started(self, uid: str, container: str) -> None:
        self._running.pop((uid, container), None)
        self._running[uid, container] = self._refusal(uid, container)

    def ended(self, uid: str, container: str) -> None:
        self._running.pop((uid, container), None)

    def gone(self, uid: str) -> None:
        """All containers of the pod have ended."""
        self._decisions.pop(uid, None)
        for key in [key for key in self._running if key[0] == uid]:
            del self._running[key]

    def stopped(self) -> None:
        """The machine stopped, and all containers with it."""
        self._running.clear()

    @property
    def applied(self) -> Iterator[AppliedContainer]:
        """What became of each running container for which there is a decision."""
        for (uid, name), failure in self._running.items():
            own = self._own(uid, name)
            if own is None:
                continue
            if failure:
                yield AppliedContainer(uid=uid, container=name, failure=failure)
            else:
                yield AppliedContainer(uid=uid, container=name, cpus=self.cpus(uid, name), mems=self._mems(own))

    def cpus(self, uid: str, container: str) -> int:
        """The CPUs on which a container runs."""
        own = self._own(uid, container)
        if own is not None and own.cpuset and not self._running.get((uid, container)):
            return own.cpus
        return self._pool(own.zones if own is not None else ())

    def _own(self, uid: str, container: str) -> ContainerResult | None:
        result = self._decisions.get(uid)
        return next((each for each in result.containers if each.name == container), None) if result else None

    def _pool(self, zones: Iterable[int]) -> int:
        """The shared CPUs of these zones; of the node if none are given."""
        shared = self._cpus
        for result in self._decisions.values():
            shared &= ~(result.cpus if result is not None else 0)
        inside = shared & self._cpus_of(zones) if zones else shared
        return inside or self._reserved or self._every_cpu

    def _cpus_of(self, zones: Iterable[int]) -> int:
        found = 0
        for zone in zones:
            found |= self._zones.get(zone, 0)
        return found

    def _mems(self, own: ContainerResult) -> int:
        return cpuset.parse(own.mems) if own.mems else masks.of(self._zones)

    def _refusal(self, uid: str, container: str) -> str:
        own = self._own(uid, container)
        if own is None or not own.cpuset:
            return ""
        strange = own.cpus & ~self._cpus
        if strange:
            return f"CPUs {cpuset.text(strange)} may not be handed out on this node"
        for (other, name), failure in self._running.items():
            theirs = self._own(other, name) if other != uid and not failure else None
            taken = own.cpus & theirs.cpus if theirs is not None else 0
            if taken:
                return f"container {name} of pod {other} runs on CPUs {cpuset.text(taken)}"
        return ""
