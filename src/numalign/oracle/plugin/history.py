"""A history with its objects decoded: a cluster and its events, step by step.

`replay` runs it. Recorded answers are left out, so that no replay can use them. Pods may carry the QoS class of
Kubernetes 1.34, with which v0.34.7 of the plugin is built: it differs for pods with an empty `spec.resources`, and
where requests and limits differ per container but not in sum (docs/develop/oracle-reference.md, 7)."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import structs

from numalign.api.decode import decode, quantity
from numalign.api.decode.structs import Wire
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects import qos, requests, resourcenames
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod, ResourceList
from numalign.api.objects.qos import QoS
from numalign.oracle.harness.divergence import Case
from numalign.oracle.plugin.generate.clusters import PROFILE

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


class HistoryStep(Wire, frozen=True):
    """One event; its fields depend on `op` (docs/develop/oracle-reference.md)."""

    op: str
    pod: Pod = Pod()
    node: str = ""
    nodes: tuple[str, ...] | None = None
    nrt: NodeResourceTopology = NodeResourceTopology()


class History(Wire, frozen=True):
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    profile_names: tuple[str, ...] = (PROFILE,)
    nodes: tuple[Node, ...] = ()
    nrts: tuple[NodeResourceTopology, ...] = ()
    pods: tuple[Pod, ...] = ()
    steps: tuple[HistoryStep, ...] = ()


def read(raw: Case) -> History:
    return decode.decode(History, msgspec.json.encode(raw))


def with_old_classes(history: History, raw: Case) -> History:
    """The same history, with the QoS class of Kubernetes 1.34 written into pods where it differs."""
    pods = tuple(stamped(*each) for each in zip(history.pods, raw.get("pods") or (), strict=True))
    steps = tuple(_stamped(*each) for each in zip(history.steps, raw["steps"], strict=True))
    is_same = pods == history.pods and steps == history.steps
    return history if is_same else structs.replace(history, pods=pods, steps=steps)


def _stamped(step: HistoryStep, raw: Case) -> HistoryStep:
    pod = stamped(step.pod, raw["pod"]) if "pod" in raw else step.pod
    return step if pod is step.pod else structs.replace(step, pod=pod)
