"""What every simulated node has around it: the API server, the clock, the agenda, chance, and what workloads do.

`fleet` makes one for all its nodes. Writes that may come too late, because the object went away in the meantime, go
through `written`: on a real node they fail as well, and nobody minds.

What happens next, for thousands of nodes, in one heap: no node has a task or a timer of its own.

Nodes, heartbeats and publishers enter what they will do and when; `fleet` runs what is due, in the order of time, and
in the order of entering where times are equal.

What happens on a node that publishers of its topology may react to.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import EVENTS
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.clock import Clock
from numalign.simulator.nodes import nodeobjects
from numalign.simulator.nodes.nodeobjects import KubeletEvent
from numalign.simulator.nodes.specs import NodeTypes
from numalign.simulator.nodes.workloads import Workload
from numalign.simulator.trees import Tree

Action = Callable[[], None]


class TimerEntry:
    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def cancel(self) -> None:
        # It stays in the heap until its time comes, which is cheaper than taking it out.
        self.action = None


class TimerQueue:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, TimerEntry]] = []
        self._entered = 0
        self.earlier: Action = _nothing
        """Called when something was entered that comes before everything else."""

    def at(self, moment: float, action: Action) -> TimerEntry:
        entry = TimerEntry(action)
        self._entered += 1
        heapq.heappush(self._heap, (moment, self._entered, entry))
        if self._heap[0][2] is entry:
            self.earlier()
        return entry

    def next(self) -> float | None:
        """When something is to be done; what was cancelled is forgotten on the way."""
        while self._heap and self._heap[0][2].action is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def run(self, now: float, most: int = 1_000_000) -> int:
        """Do what is due, and what that makes due at once, but no more than so many; how many it were."""
        done = 0
        while done < most and (moment := self.next()) is not None and moment <= now:
            action = heapq.heappop(self._heap)[2].action
            if action is not None:
                action()
                done += 1
        return done


def _nothing() -> None:
    pass


@dataclass
class NodeEnvironment:
    api: Api
    clock: Clock
    chances: random.Random
    workload: Workload
    agenda: TimerQueue = field(default_factory=TimerQueue)
    makes: NodeTypes = field(default_factory=NodeTypes)
    refused: int = 0
    """Writes that the API server did not take."""
    _events: int = 0

    def written(self, write: Callable[[], Tree]) -> Tree | None:
        """The object after the write; None if the server refused it."""
        try:
            return write()
        except StatusError:
            self.refused += 1
            return None

    def tell(self, what: KubeletEvent, host: str) -> None:
        self._events += 1
        # Real events are named by the nanosecond; here thousands may share one.
        serial = int(self.clock.wall().timestamp()) * 1_000_000_000 + self._events
        event = nodeobjects.event(what, host, self.clock.rfc3339(), serial)
        self.written(lambda: self.api.create(EVENTS, event))


NodeChange = Literal["allocated", "container", "released", "devices"]
"""Managers were asked for something; a pinned container started or ended; a pod gave all it held back; a device became
well or unwell."""
