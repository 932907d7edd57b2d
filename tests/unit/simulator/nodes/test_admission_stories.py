"""Pods that are bound to a simulated node: let in, refused, run, ended, deleted."""

import asyncio
import random
from typing import Any

import pytest
from msgspec import structs

from numalign.api.objects.node import Taint
from numalign.kubelet.settings import MemoryReservation
from numalign.simulator import clock
from numalign.simulator.apiserver.storage.resources import NAMESPACES, NODES, PODS
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.nodes.fleet import Fleet
from numalign.simulator.nodes.specs import NodeSpec, Publishing
from numalign.simulator.trees import Tree
from tests.unit.simulator.nodes import stage
from tests.unit.simulator.nodes.stage import NODE, Stage, played

ZONE = stage.MACHINE.zones[1]


def test_a_pod_is_admitted_starts_and_holds_what_it_asked_for() -> None:
    async def story(on: Stage) -> tuple[str, str, int]:
        node = on.fleet.add(NODE)
        on.create(stage.pod("web", "4"))
        await on.passes(0.5)
        before = on.phases()["web"]
        await on.passes(1.0)
        return before, on.phases()["web"], len(stage.holders(node))

    assert played(story) == ("Pending", "Running", 1)


def test_a_pod_that_cannot_be_aligned_is_refused_in_the_kubelets_words() -> None:
    async def story(on: Stage) -> tuple[Tree, list[Tree]]:
        on.fleet.add(NODE)
        on.create(stage.pod("a", "12"), stage.pod("b", "12"), stage.pod("c", "6"))
        await on.passes(5.0)
        return on.pod("c")["status"], on.events("TopologyAffinityError")

    status, [event] = played(story)
    assert (status["phase"], status["reason"]) == ("Failed", "TopologyAffinityError")
    assert status["message"] == "Pod was rejected: Resources cannot be allocated with Topology locality"
    assert "containerStatuses" not in status
    assert (event["type"], event["message"]) == ("Warning", "Resources cannot be allocated with Topology locality")
    assert (event["involvedObject"]["name"], event["source"]["host"]) == ("c", "n1")


REFUSALS = {
    "more CPUs than the node has": (NODE, {"cpu": "31500m"}, "OutOfcpu"),
    "devices that are not there": (
        NodeSpec(name="n1", machine=stage.GPUS),
        {"gpus": 9},
        "UnexpectedAdmissionError",
    ),
    "half a core, where only whole ones are given": (
        NodeSpec(
            name="n1",
            machine=stage.GPUS,
            settings=structs.replace(stage.STATIC, cpu_options={"full-pcpus-only": "true"}),
        ),
        {"cpu": "3"},
        "SMTAlignmentError",
    ),
    "a selector for another node": (NODE, {"nodeSelector": {"disk": "ssd"}}, "NodeAffinity"),
    "a taint that is not tolerated": (
        structs.replace(NODE, taints=(Taint(key="k", effect="NoExecute"),)),
        {},
        "TaintToleration",
    ),
    "one pod too many": (
        structs.replace(NODE, settings=structs.replace(stage.STATIC, max_pods=0)),
        {},
        "OutOfpods",
    ),
}


@pytest.mark.parametrize("spec, asked, reason", REFUSALS.values(), ids=REFUSALS)
def test_refusals_bear_the_real_reasons(spec: NodeSpec, asked: dict[str, Any], reason: str) -> None:
    async def story(on: Stage) -> tuple[Tree, frozenset[str]]:
        node = on.fleet.add(spec)
        on.create(stage.pod("web", **asked))
        await on.passes(5.0)
        return on.pod("web")["status"], node.pods

    status, running = played(story)
    assert (status["phase"], status["reason"], running) == ("Failed", reason, frozenset())


def test_two_pods_cannot_have_the_same_host_port() -> None:
    ports = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]

    async def story(on: Stage) -> dict[str, str]:
        on.fleet.add(NODE)
        on.create(*(stage.pod(name, containers=[stage.container("c", ports=ports)]) for name in ("a", "b")))
        await on.passes(5.0)
        return {name: on.pod(name)["status"].get("reason", "") for name in ("a", "b")}

    assert played(story) == {"a": "", "b": "NodePorts"}


@pytest.mark.parametrize(
    "taints, asked, reason",
    [
        pytest.param((), {"nodeSelector": {"disk": "ssd"}}, "NodeAffinity", id="affinity before ports"),
        pytest.param((Taint(key="k", effect="NoExecute"),), {}, "NodePorts", id="ports before taints"),
    ],
)
def test_of_several_reasons_the_kubelet_names_the_first(
    taints: tuple[Taint, ...], asked: dict[str, Any], reason: str
) -> None:
    ports = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    containers = [stage.container("c", ports=ports)]

    async def story(on: Stage) -> str:
        on.fleet.add(structs.replace(NODE, taints=taints))
        on.create(stage.pod("a", containers=containers, tolerations=[{"operator": "Exists"}]))
        on.create(stage.pod("b", containers=containers, **asked))
        await on.passes(5.0)
        return str(on.pod("b")["status"]["reason"])

    assert played(story) == reason


def test_pods_are_admitted_in_the_order_seen() -> None:
    async def story(on: Stage) -> dict[str, str]:
        on.fleet.add(NODE)
        on.create(*(stage.pod(name, "10") for name in ("late", "early", "zero")))
        await on.passes(5.0)
        return on.phases()

    assert played(story) == {"late": "Running", "early": "Running", "zero": "Failed"}


def test_a_pod_that_is_bound_later_is_taken_then() -> None:
    async def story(on: Stage) -> tuple[str, str]:
        on.fleet.add(NODE)
        unbound = stage.pod("web")
        del unbound["spec"]["nodeName"]
        on.create(unbound)
        await on.passes(5.0)
        before = on.pod("web").get("status", {}).get("startTime", "not yet")
        on.api.bind("web", "default", "n1")
        await on.passes(5.0)
        return before, on.phases()["web"]

    assert played(story) == ("not yet", "Running")


def test_a_refused_pod_leaves_nothing_behind_for_the_next_one() -> None:
    containers = [stage.container("first", "10"), stage.container("second", "20")]

    async def story(on: Stage) -> dict[str, str]:
        on.fleet.add(NODE)
        on.create(stage.pod("both", containers=containers), stage.pod("a", "14"), stage.pod("b", "16"))
        await on.passes(5.0)
        return on.phases()

    assert played(story) == {"both": "Failed", "a": "Running", "b": "Running"}


def test_a_pod_that_ends_frees_what_it_held() -> None:
    async def story(on: Stage) -> dict[str, str]:
        on.fleet.add(NODE)
        short = {"numalign.io/run-seconds": "10"}
        on.create(stage.pod("job", "16", annotations=short, restartPolicy="Never"), stage.pod("other", "12"))
        await on.passes(30.0)
        on.create(stage.pod("next", "16"))
        await on.passes(5.0)
        return on.phases()

    assert played(story) == {"job": "Succeeded", "other": "Running", "next": "Running"}


def test_a_deleted_pod_ends_in_its_grace_and_is_confirmed() -> None:
    async def story(on: Stage) -> tuple[dict[str, str], dict[str, str], int, frozenset[str]]:
        node = on.fleet.add(structs.replace(NODE, stop_seconds=5.0))
        on.create(stage.pod("web"))
        await on.passes(3.0)
        on.api.delete(PODS, "web", "default")
        await on.passes(4.0)
        during = on.phases()
        await on.passes(2.0)
        return during, on.phases(), len(on.events("Killing")), node.pods

    assert played(story) == ({"web": "Running"}, {}, 1, frozenset())


def test_the_grace_period_cuts_a_slow_end_short() -> None:
    async def story(on: Stage) -> float:
        on.fleet.add(structs.replace(NODE, stop_seconds=100.0))
        on.create(stage.pod("web", terminationGracePeriodSeconds=7))
        await on.passes(3.0)
        on.api.delete(PODS, "web", "default")
        while on.phases():
            await on.passes(0.5)
        return on.clock.now()

    assert played(story) == pytest.approx(10.0, abs=0.5)


def test_a_pod_deleted_by_force_still_holds_its_cpus_until_it_ends() -> None:
    async def story(on: Stage) -> tuple[dict[str, str], int, int]:
        node = on.fleet.add(structs.replace(NODE, stop_seconds=5.0))
        on.create(stage.pod("web"))
        await on.passes(3.0)
        on.api.delete(PODS, "web", "default", grace=0)
        await on.passes(4.0)
        during = len(node.pods)
        await on.passes(2.0)
        return on.phases(), during, len(node.pods)

    assert played(story) == ({}, 1, 0)


def test_a_pod_that_never_came_to_run_is_let_go_at_once() -> None:
    async def story(on: Stage) -> dict[str, str]:
        on.create(stage.pod("lost"))
        on.api.delete(PODS, "lost", "default")
        on.fleet.add(NODE)
        await on.passes(1.0)
        return on.phases()

    assert played(story) == {}


def test_a_refused_pod_can_be_deleted() -> None:
    async def story(on: Stage) -> dict[str, str]:
        on.fleet.add(NODE)
        on.create(stage.pod("big", "31500m"))
        await on.passes(1.0)
        on.api.delete(PODS, "big", "default")
        await on.passes(1.0)
        return on.phases()

    assert played(story) == {}


def test_labels_given_to_a_node_later_count() -> None:
    async def story(on: Stage) -> dict[str, str]:
        on.fleet.add(NODE)
        node = on.node()
        node["metadata"]["labels"]["disk"] = "ssd"
        on.api.update(NODES, node)
        on.create(stage.pod("web", nodeSelector={"disk": "ssd"}))
        await on.passes(3.0)
        return on.phases()

    assert played(story) == {"web": "Running"}


def test_init_containers_give_their_cpus_to_the_app() -> None:
    async def story(on: Stage) -> tuple[dict[str, str], dict[str, str]]:
        on.fleet.add(NODE)
        on.create(stage.pod("web", "14", initContainers=[stage.container("init", "14")]))
        await on.passes(1.5)
        during = stage.states(on.pod("web"))
        await on.passes(2.0)
        return during, stage.states(on.pod("web"))

    assert played(story) == (
        {"init": "running", "main": "waiting"},
        {"init": "terminated", "main": "running"},
    )


def test_a_pod_that_the_real_kubelet_dies_of_stays_pending_until_it_is_deleted() -> None:
    uneven = structs.replace(stage.MACHINE, zones=(stage.MACHINE.zones[0], structs.replace(ZONE, hugepages=())))
    reserved = structs.replace(stage.STATIC, reserved={"cpu": 2000, "memory": 1 << 30}, memory_policy="Static")
    kept = (MemoryReservation(0, {"memory": 1 << 30}),)
    spec = structs.replace(NODE, machine=uneven, settings=structs.replace(reserved, reserved_memory=kept))
    amounts = {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "2Mi"}
    asked = {"name": "main", "image": "img", "resources": {"requests": amounts, "limits": amounts}}

    async def story(on: Stage) -> tuple[dict[str, str], list[str], dict[str, str]]:
        node = on.fleet.add(spec)
        on.create(stage.pod("odd", containers=[asked]), stage.pod("web"))
        await on.passes(5.0)
        phases, why = {"web": on.phases()["web"]}, list(node.undecided.values())
        on.api.delete(PODS, "odd", "default")
        await on.passes(1.0)
        return phases, why, node.undecided

    phases, [why], after = played(story)
    assert (phases, after) == ({"web": "Running"}, {})
    assert "the kubelet crashes on a request for hugepages-2Mi" in why


def test_nodes_run_in_real_time_too() -> None:
    async def story() -> str:
        used = clock.real(random.Random(1))
        api = Api(used, random.Random(2))
        for name in ("default", "kube-node-lease"):
            api.create(NAMESPACES, {"metadata": {"name": name}})
        fleet = Fleet(api, used, random.Random(3))
        fleet.add(structs.replace(NODE, start_seconds=0.0, publishing=Publishing(publisher="none")))
        running = asyncio.create_task(fleet.run())
        api.create(PODS, stage.pod("web"))
        for _ in range(100):
            await asyncio.sleep(0)
        running.cancel()
        return str(api.get(PODS, "web", "default")["status"]["phase"])

    assert asyncio.run(story()) == "Running"


def test_a_story_runs_the_same_way_twice() -> None:
    async def story(on: Stage) -> list[Tree]:
        on.fleet.add(NODE)
        on.create(*(stage.pod(f"p{number}", str(number + 1)) for number in range(8)))
        await on.passes(500.0)
        return [*on.api.list(PODS).items, on.node(), on.lease(), on.report()]

    assert played(story, seed=5) == played(story, seed=5)
