"""Reads a topology report for the caches, and subtracts reservations from it.

The over-reserve cache and its resync call these; what the zones mean is for `numanodes`. An amount that is no quantity
counts as none, there and here: an invalid entry affects nothing else."""

from collections.abc import Mapping

from msgspec import Struct, structs

from numalign.api.decode import quantity
from numalign.api.decode.quantity import Quantity
from numalign.api.nrt import attributelist, fingerprint, normalise, topologymanager
from numalign.api.nrt.wire import NodeResourceTopology, Resource
from numalign.placement.reference import numanodes
from numalign.placement.referenceargs import ResyncMethod


class Signature(Struct, frozen=True):
    """The fingerprint of a report; without a text it covers no pods in particular."""

    text: str
    only_exclusive: bool = False


def signature(report: NodeResourceTopology, method: ResyncMethod) -> Signature:
    """The attribute's, even if it is empty, else the annotation's, which always means all pods (plugin spec 13.10)."""
    text = attributelist.get(report.attributes, normalise.FINGERPRINT)
    if text is None:
        return Signature(report.metadata.annotations.get(normalise.FINGERPRINT_ANNOTATION, ""))
    announced = attributelist.get(report.attributes, normalise.FINGERPRINT_METHOD)
    detected = method is ResyncMethod.AUTODETECT and announced == fingerprint.Method.EXCLUSIVE
    return Signature(text, only_exclusive=detected or method is ResyncMethod.ONLY_EXCLUSIVE)


def has_other_settings(old: NodeResourceTopology, new: NodeResourceTopology) -> bool:
    """Whether policy, scope or zone limit of the node's Topology Manager changed."""
    if old.attributes == new.attributes and old.topology_policies == new.topology_policies:
        return False
    return _settings(old) != _settings(new)


def pinnable(report: NodeResourceTopology) -> frozenset[str]:
    """The resources of which the node has any to pin: publishers leave out, or give as 0, what no manager hands out."""
    resources = (resource for zone in report.zones or () for resource in zone.resources)
    return frozenset(each.name for each in resources if _is_there(each))


def reduced(report: NodeResourceTopology, amounts: Mapping[str, Quantity]) -> NodeResourceTopology:
    """The report with the amounts subtracted from every zone of any type, not below zero (plugin spec 13.3)."""
    if not amounts:
        return report
    zones = tuple(
        structs.replace(zone, resources=tuple(_less(each, amounts) for each in zone.resources))
        for zone in report.zones or ()
    )
    return structs.replace(report, zones=zones)


def _settings(report: NodeResourceTopology) -> topologymanager.TopologyManager:
    return topologymanager.read(report.topology_policies, report.attributes, [])


def _is_there(resource: Resource) -> bool:
    # Some publishers fill in only one of the two (scheduler plugin spec, appendix).
    return any(numanodes.amount(each) > quantity.ZERO for each in (resource.allocatable, resource.available))


def _less(resource: Resource, amounts: Mapping[str, Quantity]) -> Resource:
    if resource.name not in amounts:
        return resource
    left = numanodes.amount(resource.available) - amounts[resource.name]
    return structs.replace(resource, available=str(left if left > quantity.ZERO else quantity.ZERO))
