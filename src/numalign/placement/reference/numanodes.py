"""A topology report as the plugin reads it: the settings, and a list of NUMA nodes with what is free on each.

`read` is called once per report; `filter` and `scoring` work on the result. The plugin takes zones as they come, in
any order and even twice, so this is not `api.nrt`, which repairs reports (scheduler plugin spec 4).
"""

from typing import Final

from msgspec import Struct

from numalign.api.attributes import grammar
from numalign.api.decode import quantity
from numalign.api.decode.quantity import Quantity
from numalign.api.nrt import topologymanager, wire
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.nrt.wire import Cost, NodeResourceTopology, PublishedZone, Written

MOST_IDS: Final = 64
"""The plugin's masks end here. It takes the id 64 itself and crashes; we leave that zone out with those above."""


class NumaNode(Struct, frozen=True):
    """One zone that stands for a NUMA node."""

    id: int
    free: dict[str, int]
    """What is available, in billionths; a resource with none left is still listed."""
    costs: dict[int, int] = {}


class Reading(Struct, frozen=True):
    """All that decisions need of one report. The report itself is for the simulation of evictions."""

    report: NodeResourceTopology
    manager: TopologyManager
    numa_nodes: tuple[NumaNode, ...]


def read(report: NodeResourceTopology) -> Reading:
    return Reading(
        report=report,
        manager=topologymanager.read(report.topology_policies, report.attributes, []),
        numa_nodes=of_zones(report.zones or ()),
    )


def of_zones(zones: tuple[PublishedZone, ...]) -> tuple[NumaNode, ...]:
    """The NUMA nodes in the order of the report. Of zones with the same id, the last one's costs count for all."""
    found = [(zone_id, zone) for zone in zones if (zone_id := _id_of(zone)) is not None]
    costs = {zone_id: _costs(zone.costs) for zone_id, zone in found}
    return tuple(NumaNode(zone_id, _free(zone), costs[zone_id]) for zone_id, zone in found)


def amount(written: Written) -> Quantity:
    """The quantity; none, where it is absent or no quantity."""
    if written is None:
        return quantity.ZERO
    try:
        return quantity.parse(written)
    except quantity.QuantityError:
        return quantity.ZERO


def id_in(name: str) -> int | None:
    try:
        return grammar.zone_id(name)
    except grammar.ZoneNameError:
        return None


def _id_of(zone: PublishedZone) -> int | None:
    zone_id = id_in(zone.name) if zone.type == wire.NUMA_ZONE else None
    return zone_id if zone_id is not None and zone_id < MOST_IDS else None


def _free(zone: PublishedZone) -> dict[str, int]:
    return {resource.name: amount(resource.available).nanos for resource in zone.resources}


def _costs(costs: tuple[Cost, ...]) -> dict[int, int]:
    named = ((id_in(cost.name), cost.value or 0) for cost in costs)
    return {zone_id: value for zone_id, value in named if zone_id is not None}
