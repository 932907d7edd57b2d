"""The rights of our programs are the requests that they make: none without a right, and no right without one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import pytest
from msgspec import structs

from numalign.agent.enforce.devices import Devices
from numalign.agent.inventory.podidentity import UidLookup
from numalign.agent.publish import gc, startuptaint
from numalign.api.attributes import directresult
from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.deploy import rights
from numalign.deploy.rights import Right
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.request import Request
from numalign.kube.resources import Status
from numalign.kube.transport.auth import Identity
from numalign.kube.transport.sender import Sender
from numalign.process.serve import PageRequest
from numalign.scheduler import settings as schedulers
from numalign.scheduler.extender.extender import Evicts, ExtenderSettings
from numalign.scheduler.extender.protocol import BindingArgs, ExtenderArgs
from numalign.scheduler.http import authz
from numalign.scheduler.main import Scheduler, Setup
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import NODES, PODS, PRIORITYCLASSES
from numalign.simulator.apiserver.verbs.api import Patch
from numalign.simulator.nodes.publisher.crd import RESOURCE
from tests import pcitrees
from tests.embedded import operatorstories
from tests.embedded import schedulerstories as stories
from tests.embedded import test_provisioning as provisioning
from tests.embedded import test_scheduler_volumes as volumes
from tests.embedded.faultproxy import Weather
from tests.embedded.schedulerstories import Stage
from tests.embedded.test_scheduler_preemption import crowd, servers, trainer
from tests.runtimes import Runtime
from tests.unit.agent import clusters
from tests.unit.agent.clusters import NODE, Script, Town
from tests.unit.agent.enforce import test_published as enforcing

APPLY: Final = "application/apply-patch+yaml"
Kinds = set[tuple[str, str, str]]
"""Group, resource with its subresource, verb."""
VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
PATH: Final = re.compile(
    r"/apis?(?:/(?P<group>[a-z0-9.-]+\.[a-z0-9.-]+|apps|policy))?/v[0-9a-z]+(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[a-z]+)(?:/.*)?)?)?"
)


class Asked(NamedTuple):
    group: str
    resource: str
    """With its subresource."""
    verb: str
    namespace: str
    name: str


def read(request: Request) -> Iterable[Asked]:
    """What an API server authorizes for this request."""
    if request.path == "/version":
        # Everybody may read it.
        return
    found = PATH.fullmatch(request.path)
    assert found is not None, request.path
    group, namespace, name, sub = (found[part] or "" for part in ("group", "namespace", "name", "sub"))
    resource = f"{found['resource']}/{sub}" if sub else found["resource"]
    looks = "get" if name else "watch" if "watch" in dict(request.query) else "list"
    yield Asked(group, resource, VERBS.get(request.method, looks), namespace, name)
    if request.content_type == APPLY:
        # Authorized as well when the object does not exist yet.
        yield Asked(group, resource, "create", namespace, name)


class Recorder:
    """Every request that leaves a client; `streams_state` is whether the server sends initial states in watches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: set[Asked] = set()
        self.streams_state = True
        self.only: set[Sender] | None = None
        """Whose requests count; None: everybody's."""
        admitted = Sender._admitted

        async def noted(sender: Sender, request: Request) -> Identity:
            if self.only is None or sender in self.only:
                self.asked.update(read(request))
            if not self.streams_state and "sendInitialEvents" in dict(request.query):
                raise errors.BadRequest(request.verb, request.words, 400, Status())
            return await admitted(sender, request)

        monkeypatch.setattr(Sender, "_admitted", noted)

    def used(self) -> Kinds:
        return {(each.group, each.resource, each.verb) for each in self.asked}

    def beyond(self, table: Iterable[Right], own: str = "") -> set[Asked]:
        """Requests that no right of the table covers: its namespace and names count."""
        return {each for each in self.asked if not any(covers(right, each, own) for right in table)}


def covers(right: Right, asked: Asked, own: str) -> bool:
    names = (own,) if right.own else right.names
    return (
        asked.group == right.group
        and asked.resource in right.resources
        and asked.verb in right.verbs
        and right.namespace in ("", asked.namespace)
        and (not names or asked.name in names)
    )


def listed(table: Iterable[Right]) -> Kinds:
    return {(each.group, resource, verb) for each in table for resource in each.resources for verb in each.verbs}


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch)


async def preemption(stage: Stage) -> None:
    await crowd(stage, 8)
    trainer(stage, "big", 4, "high")
    await stage.clock.sleep(60)


async def a_volume_that_waits_for_its_pod(stage: Stage) -> None:
    volumes.create(stage, volumes.storage_class("WaitForFirstConsumer"))
    volumes.create(stage, volumes.VOLUME)
    available, kind = {"status": {"phase": "Available"}}, volumes.resource(stage, "v1", "PersistentVolume")
    stage.api.patch(kind, "disk", "", Patch("merge", available), subresource="status")
    volumes.create(stage, volumes.CLAIM)
    stage.create("p", 2, volumes=volumes.VOLUMES)
    await stage.clock.sleep(20)


async def a_volume_that_has_to_be_made(stage: Stage) -> None:
    volumes.create(stage, volumes.storage_class("WaitForFirstConsumer"))
    volumes.create(stage, volumes.CLAIM)
    stage.create("p", 2, volumes=volumes.VOLUMES)
    await stage.clock.sleep(20)


async def a_pod_that_fits_nowhere(stage: Stage) -> None:
    stage.create("huge", 1000)
    for number in range(20):
        stage.create(f"p{number}", 1)
        await stage.clock.sleep(30)
        stage.delete(f"p{number}")


async def many_pods(stage: Stage) -> None:
    stage.replicas[0].proxy.is_calm = False
    for number in range(20):
        stage.create(f"p{number}", 1)
    await stage.clock.sleep(60)


LOST_ANSWERS: Final = Weather(calls=0.0, bindings=0.5, events=0.0, outages=float("inf"))


async def reviewed() -> None:
    async with Client(Town().access()) as client:
        guard = authz.guard(client)
        for path, headers in (("/metrics", {}), ("/metrics", {"authorization": "Bearer t"})):
            await guard(PageRequest(method="GET", path=path, headers=headers))


async def provisioned(site: provisioning.Site) -> None:
    site.template("worker")
    site.ask("job", ("worker", 1))
    await site.clock.sleep(10)
    assert site.said("job") == provisioning.FOUND


def test_the_scheduler_uses_exactly_its_rights(recorder: Recorder) -> None:
    stories.told(preemption, servers(1))
    for plot in (a_volume_that_waits_for_its_pod, a_volume_that_has_to_be_made, a_pod_that_fits_nowhere):
        stories.told(plot, servers(2))
    for recorder.streams_state in (True, False):
        provisioning.told(provisioned)
    stories.told(many_pods, servers(2), weather=LOST_ANSWERS)
    for recorder.streams_state in (True, False):
        virtualtime.run(beside_koordinator())
    virtualtime.run(reviewed())
    assert recorder.beyond(rights.SCHEDULER) == set()
    assert listed(rights.SCHEDULER) - recorder.used() == set()


async def beside_koordinator(**more: Any) -> None:
    """Device objects are looked for, whether the cluster serves them or not."""
    clock = virtualtime.clock(Random(1))
    args = {"name": "Numalign", "args": {"koordinatorAnnotations": True}}
    written = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = schedulers.read({**written, "profiles": [{"pluginConfig": [args]}]}, "test")
    setup = Setup(config=config, rng=Random(1), **more)
    async with cluster.running(servers(1), clock, Random(1)) as embedded, embedded.scheduled_by(setup):
        await clock.sleep(30)


URGENT: Final = {"priorityClassName": "high"}


async def extended() -> None:
    clock = virtualtime.clock(Random(1))
    async with cluster.running(servers(1), clock, Random(1)) as embedded:
        uid = embedded.api.create(PODS, stories.pod("p", 1))["metadata"]["uid"]
        high = {"metadata": {"name": "high"}, "value": 100}
        embedded.api.create(PRIORITYCLASSES, {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"} | high)
        for name, spec in (("a", {"nodeName": "g-0"}), ("b", {"nodeName": "g-0"}), ("waiting", URGENT)):
            embedded.api.create(PODS, stories.pod(name, 80, **spec))
        async with Client(embedded.access(), clock=clock) as client:
            settings = ExtenderSettings(evicts=Evicts.NUMALIGN)
            scheduler = Scheduler(Setup(schedules=False, extender=settings), client)
            extender = scheduler.extender
            assert extender is not None
            following = asyncio.ensure_future(scheduler.run())
            await asyncio.sleep(20)
            # After a conflict the pod is read.
            bound = [await extender.bind(BindingArgs("p", "default", uid, "g-0")) for _ in range(2)]
            assert [each.error for each in bound] == ["", ""]
            # For a refused pod another one is evicted, and when there is room, the pod is nominated again.
            refused = decode.decode(Pod, embedded.api.get(PODS, "waiting", "default"))
            assert extender.filter(ExtenderArgs(refused, node_names=("g-0",))).node_names == ()
            await asyncio.sleep(120)
            assert embedded.api.get(PODS, "waiting", "default")["status"]["nominatedNodeName"] == "g-0"
            following.cancel()


def test_the_extender_uses_exactly_its_rights(recorder: Recorder) -> None:
    for recorder.streams_state in (True, False):
        virtualtime.run(extended())
        provisioning.told(provisioned, setup=Setup(schedules=False, extender=ExtenderSettings()))
        virtualtime.run(beside_koordinator(schedules=False, extender=ExtenderSettings()))
    virtualtime.run(reviewed())
    assert recorder.beyond(rights.EXTENDER) == set()
    assert listed(rights.EXTENDER) - recorder.used() == set()


def test_the_agent_uses_exactly_its_rights(recorder: Recorder, tmp_path: Path) -> None:
    async def story() -> None:
        town = Town()
        taint = {"key": startuptaint.KEY, "effect": "NoSchedule"}
        town.api.patch(NODES, NODE, "", Patch("merge", {"spec": {"taints": [taint]}}))
        async with town.agent(Script(), untaint=True):
            for _ in range(2):
                # Another publisher comes twice, which is one Event and its count.
                await asyncio.sleep(120)
                town.api.patch(RESOURCE, NODE, "", Patch("merge", {"zones": []}), manager="another")
                await asyncio.sleep(120)
                town.api.delete(RESOURCE, NODE)
        script, runtime = Script(), Runtime()
        script.kubelet = clusters.UNMANAGED
        pcitrees.write(tmp_path)
        async with town.agent(script, runtime=runtime, devices=Devices({}, tmp_path, finds=True)):
            await asyncio.sleep(70)
            # Two contradictions in one pod, which are one Event and its count.
            odd = directresult.ContainerResult(name="main", cpuset="0")
            await enforcing.run(runtime, "odd", odd, structs.replace(odd, name="other"))
            await asyncio.sleep(700)
        async with Client(town.access(), clock=town.clock) as client:
            # A kubelet without a pods socket.
            await UidLookup(NODE, None, client).known(frozenset({"uid"}), 0.0)

    virtualtime.run(story())
    # The kubelet authorizes --configz, not the API server: tests/unit/agent/sources/test_kubeletconfig_configz.py.
    table = [right for right in rights.AGENT if right.option != "--configz"]
    assert recorder.beyond(table, NODE) == set()
    assert listed(table) - recorder.used() == set()


def test_the_collector_uses_exactly_its_rights(recorder: Recorder) -> None:
    async def story() -> None:
        town = Town()
        for name in (NODE, "gone"):
            report = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "zones": []}
            town.api.create(RESOURCE, {**report, "metadata": {"name": name}})
        for recorder.streams_state in (True, False):
            async with Client(town.access(), clock=town.clock) as client:
                task = asyncio.create_task(gc.run(client, 60.0, 10.0, lambda swept: None))
                await asyncio.sleep(300)
                if recorder.streams_state:
                    town.api.delete(NODES, NODE)
                await asyncio.sleep(300)
                task.cancel()

    virtualtime.run(story())
    assert recorder.beyond(rights.COLLECTOR) == set()
    assert listed(rights.COLLECTOR) - recorder.used() == set()


def operated(recorder: Recorder) -> None:
    async def plot(stage: operatorstories.Stage) -> None:
        stage.create(operatorstories.operator())
        stage.create(operatorstories.scheduler(replicas=3))
        await stage.available()
        await stage.available(operatorstories.SCHEDULER)
        stage.report("w-0")
        # No budget for one replica, no agents without groups, and a second Event of the same kind.
        stage.set_spec(operatorstories.SCHEDULER, replicas=1, schedulerName="renamed")
        for number in range(4):
            groups = [{"poolName": "worker"}, {"poolName": "worker"}] if number % 2 else [{"poolName": "worker"}]
            stage.set_spec(operatorstories.OPERATOR, nodeGroups=groups)
            await stage.clock.sleep(30)
        stage.set_spec(operatorstories.OPERATOR, nodeGroups=[])
        await stage.until(lambda: not stage.names("NodeResourceTopology"))
        stage.processes[0].stop()
        await stage.clock.sleep(60)

    policies = operatorstories.with_values(networkPolicy={"enabled": True}, agent={"directMode": True})
    for recorder.streams_state in (True, False):
        operatorstories.told(plot, options=policies, own_definition=True)


def test_the_operator_uses_exactly_its_own_rights(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    ours: set[Sender] = set()
    lives = operatorstories.OperatorProcess.__init__

    def noted(self: operatorstories.OperatorProcess, setup: Any, client: Client, elector: Client) -> None:
        ours.update((client.sender, elector.sender))
        lives(self, setup, client, elector)

    monkeypatch.setattr(operatorstories.OperatorProcess, "__init__", noted)
    recorder.only = ours
    operated(recorder)
    assert recorder.beyond(rights.OPERATOR) == set()
    assert listed(rights.OPERATOR) - recorder.used() == set()
    # What is limited to names is used for each of them.
    for right in rights.OPERATOR:
        for resource, verb, name in product(right.resources, right.verbs, right.names):
            assert any(
                (each.group, each.resource, each.verb, each.name) == (right.group, resource, verb, name)
                for each in recorder.asked
            ), (resource, verb, name)
