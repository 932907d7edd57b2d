"""Which nodes a node selector picks, for all rows at once.

Node affinity asks, spreading for the nodes that count, and volumes for where they can be reached. Terms are asked one
by one and kept by `world.mask`, so pods that differ in one term share the others. `nodematching` has the rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

import numpy as np

from numalign.api.objects import nodematching
from numalign.api.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.rowclasses import RowClasses


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
