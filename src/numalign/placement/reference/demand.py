"""A pod, prepared once for any number of nodes: its class, and what has to fit together on one NUMA node.

`of` makes a PodDemand from a pod; `filter`, `scoring` and `leastnuma` read nothing else of it. Amounts are whole
billionths, so that every comparison is exact.
"""

from typing import NamedTuple

from msgspec import Struct

from numalign.api.objects import qos, requests
from numalign.api.objects.pod import Pod, ResourceList
from numalign.api.objects.qos import QoS
from numalign.placement.reference import classes


class Need(NamedTuple):
    """More than none of a resource."""

    name: str
    amount: int
    counted: bool
    """False: it is enough that a zone lists the resource (scheduler plugin spec 6.1)."""
    host_level: bool


class Demand(Struct, frozen=True):
    """Requests that one NUMA node, or one set of them, has to meet together."""

    asked: tuple[tuple[str, int], ...]
    """Every name, with amounts of zero."""
    needs: tuple[Need, ...]


class InitDemand(Struct, frozen=True):
    demand: Demand
    sidecar: bool


class PodDemand(Struct, frozen=True):
    guaranteed: bool
    bypasses: bool
    """The plugin ignores this pod (scheduler plugin spec 5.2)."""
    init: tuple[InitDemand, ...]
    apps: tuple[Demand, ...]
    whole: Demand
    """The effective request, for nodes with scope pod."""

    @property
    def containers(self) -> tuple[Demand, ...]:
        return *(each.demand for each in self.init), *self.apps


def of(pod: Pod) -> PodDemand:
    quality = qos.of(pod)
    return PodDemand(
        guaranteed=quality is QoS.GUARANTEED,
        bypasses=quality is QoS.BEST_EFFORT and not classes.asks_for_devices(pod),
        init=tuple(
            InitDemand(wanted(each.resources.requests, quality), each.is_sidecar) for each in pod.spec.init_containers
        ),
        apps=tuple(wanted(each.resources.requests, quality) for each in pod.spec.containers),
        whole=wanted(effective(pod), quality),
    )


def wanted(amounts: ResourceList, quality: QoS) -> Demand:
    return Demand(
        asked=tuple((name, amount.nanos) for name, amount in amounts.items()),
        needs=tuple(_need(name, amount.nanos, quality) for name, amount in amounts.items() if amount.nanos),
    )


def effective(pod: Pod) -> ResourceList:
    """The pod's total as the plugin counts it: sidecars are init containers like any other, pod-level amounts are
    not read (scheduler plugin spec 5.3). `api.requests.effective` is what the node will really count."""
    largest: ResourceList = {}
    for container in pod.spec.init_containers:
        largest = requests.larger(largest, container.resources.requests)
    together: ResourceList = {}
    for container in pod.spec.containers:
        together = requests.added(together, container.resources.requests)
    return requests.added(requests.larger(together, largest), pod.spec.overhead)


def _need(name: str, amount: int, quality: QoS) -> Need:
    counted = quality is QoS.GUARANTEED or not classes.is_numa_affine(name)
    return Need(name, amount, counted, classes.is_host_level(name))
