"""The agent publishes direct mode and its acknowledgements, and records Events about what it does not apply."""

from __future__ import annotations

import asyncio

from numalign.agent import main
from numalign.agent.cycle import Agent
from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.attributes.directresult import ContainerResult
from numalign.api.decode import cpuset
from numalign.process.serve import PageRequest, PageResponse
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import EVENTS
from tests.runtimes import Container, Pod, Runtime
from tests.unit.agent.clusters import NODE, PLAIN, UNMANAGED, Script, Town
from tests.unit.agent.enforce.nodes import decision, own


async def run(runtime: Runtime, name: str, *containers: ContainerResult) -> list[Container]:
    """Starts a pod with these containers."""
    pod = Pod(f"box-{name}", f"uid-{name}", name)
    pod.annotations = {"numalign.io/resource-status": decision(pod.uid, *containers, node=NODE)}
    await runtime.run_pod(pod)
    return [await runtime.create(pod, each.name) for each in containers]


def unmanaged() -> Script:
    script = Script()
    script.kubelet = UNMANAGED
    return script


def ready(agent: Agent) -> str:
    page = main.status_pages(agent, 60.0)["/readyz"]
    answer = page(PageRequest(method="GET", path="/readyz"))
    assert isinstance(answer, PageResponse)
    return str(answer.body)


def test_the_report_says_direct_mode_and_what_became_of_each_decision() -> None:
    async def story() -> None:
        town, runtime = Town(), Runtime()
        async with town.agent(unmanaged(), runtime=runtime) as agent:
            await asyncio.sleep(10)
            mode = town.read().facts.mode
            assert mode is not None
            assert mode.features == {"cpus", "mems"}
            await run(runtime, "db", own("main", "1-4", (0,), mems="0"))
            await run(runtime, "odd", own("main", "0", (0,)))
            await asyncio.sleep(10)
            assert town.read().facts.applied == (
                AppliedContainer(uid="uid-db", container="main", cpus=cpuset.parse("1-4"), mems=1),
                AppliedContainer(uid="uid-odd", container="main", failure="CPUs 0 may not be handed out on this node"),
            )
            assert agent.metrics.registry.text().count("numalign_agent_enforces 1\n") == 1
            (event,) = town.api.list(EVENTS, "default").items
            assert event["involvedObject"]["kind"] == "Pod"
            assert event["reason"] == "DecisionNotApplied"
            assert event["message"] == (
                "numalign-agent does not apply the decision for container main:"
                " CPUs 0 may not be handed out on this node"
            )
            assert "direct mode: on" in ready(agent)

    virtualtime.run(story())


def test_an_agent_that_restarts_publishes_no_other_mode_in_between() -> None:
    async def story() -> None:
        town, runtime = Town(), Runtime()
        for _ in range(2):
            runtime.latency = 0.2
            async with town.agent(unmanaged(), runtime=runtime):
                for _ in range(100):
                    await asyncio.sleep(0.05)
                    assert town.report() is None or town.read().facts.mode is not None
            assert town.report() is not None

    virtualtime.run(story())


def test_a_node_whose_kubelet_manages_cpus_stays_in_predict_mode_and_says_why() -> None:
    async def story() -> None:
        town, runtime, script = Town(), Runtime(), Script()
        script.kubelet = PLAIN
        async with town.agent(script, runtime=runtime) as agent:
            await asyncio.sleep(10)
            assert town.read().facts.mode is None
            assert "direct mode: off: the kubelet's CPU manager has policy static" in ready(agent)

    virtualtime.run(story())


def test_a_node_without_nri_stays_in_predict_mode_and_says_why() -> None:
    async def story() -> None:
        town, runtime = Town(), Runtime()
        runtime.up = False
        async with town.agent(unmanaged(), runtime=runtime) as agent:
            await asyncio.sleep(10)
            assert town.read().facts.mode is None
            assert "is NRI enabled, and the folder of its socket mounted here?" in ready(agent)

    virtualtime.run(story())


def test_direct_mode_ends_in_the_report_when_the_runtime_stays_away() -> None:
    async def story() -> None:
        town, runtime = Town(), Runtime()
        async with town.agent(unmanaged(), runtime=runtime):
            await asyncio.sleep(10)
            runtime.kill()
            await asyncio.sleep(120)
            assert town.read().facts.mode is None
            runtime.up = True
            await asyncio.sleep(30)
            assert town.read().facts.mode is not None

    virtualtime.run(story())
