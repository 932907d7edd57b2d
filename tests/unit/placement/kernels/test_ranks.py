"""Masks are compared by size, then by distance where the node asks for it, then by value (engine spec 4)."""

import pytest

from numalign.placement.columns.noderules import BY_SOCKET, NodeRules
from numalign.placement.kernels import ranks

FAR = ((10, 30, 20), (30, 10, 11), (20, 11, 10))
FOUR = NodeRules(zones=(0, 1, 2, 3), sockets=(1, 1, 2, 2))


def test_fewer_zones_come_first_and_then_the_lower_mask() -> None:
    assert ranks.of(NodeRules(zones=(0, 1, 2))).ranked == (0b001, 0b010, 0b100, 0b011, 0b101, 0b110, 0b111)


def test_closer_zones_come_first_where_the_node_prefers_them() -> None:
    near = ranks.of(NodeRules(zones=(0, 1, 2), policy="restricted", distances=FAR))
    assert near.ranked[3:6] == (0b110, 0b101, 0b011)
    assert near.narrowest[3:6] == (0b011, 0b101, 0b110)


def test_distances_mean_nothing_to_the_single_numa_node_policy() -> None:
    found = ranks.of(NodeRules(zones=(0, 1, 2), policy="single-numa-node", distances=FAR))
    assert found.ranked == found.narrowest


@pytest.mark.parametrize("size, masks", [(1, 4), (2, 6), (3, 4), (4, 1)])
def test_masks_of_a_size_are_found_by_where_they_start(size: int, masks: int) -> None:
    found = ranks.of(FOUR)
    assert [found.count[mask] for mask in found.ranked[found.starts[size] : found.starts[size + 1]]] == [size] * masks


def test_aligned_by_socket_a_mask_stands_for_all_zones_of_its_sockets() -> None:
    by_socket = NodeRules(zones=FOUR.zones, sockets=FOUR.sockets, cpu_options=frozenset({BY_SOCKET}))
    assert ranks.of(by_socket).area[0b0001] == 0b0011
    assert ranks.of(by_socket).sockets[0b0101] == 2
    assert ranks.of(FOUR).area[0b0001] == 0b0001
