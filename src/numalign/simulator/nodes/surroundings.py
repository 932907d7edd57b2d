"""What every simulated node has around it: the API server, the clock, the agenda, chance, and what workloads do.

`fleet` makes one for all its nodes. Writes that may come too late, because the object went away in the meantime, go
through `written`: on a real node they fail as well, and nobody minds."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import EVENTS
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.clock import Clock
from numalign.simulator.nodes import nodeobjects
from numalign.simulator.nodes.agenda import Agenda
from numalign.simulator.nodes.nodeobjects import Happening
from numalign.simulator.nodes.specs import Makes
from numalign.simulator.nodes.workloads import Workload
from numalign.simulator.trees import Tree


@dataclass
class Surroundings:
    api: Api
    clock: Clock
    chances: random.Random
    workload: Workload
    agenda: Agenda = field(default_factory=Agenda)
    makes: Makes = field(default_factory=Makes)
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

    def tell(self, what: Happening, host: str) -> None:
        self._events += 1
        # Real events are named by the nanosecond; here thousands may share one.
        serial = int(self.clock.wall().timestamp()) * 1_000_000_000 + self._events
        event = nodeobjects.event(what, host, self.clock.rfc3339(), serial)
        self.written(lambda: self.api.create(EVENTS, event))
