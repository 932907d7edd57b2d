"""What every pod asks for and may use at most, as the stock scheduler tells it under /metrics/resources.

`serving` shows it, the leader's alone, so that nothing is counted twice. Pods that have ended are left out; amounts are
totals over containers as scheduler and kubelet count them (kube-scheduler spec 6.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from numalign.api.decode.quantity import NANO
from numalign.api.objects import requests, resourcenames
from numalign.api.objects.pod import FINISHED, Pod, ResourceList
from numalign.process.metrics import Gauge

LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
REQUEST: Final = Gauge("kube_pod_resource_request", "What pods ask for, by pod, with the resource's unit.", LABELS)
LIMIT: Final = Gauge("kube_pod_resource_limit", "What pods may use at most, by pod, with the resource's unit.", LABELS)
STORAGE: Final = "storage"
ATTACHABLE: Final = "attachable-volumes-"


def lines(pods: Iterable[Pod]) -> Iterator[str]:
    """One family after the other, each pod's in a row."""
    counted = [pod for pod in pods if not pod.spec.node_name or pod.status.phase not in FINISHED]
    for family, amounts in ((REQUEST, requests.effective), (LIMIT, requests.capped)):
        yield from family.head()
        for pod in counted:
            yield from _of_pod(family, pod, amounts(pod))


def _of_pod(family: Gauge, pod: Pod, amounts: ResourceList) -> Iterator[str]:
    meta, spec = pod.metadata, pod.spec
    who = (meta.namespace, meta.name, spec.node_name, spec.scheduler_name, str(spec.priority))
    for resource, amount in amounts.items():
        if amount.nanos:
            yield family.line((*who, resource, unit(resource)), amount.nanos / NANO)


def unit(resource: str) -> str:
    if resource == resourcenames.CPU:
        return "cores"
    if resource == STORAGE or resourcenames.is_bytes(resource):
        return "bytes"
    return "integer" if resource.startswith(ATTACHABLE) else ""
