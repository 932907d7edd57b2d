"""The scheduler itself: watches pods and nodes, takes the next pod, picks the emptiest node that has room, binds.

`cluster` starts `run` as a task and may `stop` it, so that another scheduler takes over. Left out, compared with stock:
preemption, spreading, affinity between pods, volumes, images, and every score but the least allocated one."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np

from numalign.api.decode import decode
from numalign.api.errors import BadObject
from numalign.api.objects.node import Node
from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import NODES, PODS
from numalign.simulator.apiserver.verbs.api import Api, Change
from numalign.simulator.controllers.blindscheduler import filters, telling
from numalign.simulator.controllers.blindscheduler.asking import Ask, Asks, integers
from numalign.simulator.controllers.blindscheduler.totals import Totals
from numalign.simulator.controllers.blindscheduler.waiting import Entry, Waiting
from numalign.simulator.controllers.framework.runner import LATENCY
from numalign.simulator.controllers.framework.views import Key, Views
from numalign.simulator.controllers.workloads import pods
from numalign.simulator.trees import Tree

AT_ONCE: Final = 50
"""Pods that are tried before others in the process get their turn."""


class BlindScheduler:
    def __init__(
        self, api: Api, views: Views, chance: random.Random, names: Iterable[str] = (DEFAULT_SCHEDULER,)
    ) -> None:
        self._api = api
        self._views = views
        self._chance = chance
        self._names = frozenset(names)
        self._totals = Totals()
        self._nodes = filters.Nodes(self._totals)
        self._asks = Asks()
        self._waiting = Waiting()
        self._bound: dict[Key, tuple[str, int]] = {}
        self._priorities: Counter[int] = Counter()
        self._teller = telling.Teller(api)
        self._wake = asyncio.Event()
        self._stopped = False
        views.watch(NODES, self._node_changed)
        views.watch(PODS, self._pod_changed)

    def stop(self) -> None:
        """From now on it binds nothing; pods that wait stay as they are."""
        self._stopped = True
        self._wake.set()

    def _is_stopped(self) -> bool:
        return self._stopped

    async def run(self) -> None:
        while not self._stopped:
            await self._something_due()
            for _ in range(AT_ONCE):
                entry = self._waiting.take(self._api.clock.now())
                if entry is None or self._is_stopped():
                    break
                self.attempt(entry)
            await asyncio.sleep(0)

    async def _something_due(self) -> None:
        loop, clock = asyncio.get_running_loop(), self._api.clock
        while not self._stopped:
            due = self._waiting.next_due(clock.now())
            if due is not None and due <= clock.now():
                # As long as a watch and a write take: so a storm moves on in time.
                await asyncio.sleep(LATENCY)
                return
            self._wake.clear()
            timer = loop.call_later(due - clock.now(), self._wake.set) if due is not None else None
            await self._wake.wait()
            if timer is not None:
                timer.cancel()

    def attempt(self, entry: Entry) -> None:
        """One pod: filter, score, bind; or say why not."""
        pod = self._views[PODS].get(entry.key)
        if pod is None:
            self._waiting.remove(entry.key)
            return
        ask = self._asked(pod)
        node = self._pick(ask) if ask is not None else None
        if ask is None or node is None:
            self._reject(entry, pod, ask)
        else:
            self._bind(entry, pod, node)

    def _asked(self, pod: Tree) -> Ask | None:
        try:
            return self._asks.of(pod)
        except BadObject:
            return None

    def _pick(self, ask: Ask) -> str | None:
        """Of the best nodes any, by chance, as stock does."""
        rows = np.flatnonzero(self._nodes.fitting(ask))
        if not len(rows):
            return None
        scores = self._totals.least_allocated(ask)[rows]
        best = rows[scores == scores.max()]
        return self._totals.name_of(int(best[self._chance.randrange(len(best))]))

    def _bind(self, entry: Entry, pod: Tree, node: str) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            self._api.bind(name, namespace, node, uid=pod["metadata"]["uid"])
        except StatusError:
            self._waiting.put_off(entry, self._api.clock.now())
            self._wake.set()
            return
        self._waiting.remove(entry.key)
        self._teller.scheduled(pod, node)

    def _reject(self, entry: Entry, pod: Tree, ask: Ask | None) -> None:
        self._waiting.reject(entry, self._api.clock.now())
        self._teller.refused(pod, self._why(pod, ask))

    def _why(self, pod: Tree, ask: Ask | None) -> str:
        nodes = len(self._totals)
        if ask is None:
            return f"0/{nodes} nodes are available: {nodes} pod requests cannot be read."
        refusals = self._nodes.refusals(ask)
        said = filters.message(nodes, refusals.counts)
        if not nodes:
            return said
        spec = pod["spec"]
        if spec.get("preemptionPolicy") == "Never":
            return f"{said} preemption: not eligible due to preemptionPolicy=Never."
        # Where stock would have found victims, nothing is claimed.
        lowest = min(self._priorities, default=0)
        return said if lowest < spec.get("priority", 0) else said + filters.no_victims(nodes, refusals.useless)

    def _node_changed(self, change: Change) -> None:
        name = change.key[1]
        if change.kind == "DELETED":
            self._nodes.drop(name)
            self._totals.drop(name)
            return
        has_changed = change.old is None or _totals_part(change.old) != _totals_part(change.tree)
        more = has_changed and self._totals.put(name, _offered(change.tree))
        if self._nodes.put(name, change.tree) or more:
            self._retry()

    def _pod_changed(self, change: Change) -> None:
        pod = change.tree
        self._account(change.key, None if change.kind == "DELETED" or pods.is_finished(pod) else pod)
        if change.kind == "DELETED" or not self._is_ours(pod):
            self._waiting.remove(change.key)
        elif change.key not in self._waiting or _is_other(change):
            self._waiting.add(change.key, pod["spec"].get("priority", 0))
            self._wake.set()

    def _account(self, key: Key, pod: Tree | None) -> None:
        """Charges what the pod takes on its node, once, until it is gone or done."""
        node = pod["spec"].get("nodeName") if pod is not None else None
        before = self._bound.get(key)
        if before is not None and before[0] != node:
            del self._bound[key]
            self._priorities = self._priorities - Counter([before[1]])
            if self._totals.release(before[0], key):
                self._retry()
        if pod is not None and node and (before is None or before[0] != node):
            ask, priority = self._asked(pod), pod["spec"].get("priority", 0)
            if ask is not None:
                self._totals.charge(node, key, ask)
            self._bound[key] = (node, priority)
            self._priorities[priority] += 1

    def _is_ours(self, pod: Tree) -> bool:
        spec = pod["spec"]
        if spec.get("nodeName") or spec.get("schedulingGates") or not pods.is_active(pod):
            return False
        return spec.get("schedulerName", DEFAULT_SCHEDULER) in self._names

    def _retry(self) -> None:
        self._waiting.wake()
        self._wake.set()


def _is_other(change: Change) -> bool:
    """A pod of the same name, or one whose spec was changed: it starts anew."""
    old = change.old
    return old is not None and (
        old["metadata"].get("uid") != change.tree["metadata"].get("uid") or old["spec"] != change.tree["spec"]
    )


def _offered(node: Tree) -> dict[str, int]:
    """Nothing, where it cannot be read."""
    try:
        return integers(decode.decode(Node, _totals_part(node)).allocatable)
    except BadObject:
        return {}


def _totals_part(node: Tree) -> Tree:
    status = node.get("status") or {}
    return {"status": {key: status[key] for key in ("allocatable", "capacity") if key in status}}
