from __future__ import annotations

from typing import Any

import pytest

from numalign.oracle.kubelet import vectors
from numalign.oracle.kubelet.vectors import FAMILIES
from tests.oracle import recordings
from tests.unit.oracle import small

BY_NAME = {family.name: family for family in FAMILIES}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_family_is_known_by_its_cases(name: str) -> None:
    assert {vectors.recognised(case) for case in recordings.cases(name).values()} == {BY_NAME[name]}


@pytest.mark.parametrize("name", sorted(BY_NAME.keys() - {"cpu_livelock"}))
def test_a_case_that_lacks_an_input_is_still_recognised(name: str) -> None:
    case = next(iter(recordings.cases(name).values()))
    for field in BY_NAME[name].inputs - {"id"}:
        without = {key: value for key, value in case.items() if key != field}
        assert vectors.recognised(without) is BY_NAME[name], field


@pytest.mark.parametrize("name", BY_NAME)
def test_expectations_do_not_decide_the_family(name: str) -> None:
    case = next(iter(recordings.cases(name).values()))
    family = BY_NAME[name]
    assert vectors.recognised({key: case[key] for key in family.inputs}) is family


@pytest.mark.parametrize("identity", ["mine", 7, None])
def test_between_families_of_one_schema_an_odd_id_means_the_stricter_one(identity: Any) -> None:
    assert vectors.recognised({**small.CPU, "id": identity}) is BY_NAME["cpu_static"]


@pytest.mark.parametrize("case", [{}, {"id": "cpu-1"}, small.FOUR], ids=["empty", "an id alone", "a machine"])
def test_what_is_no_case_belongs_to_no_family(case: dict[str, Any]) -> None:
    assert vectors.recognised(case) is None
