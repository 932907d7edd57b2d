import pytest

from numalign.simulator.controllers.blindscheduler import filters
from numalign.simulator.controllers.blindscheduler.asking import Ask, Asks, Port
from numalign.simulator.controllers.blindscheduler.filters import Nodes
from numalign.simulator.controllers.blindscheduler.totals import Totals
from numalign.simulator.trees import Tree

# Kube-scheduler spec A.1.
MESSAGES = {
    "one reason": (3, {"Insufficient cpu": 3}, "0/3 nodes are available: 3 Insufficient cpu."),
    "two": (
        12,
        {"Insufficient cpu": 10, "node(s) had untolerated taint(s)": 2},
        "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) had untolerated taint(s).",
    ),
    "sorted as text": (
        100,
        {"Insufficient cpu": 9, "Insufficient memory": 10, "Too many pods": 81},
        "0/100 nodes are available: 10 Insufficient memory, 81 Too many pods, 9 Insufficient cpu.",
    ),
    "no nodes": (0, {}, "no nodes available to schedule pods"),
}


@pytest.mark.parametrize("nodes, counts, message", MESSAGES.values(), ids=MESSAGES)
def test_messages(nodes: int, counts: dict[str, int], message: str) -> None:
    assert filters.message(nodes, counts) == message


def test_what_is_said_of_preemption() -> None:
    assert filters.no_victims(5, 1) == (
        " preemption: 0/5 nodes are available: 1 Preemption is not helpful for scheduling, "
        "4 No preemption victims found for incoming pod."
    )


def cluster(*trees: Tree, cpu: int = 4000, pods: int = 110) -> tuple[Totals, Nodes]:
    totals = Totals()
    nodes = Nodes(totals)
    for tree in trees:
        name = tree["metadata"]["name"]
        totals.put(name, {"cpu": cpu, "memory": 1 << 34, "pods": pods})
        nodes.put(name, tree)
    return totals, nodes


def node(name: str, **spec: object) -> Tree:
    return {"metadata": {"name": name, "labels": {"name": name}}, "spec": spec}


def ask(cpu: str = "1", **spec: object) -> Ask:
    container = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
    return Asks().of({"spec": {"containers": [container]} | spec})


TAINTED = node("t", taints=[{"key": "k", "effect": "NoSchedule"}])
CORDONED = node("c", unschedulable=True)


def named(*names: str) -> Tree:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


KEPT_OFF = {filters.REASONS[filters.TAINT]: 1, filters.REASONS[filters.UNSCHEDULABLE]: 1}
AFFINITY, ELSEWHERE = filters.REASONS[filters.AFFINITY], filters.REASONS[filters.ELSEWHERE]
REFUSED = {
    "too large for any": (ask("5"), {"Insufficient cpu": 1} | KEPT_OFF, 3),
    "by selector": (ask(nodeSelector={"name": "x"}), {AFFINITY: 1} | KEPT_OFF, 3),
    "only one comes into question": (ask("5", affinity=named("a")), {"Insufficient cpu": 1, ELSEWHERE: 2}, 3),
    "nobody has it": (Ask((("example.com/gpu", 1),), (0, 0)), {"Insufficient example.com/gpu": 1} | KEPT_OFF, 3),
}


@pytest.mark.parametrize("asked, counts, useless", REFUSED.values(), ids=REFUSED)
def test_reasons(asked: Ask, counts: dict[str, int], useless: int) -> None:
    _, nodes = cluster(node("a"), TAINTED, CORDONED)
    found = nodes.refusals(asked)
    assert not nodes.fitting(asked).any()
    assert (dict(found.counts), found.useless) == (counts, useless)


def test_room_that_pods_take_might_be_made() -> None:
    totals, nodes = cluster(node("a"))
    totals.charge("a", ("default", "p"), ask("3"))
    found = nodes.refusals(ask("2"))
    assert (dict(found.counts), found.useless) == ({"Insufficient cpu": 1}, 0)


def test_too_many_pods() -> None:
    _, nodes = cluster(node("a"), pods=0)
    assert dict(nodes.refusals(ask()).counts) == {"Too many pods": 1}


def test_a_changed_node_is_judged_anew() -> None:
    _, nodes = cluster(node("a"))
    assert nodes.fitting(ask()).any()
    assert nodes.put("a", node("a", unschedulable=True))
    assert not nodes.fitting(ask()).any()
    assert not nodes.put("a", node("a", unschedulable=True) | {"status": {"conditions": []}})


ANY, ONE = "0.0.0.0", "10.0.0.1"
PORTS = {
    "same": ((ANY, "TCP", 80), (ANY, "TCP", 80), True),
    "other number": ((ANY, "TCP", 80), (ANY, "TCP", 81), False),
    "other protocol": ((ANY, "TCP", 80), (ANY, "UDP", 80), False),
    "any against one": ((ANY, "TCP", 80), (ONE, "TCP", 80), True),
    "one against any": ((ONE, "TCP", 80), (ANY, "TCP", 80), True),
    "two addresses": ((ONE, "TCP", 80), ("10.0.0.2", "TCP", 80), False),
}


@pytest.mark.parametrize("wanted, used, conflict", PORTS.values(), ids=PORTS)
def test_host_ports(wanted: Port, used: Port, conflict: bool) -> None:
    assert filters.conflicts([wanted], [used]) is conflict


def test_a_taken_port_is_the_reason_before_any_shortage() -> None:
    totals, nodes = cluster(node("a"), node("b"))
    port = Ask((), (0, 0), frozenset({(ANY, "TCP", 80)}))
    totals.charge("a", ("default", "p"), port)
    wants = Ask((("cpu", 9000),), (0, 0), port.ports)
    assert dict(nodes.refusals(wants).counts) == {filters.NO_PORTS: 1, "Insufficient cpu": 1}
