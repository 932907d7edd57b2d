"""Runs a whole cluster in one process: API server, controllers, default-scheduler and simulated nodes.

    async with cluster.running(nodes, clock, chances) as embedded: ...

Scenarios run it in virtual time without sockets, and `numalign cluster up` in real time with the API served over HTTP.
All components are tasks of one group: if one fails, all end, and the error is raised. A new cluster has its namespaces,
the two system priority classes and the CustomResourceDefinition of NodeResourceTopology, created through the API."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.dial import Dial, Server
from numalign.process.http.connection import Connection
from numalign.scheduler.main import Scheduler, Setup
from numalign.simulator import pipes, schedulers
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.defaults import kinds, pods
from numalign.simulator.apiserver.http import application
from numalign.simulator.apiserver.http.routes import Router
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.clock import Clock
from numalign.simulator.controllers import manager
from numalign.simulator.controllers.framework.views import Views
from numalign.simulator.controllers.manager import ControllerManager
from numalign.simulator.nodes.fleet import Fleet
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree

MANAGER: Final = "numalign"


def create_first_objects(api: Api) -> None:
    for resource, tree in first_objects():
        api.create(resource, tree, manager=MANAGER)


def first_objects() -> Iterator[tuple[Resource, Tree]]:
    for name in sorted(kinds.ALWAYS_THERE):
        yield resources.NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for name, value in pods.SYSTEM_PRIORITIES.items():
        yield (
            resources.PRIORITYCLASSES,
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "description": "For what the cluster cannot do without.",
            },
        )
    yield resources.CUSTOMRESOURCEDEFINITIONS, crd.crd()


LATENCY: Final = 0.005
"""Seconds between default-scheduler and the API server, so that a rejection storm advances in virtual time."""
HERE: Final = Server("embedded", 80, secure=False)


@dataclass
class Cluster:
    api: Api
    fleet: Fleet
    clock: Clock

    def access(self) -> Access:
        """Access for a client in this process, without a socket."""
        return access(self.api, self.clock)

    def scheduled_by(self, setup: Setup) -> AbstractAsyncContextManager[Scheduler]:
        """Runs our scheduler with this setup until the block ends."""
        return schedulers.running(setup, self.access(), self.clock)


def access(api: Api, clock: Clock, latency: float = 0.0) -> Access:
    """`latency` is the delay in seconds of bytes in each direction."""
    served = application.served(Router(api.state))
    dial: Dial = pipes.dial(lambda: lambda: Connection(served), latency)
    return Access(HERE, Login(auth.unchanging(Identity()), clock), dial=dial)


@asynccontextmanager
async def running(
    nodes: Iterable[NodeSpec],
    clock: Clock,
    chances: random.Random,
    *,
    authority: str = "",
    default_scheduler: bool = True,
) -> AsyncIterator[Cluster]:
    """Runs the cluster until the block ends.

    `authority` is the CA certificate that pods use to verify the API server, if it has one. `default_scheduler` starts
    the scheduler that sees node totals only."""
    api = Api(clock, chances, admission=admission)
    create_first_objects(api)
    views = Views(api)
    fleet = Fleet(api, clock, chances)
    controllers = ControllerManager(api, views, manager.every(authority))
    embedded = Cluster(api, fleet, clock)
    tasks = {"controllers": controllers.run(), "nodes": fleet.run()}
    async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
        started = [group.create_task(work, name=name) for name, work in tasks.items()]
        for spec in nodes:
            fleet.add(spec)
        try:
            if default_scheduler:
                setup, reached = schedulers.node_totals(chances), access(api, clock, LATENCY)
                await stack.enter_async_context(schedulers.running(setup, reached, clock))
            yield embedded
        finally:
            for task in started:
                task.cancel()
