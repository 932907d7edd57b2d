"""A node's topology in one canonical form, for every publisher.

`normalise` makes it from a report of either version, `encode` writes it, `kubelet.report` builds it, and
`placement.reports` turns it into a row. Amounts are integers that fit int64: cpu in thousandths, everything else in
whole units. Zones have their real ids, which may have gaps, and everything is in ascending order."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.repairs import Guess
from numalign.api.nrt.fingerprint import Method
from numalign.api.nrt.placementcodec import Payload
from numalign.api.nrt.topologymanager import TopologyManager

MILLI_RESOURCES: Final = frozenset({"cpu"})


class Amounts(Struct, frozen=True):
    """The amounts of a resource in a zone: available <= allocatable <= capacity."""

    capacity: int
    allocatable: int
    available: int


class Zone(Struct, frozen=True, kw_only=True):
    """One NUMA node."""

    id: int
    resources: Mapping[str, Amounts] = field(default_factory=dict)
    costs: Mapping[int, int] = field(default_factory=dict)
    """Distance to each zone, itself included; empty where the publisher gives none."""
    attributes: Mapping[str, str] = field(default_factory=dict)


class Fingerprint(Struct, frozen=True):
    """Identifies the pods that the report covers; a malformed text matches no pods."""

    text: str
    method: Method = Method.ALL


class NodeTopology(Struct, frozen=True, kw_only=True):
    """Everything that a report contains about a node, and what its reader repaired."""

    node: str
    manager: TopologyManager = TopologyManager()
    zones: tuple[Zone, ...] = ()
    fingerprint: Fingerprint | None = None
    placement: Payload | None = None
    """Upstream's placement codec; resolve it with `placementcodec.decode`."""
    facts: NodeFacts = NodeFacts()
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Top-level attributes that are none of the above, as they came."""
    guesses: tuple[Guess, ...] = ()
