"""After any history of nodes and pods, every rule says what it would say of a world made from nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodes.imagelocality import ImageLocality
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.nodes.nodeports import NodePorts
from numalign.placement.rules.nodes.nodespec import NodeDeclaredFeatures, NodeName, NodeUnschedulable, TaintToleration
from numalign.placement.rules.resources.balanced import NodeResourcesBalancedAllocation
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.placement.rules.rule import FilterRule, ScoreRule
from tests.unit.placement.rules import worlds

ROWS = 3
FILTERS: tuple[FilterRule[Any], ...] = (
    NodeName(),
    NodeUnschedulable(),
    TaintToleration(),
    NodeAffinity(),
    NodePorts(),
    NodeResourcesFit(),
    NodeDeclaredFeatures(),
)
SCORES: tuple[ScoreRule[Any], ...] = (
    TaintToleration(),
    NodeAffinity(),
    NodeResourcesFit(),
    NodeResourcesBalancedAllocation(),
    ImageLocality(),
)
ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x", "z"]}]}
AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ZONE]},
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 2, "preference": ZONE}],
}
PORT = {"name": "main", "image": "app:v1", "ports": [{"hostPort": 80, "containerPort": 80}]}
ASKING = (
    worlds.pod({"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}),
    worlds.pod(affinity={"nodeAffinity": AFFINITY}, tolerations=[{"key": "t0", "operator": "Exists"}]),
    worlds.pod(containers=[PORT], nodeSelector={"zone": "y"}),
    worlds.pod(hostNetwork=True, hostUsers=False, nodeName="n1"),
)

node_fields = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(st.just("zone"), st.sampled_from("xyz")),
        "taints": st.lists(
            st.fixed_dictionaries(
                {"key": st.sampled_from(["t0", "t1"]), "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule"])}
            ),
            max_size=2,
        ),
        "unschedulable": st.booleans(),
        "allocatable": st.fixed_dictionaries(
            {"cpu": st.sampled_from("0124"), "memory": st.sampled_from(["1Gi", "4Gi"]), "pods": st.sampled_from("025")},
            optional={"example.com/gpu": st.sampled_from("012")},
        ),
        "images": st.lists(st.builds(dict, names=st.just(["app:v1"]), sizeBytes=st.just(10**9)), max_size=1),
        "declaredFeatures": st.lists(st.just("UserNamespacesHostNetworkSupport"), max_size=1),
    }
)
placed = st.builds(
    lambda cpu, port: worlds.pod({"cpu": cpu}) if not port else worlds.pod(containers=[PORT]),
    st.sampled_from(["0", "500m", "1"]),
    st.booleans(),
)
rows, uids = st.integers(0, ROWS - 1), st.sampled_from(["u0", "u1", "u2", "u3"])
steps = st.one_of(
    st.tuples(st.just("put_node"), rows, node_fields),
    st.tuples(st.just("drop_node"), rows, st.none()),
    st.tuples(st.just("put_pod"), uids, st.tuples(rows, placed)),
    st.tuples(st.just("drop_pod"), uids, st.none()),
)


class Truth:
    """The same history as plain dictionaries, and the world made from them."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.pods: dict[str, tuple[int, Pod]] = {}

    def world(self) -> ClusterState:
        made = ClusterState()
        for row, node in self.nodes.items():
            made.put_node(row, node)
        for uid, (row, pod) in self.pods.items():
            made.put_pod(uid, row, pod)
        return made


def step(truth: Truth, world: ClusterState, what: str, which: Any, how: Any) -> None:
    match what:
        case "put_node":
            truth.nodes[which] = worlds.node(f"n{which}", **how)
            world.put_node(which, truth.nodes[which])
        case "drop_node":
            truth.nodes.pop(which, None)
            world.drop_node(which)
        case "put_pod":
            truth.pods[which] = how
            world.put_pod(which, *how)
        case "drop_pod":
            truth.pods.pop(which, None)
            world.drop_pod(which)


def said(world: ClusterState) -> list[object]:
    """By pod and rule: the refusal of every row that has a node, raw and normalised scores."""
    rows = worlds.all_rows(world)
    answers: list[object] = []
    for pod in ASKING:
        for rule in FILTERS:
            prepared: Any = rule.prepare(pod, world)
            codes = [] if prepared is None else rule.filter(prepared)[rows].tolist()
            answers.append([code and prepared.refusals[code] for code in codes])
        for scorer in SCORES:
            ready = scorer.prepare_score(pod, world, rows)
            raw = None if ready is None else scorer.score(ready, rows)
            answers.append(None if raw is None else [raw.tolist(), scorer.normalized(ready, raw).tolist()])
    return answers


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=25))
def test_any_history_ends_where_a_fresh_start_begins(history: list[tuple[str, Any, Any]]) -> None:
    truth, world = Truth(), ClusterState()
    for what, which, how in history:
        step(truth, world, what, which, how)
        said(world)
    assert said(world) == said(truth.world())
