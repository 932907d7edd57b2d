"""Whom the real kube-scheduler evicts, and whom ours would: the same pods, on random nodes without zones.

Every case has a few nodes of its own, full of pods of different worth, budgets that speak for some of them, and one pod
that needs room there. All cases are in one embedded cluster, the real scheduler looks at every node, and ours is asked
what it would do. Where two nodes are equally good, either may be chosen."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.api.objects.workloads import PodDisruptionBudget
from numalign.api.schedulerconfig.pluginargs import DefaultPreemptionArgs
from numalign.placement import facts
from numalign.scheduler.choose import messages
from numalign.scheduler.choose.choose import Chosen, NoNode
from numalign.scheduler.preempt.preemption import NotPreempted, PreemptionRequest
from numalign.scheduler.profiles import Profile
from numalign.simulator.trees import Tree
from tests.embedded import clusters
from tests.embedded.clusters import Up
from tests.embedded.test_real_scheduler import command, scheduling
from tests.unit.scheduler.preempting import Town

pytestmark = pytest.mark.built
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: FILE, qps: 500, burst: 1000}
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 100, minCandidateNodesAbsolute: 1000}
"""
WORTH = (-5, 0, 3, 100)
SETTLED = "PodScheduled"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"


def node(case: int, number: int, draw: random.Random) -> Tree:
    amounts = {"cpu": str(draw.randint(3, 6)), "memory": f"{draw.randint(4, 8)}Gi", "pods": str(draw.choice((4, 110)))}
    meta = {"name": f"n-{case}-{number}", "labels": {"case": str(case)}}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": None, "lastTransitionTime": None}
    return {"metadata": meta, "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}}


def pod(case: int, name: str, draw: random.Random, **spec: Any) -> Tree:
    wants = {"cpu": f"{draw.choice((0, 200, 500, 1000, 2000))}m", "memory": f"{draw.choice((0, 256, 1024))}Mi"}
    container: Tree = {"name": "c", "image": "a", "resources": {"requests": wants}}
    if draw.random() < 0.2:
        container["ports"] = [{"containerPort": 80, "hostPort": draw.choice((8080, 8081))}]
    labels = {"app": draw.choice(("web", "db", "batch"))}
    meta = {"name": name, "namespace": f"case-{case}", "labels": labels}
    return {"metadata": meta, "spec": {"containers": [container], "terminationGracePeriodSeconds": 600, **spec}}


def running(case: int, place: Tree, number: int, draw: random.Random) -> Tree:
    """Those of one node began one after the other: of equals it is not said which one kube-scheduler prefers."""
    second = 59 - number if case % 2 else number
    spec = {"nodeName": place["metadata"]["name"], "priorityClassName": f"worth-{draw.randrange(3)}"}
    made = pod(case, f"p-{number}", draw, **spec)
    ready = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    start = f"2026-01-01T00:00:{second:02}Z"
    return made | {"status": {"phase": "Running", "startTime": start, "conditions": [ready]}}


def budget(case: int, app: str, draw: random.Random) -> Tree:
    meta = {"name": app, "namespace": f"case-{case}"}
    return {"metadata": meta, "spec": {"minAvailable": draw.randint(0, 3), "selector": {"matchLabels": {"app": app}}}}


class Case:
    def __init__(self, number: int, seed: int) -> None:
        draw = random.Random(f"{seed}/{number}")
        self.number = number
        self.nodes = [node(number, place, draw) for place in range(draw.randint(1, 4))]
        places = [each for each in self.nodes for _ in range(draw.randint(1, 5))]
        self.pods = [running(number, place, each, draw) for each, place in enumerate(places)]
        self.budgets = [budget(number, app, draw) for app in ("web", "db") if draw.random() < 0.4]
        selector = {"nodeSelector": {"case": str(number)}, "priorityClassName": "worth-3"}
        self.preemptor = pod(number, "new", draw, **selector)
        wants = {"cpu": str(draw.randint(2, 5)), "memory": f"{draw.randint(1, 4)}Gi"}
        self.preemptor["spec"]["containers"][0]["resources"]["requests"] = wants


def posted(up: Up, path: str, tree: Tree) -> None:
    """With its status, which is written apart."""
    code, said = up.call("POST", path, tree)
    assert code == 201, said
    if "status" in tree:
        code, said = up.call("PUT", f"{path}/{tree['metadata']['name']}/status", said | {"status": tree["status"]})
        assert code == 200, said


def furnished(up: Up, case: Case) -> None:
    space = up.namespace(f"case-{case.number}")
    for each in case.nodes:
        posted(up, "/api/v1/nodes", each)
    for each in case.pods:
        posted(up, f"/api/v1/namespaces/{space}/pods", each)
    for each in case.budgets:
        posted(up, f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets", each)


def listed(up: Up, path: str) -> list[Tree]:
    code, said = up.call("GET", path)
    assert code == 200, said
    items: list[Tree] = said["items"]
    return items


class Ours(Town):
    """Everything that the API server has, before the real scheduler looked at it."""

    def __init__(self, up: Up) -> None:
        super().__init__()
        for tree in listed(up, "/api/v1/nodes"):
            self.cluster.node(decode.decode(Node, tree))
        for tree in listed(up, "/api/v1/pods"):
            if tree["spec"].get("nodeName"):
                self.cluster.pod(decode.decode(Pod, tree), 0.0)
        for tree in listed(up, BUDGETS):
            self.budgets.put(decode.decode(PodDisruptionBudget, tree))

    def said(self, pod: Pod, real: tuple[str, frozenset[str], str]) -> tuple[str, frozenset[str], str]:
        """Node, victims and message; if the real choice is as good as ours, that one."""
        found, shape = self.choose(pod), self.cluster.engine.shape(pod)
        if isinstance(found, Chosen):
            self.cluster.engine.apply(facts.BindFailed(pod.metadata.uid))
            return "", frozenset(), ""
        told = messages.refusal(found, pod, shape, self.cluster.engine, zones=False).message
        decided = self.preemption.decide(self._asked(pod, found), random.Random(1))
        if isinstance(decided, NotPreempted):
            return "", frozenset(), f"{told} preemption: {decided.message}"
        node, victims = decided.node, decided.victims
        other = self._on(pod, found, real[0]) if real[0] else None
        if other is not None and other.rank == victims.rank:
            node, victims = real[0], other
        names = frozenset(each.metadata.name for each in victims.pods)
        return node, names, f"{told} preemption: {decided.message}" if node == decided.node else real[2]

    def _asked(self, pod: Pod, found: NoNode) -> PreemptionRequest:
        args = DefaultPreemptionArgs(min_candidate_nodes_percentage=100, min_candidate_nodes_absolute=1000)
        return PreemptionRequest(
            pod=pod, shape=self.cluster.engine.shape(pod), found=found, now=0.0, args=args, profile=Profile()
        )

    def _on(self, pod: Pod, found: NoNode, node: str) -> Any:
        assert found.filtered is not None
        shape = self.cluster.engine.shape(pod)
        asked = self.preemption._dry_run(pod, shape, Profile(), found.filtered.steps)
        return asked.on(self.cluster.world.rows[node]).victims


def observed(budget: Tree) -> bool:
    """Whether the disruption controller has counted its pods."""
    status = budget.get("status", {})
    return bool(status.get("observedGeneration") and status.get("currentHealthy") == status.get("expectedPods"))


def decided(tree: Tree) -> bool:
    told = any(each["type"] == SETTLED for each in tree.get("status", {}).get("conditions", ()))
    return bool(told or tree["spec"].get("nodeName"))


def real_choice(case: Case, pods: list[Tree]) -> tuple[str, frozenset[str], str]:
    mine = [each for each in pods if each["metadata"]["namespace"] == f"case-{case.number}"]
    new = next(each for each in mine if each["metadata"]["name"] == "new")
    gone = frozenset(each["metadata"]["name"] for each in mine if "deletionTimestamp" in each["metadata"])
    if new["spec"].get("nodeName"):
        return "", gone, ""
    condition = next(each for each in new["status"]["conditions"] if each["type"] == SETTLED)
    return new["status"].get("nominatedNodeName", ""), gone, condition["message"]


def compared(folder: Path, seed: int, count: int) -> tuple[list[Any], int]:
    """Cases that came out differently, and how many pods were evicted in all."""
    cases = [Case(number, seed) for number in range(count)]
    with clusters.up(folder, "--nodes 1 --no-blind-scheduler") as up, ThreadPoolExecutor(4) as pool:
        for number, worth in enumerate(WORTH):
            posted(
                up,
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                {"metadata": {"name": f"worth-{number}"}, "value": worth},
            )
        list(pool.map(lambda case: furnished(up, case), cases))
        clusters.awaited(lambda: all(map(observed, listed(up, BUDGETS))))
        ours = Ours(up)
        for case in cases:
            posted(up, f"/api/v1/namespaces/case-{case.number}/pods", case.preemptor)
        waiting = [decode.decode(Pod, each) for each in listed(up, "/api/v1/pods") if each["metadata"]["name"] == "new"]
        with scheduling(folder, configured(folder, up)):
            settled(up, count)
            pods = listed(up, "/api/v1/pods")
    wrong, evicted = [], 0
    for pod in sorted(waiting, key=lambda pod: int(pod.metadata.namespace.removeprefix("case-"))):
        case = cases[int(pod.metadata.namespace.removeprefix("case-"))]
        real = real_choice(case, pods)
        evicted += len(real[1])
        said = ours.said(pod, real)
        if said != real:
            wrong.append((case.number, "real", real, "ours", said))
    return wrong, evicted


def configured(folder: Path, up: Up) -> list[str]:
    words = command(folder, up.kubeconfig, is_plain=True)
    file = folder / "preempting.yaml"
    file.write_text(CONFIGURATION.replace("FILE", str(up.kubeconfig)))
    return [words[0], f"--config={file}", "--secure-port=0"]


def settled(up: Up, count: int) -> None:
    """Until every new pod is decided about, and the evictions that follow are through."""

    def is_settled() -> bool:
        pods = listed(up, "/api/v1/pods")
        news = [each for each in pods if each["metadata"]["name"] == "new"]
        told = {each["metadata"]["namespace"] for each in pods if "deletionTimestamp" in each["metadata"]}
        nominated = {each["metadata"]["namespace"] for each in news if each["status"].get("nominatedNodeName")}
        return sum(map(decided, news)) == count and nominated <= told

    clusters.awaited(is_settled)


def test_the_same_pods_have_to_go(tmp_path: Path) -> None:
    wrong, evicted = compared(tmp_path, seed=1, count=40)
    assert wrong == []
    assert evicted > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
def test_the_same_pods_have_to_go_by_the_hundred(tmp_path: Path, seed: int) -> None:
    wrong, evicted = compared(tmp_path, seed=seed, count=150)
    assert wrong == []
    assert evicted > 100
