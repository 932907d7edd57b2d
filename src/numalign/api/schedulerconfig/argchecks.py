"""The stock limits on settings of plugins, each with the path of the field that breaks it (kube-scheduler spec 6.3).

`pluginargs` calls these with a field and what was read from it. Nothing is returned: what is wrong is raised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.objects.affinity import (
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    TopologySpreadConstraint,
)
from numalign.api.schedulerconfig.podruleargs import LIST_DEFAULTING, SYSTEM_DEFAULTING, PodTopologySpreadArgs
from numalign.api.schedulerconfig.ruleargs import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)

STRATEGIES: Final = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
MOST_POINTS_OF_SCORE: Final = 10
NAME_FIELD: Final = "metadata.name"

NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
DNS: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
QUALIFIED: Final = re.compile(rf"(?:(?=[^/]{{1,253}}/){DNS}/)?{NAME}")


def within(field: Field, number: int, low: int, high: int) -> None:
    if not low <= number <= high:
        raise field.bad(f"{errors.echo(number)} is not between {low} and {high}")


def at_least(field: Field, seconds: float, least: float) -> None:
    if seconds < least:
        raise field.bad(f"{errors.echo(field.value)} is less than {least:g}s")


def distinct(field: Field, names: Sequence[str], key: str) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise _item(field, index).at(key).bad(f"{errors.echo(name)} is there twice; remove one")


def weights(field: Field, resources: Sequence[ResourceSpec], most: int) -> None:
    for index, resource in enumerate(resources if field.given else ()):
        if not 1 <= resource.weight <= most:
            allowed = "1" if most == 1 else f"between 1 and {most}"
            raise _item(field, index).at("weight").bad(f"{resource.weight} is not {allowed}")


def resource_names(field: Field, names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if not QUALIFIED.fullmatch(name):
            raise _item(field, index).bad(f"{errors.echo(name)} is not the name of a resource, like example.com/device")


def resource_groups(field: Field, groups: Sequence[str]) -> None:
    for index, group in enumerate(groups):
        if "/" in group or not QUALIFIED.fullmatch(group):
            raise _item(field, index).bad(f"{errors.echo(group)} is not what stands before the / in a resource's name")


def strategy(field: Field, read: ScoringStrategy) -> None:
    kind, ratio = field.at("type"), field.at("requestedToCapacityRatio")
    # A strategy that is written down has no default type, unlike one that is not.
    if not kind.given or read.type not in STRATEGIES:
        raise kind.bad(f"{errors.echo(kind.value)} is not one of {', '.join(STRATEGIES)}")
    if read.type != REQUESTED_TO_CAPACITY_RATIO:
        if ratio.given:
            raise ratio.bad(f"goes with type {REQUESTED_TO_CAPACITY_RATIO} only; remove it")
        return
    if not ratio.given:
        raise ratio.bad(f"missing; type {REQUESTED_TO_CAPACITY_RATIO} needs it")
    shape(ratio.at("shape"), read.requested_to_capacity_ratio.shape)


def shape(field: Field, points: Sequence[UtilizationShapePoint]) -> None:
    if not points:
        raise field.bad("missing; write at least one point")
    for index, point in enumerate(points if field.given else ()):
        item = _item(field, index)
        within(item.at("utilization"), point.utilization, 0, 100)
        within(item.at("score"), point.score, 0, MOST_POINTS_OF_SCORE)
        if index and points[index - 1].utilization >= point.utilization:
            raise item.at("utilization").bad(f"{point.utilization} is not more than in the point before; sort them")


def spreading(field: Field, read: PodTopologySpreadArgs) -> None:
    kind, written = field.at("defaultingType"), field.at("defaultConstraints")
    if read.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        raise kind.bad(f"{errors.echo(kind.value)} is not one of {SYSTEM_DEFAULTING}, {LIST_DEFAULTING}")
    if read.defaulting_type == SYSTEM_DEFAULTING and read.default_constraints:
        raise kind.bad(f"{SYSTEM_DEFAULTING} brings its own constraints; write {LIST_DEFAULTING} to use those listed")
    seen = set[tuple[str, str]]()
    for index, constraint in enumerate(read.default_constraints):
        item = _item(written, index)
        _constraint(item, constraint)
        identity = constraint.topology_key, constraint.when_unsatisfiable
        if identity in seen:
            raise item.bad(f"there is another one of {identity[0]} and {identity[1]}; remove one")
        seen.add(identity)


def _constraint(item: Field, constraint: TopologySpreadConstraint) -> None:
    within(item.at("maxSkew"), constraint.max_skew, 1, fields.INT32_MAX)
    if not QUALIFIED.fullmatch(constraint.topology_key):
        raise item.at("topologyKey").bad(f"{errors.echo(constraint.topology_key)} is not the name of a label")
    if constraint.when_unsatisfiable not in ACTIONS:
        given = errors.echo(item.at("whenUnsatisfiable").value)
        raise item.at("whenUnsatisfiable").bad(f"{given} is not one of {', '.join(ACTIONS)}")
    if item.at("labelSelector").given:
        raise item.at("labelSelector").bad("must not be there: it is taken from the services and owners of each pod")


def node_affinity(field: Field, read: NodeAffinity) -> None:
    required = field.at("requiredDuringSchedulingIgnoredDuringExecution")
    if read.required is not None:
        terms = required.at("nodeSelectorTerms")
        if not read.required.node_selector_terms:
            raise terms.bad("missing; write at least one term, or no nodes would do")
        for index, term in enumerate(read.required.node_selector_terms):
            _term(_item(terms, index), term)
    preferred = field.at("preferredDuringSchedulingIgnoredDuringExecution")
    for index, each in enumerate(read.preferred):
        within(_item(preferred, index).at("weight"), each.weight, 1, 100)
        _term(_item(preferred, index).at("preference"), each.preference)


def _term(field: Field, term: NodeSelectorTerm) -> None:
    for index, requirement in enumerate(term.match_expressions):
        _requirement(_item(field.at("matchExpressions"), index), requirement)
    for index, requirement in enumerate(term.match_fields):
        item = _item(field.at("matchFields"), index)
        if requirement.key != NAME_FIELD:
            raise item.at("key").bad(f"{errors.echo(requirement.key)} is not {NAME_FIELD}, the only field there is")
        if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
            raise item.bad("a field takes operator In or NotIn, and one value")


def _requirement(item: Field, requirement: NodeSelectorRequirement) -> None:
    if not QUALIFIED.fullmatch(requirement.key):
        raise item.at("key").bad(f"{errors.echo(requirement.key)} is not the name of a label")
    if requirement.operator not in OPERATORS:
        raise item.at("operator").bad(f"{errors.echo(requirement.operator)} is not one of {', '.join(OPERATORS)}")
    count, values = len(requirement.values), item.at("values")
    match requirement.operator:
        case "In" | "NotIn" if not count:
            raise values.bad(f"missing; {requirement.operator} needs values")
        case "Exists" | "DoesNotExist" if count:
            raise values.bad(f"{requirement.operator} takes no values; remove them")
        case "Gt" | "Lt" if count != 1 or not re.fullmatch(r"[+-]?[0-9]{1,18}", requirement.values[0]):
            raise values.bad(f"{requirement.operator} takes one whole number, in quotes")


def _item(field: Field, index: int) -> Field:
    return list(fields.items(field))[index]
