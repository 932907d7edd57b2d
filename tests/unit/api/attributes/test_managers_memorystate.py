"""The memory manager's table: groups, counters and free memory come back exactly."""

import pytest
from hypothesis import given

from numalign.api.attributes import managers
from numalign.api.attributes.grammar import AttributeTextError
from numalign.api.attributes.managers import MemoryZone
from tests import topology_strategies as some

GROUP = (
    MemoryZone(zone=0, assignments=2, cells=0b11, free={"memory": 10 << 30, "hugepages-1Gi": 0}),
    MemoryZone(zone=1, assignments=2, cells=0b11, free={"memory": 0}),
)
REFUSED = {
    "no cells": "0:2:memory=1",
    "negative counter": "0:-1:0:memory=1",
    "cells with commas": "0:1:0,1:memory=1",
    "no amount": "0:1:0:memory",
    "zone twice": "0:0:0:memory=1;0:0:0:memory=2",
    "zone too high": "65536:0:0:memory=1",
}


def test_zones_of_a_group_name_each_other() -> None:
    assert managers.encode_memory_state(GROUP) == "0:2:0-1:hugepages-1Gi=0,memory=10Gi;1:2:0-1:memory=0"


@given(some.MEMORY)
def test_the_table_is_read_back(zones: tuple[MemoryZone, ...]) -> None:
    assert managers.decode_memory_state(managers.encode_memory_state(zones)) == zones


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_tables_that_make_no_sense_are_refused(body: str) -> None:
    with pytest.raises(AttributeTextError):
        managers.decode_memory_state(body)
