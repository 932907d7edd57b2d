"""Rows for the publishers' programs: how they are drawn, judged and made smaller, without the programs."""

from random import Random
from typing import Any

import pytest

from numalign.oracle import recorded
from numalign.oracle.publishers import cases
from numalign.oracle.publishers.generate import nodes

ZONES = [{"id": zone, "cpus": [2 * zone, 2 * zone + 1], "distances": [10, 21]} for zone in (0, 1)]
ALLOCATABLE = {"devices": [{"resource": "v/nic", "ids": ["n0"], "numa": [0]}], "cpus": [0, 1, 2, 3], "memory": []}
NODE = {"node": "n1", "topology": {"nodes": ZONES}, "allocatable": ALLOCATABLE}
HOLDS = {"name": "c", "cpus": [0], "devices": ALLOCATABLE["devices"], "memory": []}
PODS = [{"name": "p", "namespace": "a", "containers": [HOLDS]}]
SCAN = {"id": "1", "suite": "exporter.scan", "input": {**NODE, "sys_memory": {}, "pods": PODS}}
AGGREGATE = {
    "id": "2",
    "suite": "updater.aggregate",
    "input": {**NODE, "memory_capacity": {}, "pods": [nodes.unified(pod) for pod in PODS]},
}


def answered(case: dict[str, Any]) -> dict[str, Any]:
    """As a program would that does what we do."""
    return {**case, "expect": recorded.SUITES[case["suite"]].answer({**case, "fixtures": {}})}


@pytest.mark.parametrize("program", cases.PROGRAMS)
def test_seed_and_number_make_the_same_row_again(program: str) -> None:
    assert cases.draw(3, 5, program) == cases.draw(3, 5, program)
    assert cases.draw(3, 5, program) != cases.draw(4, 5, program)


@pytest.mark.parametrize("program", cases.PROGRAMS)
def test_every_table_is_drawn_from_and_has_an_answer_of_ours(program: str) -> None:
    drawn = dict(cases.draw(1, number, program) for number in range(1500))
    assert drawn.keys() == cases.PROGRAMS[program].keys()
    assert [cases.judge(case, answered(case)).finding for case in drawn.values()] == ["agreed"] * len(drawn)


@pytest.mark.parametrize("case", [SCAN, AGGREGATE], ids=["rte", "nfd"])
def test_another_number_is_a_disagreement(case: dict[str, Any]) -> None:
    answer = answered(case)
    answer["expect"]["zones"][1]["resources"][0]["available"] += 1
    found = cases.judge(case, answer)
    assert found.finding == "differs"
    assert [each.path for each in found.differences] == ["zones[1].resources[0].available"]


@pytest.mark.parametrize(
    "case, change",
    [
        (SCAN, {"allocatable": {**ALLOCATABLE, "devices": [{"resource": "v/nic", "ids": ["n0"], "numa": [-1]}]}}),
        (SCAN, {"topology": {"nodes": [ZONES[0], {**ZONES[1], "id": 4}]}}),
        (AGGREGATE, {"exclude": ["v/nic"]}),
        (AGGREGATE, {"exclude": ["cpu"]}),
    ],
    ids=["a zone that is made up", "a gap between zones", "devices left out and held", "CPUs left out and held"],
)
def test_a_crash_is_right_where_a_rule_says_so_and_wrong_elsewhere(case: dict[str, Any], change: Any) -> None:
    crashed = {"id": case["id"], "panic": "nil"}
    assert cases.judge(case, crashed).finding == "differs"
    assert cases.judge({**case, "input": {**case["input"], **change}}, crashed).finding == "deliberate"


def test_smaller_rows_have_less_and_keep_a_zone() -> None:
    smaller = list(cases.smaller(SCAN))
    assert len(smaller) > 10
    assert all(len(str(each)) < len(str(SCAN)) and each["input"]["topology"]["nodes"] for each in smaller)


def test_a_pod_in_the_updaters_form_holds_the_same() -> None:
    made = nodes.drawn(Random(1))
    for pod in made.pods():
        held = [resource["name"] for each in nodes.unified(pod)["containers"] for resource in each["resources"]]
        assert ("cpu" in held) == any(each["cpus"] for each in pod["containers"])
