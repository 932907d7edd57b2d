from datetime import timedelta

import pytest

from numalign.simulator.controllers.framework import pods
from numalign.simulator.controllers.framework.actions import Action, Create, Delete, RecordEvent, Update
from numalign.simulator.controllers.workloads import deployments, replicasets
from numalign.simulator.trees import Tree
from tests.unit.simulator.controllers.trees import NOW, ago, owner

TEMPLATE: Tree = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
OTHER: Tree = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app:0"}]}}


def deployment(status: Tree | None = None, **spec: object) -> Tree:
    made = owner("web", status, **{"template": TEMPLATE, "replicas": 4, **spec})
    made["metadata"]["annotations"] = {deployments.REVISION: "2"}
    return made


def replicaset(name: str, replicas: int, available: int, template: Tree = TEMPLATE, revision: int = 2) -> Tree:
    made = owner(name, {"replicas": replicas, "availableReplicas": available, "observedGeneration": 1})
    made["spec"] |= {"template": pods.hashed(template, "hash"), "replicas": replicas}
    annotations = {deployments.REVISION: str(revision)} | deployments.size_annotations(4, 5)
    made["metadata"] |= {"annotations": annotations, "creationTimestamp": ago(9 - revision)}
    return made


def look(deployment: Tree, *sets: Tree, running: set[str] | None = None) -> list[Action]:
    return deployments.reconcile(deployment, sets, running or set(), NOW)


def scaled(actions: list[Action]) -> dict[str, int]:
    updates = [action.tree for action in actions if isinstance(action, Update) and action.part == ""]
    return {tree["metadata"]["name"]: tree["spec"]["replicas"] for tree in updates}


def test_the_first_replica_set_has_the_hash_in_name_labels_and_selector() -> None:
    [create, told, _] = look(deployment())
    assert isinstance(create, Create)
    assert isinstance(told, RecordEvent)
    digest = pods.digest(TEMPLATE)
    assert create.tree["metadata"]["name"] == f"web-{digest}"
    assert create.tree["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": digest}
    assert create.tree["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] == digest
    assert told.message == f"Scaled up replica set web-{digest} from 0 to 4"


STEPS = {
    "first the new one grows": ([("old", 4, 4, OTHER), ("new", 0, 0, TEMPLATE)], {"new": 1}),
    "then the old one shrinks": ([("old", 4, 4, OTHER), ("new", 1, 1, TEMPLATE)], {"old": 2}),
    "no further before new pods are there": ([("old", 3, 3, OTHER), ("new", 2, 0, TEMPLATE)], {}),
    "what is not available goes at once": ([("old", 4, 0, OTHER), ("new", 1, 1, TEMPLATE)], {"old": 2}),
    "nothing is left to do": ([("old", 0, 0, OTHER), ("new", 4, 4, TEMPLATE)], {}),
}


@pytest.mark.parametrize("sets, scales", STEPS.values(), ids=STEPS)
def test_steps_of_a_rollout(sets: list[tuple[str, int, int, Tree]], scales: dict[str, int]) -> None:
    made = [replicaset(*each, revision=number + 1) for number, each in enumerate(sets)]
    assert scaled(look(deployment(), *made)) == scales


def test_recreate_takes_all_away_and_waits() -> None:
    old, strategy = replicaset("old", 4, 4, OTHER, 1), {"type": "Recreate"}
    assert scaled(look(deployment(strategy=strategy), old)) == {"old": 0}
    empty = replicaset("old", 0, 0, OTHER, 1)
    waits = look(deployment(strategy=strategy), empty, running={"old"})
    assert not any(isinstance(action, Create) for action in waits)
    assert any(isinstance(action, Create) for action in look(deployment(strategy=strategy), empty))


def test_rolling_back_gives_the_old_set_the_next_revision() -> None:
    back, bad = replicaset("back", 0, 0, TEMPLATE, 1), replicaset("bad", 4, 0, OTHER, 2)
    [update, *_] = look(deployment(), back, bad)
    assert isinstance(update, Update)
    annotations = update.tree["metadata"]["annotations"]
    assert (annotations[deployments.REVISION], annotations[deployments.HISTORY]) == ("3", "1")


def test_scaling_in_the_middle_of_a_rollout_keeps_the_proportion() -> None:
    old, new = replicaset("old", 3, 3, OTHER, 1), replicaset("new", 2, 2, TEMPLATE, 2)
    assert scaled(look(deployment(replicas=8), old, new)) == {"old": 6, "new": 4}


def test_the_oldest_empty_sets_go() -> None:
    done = {"updatedReplicas": 4, "replicas": 4, "availableReplicas": 4, "observedGeneration": 1}
    old = [replicaset(f"r{number}", 0, 0, OTHER, number) for number in (1, 2, 3)]
    finished = deployment(done, revisionHistoryLimit=1)
    finished["metadata"]["annotations"] = {deployments.REVISION: "4"}
    actions = look(finished, *old, replicaset("new", 4, 4, TEMPLATE, 4))
    assert [each.target["metadata"]["name"] for each in actions if isinstance(each, Delete)] == ["r1", "r2"]


def test_a_template_whose_hash_is_taken_gets_another() -> None:
    taken = replicaset("old", 0, 0, OTHER, 1)
    taken["metadata"]["labels"] = {pods.HASH_LABEL: pods.digest(TEMPLATE)}
    made = deployments.first(deployment(), [taken], 1)
    assert made["metadata"]["name"] == f"web-{pods.digest(TEMPLATE, 1)}"


def progressing(reason: str, updated: str, **more: object) -> Tree:
    condition = {"type": "Progressing", "status": "True", "reason": reason, "lastUpdateTime": updated}
    counts = {"replicas": 4, "updatedReplicas": 4}
    return deployment(counts | {"conditions": [condition]}, progressDeadlineSeconds=60, **more)


PROGRESS = {
    "in time": (progressing("ReplicaSetUpdated", ago(59)), 0, "ReplicaSetUpdated"),
    "too late": (progressing("ReplicaSetUpdated", ago(61)), 0, "ProgressDeadlineExceeded"),
    "late but moving": (progressing("ReplicaSetUpdated", ago(61)), 1, "ReplicaSetUpdated"),
    "done": (progressing("ReplicaSetUpdated", ago(61)), 4, "NewReplicaSetAvailable"),
    "done long ago": (progressing("NewReplicaSetAvailable", ago(999)), 0, "NewReplicaSetAvailable"),
}


@pytest.mark.parametrize("observed, available, reason", PROGRESS.values(), ids=PROGRESS)
def test_progress(observed: Tree, available: int, reason: str) -> None:
    new = replicaset("new", 4, available)
    status = deployments.new_status(observed, [new], new, 3, NOW)
    found = next(each for each in status["conditions"] if each["type"] == "Progressing")
    assert found["reason"] == reason


def test_lack_of_progress_is_looked_for_in_time() -> None:
    observed = progressing("ReplicaSetUpdated", ago(40))
    status = deployments.new_status(observed, [], None, 3, NOW)
    assert deployments.recheck(observed, status, NOW) == 21
    assert deployments.recheck(observed, status, NOW + timedelta(seconds=90)) == 1


def test_a_hash_label_makes_no_other_template() -> None:
    assert pods.same(TEMPLATE, pods.hashed(TEMPLATE, "x"))
    assert pods.digest(TEMPLATE) == pods.digest(pods.hashed(TEMPLATE, "x")) != pods.digest(OTHER)


def test_a_long_history_loses_its_beginning() -> None:
    long = owner("old")
    long["metadata"]["annotations"] = {deployments.REVISION: "900", deployments.HISTORY: ",".join(["100"] * 499)}
    kept = deployments.inherited(deployment(), long, 901)[deployments.HISTORY]
    assert len(kept) <= deployments.LONGEST_HISTORY
    assert kept.endswith("100,900")


def test_replicas_default_to_one() -> None:
    assert replicasets.replicas({"spec": {}}) == 1
