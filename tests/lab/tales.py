"""Loads played once, and read by many tests: those of the shared lab, and kind by kind those of the whole matrix."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.lab.spec import LabSpec, NodeSpec
from tests.lab import fleet, loads, metrics
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


class Tales:
    def __init__(self, shared: Callable[[], Live]) -> None:
        self._shared = shared
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
            return told(self._shared(), fleet.shared())
        nodes = tuple(fleet.of_kind(lab))
        with Live.up(spec(f"tests-{lab}-{os.getpid()}", nodes)) as live:
            return told(live, nodes)


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
