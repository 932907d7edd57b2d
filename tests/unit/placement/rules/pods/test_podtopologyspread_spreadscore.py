"""Nodes in domains with fewer like pods score higher."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.api.objects.workloads import Service
from tests.unit.placement.rules import neighbours, worlds
from tests.unit.placement.rules.neighbours import HOST, ZONE, Place, pod, should, web

DB = {"labelSelector": {"matchLabels": {"app": "db"}}}


def hosts(*counts: int, zones: str = "") -> Place:
    """Nodes with so many web pods; their zones by letter."""
    nodes = {f"n{row}": {HOST: f"n{row}"} for row in range(len(counts))}
    for row, zone in enumerate(zones):
        nodes[f"n{row}"][ZONE] = zone
    return neighbours.place(nodes, {f"n{row}": [web()] * count for row, count in enumerate(counts)})


def both(there: Place, asking: Pod, rows: int | None = None, **args: Any) -> tuple[list[int], list[int]]:
    """Raw and normalised scores of the first rows."""
    rule, feasible = there.spreading(**args), worlds.all_rows(there.world)[:rows]
    prepared = rule.prepare_score(asking, there.world, feasible)
    assert prepared is not None
    raw = rule.score(prepared, feasible)
    return raw.tolist(), rule.normalized(prepared, raw).tolist()


# Nodes, constraints, how many nodes passed the filters, and both scores (kube-scheduler spec A.6).
VECTORS = {
    "host, skew 1": (hosts(2, 1, 0, 3), [should(HOST)], None, [4, 2, 0, 5], [20, 60, 100, 0]),
    "host, skew 2": (hosts(2, 1, 0, 3), [should(HOST, maxSkew=2)], None, [5, 3, 1, 6], [33, 66, 100, 16]),
    "host, skew 3": (hosts(4, 3, 2, 1), [should(HOST, maxSkew=3)], None, [9, 7, 6, 4], [44, 66, 77, 100]),
    "fourth node filtered out": (hosts(4, 2, 1, 9), [should(HOST)], 3, [6, 3, 2], [33, 83, 100]),
    "zone, its rest filtered out": (hosts(4, 2, 1, 3, zones="xxyy"), [should()], 3, [8, 8, 6], [75, 75, 100]),
    "zone, three of them": (hosts(5, 2, 0, zones="xyz"), [should()], None, [8, 3, 0], [0, 62, 100]),
    "zone, wide skew": (hosts(5, 2, 0, zones="xyz"), [should(maxSkew=5)], None, [12, 7, 4], [33, 75, 100]),
    "no selector": (hosts(3, 1), [should(HOST, labelSelector=None)], None, [0, 0], [100, 100]),
}


@pytest.mark.parametrize("there, constraints, rows, raw, normal", VECTORS.values(), ids=VECTORS)
def test_scores_of_the_specification(
    there: Place, constraints: list[dict[str, Any]], rows: int | None, raw: list[int], normal: list[int]
) -> None:
    assert both(there, web(topologySpreadConstraints=constraints), rows) == (raw, normal)


def test_zone_and_host_of_two_feasible_nodes() -> None:
    there = hosts(2, 1, 2, 4, zones="xxyy")
    rows = np.array([0, 2])
    rule, asking = there.spreading(), web(topologySpreadConstraints=[should(), should(HOST)])
    prepared = rule.prepare_score(asking, there.world, rows)
    assert prepared is not None
    raw = rule.score(prepared, rows)
    assert (raw.tolist(), rule.normalized(prepared, raw).tolist()) == ([7, 11], [100, 63])


# Web and db pods by node, zones, constraints on web and on db, and both scores (kube-scheduler spec A.6).
TWO_SELECTORS = {
    "two of zones": ((3, 3), (2, 1), "xy", (ZONE, ZONE), [7, 6], [85, 100]),
    "zone and host": ((2, 0, 1, 0), (0, 1, 0, 1), "xxyy", (ZONE, HOST), [3, 5, 1, 3], [60, 20, 100, 60]),
    "empty zone": ((0, 0, 2, 0), (0, 1, 0, 1), "xxyy", (ZONE, HOST), [0, 2, 3, 5], [100, 60, 40, 0]),
}


@pytest.mark.parametrize("webs, dbs, zones, keys, raw, normal", TWO_SELECTORS.values(), ids=TWO_SELECTORS)
def test_constraints_with_selectors_of_their_own_add_up(
    webs: tuple[int, ...], dbs: tuple[int, ...], zones: str, keys: tuple[str, str], raw: list[int], normal: list[int]
) -> None:
    there = hosts(*webs, zones=zones)
    for row, count in enumerate(dbs):
        for number in range(count):
            there.world.put_pod(f"db{row}/{number}", row, pod({"app": "db"}))
    asking = web(topologySpreadConstraints=[should(keys[0]), should(keys[1], **DB)])
    assert both(there, asking) == (raw, normal)


def test_nodes_without_a_label_score_nothing() -> None:
    there = neighbours.place({"a": {HOST: "a"}, "b": {}, "c": {HOST: "c"}}, {"a": [web()] * 4, "c": [web()]})
    asking = web(topologySpreadConstraints=[should(HOST)])
    assert both(there, asking) == ([6, 0, 1], [16, 0, 100])


def belonging(there: Place) -> Pod:
    """A pod that a service selects."""
    service = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
    there.around.owners.put_service(decode.decode(Service, service))
    return web()


def test_system_defaults_spread_over_hosts_and_zones() -> None:
    there = hosts(2, 1, 0, 0, 1, 0, zones="xxyyzz")
    assert both(there, belonging(there)) == ([15, 13, 6, 6, 10, 8], [40, 53, 100, 100, 73, 86])


def test_system_defaults_take_nodes_without_a_zone() -> None:
    there = hosts(1, 0)
    # Both nodes are in one zone without a name, which adds nothing.
    assert both(there, belonging(there)) == ([3, 2], [66, 100])


def test_listed_defaults_ask_for_every_label() -> None:
    there = hosts(1, 0, 0, zones="x")
    listed = [{"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]
    raw, normal = both(there, belonging(there), defaultingType="List", defaultConstraints=listed)
    assert (raw, normal) == ([1, 0, 0], [100, 0, 0])


def test_pods_with_a_constraint_of_their_own_get_no_defaults() -> None:
    there = hosts(1, 0)
    asking = belonging(there)
    own = pod(asking.metadata.labels, topologySpreadConstraints=[neighbours.constraint(HOST)])
    assert there.spreading().prepare_score(own, there.world, worlds.all_rows(there.world)) is None


def test_pods_that_belong_to_nothing_are_not_spread() -> None:
    there = hosts(1, 0)
    assert there.spreading().prepare_score(web(), there.world, worlds.all_rows(there.world)) is None
