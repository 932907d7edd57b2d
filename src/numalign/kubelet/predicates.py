"""The general predicates: check whether the node's totals suffice for a pod.

They run after the Topology Manager, so a pod that is rejected here already holds CPUs, memory and devices. Resources,
the number of pods and host ports are checked, in the kubelet's order. Node name, selectors and taints belong to the
Node object, which this model does not have."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from numalign.api.objects import requests, resourcenames
from numalign.api.objects.pod import ContainerPort, Pod
from numalign.kubelet import demand
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState

PODS = "pods"
ANY_ADDRESS = "0.0.0.0"


class Lacking(Struct, frozen=True):
    """Why the pod does not fit: the kubelet's reason and message."""

    reason: str
    message: str


def lacking(kubelet: Kubelet, state: KubeletState, pod: Pod, others: Collection[Pod]) -> Lacking | None:
    """The first predicate that fails for this pod, beside the other active pods."""
    if len(others) + 1 > kubelet.settings.max_pods:
        return _insufficient(PODS, requested=1, used=len(others), capacity=kubelet.settings.max_pods)
    offered = allocatable(kubelet, state, demand.identity(pod))
    taken = [_amounts(kubelet, other) for other in others]
    for resource, wanted in sorted(_amounts(kubelet, pod).items(), key=_in_kubelet_order):
        if resource not in offered and not resourcenames.is_hugepages(resource):
            continue  # the kubelet forgets extended resources the node lacks; local storage is not modelled
        used = sum(amounts.get(resource, 0) for amounts in taken)
        if wanted > 0 and wanted > offered.get(resource, 0) - used:
            return _insufficient(resource, requested=wanted, used=used, capacity=offered.get(resource, 0))
    ports = [port for other in others for port in _host_ports(other)]
    if any(_conflict(port, other) for port in _host_ports(pod) for other in ports):
        text = "node(s) didn't have free ports for the requested pod ports"
        return Lacking("NodePorts", f"Predicate NodePorts failed: {text}")
    return None


def allocatable(kubelet: Kubelet, state: KubeletState, uid: str = "") -> dict[str, int]:
    """Node Allocatable: capacity less reservations and eviction threshold; cpu in milli-CPUs.

    For a pod that holds devices, these count even if they became unhealthy since."""
    machine, settings = kubelet.machine, kubelet.settings
    amounts = {name: amount - settings.withheld(name) for name, amount in machine.capacity.items()}
    pages = sum(page.total_bytes for zone in machine.zones for page in zone.hugepages)
    amounts[resourcenames.MEMORY] -= pages
    for resource, inventory in kubelet.devices.inventories.items():
        in_use = len(state.devices.in_use(resource)) if uid in state.devices.pods else 0
        amounts[resource] = max(len(inventory.healthy), in_use)
    return {name: max(0, amount) for name, amount in amounts.items()}


def _amounts(kubelet: Kubelet, pod: Pod) -> Mapping[str, int]:
    total = requests.effective(demand.seen(pod, kubelet.reading))
    return {name: amount.milli if name == resourcenames.CPU else amount.value for name, amount in total.items()}


def _in_kubelet_order(item: tuple[str, int]) -> tuple[int, str]:
    first = (resourcenames.CPU, resourcenames.MEMORY, "ephemeral-storage")
    return first.index(item[0]) if item[0] in first else len(first), item[0]


def _host_ports(pod: Pod) -> list[ContainerPort]:
    running = (*pod.spec.containers, *(each for each in pod.spec.init_containers if each.is_sidecar))
    return [port for container in running for port in container.ports if port.host_port > 0]


def _conflict(one: ContainerPort, other: ContainerPort) -> bool:
    if (one.protocol, one.host_port) != (other.protocol, other.host_port):
        return False
    addresses = {one.host_ip or ANY_ADDRESS, other.host_ip or ANY_ADDRESS}
    return len(addresses) == 1 or ANY_ADDRESS in addresses


def _insufficient(resource: str, *, requested: int, used: int, capacity: int) -> Lacking:
    return Lacking(
        f"OutOf{resource}",
        f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}",
    )
