"""Topology reports: written canonically, read back equal, and readable with any content."""

import json
from operator import is_
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.deviceclasses import DeviceCount
from numalign.api.attributes.managers import MemoryZone
from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.decode import structs
from numalign.api.nrt import fingerprint, normalise, wire
from numalign.api.nrt.nodetopology import Amounts, Fingerprint, NodeTopology, Zone
from numalign.api.nrt.placementcodec import Payload
from numalign.api.nrt.topologymanager import TopologyManager
from tests import topology_strategies as some

EMPTY_SET = "pfp0v001ef46db3751d8e999"
QUIET = {"topologyManagerPolicy": "none", "topologyManagerScope": "container"}
ROOM = {"cpu": Amounts(4000, 4000, 2500)}
SMALL = NodeTopology(
    node="worker-7",
    manager=TopologyManager("single-numa-node", "pod"),
    zones=(Zone(id=0, resources=ROOM, costs={0: 10, 3: 21}), Zone(id=3, resources=ROOM, costs={0: 21, 3: 10})),
    fingerprint=Fingerprint(EMPTY_SET, fingerprint.Method.EXCLUSIVE),
)


def read(attributes: dict[str, str], annotation: str = "", **changes: Any) -> NodeTopology:
    """A report with one quiet zone, these attributes and this fingerprint annotation."""
    annotations = {normalise.FINGERPRINT_ANNOTATION: annotation} if annotation else {}
    zone = {"name": "node-0", "type": "Node"}
    listed = [{"name": name, "value": value} for name, value in attributes.items()]
    report = {"metadata": {"name": "n", "annotations": annotations}, "zones": [zone], "attributes": listed}
    return normalise.normalise(wire.decode(report | changes))


@given(some.topologies())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=40)
def test_a_topology_is_read_back_from_its_bytes(topology: NodeTopology) -> None:
    assert normalise.normalise(wire.decode(structs.encode(normalise.encode(topology)))) == topology


@pytest.mark.slow
@given(some.topologies())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=1_000)
def test_a_thousand_topologies_are_read_back_from_their_bytes(topology: NodeTopology) -> None:
    assert normalise.normalise(wire.decode(structs.encode(normalise.encode(topology)))) == topology


@given(some.topologies())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=20)
def test_v1alpha1_keeps_zones_policy_and_scope(topology: NodeTopology) -> None:
    again = normalise.normalise(wire.decode(structs.encode(normalise.encode(topology, "v1alpha1"))))
    assert (again.node, again.zones, again.manager.policy) == (topology.node, topology.zones, topology.manager.policy)
    assert topology.manager.policy == "none" or again.manager.scope == topology.manager.scope


def test_the_object_is_what_stock_consumers_read() -> None:
    written = json.loads(structs.encode(normalise.encode(SMALL)))
    assert written["apiVersion"] == "topology.node.k8s.io/v1alpha2"
    assert written["zones"][1] == {
        "name": "node-3",
        "type": "Node",
        "costs": [{"name": "node-0", "value": 21}, {"name": "node-3", "value": 10}],
        "resources": [{"name": "cpu", "capacity": "4", "allocatable": "4", "available": "2500m"}],
    }
    assert {pair["name"]: pair["value"] for pair in written["attributes"]} == {
        "nodeTopologyPodsFingerprint": EMPTY_SET,
        "nodeTopologyPodsFingerprintMethod": "with-exclusive-resources",
        "topologyManagerMaxNUMANodes": "8",
        "topologyManagerPolicy": "single-numa-node",
        "topologyManagerScope": "pod",
    }


def test_v1alpha1_has_policy_and_scope_in_one_token_and_no_attributes() -> None:
    written = json.loads(structs.encode(normalise.encode(SMALL, "v1alpha1")))
    assert written["topologyPolicies"] == ["SingleNUMANodePodLevel"]
    assert "attributes" not in written
    assert "annotations" not in written["metadata"]


def test_what_two_reports_say_alike_is_the_same_object() -> None:
    memory = tuple(MemoryZone(zone=zone, assignments=1, cells=1 << zone, free={"memory": 1 << 30}) for zone in (0, 1))
    devices = (DeviceCount(resource="example.com/nic", zones=1, total=4, healthy=4, free=3),)
    distances = {0: 10, 1: 21}
    zones = (Zone(id=0, resources={"cpu": Amounts(8000, 7000, 5000)}, costs=distances), Zone(id=1, resources={}))
    written = normalise.encode(NodeTopology(node="n", zones=zones, facts=NodeFacts(memory=memory, devices=devices)))
    one, other = (normalise.normalise(wire.decode(structs.encode(written))) for _ in range(2))
    assert one.zones[0].resources["cpu"] is other.zones[0].resources["cpu"]
    assert one.zones[0].costs is other.zones[0].costs
    assert all(map(is_, one.facts.memory or (), other.facts.memory or ()))
    assert all(map(is_, one.facts.devices or (), other.facts.devices or ()))


def test_equal_topologies_give_equal_bytes() -> None:
    shuffled = msgspec.structs.replace(SMALL, zones=SMALL.zones[::-1])
    assert structs.encode(normalise.encode(shuffled)) == structs.encode(normalise.encode(SMALL))


FINGERPRINTS: dict[str, tuple[dict[str, str], str, Fingerprint | None, list[GuessCode]]] = {
    "none": ({}, "", None, []),
    "attribute": ({normalise.FINGERPRINT: EMPTY_SET}, "", Fingerprint(EMPTY_SET), []),
    "attribute and equal annotation": ({normalise.FINGERPRINT: EMPTY_SET}, EMPTY_SET, Fingerprint(EMPTY_SET), []),
    "annotation alone": ({}, EMPTY_SET, Fingerprint(EMPTY_SET), [GuessCode.FINGERPRINT_FROM_ANNOTATION]),
    "annotation left behind": (
        {normalise.FINGERPRINT: EMPTY_SET}, "old", Fingerprint(EMPTY_SET), [GuessCode.FINGERPRINT_DISAGREES],
    ),
    "malformed": ({normalise.FINGERPRINT: "abc"}, "", Fingerprint("abc"), [GuessCode.FINGERPRINT_MALFORMED]),
    "empty": ({normalise.FINGERPRINT: ""}, "", None, [GuessCode.FINGERPRINT_MALFORMED]),
    "exclusive": (
        {normalise.FINGERPRINT: EMPTY_SET, normalise.FINGERPRINT_METHOD: "with-exclusive-resources"}, "",
        Fingerprint(EMPTY_SET, fingerprint.Method.EXCLUSIVE), [],
    ),
    "unknown method": (
        {normalise.FINGERPRINT: EMPTY_SET, normalise.FINGERPRINT_METHOD: "some"}, "", Fingerprint(EMPTY_SET),
        [GuessCode.FINGERPRINT_METHOD_UNKNOWN],
    ),
    "a method counts for the attribute only": (
        {normalise.FINGERPRINT_METHOD: "with-exclusive-resources"}, EMPTY_SET, Fingerprint(EMPTY_SET),
        [GuessCode.FINGERPRINT_FROM_ANNOTATION],
    ),
}  # fmt: skip


@pytest.mark.parametrize("attributes, annotation, expected, codes", FINGERPRINTS.values(), ids=FINGERPRINTS)
def test_the_fingerprint_is_the_attributes_else_the_annotations(
    attributes: dict[str, str], annotation: str, expected: Fingerprint | None, codes: list[GuessCode]
) -> None:
    topology = read(QUIET | attributes, annotation)
    assert topology.fingerprint == expected
    assert [guess.code for guess in topology.guesses] == codes


def test_placement_vectors_leave_the_zones_and_join_the_metadata() -> None:
    vector = {"name": normalise.PLACEMENT_VECTOR, "value": "#"}
    zones = [{"name": "node-0", "type": "Node"}, {"name": "node-1", "type": "Node", "attributes": [vector]}]
    topology = read({normalise.PLACEMENT_METADATA: "npv0v001::ve=leb89::cc=4::nn=2::bn=0"}, zones=zones)
    assert topology.placement == Payload(containers=4, zones=2, busiest=0, encoding="leb89", vectors={1: "#"})
    assert topology.zones[1].attributes == {}


@pytest.mark.parametrize("metadata", ["", "npv0v002::x=1", "npv0v001::ve=leb89::cc=1::nn=1::bn=7"])
def test_a_broken_placement_is_left_out_and_noted(metadata: str) -> None:
    topology = read(QUIET | {normalise.PLACEMENT_METADATA: metadata})
    assert topology.placement is None
    assert [guess.code for guess in topology.guesses] == [GuessCode.PLACEMENT_INVALID]


def test_attributes_of_others_stay_as_they_are() -> None:
    topology = read(QUIET | {"cpu_core": "0-7"})
    assert (topology.attributes, topology.guesses) == ({"cpu_core": "0-7"}, ())


def test_more_zones_than_the_limit_allows_are_noted() -> None:
    zones = [{"name": f"node-{zone}", "type": "Node"} for zone in range(9)]
    topology = read({"topologyManagerPolicy": "restricted", "topologyManagerScope": "pod"}, zones=zones)
    assert (
        Guess(GuessCode.MAX_ZONES_ASSUMED, "attributes[topologyManagerMaxNUMANodes]", "9 zones", "8")
        in topology.guesses
    )


def test_a_version_of_tomorrow_is_read_and_noted() -> None:
    topology = read(QUIET, apiVersion="topology.node.k8s.io/v1beta1")
    assert topology.guesses == (Guess(GuessCode.API_VERSION_UNKNOWN, "apiVersion", '"topology.node.k8s.io/v1beta1"'),)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["topologyPolicies", "zones", "attributes"]), JUNK))
def test_no_report_with_a_name_is_lost(document: dict[str, Any]) -> None:
    assert normalise.normalise(wire.decode(document | {"metadata": {"name": "n"}})).node == "n"


def test_what_could_not_be_decoded_is_among_the_guesses() -> None:
    assert Guess(GuessCode.UNREADABLE, "zones", "5") in read({}, zones=5).guesses
