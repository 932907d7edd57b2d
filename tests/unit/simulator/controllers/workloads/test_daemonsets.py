import pytest

from numalign.simulator.controllers.framework import pods
from numalign.simulator.controllers.framework.actions import Create, Delete, RecordEvent, Requeue
from numalign.simulator.controllers.workloads import daemonsets
from numalign.simulator.trees import Tree
from tests.unit.simulator.controllers.trees import NOW, owner, pod

TEMPLATE: Tree = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [], "nodeSelector": {"gpu": "yes"}}}
CURRENT = {"app": "web", daemonsets.HASH_LABEL: pods.digest(TEMPLATE)}


def daemonset(**spec: object) -> Tree:
    return owner("agent", None, **{"template": TEMPLATE, **spec})


def node(name: str, *taints: Tree, gpu: str = "yes", **spec: object) -> Tree:
    return {"metadata": {"name": name, "labels": {"gpu": gpu}}, "spec": {"taints": list(taints)} | spec}


NO_EXECUTE: Tree = {"key": "k", "effect": "NoExecute"}
NO_SCHEDULE: Tree = {"key": "k", "effect": "NoSchedule"}
UNREACHABLE: Tree = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
CORDONED: Tree = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
NODES = {
    "plain": (node("a"), (True, True)),
    "does not match": (node("a", gpu="no"), (False, False)),
    "tainted": (node("a", NO_SCHEDULE), (False, True)),
    "tainted for good": (node("a", NO_EXECUTE), (False, False)),
    "unreachable": (node("a", UNREACHABLE), (True, True)),
    "cordoned": (node("a", CORDONED, unschedulable=True), (True, True)),
}


@pytest.mark.parametrize("there, expected", NODES.values(), ids=NODES)
def test_where_daemons_run_and_stay(there: Tree, expected: tuple[bool, bool]) -> None:
    spec = daemonsets.daemon_template(daemonset(), "x")["spec"]
    assert daemonsets.should_run(there, spec) == expected


def test_a_new_pod_is_tied_to_its_node() -> None:
    [_, create] = daemonsets.reconcile(daemonset(), [], [node("a")], NOW)
    assert isinstance(create, Create)
    assert daemonsets.target(create.tree) == "a"


def test_of_two_pods_on_a_node_the_older_one_stays() -> None:
    owned = [pod("young", node="a", age=5, labels=CURRENT), pod("old", node="a", age=50, labels=CURRENT)]
    removed = [each for each in daemonsets.reconcile(daemonset(), owned, [node("a")], NOW) if isinstance(each, Delete)]
    assert [each.target["metadata"]["name"] for each in removed] == ["young"]


def test_a_failed_pod_is_replaced_but_not_at_once() -> None:
    fresh = daemonsets.reconcile(daemonset(), [pod("p", "Failed", node="a", age=0, labels=CURRENT)], [node("a")], NOW)
    assert [each for each in fresh if isinstance(each, Requeue | Delete)] == [Requeue(1.0)]
    later = daemonsets.reconcile(daemonset(), [pod("p", "Failed", node="a", age=2, labels=CURRENT)], [node("a")], NOW)
    assert [type(each) for each in later[1:]] == [RecordEvent, Delete]


OLD = {"app": "web", daemonsets.HASH_LABEL: "old"}
UPDATES = {
    "one at a time": ({}, [True, True, True], 1),
    "as many as allowed": ({"rollingUpdate": {"maxUnavailable": 2}}, [True, True, True], 2),
    "none while one is missing": ({}, [False, True, True], 1),
    "all that do no good": ({}, [False, False, True], 2),
    "never by itself": ({"type": "OnDelete"}, [True, True, True], 0),
}


@pytest.mark.parametrize("strategy, ready, count", UPDATES.values(), ids=UPDATES)
def test_how_many_old_pods_go(strategy: Tree, ready: list[bool], count: int) -> None:
    owned = [pod(f"p{number}", node=f"n{number}", ready=is_ready, labels=OLD) for number, is_ready in enumerate(ready)]
    nodes = [node(f"n{number}") for number in range(len(ready))]
    actions = daemonsets.reconcile(daemonset(updateStrategy=strategy), owned, nodes, NOW)
    assert sum(isinstance(each, Delete) for each in actions) == count
