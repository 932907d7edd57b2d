"""How NodeResourceTopologyMatch of scheduler-plugins sees nodes whose reports are never late.

`contenders` calls `PluginRule`. The plugin filters on nodes of the policy single-numa-node only: each container has to
find all of its request in one zone, by what the zones report as available. On other nodes it accepts every pod. Its
score LeastAllocated is added to that of NodeResourcesFit with the same weight."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, structs

from numalign.api.decode.quantity import NANO
from numalign.placement.columns.columns import Columns
from numalign.placement.columns.resources import CPU
from numalign.placement.columns.shapes import Shape
from numalign.placement.reference import demand, filter, scoring
from numalign.placement.reference.demand import PodDemand
from numalign.placement.reference.filter import Seen
from numalign.placement.reference.numanodes import NumaNode, Reading
from numalign.placement.reference.scoring import ReferenceScoring


class Published(Struct, frozen=True):
    """What a node offers at all, and its report while no pod was there."""

    present: frozenset[str]
    reading: Reading


class PluginRule:
    def __init__(self, columns: Columns, published: Callable[[int], Published]) -> None:
        self._columns, self._published = columns, published
        self._demands: dict[int, PodDemand] = {}
        self._scoring = ReferenceScoring()

    def score(self, shape: Shape, row: int) -> int | None:
        """From 0 to 100; None: the plugin refuses the node."""
        wanted = self._demands.get(shape.number)
        if wanted is None:
            wanted = self._demands[shape.number] = demand.of(shape.pod)
        known = self._published(row)
        seen = Seen(reading=self._now(row, known.reading))
        if not filter.decide(wanted, known.present, seen).status.is_success:
            return None
        return scoring.score(wanted, seen, self._scoring)

    def tells_apart(self, row: int) -> bool:
        """Whether the plugin's score of this row depends on what is free there."""
        return self._published(row).reading.manager.policy == filter.POLICY

    def _now(self, row: int, reading: Reading) -> Reading:
        """The report as an agent writes it now: CPUs and devices that pods hold exclusively are not available."""
        columns, found = self._columns, []
        for place, zone in enumerate(reading.numa_nodes):
            free = dict(zone.free)
            for name in free:
                column = columns.column(name)
                if name == "cpu" or "/" in name:
                    left = int(columns.free[row, place, CPU if name == "cpu" else column])
                    free[name] = min(free[name], max(0, left) * NANO)
            found.append(NumaNode(zone.id, free, zone.costs))
        return structs.replace(reading, numa_nodes=tuple(found))
