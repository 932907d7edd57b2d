"""Finds the rows of the nodes that kube-scheduler names, hundreds for each pod.

`extender` asks it for each question, and calls `tick` at intervals. Names and rows that came one by one, among all else
that the process keeps, lie far apart in memory: to read them takes longer than to compare them. So they are copied, one
beside the other, once the nodes of the cluster have changed; until then the table of the cluster itself is used."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np

from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.rule import Rows


class NodeRows:
    def __init__(self, world: ClusterState) -> None:
        self._world = world
        self._copied: dict[str, int] = {}
        self._generation = -1
        """When the copy was made."""

    def of(self, names: Sequence[str]) -> Rows:
        """The row of each of these nodes; -1: the watch has not shown the node yet."""
        is_current = self._generation == self._world.generation
        rows = self._copied if is_current else self._world.rows
        return np.fromiter(map(rows.get, names, repeat(-1)), np.intp, len(names))

    def tick(self) -> None:
        """Copies what has changed."""
        if self._generation != self._world.generation:
            rows = self._world.rows
            names = [name.encode().decode() for name in rows]
            self._copied = dict(zip(names, np.fromiter(rows.values(), np.intp, len(rows)).tolist(), strict=True))
            self._generation = self._world.generation
