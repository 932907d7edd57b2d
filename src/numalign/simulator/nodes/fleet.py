"""All simulated nodes of a cluster, and the one task that runs them.

`add` creates a node and starts its kubelet. `run` runs as a task beside the API server: it watches pods and nodes once
for all nodes, passes each pod to its node in order, and runs due timers. The result depends only on the specs, the seed
and the history of the API server."""

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
"""Actions between two turns of other tasks."""


class Fleet:
    def __init__(self, api: Api, clock: Clock, chances: random.Random, workload: Workload = annotated) -> None:
        self._env = NodeEnvironment(api, clock, chances, workload)
        self._env.timers.earlier = self._wake
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
        """Writes of all nodes that the API server rejected."""
        return self._env.refused

    def add(self, spec: NodeSpec) -> SimulatedNode:
        """Adds a node and starts its kubelet. Raises BadObject if the kubelet would refuse to start."""
        if spec.name in self._nodes:
            raise errors.BadObject("Node", spec.name, "name", "a node of this name already exists; use unique names")
        try:
            node = SimulatedNode(spec, self._numbers, self._env)
        except (StartRefusal, Undecided) as refusal:
            why = f"the kubelet would not start: {refusal}"
            raise errors.BadObject("Node", spec.name, "settings", why) from None
        self._numbers += 1
        self._nodes[spec.name] = node
        node.start()
        return node

    def remove(self, name: str) -> None:
        """Removes the machine without notice to the API server."""
        self._nodes.pop(name).destroy()

    async def run(self) -> None:
        """Runs until it is cancelled; all nodes then stop where they are."""
        try:
            while True:
                done = self.work()
                await (asyncio.sleep(0) if done else self._rest())
        finally:
            for subscription in self._subscriptions:
                subscription.cancel()

    def work(self) -> int:
        """Performs some of the due work; returns 0 if there is none."""
        done = 0
        while self._noted and done < AT_ONCE:
            change = self._noted.popleft()
            node = self._nodes.get(_node_of(change.tree))
            if node is not None:
                node.see_pod(change.tree, gone=change.kind == "DELETED")
            done += 1
        return done + self._env.timers.run(self._env.clock.now(), AT_ONCE)

    async def _rest(self) -> None:
        """Waits for a change, or for the next timer."""
        self._woken.clear()
        due, loop = self._env.timers.next(), asyncio.get_running_loop()
        timer = None if due is None else loop.call_later(due - self._env.clock.now(), self._wake)
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
        """Queues only changes that a kubelet acts on: a pod was bound, is being deleted, or is gone."""
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
