"""Zone names: node-<id>, and nothing that merely resembles it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.attributes import grammar

STRANGERS = [
    "node--1", "cell-1", "Node-1", "NODE-2", "node_3", "node 4", "node-5-1", "node6", "--node-7", "node-", "node-1 ",
    "numa-node-0", "node-0x1", "node-1_0", "node-١", "node-65536", "node-" + "9" * 5000,
]  # fmt: skip


@given(st.integers(0, grammar.MAX_ZONE))
def test_an_id_survives_its_name(zone: int) -> None:
    assert grammar.zone_id(grammar.zone_name(zone)) == zone


@pytest.mark.parametrize("name", STRANGERS, ids=lambda name: name[:20])
def test_other_names_carry_no_id(name: str) -> None:
    with pytest.raises(grammar.ZoneNameError):
        grammar.zone_id(name)


@pytest.mark.parametrize("name, zone", [("node-+1", 1), ("node--0", 0), ("node-007", 7)])
def test_unusual_spellings_are_read_as_the_reference_reads_them(name: str, zone: int) -> None:
    assert grammar.zone_id(name) == zone


@pytest.mark.parametrize("zone", [-1, grammar.MAX_ZONE + 1])
def test_an_impossible_id_has_no_name(zone: int) -> None:
    with pytest.raises(grammar.ZoneNameError):
        grammar.zone_name(zone)
