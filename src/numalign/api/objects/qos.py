"""The QoS class of a pod, which decides whether the kubelet's managers pin it (kubelet spec 1.1).

The kubelet model, the shapes and the reference plugin call `of`. The class in the pod's status takes precedence;
otherwise it follows from requests and limits, which must be defaulted."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from numalign.api.decode import quantity
from numalign.api.objects import requests, resourcenames
from numalign.api.objects.pod import Pod, ResourceRequirements


class QoS(StrEnum):
    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


KNOWN: Final = frozenset(QoS)


def of(pod: Pod) -> QoS:
    written = pod.status.qos_class
    return QoS(written) if written in KNOWN else computed(pod)


def may_be_aligned(service: QoS, resources: Iterable[str]) -> bool:
    """Whether a kubelet may pin something of such a pod: CPUs and memory of Guaranteed pods, devices of any pod."""
    return service is QoS.GUARANTEED or any(map(resourcenames.is_extended, resources))


def computed(pod: Pod) -> QoS:
    """The class by requests and limits alone, without the status."""
    if requests.has_pod_level_resources(pod):
        return of_requirements(pod.spec.resources)
    return agreed({of_requirements(container.resources) for container in pod.in_admission_order()})


def of_requirements(resources: ResourceRequirements) -> QoS:
    if not resources.requests and not resources.limits:
        return QoS.BEST_EFFORT
    cpu, memory = of_resource(resources, resourcenames.CPU), of_resource(resources, resourcenames.MEMORY)
    return cpu if cpu is memory else QoS.BURSTABLE


def of_resource(resources: ResourceRequirements, name: str) -> QoS:
    request = resources.requests.get(name, quantity.ZERO).nanos
    if request != resources.limits.get(name, quantity.ZERO).nanos:
        return QoS.BURSTABLE
    return QoS.GUARANTEED if request else QoS.BEST_EFFORT


def agreed(classes: set[QoS]) -> QoS:
    """The class of all, or Burstable if they differ; BestEffort if there are none."""
    if len(classes) > 1:
        return QoS.BURSTABLE
    return next(iter(classes), QoS.BEST_EFFORT)
