"""With flavour reference the scheduler decides as NodeResourceTopologyMatch with its caches, from configuration to
binding: recorded runs of that plugin, where they are at hand, and runs of our own."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.nrt import fingerprint
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.trees import Tree
from tests.embedded.barecluster import Bare
from tests.oracle import plugincases

SETTLED = 3.0
"""Seconds in which everything that can be bound is."""
ROUNDS = 45.0
"""Seconds in which the cache is compared with the cluster a few times, and pods come out of backoff."""
ANY_NODE = "*"
Step = dict[str, Any]


def configured(args: dict[str, Any], *names: str) -> dict[str, Any]:
    settings = [
        {"name": "NodeResourceTopologyMatch", "args": args},
        {"name": "Numalign", "args": {"flavour": "reference"}},
    ]
    return {"profiles": [{"schedulerName": name, "pluginConfig": settings} for name in names]}


async def play(given: dict[str, Any]) -> list[str]:
    """What did not go as the steps expect."""
    bare, wrong, wanted = Bare(), list[str](), dict[str, str]()
    bare.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "integration-test"}})
    for thing in (*given["nodes"], *given["nrts"]):
        bare.create(thing)
    made = [step["pod"] for step in given["steps"] if step["op"] == "createPod"]
    ours = [pod["spec"] for pod in made if not pod["spec"].get("nodeName")]
    names = dict.fromkeys(spec.get("schedulerName", "default-scheduler") for spec in ours)
    async with bare.scheduler(configured(given["config"], *names)):
        await bare.clock.sleep(SETTLED)
        for step in given["steps"]:
            wrong += await taken(bare, step, wanted)
        await bare.clock.sleep(ROUNDS)
    ends = bare.bound()
    return wrong + [f"{name}: {ends[name] or 'pending'}" for name in wanted if not is_wanted(ends[name], wanted[name])]


async def taken(bare: Bare, step: Step, wanted: dict[str, str]) -> list[str]:
    match step:
        case {"op": "createPod", "pod": pod, "expectedNode": node}:
            bare.create(complete(pod))
            wanted[pod["metadata"]["name"]] = node
        case {"op": "deletePod", "name": name}:
            found = [f"{name} is not bound"] if not is_wanted(bare.bound()[name], wanted.pop(name)) else []
            bare.api.delete(PODS, name, "integration-test", grace=0)
            return found
        case {"op": "setPodPhase", "podIndexScheduled": place, "phase": phase}:
            name = [name for name, node in bare.bound().items() if node][place]
            bare.set_status("integration-test", name, phase=phase)
        case {"op": "updateNRT", "nrt": nrt}:
            bare.write(nrt)
            await bare.clock.sleep(ROUNDS)
        case {"op": "expectScheduledCount", "count": count}:
            bound = sum(map(bool, bare.bound().values()))
            return [f"{bound} bound instead of {count}"] if bound != count else []
    await bare.clock.sleep(SETTLED)
    return []


def complete(pod: Tree) -> Tree:
    containers = [{"image": "a:1", **each} for each in pod["spec"]["containers"]]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def is_wanted(node: str, wanted: str) -> bool:
    return bool(node) if wanted == ANY_NODE else node == wanted


RECORDED = {
    case.id: case.case["input"]
    for path in plugincases.WHOLE
    for case in plugincases.cases(path)
    if case.suite == "integration_cache"
}


def node(cpus: int = 16) -> Tree:
    amounts = {"cpu": str(cpus), "memory": "64Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status}


def report(*free: int, pods: tuple[str, ...] = ()) -> Tree:
    hashes = sorted(fingerprint.pod_hash("integration-test", name) for name in pods)
    attributes = {"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "container"}
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "n"},
        "attributes": [
            *({"name": name, "value": value} for name, value in attributes.items()),
            {"name": "nodeTopologyPodsFingerprint", "value": fingerprint.of_hashes(hashes)},
        ],
        "zones": [
            {
                "name": f"node-{zone}",
                "type": "Node",
                "resources": [
                    {"name": "cpu", "capacity": "8", "allocatable": "8", "available": str(cpus)},
                    {"name": "memory", "capacity": "32Gi", "allocatable": "32Gi", "available": "30Gi"},
                ],
            }
            for zone, cpus in enumerate(free)
        ],
    }


def pod(name: str, cpus: int = 6, **spec: object) -> Tree:
    amounts = {"cpu": str(cpus), "memory": "1Gi"}
    container = {"name": "main", "image": "a:1", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "integration-test"},
        "spec": {"containers": [container], **spec},
    }


def create(name: str, expected: str, **spec: Any) -> Step:
    return {"op": "createPod", "pod": pod(name, **spec), "expectedNode": expected}


def update(*free: int, pods: tuple[str, ...]) -> Step:
    return {"op": "updateNRT", "nrt": report(*free, pods=pods)}


A, B = create("a", "n"), create("b", "n")
ONE_BOUND: Step = {"op": "expectScheduledCount", "count": 1}
RUNNING: Step = {"op": "setPodPhase", "podIndexScheduled": 0, "phase": "Running"}
FOREIGN = create("theirs", "n", nodeName="n", schedulerName="somebody")
OVER: dict[str, Any] = {"cacheResyncPeriodSeconds": 5}
DISCARD: dict[str, Any] = {"discardReservedNodes": True}
PASS: dict[str, Any] = {}
OWN: dict[str, tuple[dict[str, Any], list[Step]]] = {
    "charged to both zones, until a report has it": (OVER, [A, B, ONE_BOUND, RUNNING, update(2, 8, pods=("a",))]),
    "a report about other pods changes nothing": (OVER, [A, create("b", ""), RUNNING, update(2, 8, pods=("x",))]),
    "a node refused once more is looked at once more": (
        OVER,
        [A, B, RUNNING, update(2, 2, pods=("a",)), ONE_BOUND, update(2, 8, pods=("a",))],
    ),
    "closed only until it is bound": (DISCARD, [A, B, create("c", "")]),
    "trusts the report": (PASS, [A, B]),
    "closed by somebody else's pod": (OVER, [FOREIGN, RUNNING, create("a", "")]),
    "open once a report has somebody else's pod": (OVER, [FOREIGN, RUNNING, A, update(2, 8, pods=("theirs",))]),
}


def own(args: dict[str, Any], steps: list[Step]) -> dict[str, Any]:
    return {"config": args, "nodes": [node()], "nrts": [report(8, 8)], "steps": steps}


@pytest.mark.parametrize("given", [*RECORDED.values(), *(own(*each) for each in OWN.values())], ids=[*RECORDED, *OWN])
def test_every_pod_goes_where_the_plugin_puts_it(given: dict[str, Any]) -> None:
    assert virtualtime.run(play(given)) == []


def test_a_run_that_goes_otherwise_is_noticed() -> None:
    """The caches do differ: the steps of one are not those of another."""
    args, steps = OWN["charged to both zones, until a report has it"]
    assert virtualtime.run(play(own(PASS, steps))) == ["2 bound instead of 1"]
    assert virtualtime.run(play(own(args, [create("a", ""), create("b", "")]))) == ["a: n"]


TEXTS = {
    "no room": ([A, create("b", "")], "0/1 nodes are available: 1 cannot align container."),
    "not trusted": ([FOREIGN, RUNNING, create("b", "")], "0/1 nodes are available: 1 invalid node topology data."),
}


@pytest.mark.parametrize("steps, text", TEXTS.values(), ids=TEXTS)
def test_a_pod_that_waits_is_told_why_in_the_plugins_words(steps: list[Step], text: str) -> None:
    async def waited() -> Tree:
        bare = Bare()
        bare.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "integration-test"}})
        bare.create(node())
        bare.create(report(8, 8))
        async with bare.scheduler(configured(OVER, "default-scheduler")):
            await bare.clock.sleep(SETTLED)
            for step in steps:
                await taken(bare, step, {})
        return bare.pods()["b"]

    (condition,) = virtualtime.run(waited())["status"]["conditions"]
    said, _, preemption = condition["message"].partition(" preemption: ")
    assert (condition["reason"], said) == ("Unschedulable", text)
    assert preemption.startswith("0/1 nodes are available:")
