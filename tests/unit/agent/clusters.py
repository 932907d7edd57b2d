"""An embedded API server in virtual time with a Node, and agents with snapshots that a test provides."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from numalign.agent import main
from numalign.agent.cycle import Agent
from numalign.agent.enforce.devices import Devices
from numalign.agent.enforce.enforcer import Enforcement, Enforcer
from numalign.agent.inventory import inventory
from numalign.agent.inventory.podidentity import KnownUids
from numalign.agent.inventory.snapshot import Snapshot
from numalign.agent.publish.publish import Manner
from numalign.agent.triggers.schedule import Pace
from numalign.agent.triggers.triggers import Triggers
from numalign.api.nrt import normalise, wire
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kube.client import Client
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kubelet import start, versions
from numalign.kubelet.machine import presets
from numalign.kubelet.settings import Settings
from numalign.process.http.connection import Connection
from numalign.simulator import cluster, pipes, virtualtime
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.http import application
from numalign.simulator.apiserver.http.routes import Router
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import NODES
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.cluster import HERE
from numalign.simulator.nodes.publisher.crd import RESOURCE
from numalign.simulator.trees import Tree
from tests.runtimes import Runtime
from tests.unit.agent import kubelet_looks as looks

NODE = "n1"
PERIOD = 60.0
MACHINE = presets.machine("2x16")


def kubelet(**settings: Any) -> start.Kubelet:
    return start.start(MACHINE, Settings(cpu_policy="static", reserved_cpus=1, reserved={"cpu": 1000}, **settings))


PLAIN, STRICT = kubelet(), kubelet(topology_policy="single-numa-node")
UNMANAGED = start.start(MACHINE, Settings(reserved_cpus=1))
"""All managers are off, as direct mode needs it."""


class Script:
    """Looks that find what it is told to find."""

    def __init__(self) -> None:
        self.kubelet = PLAIN
        self.unknown: tuple[str, ...] = ()
        self.away = False
        self.version = ""
        self.looked = 0

    async def look(self, *, fresh: bool = False) -> Snapshot:
        self.looked += 1
        found = looks.at(self.kubelet, self.kubelet.initial())
        machine = self.kubelet.machine
        if self.away:
            silent = structs.replace(found, pods=None, podresources_error="unavailable")
            return Snapshot(silent, inventory.of(silent, machine, KnownUids()), ("no answer",))
        return Snapshot(found, inventory.of(found, machine, looks.told(self.kubelet.initial())), self.unknown)

    def set_kubelet_version(self, kubelet: str) -> None:
        self.version = kubelet


class Town:
    """The server, which can be away or take calls without answering, and what it has."""

    def __init__(self) -> None:
        self.clock = virtualtime.clock(random.Random(1))
        self.api = Api(self.clock, random.Random(1), admission=admission)
        self.away = self.hangs = False
        cluster.create_first_objects(self.api)
        self.add_node()

    def add_node(self) -> str:
        status = {"nodeInfo": {"kubeletVersion": f"v{versions.NEWEST}.0"}}
        made = self.api.create(
            NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "status": status}
        )
        return str(made["metadata"]["uid"])

    def access(self) -> Access:
        served = application.served(Router(self.api.state))

        def listening() -> pipes.Listening | None:
            if self.hangs:
                return asyncio.Protocol
            return None if self.away else lambda: Connection(served)

        return Access(HERE, Login(auth.unchanging(Identity()), self.clock), dial=pipes.dial(listening))

    def report(self) -> Tree | None:
        try:
            return self.api.get(RESOURCE, NODE)
        except StatusError:
            return None

    def read(self) -> NodeTopology:
        found = self.report()
        assert found is not None
        return normalise.normalise(wire.decode(found))

    @asynccontextmanager
    async def agent(
        self,
        script: Script,
        name: str = "first",
        runtime: Runtime | None = None,
        devices: Devices | None = None,
        **manner: Any,
    ) -> AsyncIterator[Agent]:
        """`runtime`: on which it enforces decisions; `devices`: that it hands out there."""
        async with Client(self.access(), main.LIMITS, clock=self.clock) as client:
            waiting = Triggers({}, Pace(period=PERIOD), self.clock)
            made = Agent(NODE, client, Manner(instance=name, period=PERIOD, **manner), script, waiting)
            if runtime is not None:
                enforcement = Enforcement(socket=Path("/nri.sock"), patience=0.0, verified=False, devices=devices)
                tell = partial(waiting.ask, main.ENFORCED)
                made.enforcer = Enforcer(NODE, enforcement, self.clock, tell, made.report_failure, runtime.open)
            async with running(made):
                yield made


@asynccontextmanager
async def running(agent: Agent) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        started = [group.create_task(agent.run()), group.create_task(agent.recorder.run())]
        if agent.enforcer is not None:
            started.append(group.create_task(agent.enforcer.run()))
        try:
            yield
        finally:
            for task in started:
                task.cancel()
