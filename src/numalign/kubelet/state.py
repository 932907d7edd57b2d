"""The state of a kubelet between admissions, as one immutable value.

`start` makes the first one, and `admission` turns one into the next. A prediction that is discarded needs no undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field, structs

from numalign.api.objects.pod import Pod
from numalign.kubelet import demand
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState, Held
from numalign.kubelet.memory.state import Block, MemoryState
from numalign.kubelet.topologymanager.hints import Hint

Isolation = Literal["host", "pod", "container"]


class KubeletState(Struct, frozen=True):
    """What the managers hold, the pods that are active, in admission order, and the hints stored for containers."""

    devices: DeviceState
    cpu: CPUState | None = None
    memory: MemoryState | None = None
    active: Mapping[str, Pod] = field(default_factory=dict)
    affinities: Mapping[str, Mapping[str, Hint]] = field(default_factory=dict)

    def with_pod(self, pod: Pod) -> KubeletState:
        return structs.replace(self, active={**self.active, demand.identity(pod): pod})

    def without_pod(self, uid: str) -> KubeletState:
        """The state without the pod among the active ones; its allocations stay until the managers collect them."""
        return structs.replace(self, active={other: pod for other, pod in self.active.items() if other != uid})

    def with_affinity(self, uid: str, container: str, hint: Hint) -> KubeletState:
        stored = {**self.affinities.get(uid, {}), container: hint}
        return structs.replace(self, affinities={**self.affinities, uid: stored})

    def affinity(self, uid: str, container: str) -> Hint:
        return self.affinities.get(uid, {}).get(container, Hint(None, False))

    def container_names(self) -> Mapping[str, frozenset[str]]:
        return {uid: frozenset(c.name for c in pod.in_admission_order()) for uid, pod in self.active.items()}


class ContainerPlacement(Struct, frozen=True):
    """The placement of one container. CPUs None: it runs on the shared set."""

    affinity: Hint
    cpus: int | None
    memory: tuple[Block, ...]
    devices: Held
    cpu_isolation: Isolation
    memory_isolation: Isolation


def placement(state: KubeletState, pod: demand.PodDemand) -> dict[str, ContainerPlacement]:
    """What an admitted pod got, container by container."""
    return {each.name: _placed(state, pod, each) for each in pod.containers}


def _placed(state: KubeletState, pod: demand.PodDemand, container: demand.ContainerDemand) -> ContainerPlacement:
    cpus = state.cpu.assigned(pod.uid, container.name) if state.cpu else None
    blocks = state.memory.held(pod.uid, container.name) if state.memory else None
    shared = pod.budget is not None
    return ContainerPlacement(
        affinity=state.affinity(pod.uid, container.name),
        cpus=cpus,
        memory=tuple(sorted(blocks or ())),
        devices=state.devices.held(pod.uid, container.name),
        cpu_isolation=_isolation(cpus is not None, shared and container.cpus == 0),
        memory_isolation=_isolation(bool(blocks), shared and not container.memory),
    )


def _isolation(assigned: bool, shared: bool) -> Isolation:
    if not assigned:
        return "host"
    return "pod" if shared else "container"
