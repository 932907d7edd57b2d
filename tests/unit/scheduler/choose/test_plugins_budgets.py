"""Which pods disruption budgets would not let go."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects.workloads import PodDisruptionBudget
from numalign.scheduler.choose.plugins import Budgets
from tests.unit.scheduler import waitingpods

WEB = {"app": "web"}
PODS = [waitingpods.pod(f"w{n}", labels=WEB) for n in range(3)]
ANY: dict[str, Any] = {"matchLabels": WEB}


def budget(name: str, allowed: int, selector: Any = ANY, namespace: str = "default", **status: Any) -> Any:
    meta = {"name": name, "namespace": namespace}
    tree = {"metadata": meta, "spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed, **status}}
    return decode.decode(PodDisruptionBudget, tree)


def violated(*budgets: PodDisruptionBudget) -> list[str]:
    kept = Budgets()
    for each in budgets:
        kept.put(each)
    return sorted(kept.violated_by(PODS))


@pytest.mark.parametrize(
    "budgets, expected",
    [
        ([budget("b", 3)], []),
        ([budget("b", 1)], ["uid-w1", "uid-w2"]),
        ([budget("b", 0)], ["uid-w0", "uid-w1", "uid-w2"]),
        ([budget("b", 0, {"matchLabels": {"app": "db"}})], []),
        ([budget("b", 0, {})], []),
        ([budget("b", 0, None)], []),
        ([budget("b", 0, namespace="other")], []),
        ([budget("b", 1, disruptedPods={"w0": "2026-01-01T00:00:00Z"})], ["uid-w2"]),
        ([budget("a", 2), budget("b", 1)], ["uid-w1", "uid-w2"]),
    ],
    ids=["enough", "one", "none", "others", "empty", "no selector", "namespace", "evicted already", "the smallest"],
)
def test_pods_beyond_what_is_allowed_in_the_order_in_which_they_come(budgets: Any, expected: list[str]) -> None:
    assert violated(*budgets) == expected


def test_pods_without_labels_are_nobody_s() -> None:
    kept = Budgets()
    kept.put(budget("b", 0, {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}))
    assert kept.violated_by([waitingpods.pod("plain")]) == set()


def test_it_tells_whether_other_pods_are_covered_or_only_other_numbers_allowed() -> None:
    kept, seen = Budgets(), []
    for change in (budget("b", 1), budget("b", 0), budget("b", 0, {"matchLabels": {"app": "db"}})):
        kept.put(change)
        seen.append((kept.selections, kept.generation))
    kept.drop("default", "b")
    assert [*seen, (kept.selections, len(kept))] == [(1, 1), (1, 2), (2, 3), (3, 0)]
