"""Performs the operations of a campaign: what people and controllers do to a cluster, beside the faults.

`run` calls it. Reports are deleted, agents are rolled out, nodes are drained, and one node joins and leaves. Joins and
leaves take place one after the other, also when steps are late, and so do the others. A node that leaves is drained and
stopped, and its Node, its report and its state files are removed, so that it joins as a new machine."""

import asyncio
import contextlib
from functools import partial
from typing import Final

from numalign.kube import errors, request, resources
from numalign.kube.client import Client
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.lab import up
from numalign.lab.accounts import AnyObject
from numalign.lab.campaign.actions import Actions, insist
from numalign.lab.campaign.script import (
    JOINING,
    PRIORITIES,
    DeleteReports,
    Drain,
    Fault,
    Join,
    Leave,
    Operation,
    RollOut,
)
from numalign.lab.campaign.watch import NAMESPACE, Observer
from numalign.lab.lab import Lab
from numalign.lab.node import LabNode

CLASSES: Final = resources.of("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", AnyObject)
KINDS: Final = {DeleteReports: "report-deletion", RollOut: "roll-out", Drain: "drain", Join: "join", Leave: "leave"}
LOOK: Final = 0.25
BETWEEN: Final = 0.5
"""Seconds between two agents of a roll-out."""
EMPTY_AFTER: Final = 10.0
"""Seconds that the pods of a leaving node have to end; then they are deleted at once."""
READY_AFTER: Final = 60.0
AGENT: Final = "agent"


class Operations:
    def __init__(self, lab: Lab, client: Client, watching: Observer, acting: Actions) -> None:
        self._lab, self._client, self._acting = lab, client, acting
        self._watching, self._history = watching, watching.history
        self._moves, self._others = asyncio.Lock(), asyncio.Lock()
        self._absent: set[str] = set()

    async def create_priorities(self) -> None:
        for name, (value, policy) in PRIORITIES.items():
            made = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
            await insist(partial(self._client.create, CLASSES.everywhere(), made))

    async def perform(self, operation: Operation) -> None:
        async with self._moves if isinstance(operation, Join | Leave) else self._others:
            name = getattr(operation, "node", "")
            self._history.write("operation", name=name, why=KINDS[type(operation)], words=operation.words)
            match operation:
                case DeleteReports(node=node):
                    await self._delete_reports(node)
                case RollOut(away=away):
                    await self._roll_out(away)
                case Drain(node=node, away=away):
                    await self._drain(node, away)
                case Join(node=node, late=late):
                    await self._join(self._lab.nodes[node], late)
                case Leave(node=node):
                    await self.leave(self._lab.nodes[node])

    async def leave(self, node: LabNode) -> None:
        await self._cordon(node.name, cordoned=True)
        await self._evict(node.name, EMPTY_AFTER)
        await self._acting.drain(node.name)
        self._absent.add(node.name)
        for part in reversed(node.parts.values()):
            self._history.write("down", name=part.program.title, why="leave")
            await asyncio.to_thread(part.stop)
        with contextlib.suppress(errors.NotFound):
            await insist(lambda: self._client.delete(NODES.at(node.name)))
        await self._delete_reports(node.name)
        for file in (node.cpu_state, node.memory_state, node.device_state):
            file.unlink(missing_ok=True)
        self._watching.forget(node.name)

    async def _join(self, node: LabNode, late: float) -> None:
        programs = {name: part for name, part in node.parts.items() if name != AGENT}
        for part in programs.values():
            # On this thread: the program ends when this thread ends.
            part.start()
            self._history.write("up", name=part.program.title)
        self._absent.discard(node.name)
        for _ in range(int(READY_AFTER / LOOK)):
            if await self._is_ready(node.name):
                break
            await asyncio.sleep(LOOK)
        else:
            self._history.write("stuck", node=node.name, words=f"joined, and is not Ready after {READY_AFTER:.0f} s")
        await asyncio.sleep(late)
        node.parts[AGENT].start()
        self._history.write("up", name=node.parts[AGENT].program.title)

    async def _is_ready(self, name: str) -> bool:
        try:
            found = await insist(lambda: self._client.get(NODES.at(name)))
        except errors.NotFound:
            return False
        return up.is_ready(found)

    async def _delete_reports(self, node: str) -> None:
        for name in [node] if node else [each for each in self._lab.nodes if each not in self._absent]:
            with contextlib.suppress(errors.NotFound):
                await insist(partial(self._client.delete, TOPOLOGIES.at(name)))

    async def _roll_out(self, away: float) -> None:
        for name in [each for each in self._lab.nodes if each != JOINING]:
            await self._acting.roll(Fault(self._history.now, f"{name}/{AGENT}", "roll-out", away))
            await asyncio.sleep(BETWEEN)

    async def _drain(self, node: str, away: float) -> None:
        await self._cordon(node, cordoned=True)
        try:
            began = self._history.now
            await self._evict(node, away)
            await asyncio.sleep(max(0.0, began + away - self._history.now))
        finally:
            await self._cordon(node, cordoned=False)

    async def _cordon(self, node: str, *, cordoned: bool) -> None:
        changes = {"spec": {"unschedulable": True if cordoned else None}}
        await insist(lambda: self._client.patch(NODES.at(node), "merge", changes))

    async def _evict(self, node: str, seconds: float) -> None:
        """Evict until the node is empty or the time is over: pods may have been bound before the scheduler knew."""
        until, asked = self._history.now + seconds, set[str]()
        while self._history.now < until and (there := self._pods_on(node)):
            for uid, name in there.items():
                if uid not in asked:
                    asked.add(uid)
                    await self._evict_one(name, uid)
            await asyncio.sleep(LOOK)

    def _pods_on(self, node: str) -> dict[str, str]:
        pods = self._watching.pods.items()
        return {uid: pod.metadata.name for uid, pod in pods if pod.spec.node_name == node}

    async def _evict_one(self, name: str, uid: str) -> None:
        self._history.write("deletion-requested", name=name, uid=uid, why="evicted")
        wanted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
        with contextlib.suppress(errors.NotFound):
            # The server answers with a Status.
            asked = request.create(PODS.at(name, NAMESPACE).sub("eviction"), wanted)
            await insist(lambda: self._client.sender.call(asked))
