"""What a pod requests: per container as the API server completes it, in total, and as charged to its node.

`defaulted` is for pods that never passed an API server (files, simulations). `effective` is the total that
kube-scheduler and the kubelet compare with a node (kube-scheduler spec, pod requests). The rules charge nodes with
`assigned` and score them with `scored`: during an in-place resize, the largest of the requested, allocated and actual
amounts counts (kube-scheduler spec 2.2)."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Final

from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Container, ContainerStatus, Pod, ResourceList, ResourceRequirements
from numalign.api.objects.resourcenames import CPU, MEMORY


def has_pod_level_resources(pod: Pod) -> bool:
    """`spec.resources` counts only if it mentions cpu, memory or hugepages (kubelet spec 10)."""
    whole = pod.spec.resources
    return any(map(resourcenames.is_pod_level, whole.requests)) or any(map(resourcenames.is_pod_level, whole.limits))


def effective(pod: Pod) -> ResourceList:
    """The pod's total: what runs at the same time added up, or its largest init step; pod-level amounts win."""
    whole = pod.spec.resources.requests
    total = of_containers(pod, _requests) | {name: whole[name] for name in whole if resourcenames.is_pod_level(name)}
    return added(total, pod.spec.overhead)


def effective_limits(pod: Pod) -> ResourceList:
    """The same over the containers' limits, without overhead, as the device manager counts (kubelet spec 7.2)."""
    return of_containers(pod, _limits)


def capped(pod: Pod) -> ResourceList:
    """The total of limits as kube-scheduler computes it: pod-level amounts take precedence, overhead is added to
    limited resources."""
    whole = pod.spec.resources.limits
    total = of_containers(pod, _limits) | {name: whole[name] for name in whole if resourcenames.is_pod_level(name)}
    return added(total, {name: more for name, more in pod.spec.overhead.items() if name in total and total[name].nanos})


def defaulted(pod: Pod) -> Pod:
    """The pod with the requests and pod-level amounts that the API server would fill in when it is created."""
    spec = structs.replace(
        pod.spec,
        init_containers=tuple(map(_container_defaulted, pod.spec.init_containers)),
        containers=tuple(map(_container_defaulted, pod.spec.containers)),
    )
    completed = structs.replace(pod, spec=spec)
    if not spec.resources.requests and not spec.resources.limits:
        return completed
    return structs.replace(completed, spec=structs.replace(spec, resources=_pod_level_defaulted(completed)))


def of_containers(pod: Pod, amounts: Callable[[Container], ResourceList]) -> ResourceList:
    """The containers' part of the total, with `amounts` of each container."""
    if not pod.spec.init_containers:
        return together(map(amounts, pod.spec.containers))
    # A sidecar keeps running while later init containers run, and beside the app containers.
    sidecars: ResourceList = {}
    peak: ResourceList = {}
    for container in pod.spec.init_containers:
        if container.is_sidecar:
            running = sidecars = added(sidecars, amounts(container))
        else:
            running = added(amounts(container), sidecars)
        peak = larger(peak, running)
    return larger(added(together(map(amounts, pod.spec.containers)), sidecars), peak)


def together(each: Iterable[ResourceList]) -> ResourceList:
    total: ResourceList = {}
    for amounts in each:
        for name, amount in amounts.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def added(left: ResourceList, right: ResourceList) -> ResourceList:
    return together((left, right))


def larger(left: ResourceList, right: ResourceList) -> ResourceList:
    return left | {name: amount for name, amount in right.items() if name not in left or amount > left[name]}


def _container_defaulted(container: Container) -> Container:
    wants = container.resources
    completed = ResourceRequirements(requests=wants.limits | wants.requests, limits=wants.limits)
    return structs.replace(container, resources=completed)


# Since 1.37 the API server fills in pod-level limits too, which can make a pod Guaranteed; 1.34 to 1.36 do not.
def _pod_level_defaulted(pod: Pod) -> ResourceRequirements:
    requests, limits = dict(pod.spec.resources.requests), dict(pod.spec.resources.limits)
    asked, capped = of_containers(pod, _requests), of_containers(pod, _limits)
    for name in filter(resourcenames.is_hugepages, capped):
        if name not in requests:
            limits.setdefault(name, capped[name])
    for name in (resourcenames.CPU, resourcenames.MEMORY):
        if name in asked:
            requests.setdefault(name, asked[name])
    for name in filter(resourcenames.is_pod_level, limits):
        requests.setdefault(name, limits[name])
    for name in filter(resourcenames.is_pod_level, requests):
        if name in capped and all(name in container.resources.limits for container in pod.in_admission_order()):
            limits.setdefault(name, max(capped[name], requests[name]))
    return ResourceRequirements(requests=requests, limits=limits)


def _requests(container: Container) -> ResourceList:
    return container.resources.requests


def _limits(container: Container) -> ResourceList:
    return container.resources.limits


LEAST: Final[ResourceList] = {CPU: quantity.of_milli(100), MEMORY: quantity.of(200 << 20)}
"""The amounts of a container without requests in scores, so that such pods count, too."""
NOTHING: Final[ResourceList] = {}

RESIZE_PENDING: Final = "PodResizePending"
INFEASIBLE: Final = "Infeasible"


def assigned(pod: Pod, least: ResourceList = NOTHING) -> ResourceList:
    """The amounts that the pod takes on its node; `least` replaces amounts that a container does not set."""
    total = _of_containers(pod, least) | _pod_level(pod)
    return added(total, pod.spec.overhead) if pod.spec.overhead else total


def scored(pod: Pod, real: ResourceList) -> ResourceList:
    """The same for scores; `real` is the result of `assigned` (kube-scheduler spec 2.3)."""
    by_pod = any(map(resourcenames.is_pod_level, pod.spec.resources.requests))
    least = {name: amount for name, amount in LEAST.items() if not by_pod or name not in real}
    requested = (container.resources.requests for container in pod.in_admission_order())
    if not is_resized(pod) and all(name in amounts for amounts in requested for name in least):
        return real
    return assigned(pod, least)


def is_resized(pod: Pod) -> bool:
    """Whether the status may differ from the spec; for nearly all pods it does not."""
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
    """What a waiting pod adds to a node's score; pod-level amounts do not count (kube-scheduler spec 1.9)."""
    return added(of_containers(pod, lambda each: least | each.resources.requests), pod.spec.overhead)


def _of_containers(pod: Pod, least: ResourceList) -> ResourceList:
    spec = of_containers(pod, lambda each: _at_least(each.resources.requests, least))
    if not is_resized(pod):
        return spec
    held = _held_by_pod(pod) or _held_by_containers(pod, least)
    return reduce(larger, held, NOTHING if _resize_refused(pod) else spec)


def _at_least(amounts: ResourceList, least: ResourceList) -> ResourceList:
    return least | amounts if least else amounts


def _held_by_pod(pod: Pod) -> tuple[ResourceList, ...]:
    """The kubelet's sums over the pod, if it reports both of them."""
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
        of_containers(pod, lambda each: _at_least(in_force(each), least)),
        of_containers(pod, lambda each: _at_least(allocated(each), least)),
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
        held = larger(pod.status.resources.requests, pod.status.allocated_resources)
        whole = held if _resize_refused(pod) else larger(whole, held)
    return {name: amount for name, amount in whole.items() if resourcenames.is_pod_level(name)}


def _resize_refused(pod: Pod) -> bool:
    pending = next((each for each in pod.status.conditions if each.type == RESIZE_PENDING), None)
    return pending is not None and pending.reason == INFEASIBLE
