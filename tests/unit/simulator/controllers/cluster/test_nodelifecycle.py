import pytest

from numalign.simulator.controllers.cluster import nodelifecycle
from numalign.simulator.controllers.framework.actions import Action, MergePatch, Requeue, Update
from numalign.simulator.trees import Tree
from tests.unit.simulator.controllers.trees import NOW, pod


def node(ready: str = "True", taints: list[Tree] | None = None, **pressures: str) -> Tree:
    states = ({"Ready": ready} if ready else {}) | pressures
    conditions = [{"type": kind, "status": status, "lastHeartbeatTime": "then"} for kind, status in states.items()]
    spec = {"taints": taints} if taints else {}
    return {"metadata": {"name": "a", "uid": "u"}, "spec": spec, "status": {"conditions": conditions}}


def written(actions: list[Action], part: str) -> Tree | None:
    return next((each.tree for each in actions if isinstance(each, Update) and each.part == part), None)


def taint(key: str, effect: str) -> Tree:
    return {"key": f"node.kubernetes.io/{key}", "effect": effect, "timeAdded": "2026-01-01T12:00:00Z"}


SILENCE = {
    "heard of just now": (node(), 0.0, None),
    "not yet": (node(), 39.9, None),
    "too long": (node(), 40.0, "NodeStatusUnknown"),
    "already known": (node("Unknown"), 99.0, None),
    "never heard of, still starting": (node(""), 59.0, None),
    "never heard of": (node(""), 60.0, "NodeStatusNeverUpdated"),
}


@pytest.mark.parametrize("observed, silent, reason", SILENCE.values(), ids=SILENCE)
def test_silence(observed: Tree, silent: float, reason: str | None) -> None:
    tree = written(nodelifecycle.reconcile(observed, [], silent, NOW), "status")
    found = tree and next(each for each in tree["status"]["conditions"] if each["type"] == "Ready")
    assert (found and (found["status"], found["reason"])) == (reason and ("Unknown", reason))


def test_a_node_is_looked_at_when_it_would_have_been_silent_too_long() -> None:
    assert Requeue(25.0) in nodelifecycle.reconcile(node(), [], 15.0, NOW)


def test_the_last_heartbeat_stays_the_kubelets_own() -> None:
    tree = written(nodelifecycle.reconcile(node(), [], 50.0, NOW), "status")
    assert tree is not None
    assert tree["status"]["conditions"][0]["lastHeartbeatTime"] == "then"


TAINTS = {
    "ready": (node(), []),
    "not ready": (node("False"), [taint("not-ready", "NoSchedule"), taint("not-ready", "NoExecute")]),
    "unreachable": (node("Unknown"), [taint("unreachable", "NoSchedule"), taint("unreachable", "NoExecute")]),
    "memory": (node(MemoryPressure="True"), [taint("memory-pressure", "NoSchedule")]),
}


@pytest.mark.parametrize("observed, taints", TAINTS.values(), ids=TAINTS)
def test_conditions_become_taints(observed: Tree, taints: list[Tree]) -> None:
    tree = written(nodelifecycle.reconcile(observed, [], 0.0, NOW), "")
    assert (tree["spec"]["taints"] if tree else []) == taints


def test_taints_of_others_stay_and_ours_go() -> None:
    theirs = {"key": "example.com/mine", "effect": "NoSchedule"}
    observed = node(taints=[theirs, taint("not-ready", "NoSchedule"), taint("unreachable", "NoExecute")])
    tree = written(nodelifecycle.reconcile(observed, [], 0.0, NOW), "")
    assert tree is not None
    assert tree["spec"]["taints"] == [theirs]


def test_a_tainted_node_that_stays_as_it_is_is_not_written() -> None:
    observed = node("Unknown", [taint("unreachable", "NoSchedule"), taint("unreachable", "NoExecute")])
    assert nodelifecycle.reconcile(observed, [], 99.0, NOW) == []


def test_pods_of_a_lost_node_are_no_longer_ready() -> None:
    actions = nodelifecycle.reconcile(node(), [pod("a"), pod("b", ready=False)], 50.0, NOW)
    patched = {each.target["metadata"]["name"]: each.body for each in actions if isinstance(each, MergePatch)}
    assert list(patched) == ["a"]
    assert patched["a"]["status"]["conditions"][0]["status"] == "False"
