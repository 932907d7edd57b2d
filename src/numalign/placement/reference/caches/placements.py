"""Where the containers of a node are, read from its report with the pods of the last refresh in hand.

The over-reserve cache asks once per refresh, for preemption. Anything that does not fit together, a malformed vector
included, means that nothing is known: an empty placement, never an error (scheduler plugin spec 15.7)."""

import re
from collections.abc import Iterable
from typing import Final

from numalign.api.nrt import attributelist, normalise, placementcodec, topologymanager
from numalign.api.nrt.placementcodec import ContainerRef, Payload, PlacementError
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.placement.reference.caches.cache import Placement
from numalign.placement.reference.caches.records import Record

POLICY: Final = "single-numa-node"
ZONE_ID: Final = re.compile(r"(?:node-)?([+-]?[0-9]{1,18})")
UNKNOWN: Final[Placement] = {}


def read(report: NodeResourceTopology, records: Iterable[Record]) -> Placement:
    containers = [ContainerRef(pod.namespace, pod.name, name) for pod in records for name in pod.pinned]
    # Only the attribute counts here, and the first of it, unlike everywhere else.
    if attributelist.get(report.attributes, topologymanager.POLICY) != POLICY:
        return UNKNOWN
    try:
        payload = _payload(report)
        return placementcodec.decode(payload, containers) if len(containers) == payload.containers else UNKNOWN
    except PlacementError:
        return UNKNOWN


def _payload(report: NodeResourceTopology) -> Payload:
    metadata = attributelist.get(report.attributes, normalise.PLACEMENT_METADATA) or ""
    found = ((zone, attributelist.get(zone.attributes, normalise.PLACEMENT_VECTOR)) for zone in report.zones or ())
    vectors = {_zone_id(zone.name): vector for zone, vector in found if vector is not None}
    return placementcodec.parse_metadata(metadata, vectors)


def _zone_id(name: str) -> int:
    match = ZONE_ID.fullmatch(name)
    if match is None:
        why = "a zone with a vector has no number for a name"
        raise PlacementError(placementcodec.PayloadDefect.CORRUPTED_VECTOR, why)
    return int(match[1])
