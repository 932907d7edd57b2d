"""Devices by zone set: each device is counted once, whether it is on several zones or on none."""

import pytest
from hypothesis import given

from numalign.api.attributes import deviceclasses
from numalign.api.attributes.deviceclasses import DeviceCount
from numalign.api.attributes.grammar import AttributeTextError
from tests import topology_strategies as some

NICS = (
    DeviceCount(resource="example.com/nic", zones=None, total=1, healthy=1, free=1),
    DeviceCount(resource="example.com/nic", zones=0, total=2, healthy=2, free=2),
    DeviceCount(resource="example.com/nic", zones=0b1, total=4, healthy=4, free=3),
    DeviceCount(resource="example.com/nic", zones=0b11, total=1, healthy=0, free=0),
)
REFUSED = {
    "more free than healthy": "example.com/nic=0:4/3/4",
    "more healthy than all": "example.com/nic=0:2/3/1",
    "two counts only": "example.com/nic=0:4/4",
    "no resource": "=0:1/1/1",
    "class twice": "a/b=0:1/1/1;a/b=0:1/1/1",
    "zones backwards": "a/b=3-1:1/1/1",
}


def test_every_kind_of_zone_set_has_its_text() -> None:
    name = "example.com/nic"
    assert deviceclasses.encode(NICS) == f"{name}=none:1/1/1;{name}=:2/2/2;{name}=0:4/4/3;{name}=0-1:1/0/0"


@given(some.DEVICES)
def test_classes_are_read_back(classes: tuple[DeviceCount, ...]) -> None:
    assert deviceclasses.decode(deviceclasses.encode(classes)) == classes


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_counts_that_make_no_sense_are_refused(body: str) -> None:
    with pytest.raises(AttributeTextError):
        deviceclasses.decode(body)
