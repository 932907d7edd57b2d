"""Loads played once, and read by many tests: those of the shared lab, and kind by kind those of the whole matrix.

Where the machine has no room for all nodes of a lab at a time, their loads are played in batches."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce

from msgspec import Struct

from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.lab import preflight
from numalign.lab.spec import LabSpec, NodeSpec
from tests.lab import fleet, loads, metrics
from tests.lab.labs import Labs
from tests.lab.live import Live
from tests.lab.loads import Story

SHARED_LAB = "shared"
ATTEMPTS = "scheduler_schedule_attempts_total"


class Tale(Struct, frozen=True):
    """What became of all loads in one lab."""

    stories: Mapping[str, Story]
    attempts: Mapping[str, int]
    diverged: Mapping[str, int]
    rejected: int
    """These three are counted by our scheduler, of pods of its own."""
    rejected_by_stock: list[str]

    def __add__(self, other: Tale) -> Tale:
        return Tale(
            {**self.stories, **other.stories},
            Counter(self.attempts) + Counter(other.attempts),
            Counter(self.diverged) + Counter(other.diverged),
            self.rejected + other.rejected,
            self.rejected_by_stock + other.rejected_by_stock,
        )


class Tales:
    def __init__(self, labs: Labs) -> None:
        self._labs = labs
        self._told: dict[str, Tale] = {}
        self._failed: set[str] = set()

    def of_node(self, name: str) -> Story:
        """Of the shared lab, if the node is there."""
        return self.of_lab(SHARED_LAB if name in fleet.SHARED else fleet.kind_of(name)).stories[name]

    def of_lab(self, lab: str) -> Tale:
        """What failed once is not tried again for every test."""
        assert lab not in self._failed, f"the loads of {lab} could not be played"
        if lab not in self._told:
            self._failed.add(lab)
            self._told[lab] = self._play(lab)
            self._failed.remove(lab)
        return self._told[lab]

    def _play(self, lab: str) -> Tale:
        if lab == SHARED_LAB:
            live = shared(self._labs)
            if live.has_all(fleet.SHARED):
                return told(live, fleet.shared())
        nodes = fleet.shared() if lab == SHARED_LAB else tuple(fleet.of_kind(lab))
        return reduce(Tale.__add__, map(self._told_alone, self._labs.batches(nodes)))

    def _told_alone(self, nodes: tuple[NodeSpec, ...]) -> Tale:
        with Live.up(spec(f"tests-{nodes[0].name}-{os.getpid()}", nodes)) as live:
            return told(live, nodes)


def shared(labs: Labs) -> Live:
    """The lab that most tests share: with all its nodes, or with those that tests name if there is no room for more."""
    name, every = f"tests-{os.getpid()}", fleet.nodes()
    if not labs.runs(name) and not labs.make_room(preflight.instances(len(every), len(every))):
        return labs.of(spec(name, fleet.named()))
    return labs.of(spec(name, every))


def spec(name: str, nodes: tuple[NodeSpec, ...]) -> LabSpec:
    return LabSpec(name=name, nodes=nodes, scheduler=True, agent=True, stock_scheduler=True, reference_scheduler=True)


def told(live: Live, nodes: Sequence[NodeSpec]) -> Tale:
    stories = live.run(loads.played(live, [node.name for node in nodes]))
    attempts, diverged = metrics.counted(live, ATTEMPTS), metrics.counted(live, metrics.DIVERGED)
    refused = metrics.rejections(live)
    live.clear()
    strict = [node.name for node in nodes if node.settings.topology_policy in fleet.STRICT]
    rejected = live.run(loads.rejected(live, strict, DEFAULT_SCHEDULER))
    live.clear()
    return Tale(stories, attempts, diverged, refused, rejected)
