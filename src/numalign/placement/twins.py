"""Nodes of one make: the first report of a node is mostly like one that was read of another.

`mirror` asks here when it has no report of the node to go by, and notes what `ingest` has read in full. A cluster of
thousands of nodes has few makes, and at a start all of its reports are first ones."""

from __future__ import annotations

from typing import Final, NamedTuple

from numalign.api.node import Node
from numalign.api.nodetopology import NodeTopology
from numalign.placement import agentrereading, rereading
from numalign.placement.rowfacts import RowFacts

MOST_TWINS: Final = 1024


class Twin(NamedTuple):
    """A node that stands for others, by what reports are read with, and its report."""

    node: Node
    topology: NodeTopology
    facts: RowFacts


class Twins:
    """One for every make and kind of report."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], Twin] = {}
        """By the identity of Nodes, which are kept with it, so that nothing else gets it."""

    def read(self, topology: NodeTopology, node: Node, *, plain: bool) -> RowFacts | None:
        """The report's facts, if it differs from the twin's in nothing but what is free, and who has the rest."""
        twin = self._known.get((id(node), plain))
        if twin is None:
            return None
        if plain:
            return rereading.read(topology, twin.facts)
        return agentrereading.read(topology, twin.topology, twin.facts)

    def note(self, twin: Twin, *, plain: bool) -> None:
        if len(self._known) >= MOST_TWINS:
            self._known.clear()
        self._known[id(twin.node), plain] = twin
