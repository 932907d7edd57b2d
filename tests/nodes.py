"""Machines, pods and nodes in a line each: the words in which tests of the kubelet model speak.

Amounts are chosen to be countable: every zone has one GiB more memory than it is said to have, which the system keeps,
and CPU 0 is reserved unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec, ResourceList, ResourceRequirements
from numalign.kubelet import admission, start
from numalign.kubelet.admission import Outcome
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Device, DevicePlugin, HugePages, Machine
from numalign.kubelet.machine.presets import GIB, Blueprint
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.kubelet.state import ContainerPlacement
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import Hint, HintList, UnlistedHints

NIC, GPU = "example.com/nic", "example.com/gpu"
PAGES = "hugepages-2Mi"
SYSTEM = GIB
"""Memory that the system keeps in every zone."""


def machine(zones: int = 2, cores: int = 4, threads: int = 1, **more: Any) -> Machine:
    """Equal zones with neighbouring CPU numbers: 4 cores and 8 GiB for pods in each, one socket per zone."""
    sockets, memory = more.pop("sockets", zones), more.pop("memory", 8)
    pages = tuple(HugePages(2048, count) for count in (more.pop("pages", None),) if count is not None)
    hugepages = sum(page.total_bytes for page in pages)
    return presets.build(
        "test",
        Blueprint(
            zones=zones,
            sockets=sockets,
            cores=cores,
            threads=threads,
            numbering="consecutive",
            memory=memory * GIB + hugepages + SYSTEM,
            hugepages=pages,
            **more,
        ),
    )


def with_l3s(machine: Machine, size: int) -> Machine:
    """So many neighbouring CPUs share an L3, whatever their zones."""
    zones = (
        structs.replace(zone, cores=tuple(structs.replace(core, uncore=core.cpus[0] // size) for core in zone.cores))
        for zone in machine.zones
    )
    return structs.replace(machine, zones=tuple(zones))


def plugin(*zones: int | Sequence[int] | None, stem: str = "d", asked: bool = True) -> DevicePlugin:
    """One device per entry: its zone, its zones, or None for a device that tells nothing about zones."""
    places = [(each,) if isinstance(each, int) else None if each is None else tuple(each) for each in zones]
    return DevicePlugin(tuple(Device(f"{stem}{i}", place) for i, place in enumerate(places)), asked)


def reservations(machine: Machine) -> tuple[MemoryReservation, ...]:
    return tuple(MemoryReservation(zone.id, {"memory": SYSTEM}) for zone in machine.zones)


def settings(machine: Machine, policy: Any = "best-effort", scope: Any = "container", **more: Any) -> Settings:
    """Static CPU and memory policies, CPU 0 and a GiB per zone for the system."""
    given: dict[str, Any] = {
        "topology_policy": policy,
        "topology_scope": scope,
        "cpu_policy": "static",
        "reserved_cpus": 1,
        "memory_policy": "Static",
        "reserved_memory": reservations(machine),
        "reserved": {"cpu": 1000, "memory": SYSTEM * len(machine.zones)},
    }
    return Settings(**given | more)


class Node:
    """A kubelet with its present state; every step replaces the state."""

    def __init__(self, machine: Machine, policy: str = "best-effort", scope: str = "container", **more: Any) -> None:
        self.kubelet = start.start(machine, settings(machine, policy, scope, **more))
        self.state = self.kubelet.initial()

    def admit(self, pod: Pod) -> Outcome:
        self.state, outcome = admission.admit(self.kubelet, self.state, pod)
        return outcome

    def placed(self, pod: Pod) -> Mapping[str, ContainerPlacement]:
        """Admit a pod that has to be admitted."""
        outcome = self.admit(pod)
        assert outcome.admitted, outcome
        return outcome.placement

    def end(self, *uids: str) -> None:
        for uid in uids:
            self.state = self.state.without_pod(uid)

    def start(self, uid: str) -> None:
        self.state = admission.started(self.kubelet, self.state, uid)

    def collect(self) -> None:
        self.state = admission.collect(self.kubelet, self.state)

    def restart(self) -> dict[str, Outcome]:
        """Restart the kubelet and admit every pod again, in order."""
        self.state = start.restart(self.kubelet, self.state)
        return {uid: self.admit(pod) for uid, pod in self.state.active.items()}


def amounts(given: Mapping[str, str | int]) -> ResourceList:
    return {name: quantity.parse(amount) for name, amount in given.items()}


def guaranteed(name: str, cpu: str | int = 1, memory: str = "1Gi", **more: str | int) -> Container:
    """Requests equal limits. Other resources by keyword, such as nic=1."""
    wants = amounts({"cpu": cpu, "memory": memory} | {_RESOURCES[key]: amount for key, amount in more.items()})
    return Container(name=name, resources=ResourceRequirements(wants, wants))


def burstable(name: str, cpu: str | int = 1, memory: str = "1Gi", **more: str | int) -> Container:
    """Only devices are limited."""
    devices = amounts({_RESOURCES[key]: amount for key, amount in more.items()})
    return Container(
        name=name, resources=ResourceRequirements(amounts({"cpu": cpu, "memory": memory}) | devices, devices)
    )


def sidecar(container: Container) -> Container:
    return structs.replace(container, restart_policy="Always")


def pod(
    uid: str, *apps: Container, init: Sequence[Container] = (), whole: Mapping[str, str | int] | None = None
) -> Pod:
    """`whole`: pod-level resources, requests equal to limits."""
    budget = amounts(whole or {})
    spec = PodSpec(containers=apps, init_containers=tuple(init), resources=ResourceRequirements(budget, dict(budget)))
    return Pod(metadata=ObjectMeta(name=uid, uid=uid), spec=spec)


def simple(uid: str, cpu: str | int = 1, memory: str = "1Gi", **more: str | int) -> Pod:
    """A Guaranteed pod of one container, `app`."""
    return pod(uid, guaranteed("app", cpu, memory, **more))


def hints(*zones: int | Sequence[int], preferred: int | None = None) -> HintList:
    """Hints for zones or zone sets; preferred are those of `preferred` zones, else the narrowest."""
    listed = [masks.of([each] if isinstance(each, int) else each) for each in zones]
    size = min((mask.bit_count() for mask in listed), default=0) if preferred is None else preferred
    return HintList.of(Hint(mask, mask.bit_count() == size) for mask in listed)


def spelled(offered: HintList | UnlistedHints | None) -> list[tuple[tuple[int, ...] | None, bool]]:
    """Hints as zones and preference, in the kubelet's order."""
    assert isinstance(offered, HintList)
    return [(None if hint.mask is None else masks.members(hint.mask), hint.preferred) for hint in offered]


_RESOURCES = {"nic": NIC, "gpu": GPU, "pages": PAGES}
