"""The QoS class as Kubernetes 1.34 computes it; v0.34.7 of the plugin is built with that version.

`history` writes it into the status of pods, where it takes precedence over `api.qos`. It differs for pods with an empty
`spec.resources`, and where requests and limits differ per container but not in sum (docs/develop/oracle-reference.md,
7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.objects import qos, requests, resourcenames
from numalign.api.objects.pod import Pod, ResourceList
from numalign.api.objects.qos import QoS

COMPUTE: Final = frozenset({resourcenames.CPU, resourcenames.MEMORY})


def stamped(pod: Pod, raw: Mapping[str, Any]) -> Pod:
    """`raw` shows whether pod-level resources were given at all, which the struct does not keep."""
    if pod.status.qos_class in qos.KNOWN:
        return pod
    computed = of(pod, pod_level=(raw.get("spec") or {}).get("resources") is not None)
    if computed is qos.computed(pod):
        return pod
    return structs.replace(pod, status=structs.replace(pod.status, qos_class=computed))


def of(pod: Pod, *, pod_level: bool) -> QoS:
    counted = [pod.spec.resources] if pod_level else [each.resources for each in pod.in_admission_order()]
    asked, limited = _sum(each.requests for each in counted), _sum(each.limits for each in counted)
    if not asked and not limited:
        return QoS.BEST_EFFORT
    # Pod-level resources without limits do not matter here; the sums differ then.
    has_limits = all(_positive(each.limits).keys() == COMPUTE for each in counted if each.limits or not pod_level)
    return QoS.GUARANTEED if has_limits and asked == limited else QoS.BURSTABLE


def _positive(amounts: ResourceList) -> ResourceList:
    return {name: amount for name, amount in amounts.items() if name in COMPUTE and amount > quantity.ZERO}


def _sum(lists: Iterable[ResourceList]) -> ResourceList:
    total: ResourceList = {}
    for amounts in lists:
        total = requests.added(total, _positive(amounts))
    return total
