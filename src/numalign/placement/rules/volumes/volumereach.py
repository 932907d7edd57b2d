"""From which rows a volume, a class of volumes or a driver's free space can be reached.

The parts of VolumeBinding ask. Objects say it in three ways: by a node selector, by topologies that are allowed, by a
label selector over nodes; all become node selectors. Local disks come in tens of thousands with a node each, so `first`
looks at many of them in one go.

Which free volume each node would get for each claim that waits for its first pod.

`volumebinding` asks. Claims are served smallest first; each takes the smallest volume that suits it and that the node
can reach, unless one was set aside for it. On every node anew: claims compete only with each other (kube-scheduler
spec 1.17). Of equal volumes the first by name is taken; the stock scheduler takes any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.decode import quantity
from numalign.api.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from numalign.api.objects.selectors import LabelSelector
from numalign.api.objects.volumes import PersistentVolume, PersistentVolumeClaim, TopologyTerm
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.nodes import nodeaffinity
from numalign.placement.rules.rule import Rows
from numalign.placement.rules.volumes import intree
from numalign.placement.rules.volumes.volumecatalogue import Catalogues, ClassCatalogue
from numalign.placement.rules.volumes.volumestock import VolumeStock

BLOCK: Final = 256
"""Things that are looked at together; many of them may be within reach of every row."""
NONE: Final = -1

Choice = NDArray[np.int32]
"""By row: the number of a thing, or `NONE`."""


class Reachable(Protocol):
    def rows(self, world: ClusterState) -> Rows:
        """Rows that reach it; it is to keep them while the world's generation is the same."""


def first(things: Sequence[Reachable], wanted: Flags, world: ClusterState, taken: Sequence[Choice] = ()) -> Choice:
    """By row, the first of the wanted things, in their order, that the row reaches and that is not taken there."""
    choice = np.full(world.capacity, NONE, np.int32)
    numbers = np.flatnonzero(wanted)
    for start in range(0, len(numbers), BLOCK):
        if not np.any(world.present & (choice == NONE)):
            break
        block = numbers[start : start + BLOCK]
        _offer(block, [things[number].rows(world) for number in block.tolist()], choice, taken)
    return choice


def _offer(numbers: Rows, reached: Sequence[Rows], choice: Choice, taken: Sequence[Choice]) -> None:
    rows = np.concatenate(reached)
    offered = np.repeat(numbers, [len(each) for each in reached])
    free = choice[rows] == NONE
    for earlier in taken:
        free &= earlier[rows] != offered
    # Of several things for one row the last that is written stays: the first in order.
    choice[rows[free][::-1]] = offered[free][::-1]


def flags(world: ClusterState, selector: NodeSelector | None) -> Flags:
    """Without a selector, all nodes."""
    return world.present if selector is None else nodeaffinity.picked(world, selector) & world.present


def rows(world: ClusterState, selector: NodeSelector | None) -> Rows:
    pair = _only_pair(selector)
    if pair is None:
        return np.flatnonzero(flags(world, selector))
    # Nearly all local disks: one look at one column instead of a whole selector.
    column = world.labels.column(pair[0])
    number = column.number(pair[1])
    return np.zeros(0, np.intp) if number is None else np.flatnonzero(column.ids == number)


def of_bound(volume: PersistentVolume, stock: VolumeStock, world: ClusterState) -> Flags:
    """Volumes of built-in plugins are reached as their driver says, on nodes where it serves them."""
    written = flags(world, volume.spec.node_affinity.required)
    plugin = intree.plugin_of(volume.spec)
    if plugin is None:
        return written
    migrated = np.zeros(world.capacity, np.bool_)
    for name, row in world.rows.items():
        node = stock.nodes.known(name)
        migrated[row] = node is not None and plugin.name in node.migrated_plugins
    return np.where(migrated, flags(world, intree.affinity(volume, plugin)), written)


def of_topologies(terms: Iterable[TopologyTerm]) -> NodeSelector | None:
    """None: everywhere."""
    chosen = tuple(
        NodeSelectorTerm(match_expressions=tuple(_in(each.key, each.values) for each in term.match_label_expressions))
        for term in terms
    )
    return NodeSelector(chosen) if chosen else None


def of_labels(selector: LabelSelector | None) -> NodeSelector | None:
    """None: everywhere. No selector at all reaches nothing."""
    if selector is None:
        return NodeSelector()
    if selector.is_empty:
        return None
    pairs = (_in(key, (value,)) for key, value in sorted(selector.match_labels.items()))
    others = (NodeSelectorRequirement(each.key, each.operator, each.values) for each in selector.match_expressions)
    return NodeSelector((NodeSelectorTerm(match_expressions=(*pairs, *others)),))


def _only_pair(selector: NodeSelector | None) -> tuple[str, str] | None:
    """The label that a node must have, where that is all that is asked for."""
    if selector is None or len(selector.node_selector_terms) != 1:
        return None
    (term,) = selector.node_selector_terms
    if term.match_fields or len(term.match_expressions) != 1:
        return None
    (only,) = term.match_expressions
    return (only.key, only.values[0]) if only.operator == "In" and len(only.values) == 1 else None


def _in(key: str, values: tuple[str, ...]) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator="In", values=values)


class VolumeMatch(Struct, frozen=True):
    """The volume that a claim gets on each row, by number."""

    claim: PersistentVolumeClaim
    choice: Choice
    catalogue: ClassCatalogue

    def on(self, row: int) -> PersistentVolume | None:
        return self.volume(int(self.choice[row]))

    def volume(self, number: int) -> PersistentVolume | None:
        return None if number == NONE else self.catalogue.entries[number].volume


def matches(claims: Sequence[PersistentVolumeClaim], catalogues: Catalogues, world: ClusterState) -> list[VolumeMatch]:
    """In the order in which claims are served."""
    found: list[VolumeMatch] = []
    for claim in sorted(claims, key=lambda claim: claim.size or quantity.ZERO):
        catalogue = catalogues.of(claim.class_name)
        taken = [each.choice for each in found if each.catalogue is catalogue]
        found.append(VolumeMatch(claim, catalogue.first(claim, world, taken), catalogue))
    return found
