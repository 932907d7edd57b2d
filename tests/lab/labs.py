"""The labs that tests share: each is started when a test first asks for it, and as many run at a time as there is room
for.

A machine has few inotify instances (128 per user unless it is configured otherwise), and labs of others may run beside
the tests. Where there is no room for one more lab, those that no test has used for the longest time end. A lab that
does not fit even alone is split up: its nodes come in batches, one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack

from msgspec import Struct

from numalign.lab import preflight
from numalign.lab.spec import LabSpec, NodeSpec
from tests.lab.live import Live

SPARE = 8
"""Instances that stay free: labs of others start programs again, too."""


class Running(Struct, frozen=True):
    live: Live
    ends: ExitStack


class Labs:
    def __init__(
        self,
        start: Callable[[LabSpec], AbstractContextManager[Live]] = Live.up,
        free: Callable[[int], int] = preflight.free_instances,
    ) -> None:
        self._start, self._free = start, free
        self._running: dict[str, Running] = {}
        """By name, the one that was used last at the end."""
        self._failed: set[str] = set()

    def of(self, spec: LabSpec) -> Live:
        """The lab of this name, started if it does not run. One that failed to start is not tried again for every
        test."""
        assert spec.name not in self._failed, f"the lab {spec.name} could not be started"
        found = self._running.pop(spec.name, None)
        if found is None:
            self._failed.add(spec.name)
            found = self._started(spec)
            self._failed.remove(spec.name)
        self._running[spec.name] = found
        return found.live

    def _started(self, spec: LabSpec) -> Running:
        self.make_room(preflight.instances(len(spec.nodes), spec.reporter_count, containers=spec.runs_containers))
        with ExitStack() as stack:
            live = stack.enter_context(self._start(spec))
            return Running(live, stack.pop_all())

    def runs(self, name: str) -> bool:
        return name in self._running

    def make_room(self, instances: int) -> bool:
        """End labs until this many instances are free; False if there are fewer without any lab."""
        while self._room(instances) < instances:
            if not self._running:
                return False
            self._end(next(iter(self._running)))
        return True

    def batches(self, nodes: Sequence[NodeSpec]) -> Iterator[tuple[NodeSpec, ...]]:
        """All nodes, each of which has one publisher, as many at a time as fit into a lab that runs alone. The lab of a
        batch has to end before the next one."""
        rest = tuple(nodes)
        while rest:
            everything = preflight.instances(len(rest), len(rest))
            self.make_room(everything)
            batch = fitting(rest, self._room(everything))
            yield batch
            rest = rest[len(batch) :]

    def end(self) -> None:
        for name in list(self._running):
            self._end(name)

    def _end(self, name: str) -> None:
        self._running.pop(name).ends.close()

    def _room(self, most: int) -> int:
        return max(0, self._free(most + SPARE) - SPARE)


def fitting(nodes: tuple[NodeSpec, ...], room: int) -> tuple[NodeSpec, ...]:
    """The first nodes, with a publisher each, that this many instances are enough for; at least one."""
    count = len(nodes)
    while count > 1 and preflight.instances(count, count) > room:
        count -= 1
    return nodes[:count]


@contextlib.contextmanager
def shared() -> Iterator[Labs]:
    labs = Labs()
    try:
        yield labs
    finally:
        labs.end()
