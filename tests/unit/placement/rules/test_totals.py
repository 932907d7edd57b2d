"""What pods count for is added up on their rows, and read once for all replicas."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.placement.rules import totals
from numalign.placement.rules.totals import CPU, MEMORY, Totals
from tests.unit.placement.rules import worlds

LARGEST = 2**63 - 1


def test_a_pod_counts_with_its_amounts_and_with_what_scores_assume() -> None:
    charge = Totals(1).charge_of(worlds.pod({"cpu": "1500m", "unknown": "3"}))
    assert charge.amounts == ((CPU, 1500),)
    assert charge.scored == (1500, 200 << 20)


def test_replicas_are_read_once_but_a_resize_is_seen() -> None:
    amounts = Totals(1)
    first, second = (amounts.charge_of(worlds.pod({"cpu": "1"}, name=name)) for name in ("a", "b"))
    status = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "2"}}]}
    assert first is second
    assert amounts.charge_of(worlds.pod({"cpu": "1"}, status=status)).of(CPU) == 2000


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"overhead": {"cpu": "1"}}, id="overhead"),
        pytest.param({"resources": {"requests": {"cpu": "3"}}}, id="the pod as a whole"),
        pytest.param({"initContainers": [{"resources": {"requests": {"cpu": "9"}}}]}, id="init container"),
        pytest.param({"initContainers": [{"restartPolicy": "Always"}]}, id="silent sidecar"),
    ],
)
def test_pods_that_differ_anywhere_are_not_taken_for_replicas(spec: dict[str, Any]) -> None:
    amounts = Totals(1)
    assert amounts.charge_of(worlds.pod({"cpu": "1"})) != amounts.charge_of(worlds.pod({"cpu": "1"}, **spec))


def test_what_was_added_can_be_taken_away_again_even_past_the_largest_number() -> None:
    amounts = Totals(2)
    charge = amounts.charge_of(worlds.pod({"memory": str(LARGEST)}))
    amounts.add(1, charge)
    amounts.add(1, charge)
    assert amounts.requested[MEMORY].tolist() == [0, -2]
    amounts.subtract(1, charge)
    assert amounts.requested[MEMORY].tolist() == [0, LARGEST]
    assert amounts.pods.tolist() == [0, 1]


def test_columns_are_made_as_needed() -> None:
    amounts = Totals(1)
    names = [f"example.com/r{number}" for number in range(20)]
    columns = [amounts.column(name) for name in names]
    assert len(set(columns)) == len(names)
    assert amounts.allocatable.shape[0] > max(columns)
    assert [amounts.known(name) for name in (names[3], "never.seen/x")] == [columns[3], totals.NOWHERE]


@pytest.mark.parametrize(
    "name, scalar",
    [
        ("cpu", False),
        ("example.com/gpu", True),
        ("hugepages-2Mi", True),
        ("kubernetes.io/batch", True),
        ("attachable-volumes-x", True),
        ("pods", False),
        ("unknown", False),
    ],
)
def test_which_resources_are_counted_by_name(name: str, scalar: bool) -> None:
    assert totals.is_scalar(name) is scalar
