"""Takes one pod through the topology manager: hints, merge and allocation, in container or pod scope.

`admission` walks every pod that is added. `Walk.state` is at every moment what the node would hold; a refusal stops the
walk and leaves the state as it is (kubelet spec 3.6). General predicates are not checked here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from numalign.kubelet import policies
from numalign.kubelet.demand import ContainerDemand, PodDemand
from numalign.kubelet.hints import Hint
from numalign.kubelet.merge import HintMap, Hints
from numalign.kubelet.refusals import TOPOLOGY_AFFINITY, Refusal
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState


class Alignment(Struct, frozen=True):
    """One merge: what each resource offered to a container, or to the pod as a whole, and what came of it."""

    container: str
    """Empty for the whole pod."""
    offered: Mapping[str, Hints | None]
    hint: Hint | None
    """None: the policy refuses every combination."""
    permutations: int


class Refused(Exception):
    """A refusal, with the container it happened at; stops the walk."""

    def __init__(self, refusal: Refusal, container: str = "") -> None:
        super().__init__(refusal)
        self.refusal = refusal
        self.container = container


class Walk:
    def __init__(self, kubelet: Kubelet, state: KubeletState) -> None:
        self.kubelet = kubelet
        self.state = state
        self.alignments: list[Alignment] = []
        self.steps = 0

    def pod(self, pod: PodDemand) -> None:
        if self.kubelet.settings.topology_policy == "none":
            self._without_hints(pod)
            return
        # Every manager collects when it is asked for hints, and all are asked before anybody allocates.
        self.collect()
        if self.kubelet.settings.topology_scope == "container":
            self._container_scope(pod)
        else:
            self._pod_scope(pod)

    def _without_hints(self, pod: PodDemand) -> None:
        for container in pod.containers:
            self._allocate(pod, container, Hint(None, False))

    def _container_scope(self, pod: PodDemand) -> None:
        for container in pod.containers:
            hint = self._merged(self._container_hints(pod, container), container.name)
            if hint is None:
                raise Refused(_unaligned(pod, "with a container-level topology manager"), container.name)
            self.state = self.state.with_affinity(pod.uid, container.name, hint)
            self._allocate(pod, container, hint)

    def _pod_scope(self, pod: PodDemand) -> None:
        hint = self._merged(self._pod_hints(pod), "")
        if hint is None:
            raise Refused(_unaligned(pod, "under pod-scope topology manager"))
        for container in pod.containers:
            self.state = self.state.with_affinity(pod.uid, container.name, hint)
            if pod.budget is None:
                self._allocate(pod, container, hint)
        if pod.budget is not None:
            self._allocate_pod(pod, hint)

    @property
    def _masks(self) -> int:
        """How many masks the memory manager enumerates whenever it looks for a place."""
        return int((1 << len(self.kubelet.machine.zones)) - 1)

    def collect(self) -> None:
        self._collect_devices()
        self._collect_cpus()
        self._collect_memory()

    def _collect_devices(self) -> None:
        devices = self.kubelet.devices.collect(self.state.devices, self.state.container_names())
        self.state = structs.replace(self.state, devices=devices)

    def _collect_cpus(self) -> None:
        if self.kubelet.cpu and self.state.cpu:
            cpu = self.kubelet.cpu.collect(self.state.cpu, self.state.container_names())
            self.state = structs.replace(self.state, cpu=cpu)

    def _collect_memory(self) -> None:
        if self.kubelet.memory and self.state.memory:
            memory = self.kubelet.memory.collect(self.state.memory, self.state.container_names())
            self.state = structs.replace(self.state, memory=memory)

    def _container_hints(self, pod: PodDemand, container: ContainerDemand) -> Iterable[HintMap | None]:
        kubelet, state = self.kubelet, self.state
        yield kubelet.devices.container_hints(state.devices, pod, container)
        if kubelet.cpu and state.cpu:
            yield kubelet.cpu.container_hints(state.cpu, pod, container)
        if kubelet.memory and state.memory:
            self.steps += self._masks if container.memory else 0
            yield kubelet.memory.container_hints(state.memory, pod, container)

    def _pod_hints(self, pod: PodDemand) -> Iterable[HintMap | None]:
        kubelet, state = self.kubelet, self.state
        yield kubelet.devices.pod_hints(state.devices, pod)
        if kubelet.cpu and state.cpu:
            yield kubelet.cpu.pod_hints(state.cpu, pod)
        if kubelet.memory and state.memory:
            self.steps += self._masks if pod.memory else 0
            yield kubelet.memory.pod_hints(state.memory, pod)

    def _merged(self, provided: Iterable[HintMap | None], container: str) -> Hint | None:
        offered = list(provided)
        merged = policies.merge(offered, self.kubelet.rules)
        by_resource = {name: hints for provider in offered for name, hints in (provider or {}).items()}
        self.steps += merged.permutations
        self.alignments.append(Alignment(container, by_resource, merged.admitted, merged.permutations))
        return merged.admitted

    def _allocate(self, pod: PodDemand, container: ContainerDemand, hint: Hint) -> None:
        self._allocate_devices(pod, container, hint)
        self._allocate_cpus(pod, container, hint)
        self._allocate_memory(pod, container, hint)

    def _allocate_devices(self, pod: PodDemand, container: ContainerDemand, hint: Hint) -> None:
        manager = self.kubelet.devices
        if manager.requested(self.state.devices, container.limits):
            self._collect_devices()
        devices, refusal = manager.allocate(self.state.devices, pod, container, hint.mask)
        self.state = structs.replace(self.state, devices=devices)
        _raise(refusal, container.name)

    def _allocate_cpus(self, pod: PodDemand, container: ContainerDemand, hint: Hint) -> None:
        if self.kubelet.cpu and self.state.cpu:
            self._collect_cpus()
            cpu, refusal = self.kubelet.cpu.allocate(self.state.cpu, pod, container, hint.mask)
            self.state = structs.replace(self.state, cpu=cpu)
            _raise(refusal, container.name)

    def _allocate_memory(self, pod: PodDemand, container: ContainerDemand, hint: Hint) -> None:
        if self.kubelet.memory and self.state.memory:
            self._collect_memory()
            if container.memory and hint.mask is None:
                self.steps += self._masks
            memory, refusal = self.kubelet.memory.allocate(self.state.memory, pod, container, hint)
            self.state = structs.replace(self.state, memory=memory)
            _raise(refusal, container.name)

    def _allocate_pod(self, pod: PodDemand, hint: Hint) -> None:
        """The device manager takes no part: such a pod gets its devices when its containers start."""
        kubelet = self.kubelet
        if kubelet.cpu and self.state.cpu:
            cpu, refusal = kubelet.cpu.allocate_pod(self.state.cpu, pod, hint.mask)
            self.state = structs.replace(self.state, cpu=cpu)
            _raise(refusal)
        if kubelet.memory and self.state.memory:
            memory, refusal = kubelet.memory.allocate_pod(self.state.memory, pod, hint)
            self.state = structs.replace(self.state, memory=memory)
            _raise(refusal)


def _raise(refusal: Refusal | None, container: str = "") -> None:
    if refusal is not None:
        raise Refused(refusal, container)


def _unaligned(pod: PodDemand, how: str) -> Refusal:
    if pod.budget is None:
        return Refusal("Resources cannot be allocated with Topology locality", TOPOLOGY_AFFINITY)
    return Refusal(f"Pod Scope pod with pod-level resources failed admission {how}", TOPOLOGY_AFFINITY)
