"""In-place resize: may a running pod have other amounts?

Assignments never change. What can change is the verdict: Guaranteed pods under a static policy cannot be resized at
all, others must still pass the topology manager and the general predicates (kubelet spec 8). Which of that older
minors do differently is in `versions`."""

from __future__ import annotations

from msgspec import structs

from numalign.api import qos, requests, resourcenames
from numalign.api.pod import Container, Pod
from numalign.api.qos import QoS
from numalign.api.quantity import ZERO
from numalign.kubelet import demand as demands
from numalign.kubelet import predicates, versions
from numalign.kubelet.admission import Outcome
from numalign.kubelet.refusals import Undecided
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState, placement
from numalign.kubelet.walk import Refused, Walk

INFEASIBLE = "Infeasible"
DEFERRED = "Deferred"


def resize(kubelet: Kubelet, state: KubeletState, wanted: Pod) -> tuple[KubeletState, Outcome]:
    """Ask for other amounts for an active pod of the same uid. A refused pod runs on with what it has."""
    uid = demands.identity(wanted)
    infeasible = _infeasible(kubelet, state, wanted)
    if infeasible is not None:
        return state, Outcome(verdict="rejected", reason=INFEASIBLE, message=infeasible)
    walk = Walk(kubelet, state, hints_only=versions.behaviour(kubelet.settings.minor).resize_skips_managers)
    demand = demands.of(wanted, kubelet.reading)
    try:
        walk.pod(demand)
    except Undecided as undecided:
        return state, Outcome(
            verdict="undecided", message=str(undecided), alignments=tuple(walk.alignments), steps=walk.steps
        )
    except Refused as refused:
        return walk.state, _refused(walk, refused.refusal.reason, refused.refusal.pod_message, refused.container)
    others = [pod for other, pod in state.active.items() if other != uid]
    lacking = predicates.lacking(kubelet, walk.state, wanted, others)
    if lacking is not None:
        return walk.state, _refused(walk, lacking.reason, lacking.message)
    accepted = structs.replace(walk.state, active={**state.active, uid: wanted})
    return accepted, Outcome(
        verdict="admitted", alignments=tuple(walk.alignments), steps=walk.steps, placement=placement(accepted, demand)
    )


def _refused(walk: Walk, reason: str, message: str, container: str = "") -> Outcome:
    kept = versions.behaviour(walk.kubelet.settings.minor).resize_keeps_reason
    return Outcome(
        verdict="rejected",
        reason=reason if kept else DEFERRED,
        message=message,
        container=container,
        alignments=tuple(walk.alignments),
        steps=walk.steps,
    )


def _infeasible(kubelet: Kubelet, state: KubeletState, wanted: Pod) -> str | None:
    settings = kubelet.settings
    allocated = state.active[demands.identity(wanted)]
    if qos.of(wanted) is QoS.GUARANTEED:
        for resource, gate, manager, policy in (
            (resourcenames.CPU, "InPlacePodVerticalScalingExclusiveCPUs", "CPU", settings.cpu_policy),
            (resourcenames.MEMORY, "InPlacePodVerticalScalingExclusiveMemory", "Memory", settings.memory_policy),
        ):
            static = policy in ("static", "Static") and not settings.gate(gate)
            if static and _differs(kubelet, allocated, wanted, resource):
                return f'Resize is infeasible for Guaranteed Pods alongside {manager} Manager policy "{policy}"'
    if versions.behaviour(settings.minor).resize_checks_capacity:
        return _beyond_capacity(kubelet, state, wanted)
    return None


def _differs(kubelet: Kubelet, allocated: Pod, wanted: Pod, resource: str) -> bool:
    before = {container.name: container for container in allocated.in_admission_order()}
    return any(
        _request(container, resource) != _request(before[container.name], resource)
        for container in _resizable(kubelet, wanted)
        if container.name in before
    )


def _resizable(kubelet: Kubelet, pod: Pod) -> list[Container]:
    init_too = kubelet.settings.gate("InPlacePodVerticalScalingInitContainers")
    return [*(each for each in pod.spec.init_containers if init_too or each.is_sidecar), *pod.spec.containers]


def _request(container: Container, resource: str) -> object:
    return container.resources.requests.get(resource, ZERO)


def _beyond_capacity(kubelet: Kubelet, state: KubeletState, wanted: Pod) -> str | None:
    offered = predicates.allocatable(kubelet, state)
    total = requests.effective(wanted)
    cpu, memory = total.get(resourcenames.CPU, ZERO).milli, total.get(resourcenames.MEMORY, ZERO).value
    for resource, asked in ((resourcenames.MEMORY, memory), (resourcenames.CPU, cpu)):
        if asked > offered[resource]:
            return f"Node didn't have enough capacity: {resource}, requested: {asked}, capacity: {offered[resource]}"
    return None
