"""A node that has not reported, or whose report was deleted, takes no pod that its kubelet then rejects.

Whole clusters in virtual time: kubelets that admit and reject, publishers, and our scheduler over HTTP."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.scheduler import main
from numalign.scheduler import settings as configuration
from numalign.scheduler.main import Setup
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import EVENTS, PODS
from numalign.simulator.apiserver.verbs.api import Patch
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes.specs import NodeSpec, Publishing
from numalign.simulator.trees import Tree
from tests import nodes

REPORTS = ("topology.node.k8s.io", "v1alpha2", "NodeResourceTopology")
PROMPT = Publishing()
LATE = Publishing(lag=20.0)
SILENT = Publishing(publisher="none")


def server(name: str, publishing: Publishing = PROMPT) -> NodeSpec:
    """Two zones with 15 and 16 CPUs for pods."""
    machine = nodes.machine(zones=2, cores=16)
    kubelet = nodes.settings(machine, "single-numa-node")
    return NodeSpec(name=name, machine=machine, settings=kubelet, publishing=publishing)


class Town:
    """An embedded cluster, with our scheduler while `start` has started it."""

    def __init__(self, embedded: Cluster, chances: random.Random, args: dict[str, Any]) -> None:
        self.embedded, self.api = embedded, embedded.api
        self._chances, self._args, self._running = chances, args, AsyncExitStack()

    async def start(self) -> None:
        """The scheduler, once more where it runs already: what it knew is forgotten."""
        await self._running.aclose()
        profiles = [{"schedulerName": "numalign", "pluginConfig": [{"name": "Numalign", "args": self._args}]}]
        config = configuration.read(main.NOTHING_SAID | {"profiles": profiles}, "test")
        self._running = AsyncExitStack()
        await self._running.enter_async_context(self.embedded.scheduled_by(Setup(config=config, rng=self._chances)))

    async def stop(self) -> None:
        await self._running.aclose()

    def create(self, name: str, cpus: int, *, aligned: bool = True) -> None:
        amounts = {"cpu": str(cpus), "memory": "1Gi"}
        resources = {"limits": amounts} if aligned else {"requests": amounts}
        self.api.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "schedulerName": "numalign",
                    "containers": [{"name": "main", "image": "a:1", "resources": resources}],
                },
            },
            manager="test",
        )

    async def sleep(self, seconds: float) -> None:
        await self.embedded.clock.sleep(seconds)

    def delete_report(self, node: str) -> None:
        reports = self.api.state.registry.of_kind(*REPORTS)
        assert reports is not None
        # There may be none yet, or none any more.
        with suppress(StatusError):
            self.api.delete(reports, node)

    @property
    def pods(self) -> dict[str, Tree]:
        return {pod["metadata"]["name"]: pod for pod in self.api.list(PODS).items}

    @property
    def bound(self) -> dict[str, str]:
        return {name: pod["spec"].get("nodeName", "") for name, pod in self.pods.items()}

    @property
    def rejected(self) -> list[str]:
        return [name for name, pod in self.pods.items() if pod["status"].get("reason")]

    def events(self, pod: str) -> list[str]:
        found = (each for each in self.api.list(EVENTS).items if each["involvedObject"]["name"] == pod)
        return [each["message"] for each in found]


@asynccontextmanager
async def town(*specs: NodeSpec, seed: int = 1, **args: Any) -> AsyncIterator[Town]:
    clock, chances = virtualtime.clock(random.Random(f"{seed}/clock")), random.Random(seed)
    async with cluster.running(specs, clock, chances) as embedded:
        made = Town(embedded, chances, args)
        await made.start()
        try:
            yield made
        finally:
            await made.stop()


def played(story: Callable[[], Awaitable[None]]) -> None:
    async def play() -> None:
        await story()

    virtualtime.run(play())


def test_a_new_node_takes_pods_that_its_kubelet_aligns_only_after_its_first_report() -> None:
    async def story() -> None:
        async with town(server("a", LATE)) as found:
            for number in range(3):
                found.create(f"p{number}", 9)
            found.create("shared", 1, aligned=False)
            await found.sleep(10.0)
            assert found.bound == {"p0": "", "p1": "", "p2": "", "shared": "a"}
            assert any("waits for the first topology report of 1 node." in said for said in found.events("p0"))
            await found.sleep(20.0)
            assert sorted(found.bound.values()) == ["", "a", "a", "a"]
            assert found.rejected == []

    played(story)


def test_after_the_grace_period_a_silent_node_is_allowed_and_the_event_says_so() -> None:
    async def story() -> None:
        async with town(server("a", SILENT)) as found:
            found.create("p", 9)
            await found.sleep(58.0)
            assert found.bound == {"p": ""}
            await found.sleep(20.0)
            assert found.bound == {"p": "a"}
            assert any("placed without topology data" in said for said in found.events("p"))

    played(story)


def test_a_profile_may_refuse_silent_nodes_for_good_or_allow_them_at_once() -> None:
    async def story() -> None:
        async with town(server("a", SILENT), nodesWithoutReport="refuse") as found:
            found.create("p", 9)
            await found.sleep(600.0)
            assert found.bound == {"p": ""}
            assert any("1 node(s) had no topology report." in said for said in found.events("p"))
        async with town(server("a", SILENT), nodesWithoutReport="allow") as found:
            found.create("p", 9)
            await found.sleep(5.0)
            assert found.bound == {"p": "a"}

    played(story)


def test_the_node_that_reports_is_used_while_another_one_is_awaited() -> None:
    async def story() -> None:
        async with town(server("a", LATE), server("b")) as found:
            await found.sleep(5.0)
            for number in range(2):
                found.create(f"p{number}", 9)
            await found.sleep(5.0)
            assert found.bound == {"p0": "b", "p1": "b"}

    played(story)


def test_a_deleted_report_does_not_make_the_scheduler_forget_the_zones() -> None:
    async def story() -> None:
        async with town(server("a")) as found:
            await found.sleep(10.0)
            found.create("first", 10)
            found.create("second", 9)
            await found.sleep(5.0)
            found.create("too-large", 8)
            await found.sleep(5.0)
            assert found.bound == {"first": "a", "second": "a", "too-large": ""}
            found.embedded.fleet.nodes["a"].stop_exporter()
            found.delete_report("a")
            await found.sleep(120.0)
            assert (found.bound["too-large"], found.rejected) == ("", [])
            found.create("small", 5)
            await found.sleep(5.0)
            assert (found.bound["small"], found.rejected) == ("a", [])

    played(story)


def test_a_scheduler_that_starts_while_a_report_is_deleted_knows_the_places_again() -> None:
    """The publisher does not say in which zones pods are, so that only the scheduler's own note tells."""

    async def story() -> None:
        async with town(server("a", Publishing(publisher="nfd", period=10.0))) as found:
            await found.sleep(15.0)
            found.create("first", 10)
            await found.sleep(0.5)
            found.embedded.fleet.nodes["a"].stop_exporter()
            found.delete_report("a")
            await found.start()
            found.create("waits", 12)
            found.create("too-large", 14)
            await found.sleep(300.0)
            assert (found.bound["waits"], found.bound["too-large"], found.rejected) == ("", "", [])
            found.embedded.fleet.nodes["a"].start_exporter()
            await found.sleep(30.0)
            assert [found.bound["waits"], found.bound["too-large"]].count("a") == 1
            assert found.rejected == []

    played(story)


def say_of_kubelet(found: Town, node: str, words: str | None) -> None:
    """What an agent adds to its report, or takes out of it again."""
    reports = found.api.state.registry.of_kind(*REPORTS)
    assert reports is not None
    there = found.api.get(reports, node)["attributes"]
    kept = [each for each in there if each["name"] != "numalign.io/kubelet-state"]
    said = [{"name": "numalign.io/kubelet-state", "value": words}] if words is not None else []
    found.api.patch(reports, node, "", Patch("merge", {"attributes": [*kept, *said]}))


def test_a_kubelet_that_does_not_answer_gets_no_pod_that_it_may_align_until_it_does() -> None:
    async def story() -> None:
        async with town(server("a")) as found:
            await found.sleep(10.0)
            found.embedded.fleet.nodes["a"].stop_exporter()
            say_of_kubelet(found, "a", "v1;away")
            found.create("p", 9)
            found.create("shared", 1, aligned=False)
            await found.sleep(20.0)
            assert found.bound == {"p": "", "shared": "a"}
            assert any("1 node(s) had a kubelet that did not answer" in said for said in found.events("p"))
            say_of_kubelet(found, "a", None)
            await found.sleep(2.0)
            assert found.bound["p"] == "a"

    played(story)


def test_a_statement_about_a_kubelet_that_no_agent_takes_back_ends_after_two_minutes() -> None:
    async def story() -> None:
        async with town(server("a")) as found:
            await found.sleep(10.0)
            found.embedded.fleet.nodes["a"].stop_exporter()
            say_of_kubelet(found, "a", "v1;away")
            found.create("p", 9)
            await found.sleep(110.0)
            assert found.bound == {"p": ""}
            await found.sleep(20.0)
            assert found.bound == {"p": "a"}

    played(story)


def test_a_state_of_a_kubelet_that_makes_no_sense_keeps_no_pod_off() -> None:
    async def story() -> None:
        async with town(server("a")) as found:
            await found.sleep(10.0)
            say_of_kubelet(found, "a", "v1;on holiday")
            found.create("p", 9)
            await found.sleep(2.0)
            assert found.bound == {"p": "a"}

    played(story)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(1, 16)),
        st.tuples(st.sampled_from(["join", "delete-report", "restart", "reboot"]), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.integers(1, 20)),
    ),
    min_size=4,
    max_size=24,
)


async def happen(found: Town, what: str, amount: int, number: int) -> None:
    fleet = found.embedded.fleet
    names = sorted(fleet.nodes)
    match what:
        case "pod":
            found.create(f"p{number}", amount)
        case "join":
            fleet.add(server(f"late-{number}", Publishing(lag=float(5 * amount))))
        case "delete-report":
            found.delete_report(names[amount % len(names)])
        case "reboot":
            fleet.nodes[names[amount % len(names)]].reboot()
        case "restart":
            await found.start()
        case _:
            await found.sleep(float(amount))
    await found.sleep(0.05)


@settings(max_examples=15)
@given(STEPS, st.integers(0, 2**16))
def test_whoever_joins_restarts_or_loses_a_report_no_pod_is_rejected(steps: list[tuple[str, int]], seed: int) -> None:
    async def story() -> None:
        async with town(server("a"), server("b", LATE), seed=seed) as found:
            for number, (what, amount) in enumerate(steps):
                await happen(found, what, amount, number)
            await found.sleep(150.0)
            assert found.rejected == []

    played(story)
