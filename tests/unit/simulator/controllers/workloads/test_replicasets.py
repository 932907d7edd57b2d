import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.controllers.framework import pods
from numalign.simulator.controllers.framework.actions import Action, Create, Delete, Requeue, Update
from numalign.simulator.controllers.workloads import replicasets
from numalign.simulator.trees import Tree
from tests.unit.simulator.controllers.trees import NOW, owner, pod


def counted(actions: list[Action]) -> tuple[int, list[str]]:
    created = sum(isinstance(action, Create) for action in actions)
    return created, [action.target["metadata"]["name"] for action in actions if isinstance(action, Delete)]


OBSERVED = {
    "none yet": ([], 2, (2, [])),
    "as many as wanted": ([pod("a"), pod("b")], 2, (0, [])),
    "a failed one does not count": ([pod("a"), pod("b", "Failed")], 2, (1, [])),
    "a succeeded one neither": ([pod("a"), pod("b", "Succeeded")], 2, (1, [])),
    "nor one that is going": ([pod("a"), pod("b", deleting=True)], 2, (1, [])),
    "one too many": ([pod("a", node="n"), pod("b", node="n", ready=False)], 1, (0, ["b"])),
    "none wanted": ([pod("a")], 0, (0, ["a"])),
}


@pytest.mark.parametrize("owned, replicas, wanted", OBSERVED.values(), ids=OBSERVED)
def test_pods_are_made_and_removed_until_the_number_is_right(
    owned: list[Tree], replicas: int, wanted: tuple[int, list[str]]
) -> None:
    assert counted(replicasets.reconcile(owner(replicas=replicas), owned, NOW)) == wanted


def test_a_replica_set_that_is_deleted_changes_nothing() -> None:
    going = owner(replicas=5)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert counted(replicasets.reconcile(going, [], NOW)) == (0, [])


def test_no_more_than_500_at_once() -> None:
    assert counted(replicasets.reconcile(owner(replicas=2000), [], NOW))[0] == 500


# The pod that goes first, and one that stays.
VICTIMS = {
    "not bound": (pod("x"), pod("y", node="n")),
    "pending": (pod("x", "Pending", node="n", ready=False), pod("y", node="n")),
    "not ready": (pod("x", node="n", ready=False), pod("y", node="n")),
    "cheaper": (pod("x", node="n", cost="-1"), pod("y", node="n")),
    "ready for a shorter time": (pod("x", node="n", ready_for=10), pod("y", node="n", ready_for=1000)),
    "restarted": (pod("x", node="n", restarts=3), pod("y", node="n")),
    "younger": (pod("x", node="n", age=5), pod("y", node="n", age=500)),
}


@pytest.mark.parametrize("first, other", VICTIMS.values(), ids=VICTIMS)
def test_which_pod_goes_first(first: Tree, other: Tree) -> None:
    assert pods.victims([other, first], 1, NOW) == [first]


def test_of_pods_alike_the_one_in_company_goes_first() -> None:
    alone, together, also = pod("a", node="n1"), pod("b", node="n2"), pod("c", node="n2")
    assert alone not in pods.victims([alone, together, also], 2, NOW)


def test_the_status_counts() -> None:
    owned = [pod("a"), pod("b", ready=False), pod("c", "Failed"), pod("d", deleting=True), pod("e", labels={})]
    assert replicasets.status(owner(replicas=3), owned, NOW) == {
        "replicas": 3,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 1,
        "observedGeneration": 1,
    }


def test_a_pod_becomes_available_by_waiting() -> None:
    actions = replicasets.reconcile(owner(replicas=1, minReadySeconds=30), [pod("a", ready_for=10)], NOW)
    assert [action for action in actions if isinstance(action, Requeue)] == [Requeue(20.0)]


def test_why_no_pod_can_be_made_is_told() -> None:
    [update, _] = replicasets.reconcile(owner(replicas=1), [], NOW, refused="quota")
    assert isinstance(update, Update)
    [told] = update.tree["status"]["conditions"]
    assert (told["type"], told["reason"], told["message"]) == ("ReplicaFailure", "FailedCreate", "quota")


def test_the_first_refusal_stays_although_each_message_names_another_pod() -> None:
    told = replicasets.status(owner(replicas=1), [], NOW, "pods a-x is forbidden")
    actions = replicasets.reconcile(owner(replicas=1, status=told), [], NOW, refused="pods a-y is forbidden")
    assert not any(isinstance(action, Update) for action in actions)


def test_the_failure_is_forgotten_when_no_pod_is_missing_any_more() -> None:
    told = replicasets.status(owner(replicas=1), [], NOW, "quota")
    [update] = replicasets.reconcile(owner(replicas=0, status=told), [], NOW, refused="quota")
    assert isinstance(update, Update)
    assert "conditions" not in update.tree["status"]


POD = st.builds(
    pod,
    st.uuids().map(str),
    st.sampled_from(["Pending", "Running", "Failed", "Succeeded"]),
    ready=st.booleans(),
    deleting=st.booleans(),
)


@given(st.lists(POD, max_size=12), st.integers(0, 12))
def test_after_one_look_there_are_as_many_as_wanted(owned: list[Tree], replicas: int) -> None:
    created, removed = counted(replicasets.reconcile(owner(replicas=replicas), owned, NOW))
    left = [each for each in owned if pods.is_active(each) and each["metadata"]["name"] not in removed]
    assert len(left) + created == replicas
    assert not created or not removed


@given(st.lists(POD, max_size=12), st.integers(0, 12))
def test_a_status_that_is_true_is_not_written_again(owned: list[Tree], replicas: int) -> None:
    told = replicasets.status(owner(replicas=replicas), owned, NOW)
    actions = replicasets.reconcile(owner(replicas=replicas, status=told), owned, NOW)
    assert not any(isinstance(action, Update) for action in actions)
