"""A whole cluster in one process: API server, controllers, the topology-blind scheduler and simulated nodes.

    async with cluster.running(nodes, clock, chances) as embedded: ...

Scenarios run it in virtual time without sockets, tests as they like, and `numalign cluster up` in real time with the
API served over HTTP. The parts are tasks of one group: where one fails, all end, and the failure is raised."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from numalign.kube.access import auth
from numalign.kube.access.auth import Access, Identity, Login
from numalign.kube.transport import dial as dialing
from numalign.kube.transport.server import Server
from numalign.simulator import bootstrap, pipes
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.http.connections import Connection
from numalign.simulator.apiserver.http.routes import Serving
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.clock import Clock
from numalign.simulator.controllers.blindscheduler.scheduling import BlindScheduler
from numalign.simulator.controllers.framework import manager
from numalign.simulator.controllers.framework.manager import ControllerManager
from numalign.simulator.controllers.framework.views import Views
from numalign.simulator.nodes.fleet import Fleet
from numalign.simulator.nodes.specs import NodeSpec

HERE: Final = Server("embedded", 80, secure=False)


@dataclass
class Cluster:
    api: Api
    fleet: Fleet
    blind_scheduler: BlindScheduler
    clock: Clock

    def access(self) -> Access:
        """For a client in this process, without a socket."""
        serving = Serving(self.api.state)
        open_ones: set[Connection] = set()
        dial: dialing.Dial = pipes.dial(lambda: lambda: Connection(serving, open_ones, ""))
        return Access(HERE, Login(auth.unchanging(Identity()), self.clock), dial=dial)


@asynccontextmanager
async def running(
    nodes: Iterable[NodeSpec], clock: Clock, chances: random.Random, *, authority: str = ""
) -> AsyncIterator[Cluster]:
    """Up until the block is left. `authority`: the certificate that pods check the API server by, if it has one."""
    api = Api(clock, chances, admission=admission)
    bootstrap.furnish(api)
    views = Views(api)
    fleet = Fleet(api, clock, chances)
    blind = BlindScheduler(api, views, chances)
    controllers = ControllerManager(api, views, manager.every(authority))
    tasks = {"controllers": controllers.run(), "default-scheduler": blind.run(), "nodes": fleet.run()}
    async with asyncio.TaskGroup() as group:
        started = [group.create_task(work, name=name) for name, work in tasks.items()]
        for spec in nodes:
            fleet.add(spec)
        try:
            yield Cluster(api, fleet, blind, clock)
        finally:
            for task in started:
                task.cancel()
