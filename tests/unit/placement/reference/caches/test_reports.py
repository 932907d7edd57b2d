"""What a cache reads in a report, and that invalid amounts affect nothing else."""

import pytest
from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.nrt.wire import NodeResourceTopology, Resource, Written
from numalign.placement.reference.caches import reports
from tests.unit.placement.reference.caches import made


def with_cpu(available: Written, allocatable: Written = "10") -> NodeResourceTopology:
    resource = Resource(name="cpu", capacity="10", allocatable=allocatable, available=available)
    zones = (structs.replace(made.zone("node-0", {}), resources=(resource,)),)
    return structs.replace(made.report(), zones=zones)


LEFT = {
    "enough": ("10", "3", "7"),
    "just enough": ("3", "3", "0"),
    "not enough": ("2", "3", "0"),
    "fractions": ("1", "250m", "750m"),
    "a number": (10, "3", "7"),
    "negative": ("-4", "0", "0"),
    "no quantity": ("plenty", "3", "0"),
    "absent": (None, "3", "0"),
}


@pytest.mark.parametrize("available, taken, left", LEFT.values(), ids=LEFT)
def test_an_amount_is_taken_off_down_to_nothing(available: Written, taken: str, left: str) -> None:
    reduced = reports.reduced(with_cpu(available), {"cpu": quantity.parse(taken)})
    assert [resource.available for zone in reduced.zones or () for resource in zone.resources] == [left]


def test_without_amounts_the_report_is_the_same_object() -> None:
    report = with_cpu("plenty")
    assert reports.reduced(report, {}) is report
    assert reports.reduced(report, {"memory": quantity.of(1)}) == report


def test_a_report_without_zones_stays_without() -> None:
    assert not reports.reduced(NodeResourceTopology(), {"cpu": quantity.of(1)}).zones


PINNABLE = {
    "some": (with_cpu("3"), True),
    "all taken": (with_cpu("0"), True),
    "only the free amount is filled in": (with_cpu("3", "0"), True),
    "none at all": (with_cpu("0", "0"), False),
    "not readable": (with_cpu("x", None), False),
}


@pytest.mark.parametrize("report, pinnable", PINNABLE.values(), ids=PINNABLE)
def test_a_node_pins_what_it_has(report: NodeResourceTopology, pinnable: bool) -> None:
    assert reports.pinnable(report) == (frozenset({"cpu"}) if pinnable else frozenset())
