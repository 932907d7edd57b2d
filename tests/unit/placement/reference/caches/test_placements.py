"""Where containers are: only a placement that fits policy, pods and itself is believed."""

from collections.abc import Mapping

import pytest
from msgspec import structs

from numalign.api.nrt import normalise, placementcodec
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.nrt.wire import Attribute, NodeResourceTopology
from numalign.placement.reference.caches import placements
from numalign.placement.reference.caches.records import Record
from numalign.placement.reference.caches.rules import Rules
from tests.unit.placement.reference.caches import made

RECORDS = (Record("ns", "a", ("one", "two")), Record("ns", "b", ("one",)), Record("ns", "idle"))
ZONES = {ContainerRef("ns", "a", "one"): 0, ContainerRef("ns", "a", "two"): 1, ContainerRef("ns", "b", "one"): 1}
PAYLOAD = placementcodec.encode(ZONES, 2)
METADATA = {normalise.PLACEMENT_METADATA: PAYLOAD.metadata}


def placed(
    metadata: Mapping[str, str] = METADATA, names: tuple[str, str] = ("node-0", "node-1")
) -> NodeResourceTopology:
    report = made.report(attributes=metadata)
    vectors = {
        place: (Attribute(name=normalise.PLACEMENT_VECTOR, value=text),) for place, text in PAYLOAD.vectors.items()
    }
    found = enumerate(report.zones or ())
    zones = (structs.replace(zone, name=names[place], attributes=vectors.get(place, ())) for place, zone in found)
    return structs.replace(report, zones=tuple(zones))


def test_every_pinned_container_has_its_zone() -> None:
    assert placements.read(placed(), RECORDS) == ZONES


def test_a_zone_may_be_named_by_its_number_alone() -> None:
    assert placements.read(placed(names=("0", "node-+1")), RECORDS) == ZONES


LEGACY = structs.replace(placed(), attributes=placed().attributes[1:], topology_policies=("SingleNUMANodePodLevel",))
UNKNOWN = {
    "no pods": (placed(), ()),
    "a pod too few": (placed(), RECORDS[:1]),
    "a pod too many": (placed(), (*RECORDS, Record("ns", "c", ("one",)))),
    "a pod twice": (placed(), (*RECORDS, RECORDS[1])),
    "another policy": (placed(METADATA | {made.POLICY: "restricted"}), RECORDS),
    "policy in the deprecated list only": (LEGACY, RECORDS),
    "no metadata": (placed({}), RECORDS),
    "malformed metadata": (placed({normalise.PLACEMENT_METADATA: "npv0v001::cc"}), RECORDS),
    "no containers": (placed({normalise.PLACEMENT_METADATA: "npv0v001::ve=leb89::cc=0::nn=2::bn=0"}), ()),
    "a zone without a number": (placed(names=("numa-0", "node-1")), RECORDS),
    "a zone that is not there": (placed(names=("node-7", "node-1")), RECORDS),
}


@pytest.mark.parametrize("report, records", UNKNOWN.values(), ids=UNKNOWN)
def test_what_does_not_fit_together_is_not_believed(report: NodeResourceTopology, records: tuple[Record, ...]) -> None:
    assert placements.read(report, records) == {}


@pytest.mark.parametrize("vector", ["\N{SNOWMAN}", "~", "!!", "!" * 5000])
def test_a_broken_vector_is_no_error(vector: str) -> None:
    report = placed()
    broken = (Attribute(name=normalise.PLACEMENT_VECTOR, value=vector),)
    zones = tuple(structs.replace(zone, attributes=broken if zone.attributes else ()) for zone in report.zones or ())
    assert placements.read(structs.replace(report, zones=zones), RECORDS) == {}


def test_placement_is_known_from_the_first_refresh_on_and_only_for_preemption() -> None:
    pod = made.pod()
    where = {ContainerRef("default", "p", "main"): 1}
    metadata = {normalise.PLACEMENT_METADATA: placementcodec.encode(where, 2).metadata}
    report = made.signed(made.report(attributes=metadata), [pod])
    for preempts, afterwards in ((True, where), (False, {})):
        cache = made.over_reserve(report, rules=Rules(keeps_records=preempts))
        assert cache.placement("n") == {}
        cache.rejected("n")
        made.round_of(cache, [report], [pod])
        assert cache.placement("n") == afterwards
