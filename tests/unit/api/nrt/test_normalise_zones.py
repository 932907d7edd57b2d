"""Zones of a report: those of NUMA nodes by id, with a note of every repair."""

from typing import Any

import pytest

from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.nrt import normalise as nrtzones
from numalign.api.nrt import wire
from numalign.api.nrt.nodetopology import Amounts, Zone


def zone(number: int, **changes: Any) -> dict[str, Any]:
    """A zone of a machine with the zones 0 and 1."""
    costs = [{"name": f"node-{to}", "value": 10 if to == number else 21} for to in (0, 1)]
    return {
        "name": f"node-{number}",
        "type": "Node",
        "costs": costs,
        "resources": [{"name": "cpu", "capacity": "4", "allocatable": "4", "available": "4"}],
    } | changes


def read(*zones: dict[str, Any]) -> tuple[tuple[Zone, ...], list[Guess]]:
    guesses: list[Guess] = []
    report = wire.decode({"metadata": {"name": "n"}, "zones": list(zones)})
    return nrtzones.read_zones(report.zones or (), guesses), guesses


def resource(name: str, amount: int = 1) -> dict[str, Any]:
    return {"name": name, "capacity": amount, "allocatable": amount, "available": amount}


PAIR, _ = read(zone(0), zone(1))
NOTED: dict[str, tuple[list[dict[str, Any]], tuple[GuessCode, str]]] = {
    "other type": ([zone(0), zone(1), {"name": "pool", "type": "Pool"}], (GuessCode.ZONE_TYPE_OTHER, "zones[2].type")),
    "type in small letters": ([zone(0), zone(1), zone(1, type="node")], (GuessCode.ZONE_TYPE_OTHER, "zones[2].type")),
    "no id": ([zone(0), zone(1), zone(1, name="numa-1")], (GuessCode.ZONE_NAME_UNKNOWN, "zones[2].name")),
    "odd spelling": ([zone(0), zone(1, name="node-01")], (GuessCode.ZONE_NAME_ODD, "zones[1].name")),
    "parent": ([zone(0, parent="socket-0"), zone(1)], (GuessCode.ZONE_PARENT, "zones[0].parent")),
    "zone twice": ([zone(0, resources=[]), zone(1), zone(0)], (GuessCode.ZONE_DUPLICATE, "zones[0]")),
    "resource without a name": (
        [zone(0, resources=[resource(""), *zone(0)["resources"]]), zone(1)],
        (GuessCode.RESOURCE_UNNAMED, "zones[0].resources[0]"),
    ),
    "resource twice": (
        [zone(0, resources=[resource("cpu", 9), *zone(0)["resources"]]), zone(1)],
        (GuessCode.RESOURCE_DUPLICATE, "zones[0].resources[1]"),
    ),
    "cost of a zone that is not there": (
        [zone(0, costs=[*zone(0)["costs"], {"name": "node-8", "value": 20}]), zone(1)],
        (GuessCode.COST_ZONE_UNKNOWN, "zones[0].costs[2].name"),
    ),
    "cost twice": (
        [zone(0, costs=[{"name": "node-0", "value": 99}, *zone(0)["costs"]]), zone(1)],
        (GuessCode.COST_DUPLICATE, "zones[0].costs[1]"),
    ),
    "negative cost": (
        [zone(0, costs=[*zone(0)["costs"], {"name": "node-0", "value": -1}]), zone(1)],
        (GuessCode.COST_UNUSABLE, "zones[0].costs[2].value"),
    ),
}


def test_zones_come_in_the_order_of_their_ids() -> None:
    assert read(zone(1), zone(0)) == (PAIR, [])
    assert [found.id for found in PAIR] == [0, 1]


def test_a_zone_holds_amounts_and_costs_by_name_and_id() -> None:
    assert PAIR[0] == Zone(id=0, resources={"cpu": Amounts(4000, 4000, 4000)}, costs={0: 10, 1: 21})


@pytest.mark.parametrize("zones, note", NOTED.values(), ids=NOTED)
def test_an_oddity_is_noted_and_costs_nothing_else(zones: list[dict[str, Any]], note: tuple[GuessCode, str]) -> None:
    found, guesses = read(*zones)
    assert found == PAIR
    assert [(guess.code, guess.field) for guess in guesses] == [note]


def test_missing_costs_stay_missing() -> None:
    (first, _), guesses = read(zone(0, costs=[]), zone(1))
    assert first.costs == {}
    assert guesses == [Guess(GuessCode.COST_MISSING, "zones[0].costs", "node-0, node-1")]


def test_a_machine_of_one_zone_needs_no_costs() -> None:
    assert read(zone(0, costs=[]))[1] == []


def test_ids_may_have_gaps() -> None:
    costs = [{"name": "node-0", "value": 10}, {"name": "node-8", "value": 20}]
    found, guesses = read(zone(0, costs=costs), zone(8, costs=costs))
    assert [(each.id, dict(each.costs)) for each in found] == [(0, {0: 10, 8: 20}), (8, {0: 10, 8: 20})]
    assert guesses == []


def test_a_zone_that_no_kubelet_mask_holds_is_kept_and_noted() -> None:
    found, guesses = read(zone(64, costs=[]))
    assert [each.id for each in found] == [64]
    assert guesses == [Guess(GuessCode.ZONE_BEYOND_MASK, "zones[0].name", "node-64", "node-64")]


def test_a_zone_without_cpus_beside_one_with_cpus_is_noted() -> None:
    found, guesses = read(zone(0), zone(1, resources=[resource("memory")]))
    assert "cpu" not in found[1].resources
    assert guesses == [Guess(GuessCode.CPU_ABSENT, "node-1", "", "0")]


def test_a_report_without_zones_is_noted() -> None:
    assert read() == ((), [Guess(GuessCode.NO_ZONES, "zones")])
