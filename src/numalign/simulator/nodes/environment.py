"""What all simulated nodes of a cluster share: API server, clock, timers, randomness and workload behaviour.

`fleet` creates one. `TimerQueue` is a single heap for thousands of nodes: no node has a task or an asyncio timer of its
own. `fleet` runs due timers in order of time, and equal times in order of entry. `written` counts writes that the API
server rejects, for example because the object is gone; a real kubelet ignores these errors too."""

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
        # The entry stays in the heap until it is due, which is cheaper than removing it.
        self.action = None


class TimerQueue:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, TimerEntry]] = []
        self._entered = 0
        self.earlier: Action = _nothing
        """Called when a new entry is due before all others."""

    def at(self, moment: float, action: Action) -> TimerEntry:
        entry = TimerEntry(action)
        self._entered += 1
        heapq.heappush(self._heap, (moment, self._entered, entry))
        if self._heap[0][2] is entry:
            self.earlier()
        return entry

    def next(self) -> float | None:
        """The time of the next entry; cancelled entries are dropped."""
        while self._heap and self._heap[0][2].action is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def run(self, now: float, most: int = 1_000_000) -> int:
        """Runs at most `most` due actions, including those that become due meanwhile, and returns their number."""
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
    timers: TimerQueue = field(default_factory=TimerQueue)
    node_types: NodeTypes = field(default_factory=NodeTypes)
    refused: int = 0
    """Number of writes that the API server rejected."""
    _events: int = 0

    def written(self, write: Callable[[], Tree]) -> Tree | None:
        """The object after the write; None if the API server rejected it."""
        try:
            return write()
        except StatusError:
            self.refused += 1
            return None

    def record_event(self, what: KubeletEvent, host: str) -> None:
        self._events += 1
        # Real events have nanoseconds in their names. Thousands of events may share a moment here.
        serial = int(self.clock.wall().timestamp()) * 1_000_000_000 + self._events
        event = nodeobjects.event(what, host, self.clock.rfc3339(), serial)
        self.written(lambda: self.api.create(EVENTS, event))


NodeChange = Literal["allocated", "container", "released", "devices"]
"""A change on a node that publishers may react to: the managers allocated resources, a container with exclusive
resources started or ended, a pod released all its resources, or the health of a device changed."""
