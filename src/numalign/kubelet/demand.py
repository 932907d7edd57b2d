"""What a pod demands of the managers, computed from its spec once per admission.

Eligibility is decided only here: exclusive CPUs, pinned memory, and amounts that count for the pod as a whole. The
managers work with plain numbers; zero and empty mean that a container is skipped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cached_property, lru_cache

from msgspec import Struct, structs

from numalign.api.decode.quantity import Quantity
from numalign.api.objects import qos, requests, resourcenames
from numalign.api.objects.pod import Container, Pod, ResourceList, ResourceRequirements
from numalign.api.objects.qos import QoS
from numalign.kubelet import versions
from numalign.kubelet.settings import Settings


class Role(Enum):
    """How long a container holds what it got: an init container hands it on, the others keep it."""

    INIT = "init"
    SIDECAR = "sidecar"
    APP = "app"


class ContainerDemand(Struct, frozen=True):
    """One container's exclusive CPUs, pinned memory by type and limits; memory None: not whole bytes."""

    name: str
    role: Role
    cpus: int
    memory: Mapping[str, int] | None
    limits: Mapping[str, int]


class PodDemand(Struct, frozen=True, dict=True):
    """All containers in admission order, and the totals of the pod."""

    pod: Pod
    """The pod as the kubelet reads it."""
    containers: tuple[ContainerDemand, ...]
    pinned: bool
    """Whether the CPU and Memory Managers handle the pod."""
    budget: ContainerDemand | None = None
    """Pod-level resources that the managers serve as one allocation (kubelet spec 10.2 to 10.4)."""

    @property
    def uid(self) -> str:
        return identity(self.pod)

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """The limits that the Device Manager counts; used only in pod scope."""
        return _whole(requests.effective_limits(self.pod))

    @cached_property
    def cpus(self) -> int:
        """Exclusive CPUs of the whole pod (kubelet spec 5.5)."""
        if self.budget is not None:
            return self.budget.cpus
        return peak((each.role, each.cpus) for each in self.containers)

    @cached_property
    def memory(self) -> Mapping[str, int] | None:
        """Pinned memory of the whole pod, for types that some app container requests (kubelet spec 6.2)."""
        if self.budget is not None:
            return self.budget.memory
        if any(each.memory is None for each in self.containers):
            return None
        wanted = {kind for each in self.containers if each.role is Role.APP for kind in each.memory or ()}
        return {
            kind: peak((each.role, (each.memory or {}).get(kind, 0)) for each in self.containers)
            for kind in sorted(wanted)
        }

    def container(self, name: str) -> ContainerDemand:
        return next(each for each in self.containers if each.name == name)


class Reading(Struct, frozen=True, kw_only=True):
    """How a kubelet reads pods: gates and the minor's own rules."""

    pod_level: bool = True
    """Gate PodLevelResources."""
    pod_level_managers: bool = False
    """Gate PodLevelResourceManagers."""
    pod_level_needs_gate: bool = True
    from_status: bool = False
    """Take amounts from the status' allocatedResources."""

    @classmethod
    def of(cls, settings: Settings) -> Reading:
        rules = versions.behaviour(settings.minor)
        return cls(
            pod_level=settings.gate("PodLevelResources"),
            pod_level_managers=settings.gate("PodLevelResourceManagers"),
            pod_level_needs_gate=rules.pod_level_pods_need_gate,
            from_status=rules.amounts_from_allocated_status and settings.gate("InPlacePodVerticalScaling"),
        )


def of(pod: Pod, reading: Reading) -> PodDemand:
    """The pod's demand as this kubelet reads it."""
    pod_level = requests.has_pod_level_resources(pod)
    served_whole = pod_level and (reading.pod_level or reading.pod_level_needs_gate)
    pod = seen(pod, reading)
    guaranteed = qos.of(pod) is QoS.GUARANTEED
    managed = reading.pod_level and reading.pod_level_managers
    pinned = guaranteed and (managed or not served_whole)
    return PodDemand(
        pod=pod,
        containers=tuple(_containers(pod, reading, pinned=pinned, must_be_guaranteed=served_whole)),
        pinned=pinned,
        budget=_budget(pod, pinned=guaranteed) if served_whole and managed else None,
    )


def seen(pod: Pod, reading: Reading) -> Pod:
    """The pod as this kubelet sees it: without the gate it does not see pod-level resources."""
    if reading.pod_level or not requests.has_pod_level_resources(pod):
        return pod
    return structs.replace(pod, spec=structs.replace(pod.spec, resources=ResourceRequirements()))


def identity(pod: Pod) -> str:
    """The uid; the name for a pod that was never created on an API server."""
    return pod.metadata.uid or f"{pod.metadata.namespace}/{pod.metadata.name}"


def _containers(pod: Pod, reading: Reading, *, pinned: bool, must_be_guaranteed: bool) -> Iterable[ContainerDemand]:
    for place, container in enumerate(pod.in_admission_order()):
        init = place < len(pod.spec.init_containers)
        role = (Role.SIDECAR if container.is_sidecar else Role.INIT) if init else Role.APP
        eligible = pinned and (not must_be_guaranteed or _is_guaranteed(container))
        wants = _requests(pod, container, role, reading) if eligible else {}
        yield ContainerDemand(container.name, role, _cpus(wants), _memory(wants), _whole(container.resources.limits))


def _requests(pod: Pod, container: Container, role: Role, reading: Reading) -> ResourceList:
    if reading.from_status and role is not Role.INIT:
        statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
        status = next((each for each in statuses if each.name == container.name), None)
        if status is not None:
            return status.allocated_resources
    return container.resources.requests


def _budget(pod: Pod, *, pinned: bool) -> ContainerDemand:
    wants = pod.spec.resources.requests if pinned else {}
    memory = _memory(wants)
    if memory is not None:
        memory = {kind: amount for kind, amount in memory.items() if amount > 0}
    return ContainerDemand("", Role.APP, _cpus(wants), memory, {})


def _is_guaranteed(container: Container) -> bool:
    """In a pod with pod-level resources a container counts only with cpu and memory equal to its limits."""
    return qos.of_requirements(container.resources) is QoS.GUARANTEED


def _cpus(wants: ResourceList) -> int:
    """Whole CPUs; a fraction gets none to itself (kubelet spec 5.2)."""
    cpu = wants.get(resourcenames.CPU)
    return cpu.value if cpu is not None and cpu.value * 1000 == cpu.milli else 0


def _memory(wants: ResourceList) -> Mapping[str, int] | None:
    pinned = {name: wants[name] for name in sorted(filter(_is_memory, wants))}
    return _whole(pinned) if all(amount.is_whole for amount in pinned.values()) else None


@lru_cache(maxsize=4096)
def _is_memory(name: str) -> bool:
    return name == resourcenames.MEMORY or resourcenames.is_hugepages(name)


def _whole(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: amount.value for name, amount in amounts.items()}


def peak(amounts: Iterable[tuple[Role, int]]) -> int:
    """Init containers run one at a time beside the sidecars before them; sidecars and apps run together."""
    highest = sidecars = together = 0
    for role, amount in amounts:
        if role is Role.INIT:
            highest = max(highest, sidecars + amount)
            continue
        together += amount
        if role is Role.SIDECAR:
            sidecars += amount
    return max(highest, together)
