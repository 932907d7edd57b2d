import pytest

from numalign.simulator.controllers.framework.actions import Requeue, Update
from numalign.simulator.controllers.workloads import budgets
from numalign.simulator.trees import Tree
from tests.unit.simulator.controllers.trees import NOW, ago, owner, pod

THREE = [pod("a"), pod("b"), pod("c")]
UNREADY = [pod("a"), pod("b"), pod("c", ready=False)]
# Spec, pods, scale of their controllers: healthy, needed, expected, allowed.
CASES = {
    "one may go": ({"maxUnavailable": 1}, THREE, 3, (3, 2, 3, 1)),
    "a share may go, rounded up": ({"maxUnavailable": "30%"}, THREE, 3, (3, 2, 3, 1)),
    "so many must stay": ({"minAvailable": 2}, THREE, 3, (3, 2, 3, 1)),
    "a share must stay, rounded up": ({"minAvailable": "50%"}, THREE, 3, (3, 2, 3, 1)),
    "none to spare": ({"minAvailable": 3}, THREE, 3, (3, 3, 3, 0)),
    "one is not ready": ({"maxUnavailable": 1}, UNREADY, 3, (2, 2, 3, 0)),
    "less than needed": ({"minAvailable": 5}, THREE, 3, (3, 5, 3, 0)),
    "one is going": ({"minAvailable": 1}, [pod("a"), pod("b", deleting=True)], 2, (1, 1, 2, 0)),
    "no pods": ({"minAvailable": 0}, [], 0, (0, 0, 0, 0)),
}


def status(spec: Tree, selected: list[Tree], scale: int | None, before: Tree | None = None) -> Tree:
    actions = budgets.reconcile(owner("b", before, **spec), selected, scale, NOW)
    [update] = [action for action in actions if isinstance(action, Update)]
    found: Tree = update.tree["status"]
    return found


@pytest.mark.parametrize("spec, selected, scale, told", CASES.values(), ids=CASES)
def test_how_many_may_be_disrupted(spec: Tree, selected: list[Tree], scale: int, told: tuple[int, ...]) -> None:
    found = status(spec, selected, scale)
    names = ("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed")
    assert tuple(found[name] for name in names) == told


def test_an_evicted_pod_counts_as_gone_until_it_is_or_two_minutes_have_passed() -> None:
    before = {"disruptedPods": {"a": ago(30), "b": ago(121), "ghost": ago(1)}}
    found = status({"maxUnavailable": 1}, THREE, 3, before)
    assert found["disruptedPods"] == {"a": ago(30)}
    assert (found["currentHealthy"], found["disruptionsAllowed"]) == (2, 0)
    actions = budgets.reconcile(owner("b", before, maxUnavailable=1), THREE, 3, NOW)
    assert [each for each in actions if isinstance(each, Requeue)] == [Requeue(90.0)]


def test_pods_without_a_scale_may_not_be_disrupted() -> None:
    found = status({"maxUnavailable": 1}, THREE, None)
    assert (found["disruptionsAllowed"], found["conditions"][0]["reason"]) == (0, "SyncFailed")


def test_what_is_true_is_not_written_again() -> None:
    told = status({"maxUnavailable": 1}, THREE, 3)
    assert budgets.reconcile(owner("b", told, maxUnavailable=1), THREE, 3, NOW) == []
