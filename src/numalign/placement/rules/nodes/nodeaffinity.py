"""NodeAffinity: nodes must match the nodeSelector and node affinity of the pod and of its profile.

A pod whose terms all name nodes, as a DaemonSet's do, restricts the search to these nodes before any filter runs
(kube-scheduler spec 1.6). Preferred terms add their weight to matching nodes. Spreading and volumes use the same
functions over node selectors. Terms are evaluated one by one and cached by `ClusterState.mask`; `nodematching` has
the rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects import nodematching
from numalign.api.objects.pod import Affinity as PodAffinity
from numalign.api.objects.pod import NodeAffinity as Affinity
from numalign.api.objects.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from numalign.placement.rules import rule
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.rowclasses import RowClasses
from numalign.placement.rules.rule import FITS, Coded, Codes, Refusal, Refusals, Rows, Scores, StaticFilter


def required(world: ClusterState, pod: Pod) -> Flags | None:
    """Rows that the pod's nodeSelector and required node affinity allow; None: it has neither."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    selector = affinity.required if affinity else None
    parts = [with_labels(world, pod.spec.node_selector)] if pod.spec.node_selector else []
    parts += [picked(world, selector)] if selector is not None else []
    return reduce(np.logical_and, parts) if parts else None


def picked(world: ClusterState, selector: NodeSelector) -> Flags:
    terms = [matching(world, term) for term in selector.node_selector_terms]
    return reduce(np.logical_or, terms) if terms else _none(world)


def matching(world: ClusterState, term: NodeSelectorTerm) -> Flags:
    return world.mask(term, lambda: _matching(world, term))


def with_labels(world: ClusterState, labels: Mapping[str, str]) -> Flags:
    """Rows whose nodes have all these labels."""
    pairs = tuple(sorted(labels.items()))
    return world.mask(pairs, lambda: _all(world, (_among(world.labels.column(key), (value,)) for key, value in pairs)))


def _matching(world: ClusterState, term: NodeSelectorTerm) -> Flags:
    if not nodematching.is_valid(term):
        return _none(world)
    labels, fields = term.match_expressions, term.match_fields
    return _all(world, (*(_with_label(world, each) for each in labels), *(_with_field(world, each) for each in fields)))


def _with_label(world: ClusterState, requirement: NodeSelectorRequirement) -> Flags:
    column, operator = world.labels.column(requirement.key), requirement.operator
    if operator in ("In", "NotIn"):
        # By the numbers of the values: there may be as many different ones as nodes.
        flags = _among(column, requirement.values)
        return flags if operator == "In" else ~flags
    return column.table(requirement, lambda value: nodematching.holds(requirement, value)).astype(np.bool_)


def _among(column: RowClasses[str], values: Iterable[str]) -> Flags:
    numbers = [number for number in map(column.number, values) if number is not None]
    if len(numbers) == 1:
        return np.equal(column.ids, numbers[0])
    wanted = np.zeros(len(column.values), np.bool_)
    wanted[numbers] = True
    return wanted[column.ids]


def _with_field(world: ClusterState, requirement: NodeSelectorRequirement) -> Flags:
    # A field other than the name is empty for every node.
    (value,) = requirement.values
    flags = _none(world)
    if requirement.key != nodematching.NAME_FIELD:
        flags[:] = value == ""
    elif value in world.rows:
        flags[world.rows[value]] = True
    return flags if requirement.operator == "In" else ~flags


def _all(world: ClusterState, parts: Iterable[Flags]) -> Flags:
    return reduce(np.logical_and, parts, np.ones(world.capacity, np.bool_))


def _none(world: ClusterState) -> Flags:
    return np.zeros(world.capacity, np.bool_)


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
        own = required(world, pod)
        if own is None and self._added.required is None:
            return None
        only = _named(_affinity(pod).required)
        if only is not None and not only:
            return CONFLICT
        return Coded(codes=self._codes(own, world), refusals=Refusals(NOT_ENFORCED, NOT_MATCHED), only=only)

    def filter_alone(self, prepared: Coded) -> Codes:
        return prepared.codes

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> Weighted | None:
        terms = (*self._added.preferred, *_affinity(pod).preferred)
        return [(each.weight, matching(world, each.preference)) for each in terms] if terms else None

    def score(self, prepared: Weighted, rows: Rows) -> Scores:
        total = np.zeros(len(rows), np.int64)
        for weight, matched in prepared:
            total += weight * matched[rows]
        return total

    def normalized(self, prepared: Weighted, raw: Scores) -> Scores:
        return rule.by_largest(raw)

    def _codes(self, own: Flags | None, world: ClusterState) -> Codes:
        codes = np.zeros(world.capacity, np.int32) if own is None else np.where(own, FITS, NOT_MATCHED_CODE)
        if self._added.required is not None:
            codes[~picked(world, self._added.required)] = 1
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
