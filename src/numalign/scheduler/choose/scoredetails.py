"""How a choice came about: what each plugin added to the totals of the best nodes, and how long each phase took.

An attempt that somebody wants to know more about carries one; `choosing` fills it in, `recollection` keeps the scores
and `metrics` the times."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

import numpy as np

from numalign.api.decode.structs import Wire
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.rule import Rows, Scores
from numalign.scheduler.choose.profiles import ZONES
from numalign.scheduler.choose.scoring import Parts

MOST: Final = 3


class Phase(StrEnum):
    FILTER = "filter"
    ZONES = "zones"
    SCORE = "score"
    PLACE = "place"


class NodeScore(Wire, frozen=True):
    """A node that was looked at: the total that counted, and what each plugin added to it."""

    node: str
    total: int
    plugins: dict[str, int]


class ScoreDetails:
    def __init__(self, now: Callable[[], float]) -> None:
        self.phases: dict[str, float] = {}
        """Seconds by phase."""
        self._now, self._last = now, now()
        self._parts: Parts = {}
        self._rows: Rows = np.zeros(0, np.intp)
        self._totals: Scores = np.zeros(0, np.int64)

    def ended(self, phase: Phase) -> None:
        now = self._now()
        self.phases[phase] = self.phases.get(phase, 0.0) + now - self._last
        self._last = now

    def begun(self) -> Parts | None:
        """Where scoring puts what each plugin says; what it said before does not count any more."""
        self._parts = {}
        return self._parts

    def saw(self, rows: Rows, totals: Scores, zones: Scores) -> None:
        self._rows, self._totals = rows, totals
        self._parts[ZONES] = zones
        self.ended(Phase.SCORE)

    def best(self, world: World, chosen: str) -> tuple[NodeScore, ...]:
        """The chosen node first, then others by their totals."""
        order = np.argsort(-self._totals, kind="stable")[: MOST + 1].tolist()
        names = {world.names[int(self._rows[place])]: place for place in order}
        places = np.flatnonzero(self._rows == world.rows.get(chosen, -1)).tolist()
        places += [place for name, place in names.items() if name != chosen]
        return tuple(self._ranked(world, place) for place in places[:MOST])

    def of(self, world: World, node: str) -> NodeScore | None:
        """None: it was not among those that were scored."""
        places = np.flatnonzero(self._rows == world.rows.get(node, -1)).tolist()
        return self._ranked(world, places[0]) if places else None

    def _ranked(self, world: World, place: int) -> NodeScore:
        plugins = {name: int(part[place]) for name, part in self._parts.items()}
        return NodeScore(world.names[int(self._rows[place])], int(self._totals[place]), plugins)


class _NoScoreDetails(ScoreDetails):
    """For attempts that nobody wants to know more about."""

    def ended(self, phase: Phase) -> None: ...

    def begun(self) -> Parts | None:
        return None

    def saw(self, rows: Rows, totals: Scores, zones: Scores) -> None: ...


UNRANKED: Final = _NoScoreDetails(lambda: 0.0)
