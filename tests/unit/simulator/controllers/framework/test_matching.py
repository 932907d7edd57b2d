import pytest

from numalign.simulator.controllers.framework import matching
from numalign.simulator.trees import Tree

SCHEDULE: Tree = {"key": "k", "value": "v", "effect": "NoSchedule"}
EXECUTE: Tree = {"key": "k", "value": "v", "effect": "NoExecute"}
# Kube-scheduler spec A.11.
CASES = {
    "all alike": ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, SCHEDULE, True),
    "no operator, no effect": ({"key": "k", "value": "v"}, SCHEDULE, True),
    "exists": ({"key": "k", "operator": "Exists"}, SCHEDULE, True),
    "everything": ({"operator": "Exists"}, SCHEDULE, True),
    "other value": ({"key": "k", "operator": "Equal", "value": "w"}, SCHEDULE, False),
    "other effect": ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, EXECUTE, False),
    "zero seconds": ({"key": "k", "operator": "Exists", "tolerationSeconds": 0}, EXECUTE, True),
    "unknown operator": ({"key": "k", "operator": "Gt", "value": "v"}, SCHEDULE, False),
}


@pytest.mark.parametrize("toleration, taint, tolerated", CASES.values(), ids=CASES)
def test_tolerations(toleration: Tree, taint: Tree, tolerated: bool) -> None:
    assert (matching.untolerated([taint], [toleration]) is None) is tolerated


def test_a_preference_keeps_no_pod_off() -> None:
    assert matching.untolerated([{"key": "k", "effect": "PreferNoSchedule"}], []) is None


def seconds(*limits: int | None) -> list[Tree]:
    return [
        {"key": f"k{number}", "operator": "Exists"} | ({} if limit is None else {"tolerationSeconds": limit})
        for number, limit in enumerate(limits)
    ]


ENDURED = {
    "no toleration": ((), 0.0),
    "for ever": ((None, None), None),
    "the shortest": ((300, 60), 60.0),
    "one of them for ever": ((None, 60), 60.0),
    "negative": ((-5, 60), 0.0),
}


@pytest.mark.parametrize("limits, endured", ENDURED.values(), ids=ENDURED)
def test_how_long_a_pod_stays(limits: tuple[int | None, ...], endured: float | None) -> None:
    taints = [{"key": f"k{number}", "effect": "NoExecute"} for number in range(2)]
    assert matching.endures(taints, seconds(*limits)) == endured
