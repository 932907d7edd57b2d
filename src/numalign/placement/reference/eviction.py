"""A node's report as it would be without the victims of a preemption.

`filter` calls `simulate` when a cycle has victims and the cache knows where containers sit. Only app containers give
something back, and only what they hold exclusively (scheduler plugin spec 16.4).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import structs

from numalign.api.decode.quantity import Quantity
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.nrt.wire import NodeResourceTopology, PublishedZone, Resource
from numalign.api.objects import qos
from numalign.api.objects.pod import Pod, ResourceList
from numalign.api.objects.qos import QoS
from numalign.placement.reference import classes, numanodes

PREFIX: Final = "eviction simulation in NRT is not possible:"
"""Followed by the cause, without a space."""


class Impossible(StrEnum):
    """Why there is no such report, in the plugin's words."""

    NO_REPORT = "NRT not found, cannot process eviction simulation"
    NO_VICTIMS = "no victims found, cannot process eviction simulation"
    NO_PLACEMENT = "numa placement info not found, cannot process eviction simulation"
    NO_CONTAINERS = "no containers found in numa placement info, cannot process eviction simulation"
    NOTHING_TO_ADD = "no resources to add, cannot process eviction simulation"
    EXCEEDS_ALLOCATABLE = "resource release request exceeds NUMA allocatable"


Released = dict[int, ResourceList]
"""Released amounts by NUMA node."""


def simulate(
    report: NodeResourceTopology | None, victims: Sequence[Pod], placement: Mapping[ContainerRef, int] | None
) -> NodeResourceTopology | Impossible:
    """The report with what the victims give back, or why it cannot be known."""
    if report is None:
        return Impossible.NO_REPORT
    if not victims:
        return Impossible.NO_VICTIMS
    if placement is None:
        return Impossible.NO_PLACEMENT
    if not placement:
        return Impossible.NO_CONTAINERS
    released = _released(victims, placement, classes.listed_by(report))
    return _with(report, released) if released else Impossible.NOTHING_TO_ADD


def _released(victims: Sequence[Pod], placement: Mapping[ContainerRef, int], listed: frozenset[str]) -> Released:
    total: Released = {}
    for pod in victims:
        quality = qos.of(pod)
        if quality is not QoS.GUARANTEED and not classes.asks_for_devices(pod):
            continue
        for container in pod.spec.containers:
            ref = ContainerRef(pod.metadata.namespace, pod.metadata.name, container.name)
            for name, amount in container.resources.requests.items():
                if ref in placement and classes.is_exclusive(quality, name, amount, listed):
                    _add(total.setdefault(placement[ref], {}), name, amount)
    return total


def _add(amounts: ResourceList, name: str, amount: Quantity) -> None:
    amounts[name] = amounts[name] + amount if name in amounts else amount


def _with(report: NodeResourceTopology, released: Released) -> NodeResourceTopology | Impossible:
    zones = []
    for zone in report.zones or ():
        given = released.get(-1 if (zone_id := numanodes.id_in(zone.name)) is None else zone_id)
        grown = _grown(zone, given) if given else zone
        if grown is None:
            return Impossible.EXCEEDS_ALLOCATABLE
        zones.append(grown)
    return structs.replace(report, zones=tuple(zones))


def _grown(zone: PublishedZone, given: ResourceList) -> PublishedZone | None:
    resources, waiting = list(zone.resources), dict(given)
    for place, resource in enumerate(resources):
        # Of a resource that is listed twice only the first entry grows; what a zone does not list is lost.
        if (amount := waiting.pop(resource.name, None)) is not None:
            available = numanodes.amount(resource.available) + amount
            if available > numanodes.amount(resource.allocatable):
                return None
            resources[place] = _offering(resource, available)
    return structs.replace(zone, resources=tuple(resources))


def _offering(resource: Resource, available: Quantity) -> Resource:
    return structs.replace(resource, available=str(available))
