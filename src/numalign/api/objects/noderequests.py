"""What the pods on a node count for, in-place resizes included.

The stock scheduler's rules charge nodes with `assigned` and score them with `scored`; a pod that waits for a node is
in `requests`. While a resize is under way the kubelet still holds the larger of what was asked, allocated and in
force, so that is what counts (kube-scheduler spec 2.2).
"""

from functools import reduce
from typing import Final

from numalign.api.decode import quantity
from numalign.api.objects import requests, resourcenames
from numalign.api.objects.pod import Container, ContainerStatus, Pod, ResourceList
from numalign.api.objects.resourcenames import CPU, MEMORY

LEAST: Final[ResourceList] = {CPU: quantity.of_milli(100), MEMORY: quantity.of(200 << 20)}
"""What a container counts for in scores if it does not say, so that a node fills up with such pods too."""
NOTHING: Final[ResourceList] = {}

RESIZE_PENDING: Final = "PodResizePending"
INFEASIBLE: Final = "Infeasible"


def assigned(pod: Pod, least: ResourceList = NOTHING) -> ResourceList:
    """What the pod counts for on its node; `least` stands in for what a container does not mention."""
    total = _of_containers(pod, least) | _pod_level(pod)
    return requests.added(total, pod.spec.overhead) if pod.spec.overhead else total


def scored(pod: Pod, real: ResourceList) -> ResourceList:
    """The same for scores; `real` is what `assigned` says (kube-scheduler spec 2.3)."""
    by_pod = any(map(resourcenames.is_pod_level, pod.spec.resources.requests))
    least = {name: amount for name, amount in LEAST.items() if not by_pod or name not in real}
    told = (container.resources.requests for container in pod.in_admission_order())
    if not is_resized(pod) and all(name in amounts for amounts in told for name in least):
        return real
    return assigned(pod, least)


def is_resized(pod: Pod) -> bool:
    """Whether the status may say something else than the spec; for nearly all pods it does not."""
    status = pod.status
    if not (status.container_statuses or status.conditions or status.init_container_statuses or status.resources):
        return False
    if pod.status.resources is not None or _resize_refused(pod):
        return True
    statuses = [each for each in _statuses(pod) if each.allocated_resources or each.resources.requests]
    if not statuses:
        return False
    asked = {container.name: container.resources.requests for container in pod.in_admission_order()}
    return any(_differs(each, asked.get(each.name)) for each in statuses)


def unplaced(pod: Pod, least: ResourceList) -> ResourceList:
    """What a waiting pod adds to a node's score; its pod-level amounts do not enter (kube-scheduler spec 1.9)."""
    return requests.added(requests.of_containers(pod, lambda each: least | each.resources.requests), pod.spec.overhead)


def _of_containers(pod: Pod, least: ResourceList) -> ResourceList:
    spec = requests.of_containers(pod, lambda each: _at_least(each.resources.requests, least))
    if not is_resized(pod):
        return spec
    held = _held_by_pod(pod) or _held_by_containers(pod, least)
    return reduce(requests.larger, held, NOTHING if _resize_refused(pod) else spec)


def _at_least(amounts: ResourceList, least: ResourceList) -> ResourceList:
    return least | amounts if least else amounts


def _held_by_pod(pod: Pod) -> tuple[ResourceList, ...]:
    """The kubelet's sums over the pod, once it reports both of them."""
    in_force = pod.status.resources.requests if pod.status.resources else NOTHING
    allocated = pod.status.allocated_resources
    return (in_force, allocated) if in_force and allocated else ()


def _held_by_containers(pod: Pod, least: ResourceList) -> tuple[ResourceList, ...]:
    refused = _resize_refused(pod)
    reports = {each.name: each for each in _statuses(pod)}

    def fallback(container: Container) -> ResourceList:
        return NOTHING if refused else container.resources.requests

    def allocated(container: Container) -> ResourceList:
        report = reports.get(container.name)
        return report.allocated_resources if report and report.allocated_resources else fallback(container)

    def in_force(container: Container) -> ResourceList:
        report = reports.get(container.name)
        return report.resources.requests if report and report.resources.requests else allocated(container)

    return (
        requests.of_containers(pod, lambda each: _at_least(in_force(each), least)),
        requests.of_containers(pod, lambda each: _at_least(allocated(each), least)),
    )


def _statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    return (*pod.status.init_container_statuses, *pod.status.container_statuses)


def _differs(status: ContainerStatus, asked: ResourceList | None) -> bool:
    allocated, in_force = status.allocated_resources, status.resources.requests
    return asked is not None and bool((allocated and allocated != asked) or (in_force and in_force != asked))


def _pod_level(pod: Pod) -> ResourceList:
    whole = pod.spec.resources.requests
    if not any(map(resourcenames.is_pod_level, whole)):
        return NOTHING
    if pod.status.resources is not None:
        held = requests.larger(pod.status.resources.requests, pod.status.allocated_resources)
        whole = held if _resize_refused(pod) else requests.larger(whole, held)
    return {name: amount for name, amount in whole.items() if resourcenames.is_pod_level(name)}


def _resize_refused(pod: Pod) -> bool:
    pending = next((each for each in pod.status.conditions if each.type == RESIZE_PENDING), None)
    return pending is not None and pending.reason == INFEASIBLE
