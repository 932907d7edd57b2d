"""NodeAffinity: the nodes that a pod's nodeSelector and node affinity, and those of its profile, ask for.

A pod whose terms all name nodes, as those of DaemonSets do, narrows the search to them before any filter runs
(kube-scheduler spec 1.6). Preferred terms add their weight to nodes that match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects import nodematching
from numalign.api.objects.affinity import Affinity as PodAffinity
from numalign.api.objects.affinity import NodeAffinity as Affinity
from numalign.api.objects.affinity import NodeSelector, NodeSelectorTerm
from numalign.api.objects.pod import Pod
from numalign.placement.rules import normalising
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.nodes import nodeselectors
from numalign.placement.rules.rowtables import Follows
from numalign.placement.rules.rule import FITS, Coded, Codes, Fixed, Refusal, Refusals, Rows, Scores, StaticFilter

NOT_ENFORCED: Final = Refusal(("node(s) didn't match scheduler-enforced node affinity",), unresolvable=True)
NOT_MATCHED: Final = Refusal(("node(s) didn't match Pod's node affinity/selector",), unresolvable=True)
NOT_MATCHED_CODE: Final = np.int32(2)
CONFLICT: Final = Refusal(("pod affinity terms conflict",), unresolvable=True)
NO_AFFINITY: Final = Affinity()

Weighted = list[tuple[int, Flags]]


class PreparedAffinity(Struct, frozen=True, eq=False):
    """What was prepared, for all pods that share these."""

    affinity: PodAffinity | None
    selector: Mapping[str, str]
    world: ClusterState
    generation: int
    answer: Coded | Refusal | None

    def holds(self, pod: Pod, world: ClusterState) -> bool:
        shared = pod.spec.affinity is self.affinity and pod.spec.node_selector is self.selector
        return shared and world is self.world and world.generation == self.generation


class NodeAffinity(StaticFilter):
    name: Final = "NodeAffinity"

    def __init__(self, added: Affinity = NO_AFFINITY) -> None:
        """`added` is the profile's own affinity, for every pod of it."""
        self._added = added
        self._last: PreparedAffinity | None = None

    def prepare(self, pod: Pod, world: ClusterState) -> Coded | Refusal | None:
        # Pods of one kind come one after the other, and share what they say of nodes.
        if self._last is None or not self._last.holds(pod, world):
            answer = self._prepared(pod, world)
            self._last = PreparedAffinity(pod.spec.affinity, pod.spec.node_selector, world, world.generation, answer)
        return self._last.answer

    def _prepared(self, pod: Pod, world: ClusterState) -> Coded | Refusal | None:
        own = nodeselectors.required(world, pod)
        if own is None and self._added.required is None:
            return None
        only = _named(_affinity(pod).required)
        if only is not None and not only:
            return CONFLICT
        return Coded(codes=self._codes(own, world), refusals=Refusals(NOT_ENFORCED, NOT_MATCHED), only=only)

    def filter_alone(self, prepared: Coded) -> Follows:
        return Fixed(prepared.codes)

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> Weighted | None:
        terms = (*self._added.preferred, *_affinity(pod).preferred)
        return [(each.weight, nodeselectors.matching(world, each.preference)) for each in terms] if terms else None

    def score(self, prepared: Weighted, rows: Rows) -> Scores:
        total = np.zeros(len(rows), np.int64)
        for weight, matched in prepared:
            total += weight * matched[rows]
        return total

    def normalized(self, prepared: Weighted, raw: Scores) -> Scores:
        return normalising.by_largest(raw)

    def _codes(self, own: Flags | None, world: ClusterState) -> Codes:
        codes = np.zeros(world.capacity, np.int32) if own is None else np.where(own, FITS, NOT_MATCHED_CODE)
        if self._added.required is not None:
            codes[~nodeselectors.picked(world, self._added.required)] = 1
        return codes


def _affinity(pod: Pod) -> Affinity:
    return (pod.spec.affinity and pod.spec.affinity.node_affinity) or NO_AFFINITY


def _named(selector: NodeSelector | None) -> frozenset[str] | None:
    """The nodes that terms name, if every term does; a term that contradicts itself names none."""
    terms = list(map(_named_by, selector.node_selector_terms)) if selector else []
    if not terms:
        return None
    named = [names for names in terms if names is not None]
    return frozenset[str]().union(*named) if len(named) == len(terms) else None


def _named_by(term: NodeSelectorTerm) -> frozenset[str] | None:
    lists = [
        frozenset(each.values)
        for each in term.match_fields
        if each.key == nodematching.NAME_FIELD and each.operator == "In"
    ]
    return frozenset.intersection(*lists) if lists else None
