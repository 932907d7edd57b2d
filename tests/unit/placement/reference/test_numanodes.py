from __future__ import annotations

import pytest
from msgspec import structs

from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.nrt.wire import Attribute, NodeResourceTopology, PublishedZone, Resource, Written
from numalign.placement.reference import numanodes
from tests.unit.placement.reference import made
from tests.unit.placement.reference.made import zone

NAMES = {"node-0": 0, "node-63": 63, "node-+1": 1, "node-01": 1, "node--0": 0}
OTHERS = ["numa-node-0", "node0", "Node-0", "node-", "node--1", "node-64", "node-65", "node-1x", ""]


@pytest.mark.parametrize("name", NAMES)
def test_a_zone_is_named_by_its_id(name: str) -> None:
    assert [node.id for node in numanodes.of_zones((zone(name),))] == [NAMES[name]]


@pytest.mark.parametrize("name", OTHERS)
def test_zones_of_other_names_are_left_out(name: str) -> None:
    assert numanodes.of_zones((zone(name), zone(1))) == numanodes.of_zones((zone(1),))


def test_zones_of_other_types_are_left_out() -> None:
    assert numanodes.of_zones((structs.replace(zone(0), type="node"), PublishedZone(name="node-1"))) == ()


def test_the_order_of_the_report_is_kept_and_ids_may_repeat() -> None:
    nodes = numanodes.of_zones((zone(2), zone(0, {0: 10}), zone(0, {0: 11})))
    assert [node.id for node in nodes] == [2, 0, 0]
    assert [node.costs for node in nodes] == [{}, {0: 11}, {0: 11}]


def test_of_a_resource_that_is_listed_twice_the_last_entry_counts() -> None:
    doubled = PublishedZone(
        name="node-0", type="Node", resources=(*zone(0, cpu=1).resources, *zone(0, cpu=2).resources)
    )
    assert numanodes.of_zones((doubled,))[0].free == {"cpu": 2 * 10**9}


AMOUNTS: dict[str, tuple[Written, int]] = {
    "text": ("1500m", 1_500_000_000),
    "a number": (3, 3_000_000_000),
    "a fraction": (0.5, 500_000_000),
    "absent": (None, 0),
    "no quantity": ("a lot", 0),
    "not even a number": (float("nan"), 0),
    "below zero": ("-1", -1_000_000_000),
}


@pytest.mark.parametrize("written, nanos", AMOUNTS.values(), ids=AMOUNTS)
def test_whatever_is_written_the_resource_is_listed(written: Written, nanos: int) -> None:
    odd = PublishedZone(name="node-0", type="Node", resources=(Resource(name="cpu", available=written),))
    assert numanodes.of_zones((odd,))[0].free == {"cpu": nanos}


def test_costs_are_by_the_id_in_their_name() -> None:
    (node,) = numanodes.of_zones((zone(0, {0: 10, 1: 20}),))
    assert node.costs == {0: 10, 1: 20}


REPORTS: dict[str, tuple[NodeResourceTopology, TopologyManager]] = {
    "nothing said": (NodeResourceTopology(), TopologyManager()),
    "attributes": (made.report(scope="pod", max_zones="4"), TopologyManager("single-numa-node", "pod", 4)),
    "the old list": (
        NodeResourceTopology(topology_policies=("RestrictedPodLevel", "BestEffortPodLevel")),
        TopologyManager("restricted", "pod"),
    ),
    "attributes over the old list": (
        NodeResourceTopology(
            topology_policies=("RestrictedPodLevel",),
            attributes=(Attribute(name="topologyManagerPolicy", value="single-numa-node"),),
        ),
        TopologyManager("single-numa-node", "pod"),
    ),
    "one zone is no maximum": (made.report(max_zones="1"), TopologyManager("single-numa-node")),
    "too many": (made.report(max_zones="2000"), TopologyManager("single-numa-node", max_zones=1024)),
}


@pytest.mark.parametrize("report, expected", REPORTS.values(), ids=REPORTS)
def test_settings_are_read_from_the_report(report: NodeResourceTopology, expected: TopologyManager) -> None:
    assert numanodes.read(report).manager == expected
