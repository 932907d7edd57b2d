"""Which nodes a node selector picks, for all rows at once.

Node affinity asks, spreading for the nodes that count, and volumes for where they can be reached. Terms are asked one
by one and kept by `world.mask`, so pods that differ in one term share the others. A term that the API server would not
accept picks nothing, as in the stock scheduler (kube-scheduler spec 1.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Final

import numpy as np

from numalign.api.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import Flags, World
from numalign.placement.rules.rowclasses import ABSENT, Facet

NAME_FIELD: Final = "metadata.name"
INT64: Final = range(-(2**63), 2**63)

INTEGER: Final = re.compile(r"[+-]?[0-9]+")
LABEL_NAME: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LABEL_KEY: Final = re.compile(rf"((?=[^/]{{1,253}}/){DNS_LABEL}(\.{DNS_LABEL})*/)?{LABEL_NAME}")
LABEL_VALUE: Final = re.compile(rf"({LABEL_NAME})?")


def required(world: World, pod: Pod) -> Flags | None:
    """Rows that the pod's nodeSelector and required node affinity allow; None: it has neither."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    selector = affinity.required if affinity else None
    parts = [with_labels(world, pod.spec.node_selector)] if pod.spec.node_selector else []
    parts += [picked(world, selector)] if selector is not None else []
    return reduce(np.logical_and, parts) if parts else None


def picked(world: World, selector: NodeSelector) -> Flags:
    terms = [matching(world, term) for term in selector.node_selector_terms]
    return reduce(np.logical_or, terms) if terms else _none(world)


def matching(world: World, term: NodeSelectorTerm) -> Flags:
    return world.mask(term, lambda: _matching(world, term))


def with_labels(world: World, labels: Mapping[str, str]) -> Flags:
    """Rows whose nodes have all these labels."""
    pairs = tuple(sorted(labels.items()))
    return world.mask(pairs, lambda: _all(world, (_among(world.labels.column(key), (value,)) for key, value in pairs)))


def _matching(world: World, term: NodeSelectorTerm) -> Flags:
    labels, fields = term.match_expressions, term.match_fields
    if not (labels or fields) or not all(map(_is_sound, labels)) or not all(map(_is_sound_field, fields)):
        return _none(world)
    return _all(world, (*(_with_label(world, each) for each in labels), *(_with_field(world, each) for each in fields)))


def _with_label(world: World, requirement: NodeSelectorRequirement) -> Flags:
    column = world.labels.column(requirement.key)
    match requirement.operator:
        case "In":
            return _among(column, requirement.values)
        case "NotIn":
            return ~_among(column, requirement.values)
        case "Exists":
            return np.not_equal(column.ids, ABSENT)
        case "DoesNotExist":
            return np.equal(column.ids, ABSENT)
    return _beyond(column, requirement.operator, int(requirement.values[0]))


def _among(column: Facet[str], values: Iterable[str]) -> Flags:
    numbers = [number for number in map(column.number, values) if number is not None]
    if len(numbers) == 1:
        return np.equal(column.ids, numbers[0])
    wanted = np.zeros(len(column.values), np.bool_)
    wanted[numbers] = True
    return wanted[column.ids]


def _beyond(column: Facet[str], operator: str, limit: int) -> Flags:
    def answer(value: str | None) -> int:
        number = _integer(value or "")
        return number is not None and (number > limit if operator == "Gt" else number < limit)

    return column.table((operator, limit), answer).astype(np.bool_)


def _with_field(world: World, requirement: NodeSelectorRequirement) -> Flags:
    # A field other than the name is empty for every node.
    (value,) = requirement.values
    flags = _none(world)
    if requirement.key != NAME_FIELD:
        flags[:] = value == ""
    elif value in world.rows:
        flags[world.rows[value]] = True
    return flags if requirement.operator == "In" else ~flags


def _is_sound(requirement: NodeSelectorRequirement) -> bool:
    values = requirement.values
    if not LABEL_KEY.fullmatch(requirement.key) or not all(map(LABEL_VALUE.fullmatch, values)):
        return False
    match requirement.operator:
        case "In" | "NotIn":
            return bool(values)
        case "Exists" | "DoesNotExist":
            return not values
        case "Gt" | "Lt":
            return len(values) == 1 and _integer(values[0]) is not None
    return False


def _is_sound_field(requirement: NodeSelectorRequirement) -> bool:
    return requirement.operator in ("In", "NotIn") and len(requirement.values) == 1


def _integer(text: str) -> int | None:
    number = int(text) if INTEGER.fullmatch(text) and len(text) < 100 else None
    return number if number is not None and number in INT64 else None


def _all(world: World, parts: Iterable[Flags]) -> Flags:
    return reduce(np.logical_and, parts, np.ones(world.capacity, np.bool_))


def _none(world: World) -> Flags:
    return np.zeros(world.capacity, np.bool_)
