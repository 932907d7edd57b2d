"""Performs the steps of a campaign: creates and deletes pods, stops and restarts programs of the lab.

`running` and `resting` call it. Requests are repeated until the API server answers, since the campaign may have stopped
it. Programs return after the time that the script sets."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from msgspec import structs

from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.resources import NODES, PODS, DeleteOptions
from numalign.lab import controlplane
from numalign.lab.campaign.script import SCHEDULERS, Create, Delete, Fault
from numalign.lab.campaign.watching import NAMESPACE, Watching
from numalign.lab.labs import Lab
from numalign.lab.parts import Part

T = TypeVar("T")
AGAIN: Final = 0.5
AT_ONCE: Final = DeleteOptions(grace_period_seconds=0)
# A server that has just started has neither accounts nor roles.
NOT_NOW: Final = (
    errors.Unreachable,
    errors.ServerFailure,
    errors.TooManyRequests,
    errors.Unauthorized,
    errors.Forbidden,
)
SERVER: Final = "kube-apiserver"


class Acting:
    def __init__(self, lab: Lab, client: Client, watching: Watching) -> None:
        self._lab, self._client = lab, client
        self._watching, self._history = watching, watching.history
        self._faults: set[asyncio.Task[None]] = set()
        self._gone: set[str] = set()
        self.uids: dict[str, str] = {}
        """UIDs of created pods, by name."""

    def start_second_scheduler(self) -> None:
        """Start a second replica of the scheduler, which waits for the lease."""
        first, name, port = self._lab.parts[SCHEDULERS[0]].program, SCHEDULERS[1], controlplane.free_port()
        command = tuple(str(port) if word == str(first.port) else word for word in first.command)
        second = structs.replace(first, name=name, log=first.log.with_name(f"{name}.log"), command=command, port=port)
        self._lab.parts[second.name] = part = Part(second)
        part.start()

    async def perform(self, step: Create | Delete) -> None:
        match step:
            case Create(name=name, body=body):
                with contextlib.suppress(errors.Conflict):
                    await insist(lambda: self._client.create(PODS.within(NAMESPACE), body))
                made = await insist(lambda: self._client.get(PODS.at(name, NAMESPACE)))
                self.uids[name] = made.metadata.uid
            case Delete(name=name, forced=forced):
                self._history.write("asked-to-go", name=name, uid=self.uids.get(name, ""))
                options = AT_ONCE if forced else DeleteOptions()
                with contextlib.suppress(errors.NotFound):
                    await insist(lambda: self._client.delete(PODS.at(name, NAMESPACE), options))

    async def drain(self, node: str) -> None:
        """Delete every pod of the node at once."""
        for pod in [pod for pod in self._watching.pods.values() if pod.spec.node_name == node]:
            await self.perform(Delete(at=self._history.now, name=pod.metadata.name, forced=True))

    def take_away(self, fault: Fault) -> None:
        """Stop the program; it returns by itself. A program that is already stopped, because steps were late, is
        skipped."""
        if fault.part not in self._gone:
            self._gone.add(fault.part)
            self._faults.add(asyncio.ensure_future(self._away(fault)))

    async def all_back(self) -> None:
        """Wait until every program has returned and the server answers."""
        faults, self._faults = self._faults, set()
        await asyncio.gather(*faults)
        await insist(lambda: self._client.every(NODES.everywhere()))

    def let_go(self) -> None:
        """Cancel all returns: the lab is about to end."""
        for fault in self._faults:
            fault.cancel()

    async def _away(self, fault: Fault) -> None:
        part = next(each for each in self._lab.every_part() if each.program.title == fault.part)
        self._history.write("away", name=fault.part, why=fault.how, words=fault.words)
        if fault.how == "hang":
            part.pause()
            await asyncio.sleep(fault.away)
            part.resume()
        else:
            await asyncio.to_thread(part.stop, signal.SIGKILL if fault.how == "kill" else signal.SIGTERM)
            await asyncio.sleep(fault.away)
            # On this thread: the program ends when this thread ends.
            part.start()
        if fault.part == SERVER:
            await insist(lambda: self._client.every(NODES.everywhere()))
        self._gone.discard(fault.part)
        self._history.write("back", name=fault.part)
        if fault.part == SERVER:
            # Watches take up to a minute to reconnect by themselves.
            await self._watching.looked_again()


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat until the server answers. A definite refusal is raised."""
    while True:
        try:
            return await call()
        except NOT_NOW:
            await asyncio.sleep(AGAIN)
