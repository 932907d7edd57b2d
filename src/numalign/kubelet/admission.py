"""Admits a pod as the kubelet does: Topology Manager in container or pod scope, then the general predicates.

The agent, the simulator, `placement` and the command line call `admit`. The Topology Manager asks the device, CPU and
memory managers for hints, in this order, merges them by its policy, and lets the same managers allocate. Nothing is
rolled back: allocations of a rejected pod stay until the next admission collects them (kubelet spec 1 and 3.6).
`KubeletState.without_pod` removes a pod that ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, structs

from numalign.api.objects.pod import Pod
from numalign.kubelet import demand, predicates
from numalign.kubelet.demand import ContainerDemand, PodDemand
from numalign.kubelet.refusals import TOPOLOGY_AFFINITY, Refusal, Undecided
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import ContainerPlacement, KubeletState, placement
from numalign.kubelet.topologymanager import policies
from numalign.kubelet.topologymanager.hints import Hint
from numalign.kubelet.topologymanager.merge import HintMap, Hints


class Alignment(Struct, frozen=True):
    """One merge: the hints of each resource for a container or for the whole pod, and the merged hint."""

    container: str
    """The container; empty: the pod as a whole."""
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
        # Every manager collects when it gives hints, and all give hints before any allocates.
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


Verdict = Literal["admitted", "rejected", "undecided"]

SLOW = 100_000_000
"""Steps from which on an admission takes the kubelet minutes: a merge walks about a million combinations a second."""


class Outcome(Struct, frozen=True, kw_only=True):
    """The kubelet's decision with its reason and message, and how it was reached."""

    verdict: Verdict
    reason: str = ""
    message: str = ""
    container: str = ""
    """The container that was rejected; empty: the pod as a whole."""
    alignments: tuple[Alignment, ...] = ()
    placement: Mapping[str, ContainerPlacement] = {}
    steps: int = 0
    """Sets of zones and combinations of hints that the kubelet goes through for this pod."""

    @property
    def admitted(self) -> bool:
        return self.verdict == "admitted"

    @property
    def slow(self) -> bool:
        """Whether the real kubelet would need minutes, or longer, for this answer."""
        return self.steps >= SLOW


def admit(kubelet: Kubelet, state: KubeletState, pod: Pod) -> tuple[KubeletState, Outcome]:
    """Admits a pod: Topology Manager first, then the general predicates."""
    others = [other for uid, other in state.active.items() if uid != demand.identity(pod)]
    state, outcome = align(kubelet, state, pod)
    if not outcome.admitted:
        return state, outcome
    lacking = predicates.lacking(kubelet, state, pod, others)
    if lacking is None:
        return state, outcome
    rejected = Outcome(
        verdict="rejected",
        reason=lacking.reason,
        message=lacking.message,
        alignments=outcome.alignments,
        steps=outcome.steps,
    )
    return state.without_pod(demand.identity(pod)), rejected


def align(kubelet: Kubelet, state: KubeletState, pod: Pod) -> tuple[KubeletState, Outcome]:
    """The Topology Manager's part of an admission: hints, merge, allocation."""
    asked = demand.of(pod, kubelet.reading)
    walk = Walk(kubelet, state.with_pod(pod))
    try:
        walk.pod(asked)
    except Undecided as undecided:
        why = Outcome(verdict="undecided", message=str(undecided), alignments=tuple(walk.alignments), steps=walk.steps)
        return state, why
    except Refused as refused:
        rejected = Outcome(
            verdict="rejected",
            reason=refused.refusal.reason,
            message=refused.refusal.pod_message,
            container=refused.container,
            alignments=tuple(walk.alignments),
            steps=walk.steps,
        )
        return walk.state.without_pod(asked.uid), rejected
    return walk.state, Outcome(
        verdict="admitted", alignments=tuple(walk.alignments), steps=walk.steps, placement=placement(walk.state, asked)
    )


def started(kubelet: Kubelet, state: KubeletState, uid: str) -> KubeletState:
    """The state after all containers of an active pod have started, one after the other."""
    for container in state.active[uid].in_admission_order():
        state = container_started(kubelet, state, uid, container.name)
    return state


def container_started(kubelet: Kubelet, state: KubeletState, uid: str, container: str) -> KubeletState:
    """The start hook: memory of init containers that have ended is given back (kubelet spec 6.6)."""
    if not kubelet.memory or not state.memory:
        return state
    asked = demand.of(state.active[uid], kubelet.reading)
    return structs.replace(state, memory=kubelet.memory.started(state.memory, asked, container))


def late_devices(
    kubelet: Kubelet, state: KubeletState, uid: str, container: str
) -> tuple[KubeletState, Refusal | None]:
    """Devices that a container does not have yet when it is about to run: pods served as a whole (spec 10.5)."""
    asked = demand.of(state.active[uid], kubelet.reading)
    wanted = asked.container(container)
    if not kubelet.devices.missing(state.devices, asked, wanted):
        return state, None
    collected = kubelet.devices.collect(state.devices, state.container_names())
    affinity = state.affinity(uid, container).mask
    devices, refusal = kubelet.devices.allocate(collected, asked, wanted, affinity)
    return structs.replace(state, devices=devices), refusal


def collect(kubelet: Kubelet, state: KubeletState) -> KubeletState:
    """The state after all managers dropped what inactive pods held; admission does this by itself."""
    walk = Walk(kubelet, state)
    walk.collect()
    return walk.state
