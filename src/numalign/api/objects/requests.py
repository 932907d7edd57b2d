"""What a pod asks for: per container as the API server completes it, and in total as everybody counts it.

`defaulted` is for pods that never went through an API server (files, simulations); `effective` is the total that
the stock scheduler and the kubelet hold against a node (kube-scheduler spec, pod requests).
"""

from collections.abc import Callable, Iterable

from msgspec import structs

from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Container, Pod, ResourceList, ResourceRequirements


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
    """The same over the containers' limits, overhead left out: what the device manager counts (kubelet spec 7.2)."""
    return of_containers(pod, _limits)


def capped(pod: Pod) -> ResourceList:
    """The total over limits as the stock scheduler tells it: pod-level amounts win, overhead raises what is limited."""
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
    """The containers' part of the total, by whatever amounts are told for each."""
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
