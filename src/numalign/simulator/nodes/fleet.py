"""All simulated nodes of a cluster: the one door for stories, and the one task that moves them.

`add` makes a node and starts its kubelet. `run` is to be a task beside the API server: it listens once for all nodes,
hands every pod to the node that it is bound to, in the order seen, and lets the agenda do what is due. Everything
follows from the specs, the seed and the API server's history."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Mapping
from typing import Final

from numalign.api import errors
from numalign.kubelet.refusals import StartRefusal, Undecided
from numalign.simulator import trees
from numalign.simulator.apiserver.storage.resources import NODES, PODS
from numalign.simulator.apiserver.verbs.api import Api, Change
from numalign.simulator.clock import Clock
from numalign.simulator.nodes.environment import NodeEnvironment
from numalign.simulator.nodes.node import SimulatedNode
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.nodes.workloads import Workload, annotated
from numalign.simulator.trees import Tree

AT_ONCE: Final = 100
"""Actions between two looks at the rest of the process."""


class Fleet:
    def __init__(self, api: Api, clock: Clock, chances: random.Random, workload: Workload = annotated) -> None:
        self._around = NodeEnvironment(api, clock, chances, workload)
        self._around.agenda.earlier = self._wake
        self._nodes: dict[str, SimulatedNode] = {}
        self._numbers = 0
        self._noted: deque[Change] = deque()
        self._woken = asyncio.Event()
        self._subscriptions = [api.subscribe(NODES, self._node_changed), api.subscribe(PODS, self._pod_changed)]

    @property
    def nodes(self) -> Mapping[str, SimulatedNode]:
        return self._nodes

    @property
    def refused(self) -> int:
        """Writes of all nodes that the API server did not take."""
        return self._around.refused

    def add(self, spec: NodeSpec) -> SimulatedNode:
        """A new machine, whose kubelet starts at once; BadObject if it would not start."""
        if spec.name in self._nodes:
            raise errors.BadObject("Node", spec.name, "name", "there is such a node already; give each its own name")
        try:
            node = SimulatedNode(spec, self._numbers, self._around)
        except (StartRefusal, Undecided) as refusal:
            why = f"the kubelet would not start: {refusal}"
            raise errors.BadObject("Node", spec.name, "settings", why) from None
        self._numbers += 1
        self._nodes[spec.name] = node
        node.start()
        return node

    def remove(self, name: str) -> None:
        """The machine is gone, without a word to anybody."""
        self._nodes.pop(name).destroy()

    async def run(self) -> None:
        """For ever; cancel it to stop all nodes where they are."""
        try:
            while True:
                done = self.work()
                await (asyncio.sleep(0) if done else self._rest())
        finally:
            for subscription in self._subscriptions:
                subscription.cancel()

    def work(self) -> int:
        """Do some of what is to be done now; 0 if nothing is."""
        done = 0
        while self._noted and done < AT_ONCE:
            change = self._noted.popleft()
            node = self._nodes.get(_node_of(change.tree))
            if node is not None:
                node.see_pod(change.tree, gone=change.kind == "DELETED")
            done += 1
        return done + self._around.agenda.run(self._around.clock.now(), AT_ONCE)

    async def _rest(self) -> None:
        """Until something was noted, or is due."""
        self._woken.clear()
        due, loop = self._around.agenda.next(), asyncio.get_running_loop()
        timer = None if due is None else loop.call_later(due - self._around.clock.now(), self._wake)
        await self._woken.wait()
        if timer is not None:
            timer.cancel()

    def _wake(self) -> None:
        self._woken.set()

    def _node_changed(self, change: Change) -> None:
        node = self._nodes.get(change.key[1])
        if node is not None and change.kind != "DELETED":
            node.see_node(change.tree)

    def _pod_changed(self, change: Change) -> None:
        """Only what a kubelet acts on is noted: a pod comes, is to go, or is gone."""
        if _node_of(change.tree) in self._nodes and not _is_old_news(change):
            self._noted.append(change)
            self._wake()


def _node_of(pod: Tree) -> str:
    return trees.text(pod, "spec", "nodeName")


def _is_old_news(change: Change) -> bool:
    if change.kind != "MODIFIED" or change.old is None:
        return False
    before, after = trees.metadata(change.old), trees.metadata(change.tree)
    deleted = after.get("deletionTimestamp") == before.get("deletionTimestamp")
    grace = after.get("deletionGracePeriodSeconds") == before.get("deletionGracePeriodSeconds")
    return deleted and grace and _node_of(change.old) == _node_of(change.tree)
