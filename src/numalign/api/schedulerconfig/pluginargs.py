"""Arguments of the scheduler's plugins (`<plugin>Args`): read strictly, with kube-scheduler's defaults and limits.

`configuration` reads a profile's pluginConfig through `read`; the rules in `placement` take the structs as they are.
Unlike `decode`, `read_strictly` refuses unknown fields, so that a misspelt name is found. A value outside its limits is
a BadObject with the path of the field (kube-scheduler spec 6.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.decode import decode, fields
from numalign.api.decode.fields import Field
from numalign.api.decode.structs import Int32, Int64, Wire
from numalign.api.objects.nodematching import LABEL_KEY, NAME_FIELD
from numalign.api.objects.pod import NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, TopologySpreadConstraint
from numalign.api.objects.resourcenames import CPU, MEMORY

T = TypeVar("T", bound=Wire)


def read_strictly(field: Field, kind: type[T]) -> T:
    """The field's mapping as a struct; all defaults where the file does not have it."""
    if not field.given:
        return kind()
    refuse_unknown(field, kind)
    with under(field):
        return decode.decode(kind, fields.named(field))


def refuse_unknown(field: Field, kind: Any) -> None:
    """Refuses fields that the type does not have, at any depth."""
    arguments = [each for each in get_args(kind) if each is not NoneType]
    if not field.given:
        return
    if get_origin(kind) in (Union, UnionType):
        refuse_unknown(field, arguments[0])
    elif get_origin(kind) is tuple:
        for item in fields.items(field):
            refuse_unknown(item, arguments[0])
    elif isinstance(kind, type) and issubclass(kind, Struct):
        types = {each.encode_name: each.type for each in structs.fields(kind)}
        fields.only(field, types)
        for name, part in types.items():
            refuse_unknown(field.at(name), part)


@contextmanager
def under(field: Field) -> Iterator[None]:
    """Turns errors of the block into BadObject at this field of the file."""
    try:
        yield
    except errors.BadObject as problem:
        raise errors.BadObject(field.kind, field.source, field.path_to(problem.field), problem.why) from None


LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"


class ResourceSpec(Wire, frozen=True):
    name: str = ""
    weight: Int64 = 1


CPU_AND_MEMORY: Final = (ResourceSpec(name=CPU), ResourceSpec(name=MEMORY))


class UtilizationShapePoint(Wire, frozen=True):
    """A score from 0 to 10 at a utilization in percent."""

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatioParam(Wire, frozen=True):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Wire, frozen=True):
    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam = RequestedToCapacityRatioParam()


class NodeResourcesFitArgs(Wire, frozen=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class NodeResourcesBalancedAllocationArgs(Wire, frozen=True):
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class NodeAffinityArgs(Wire, frozen=True):
    added_affinity: NodeAffinity = NodeAffinity()


SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"


class PodTopologySpreadArgs(Wire, frozen=True):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


class InterPodAffinityArgs(Wire, frozen=True):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


EMPTIER_FIRST: Final = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))


class VolumeBindingArgs(Wire, frozen=True):
    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] = EMPTIER_FIRST


STRATEGIES: Final = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
MOST_POINTS_OF_SCORE: Final = 10


def within(field: Field, number: int, low: int, high: int) -> None:
    if not low <= number <= high:
        raise field.bad(f"{errors.echo(number)} is not between {low} and {high}")


def at_least(field: Field, seconds: float, least: float) -> None:
    if seconds < least:
        raise field.bad(f"{errors.echo(field.value)} is less than {least:g}s")


def check_distinct(field: Field, names: Sequence[str], key: str) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise _item(field, index).at(key).bad(f"{errors.echo(name)} is there twice; remove one")


def check_weights(field: Field, resources: Sequence[ResourceSpec], most: int) -> None:
    for index, resource in enumerate(resources if field.given else ()):
        if not 1 <= resource.weight <= most:
            allowed = "1" if most == 1 else f"between 1 and {most}"
            raise _item(field, index).at("weight").bad(f"{resource.weight} is not {allowed}")


def check_resource_names(field: Field, names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if not LABEL_KEY.fullmatch(name):
            raise _item(field, index).bad(f"{errors.echo(name)} is not the name of a resource, like example.com/device")


def check_resource_groups(field: Field, groups: Sequence[str]) -> None:
    for index, group in enumerate(groups):
        if "/" in group or not LABEL_KEY.fullmatch(group):
            raise _item(field, index).bad(f"{errors.echo(group)} is not the group of a resource, such as example.com")


def check_strategy(field: Field, read: ScoringStrategy) -> None:
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
    check_shape(ratio.at("shape"), read.requested_to_capacity_ratio.shape)


def check_shape(field: Field, points: Sequence[UtilizationShapePoint]) -> None:
    if not points:
        raise field.bad("missing; write at least one point")
    for index, point in enumerate(points if field.given else ()):
        item = _item(field, index)
        within(item.at("utilization"), point.utilization, 0, 100)
        within(item.at("score"), point.score, 0, MOST_POINTS_OF_SCORE)
        if index and points[index - 1].utilization >= point.utilization:
            raise item.at("utilization").bad(f"{point.utilization} is not more than in the point before; sort them")


def check_spreading(field: Field, read: PodTopologySpreadArgs) -> None:
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
    if not LABEL_KEY.fullmatch(constraint.topology_key):
        raise item.at("topologyKey").bad(f"{errors.echo(constraint.topology_key)} is not the name of a label")
    if constraint.when_unsatisfiable not in ACTIONS:
        given = errors.echo(item.at("whenUnsatisfiable").value)
        raise item.at("whenUnsatisfiable").bad(f"{given} is not one of {', '.join(ACTIONS)}")
    if item.at("labelSelector").given:
        raise item.at("labelSelector").bad("is not allowed: the services and owners of each pod define the selector")


def check_node_affinity(field: Field, read: NodeAffinity) -> None:
    required = field.at("requiredDuringSchedulingIgnoredDuringExecution")
    if read.required is not None:
        terms = required.at("nodeSelectorTerms")
        if not read.required.node_selector_terms:
            raise terms.bad("missing; write at least one term, otherwise no node matches")
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
            raise item.at("key").bad(f"{errors.echo(requirement.key)} is not {NAME_FIELD}, the only supported field")
        if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
            raise item.bad("a field takes operator In or NotIn, and one value")


def _requirement(item: Field, requirement: NodeSelectorRequirement) -> None:
    if not LABEL_KEY.fullmatch(requirement.key):
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


GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
META: Final = ("apiVersion", "kind")


Reader = Callable[[Field], Wire]
"""Reads the `args` of one plugin, which may be absent."""


class DefaultPreemptionArgs(Wire, frozen=True):
    """How many nodes preemption tries: a percentage, but at least an absolute number."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(Wire, frozen=True):
    """In seconds. Accepted for compatibility: numalign ignores pods with resource claims."""

    filter_timeout: float = 10.0
    binding_timeout: float = 600.0


def read(plugin: str, args: Field, others: Mapping[str, Reader]) -> Wire | None:
    """The arguments of the plugin, or its defaults; None: it has no arguments."""
    reader = {**STOCK, **others}.get(plugin)
    return reader(args) if reader is not None else None


def own_fields(args: Field, plugin: str, versions: tuple[str, ...] = (API_VERSION,)) -> Field:
    """The fields without apiVersion and kind, which are optional but must be correct."""
    if not args.given:
        return args
    kind, version = args.at("kind"), args.at("apiVersion")
    if kind.given and fields.text(kind) != f"{plugin}Args":
        raise kind.bad(f"{errors.echo(kind.value)} is not {plugin}Args")
    if version.given and fields.text(version) not in versions:
        raise version.bad(f"{errors.echo(version.value)} is not {versions[0]}; write that")
    rest = {name: value for name, value in fields.named(args).items() if name not in META}
    return structs.replace(args, value=rest)


def _default_preemption(args: Field) -> DefaultPreemptionArgs:
    read = read_strictly(args, DefaultPreemptionArgs)
    if not args.given:
        return read
    percentage, absolute = read.min_candidate_nodes_percentage, read.min_candidate_nodes_absolute
    within(args.at("minCandidateNodesPercentage"), percentage, 0, 100)
    within(args.at("minCandidateNodesAbsolute"), absolute, 0, fields.INT32_MAX)
    if not percentage and not absolute:
        raise args.at("minCandidateNodesPercentage").bad("cannot be 0 together with minCandidateNodesAbsolute")
    return read


def _inter_pod_affinity(args: Field) -> InterPodAffinityArgs:
    read = read_strictly(args, InterPodAffinityArgs)
    if args.given:
        within(args.at("hardPodAffinityWeight"), read.hard_pod_affinity_weight, 0, 100)
    return read


def _node_affinity(args: Field) -> NodeAffinityArgs:
    read = read_strictly(args, NodeAffinityArgs)
    if args.given and args.at("addedAffinity").given:
        check_node_affinity(args.at("addedAffinity"), read.added_affinity)
    return read


def _fit(args: Field) -> NodeResourcesFitArgs:
    read = read_strictly(args, NodeResourcesFitArgs)
    if not args.given:
        return read
    check_resource_names(args.at("ignoredResources"), read.ignored_resources)
    check_resource_groups(args.at("ignoredResourceGroups"), read.ignored_resource_groups)
    strategy = args.at("scoringStrategy")
    if not strategy.given:
        return read
    check_strategy(strategy, read.scoring_strategy)
    resources = _completed(read.scoring_strategy.resources)
    check_weights(strategy.at("resources"), resources, 100)
    return structs.replace(read, scoring_strategy=structs.replace(read.scoring_strategy, resources=resources))


def _balanced(args: Field) -> NodeResourcesBalancedAllocationArgs:
    read = read_strictly(args, NodeResourcesBalancedAllocationArgs)
    resources = _completed(read.resources)
    if args.given:
        check_weights(args.at("resources"), resources, 1)
        check_distinct(args.at("resources"), [each.name for each in resources], "name")
    return structs.replace(read, resources=resources)


def _spread(args: Field) -> PodTopologySpreadArgs:
    read = read_strictly(args, PodTopologySpreadArgs)
    if args.given:
        check_spreading(args, read)
    return read


def _volume_binding(args: Field) -> VolumeBindingArgs:
    read = read_strictly(args, VolumeBindingArgs)
    if not args.given:
        return read
    within(args.at("bindTimeoutSeconds"), read.bind_timeout_seconds, 0, 2**63 - 1)
    shape = read.shape or VolumeBindingArgs().shape
    check_shape(args.at("shape"), shape)
    return structs.replace(read, shape=shape)


def _dynamic_resources(args: Field) -> DynamicResourcesArgs:
    default = DynamicResourcesArgs()
    if not args.given:
        return default
    fields.only(args, ("filterTimeout", "bindingTimeout"))
    filtering, binding = args.at("filterTimeout"), args.at("bindingTimeout")
    read = DynamicResourcesArgs(
        filter_timeout=fields.duration_seconds(filtering) if filtering.given else default.filter_timeout,
        binding_timeout=fields.duration_seconds(binding) if binding.given else default.binding_timeout,
    )
    at_least(filtering, read.filter_timeout, 0)
    at_least(binding, read.binding_timeout, 1)
    return read


def _completed(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """Fills in defaults: cpu and memory for an empty list, 1 for a weight of 0."""
    return tuple(structs.replace(each, weight=each.weight or 1) for each in resources) or CPU_AND_MEMORY


def _of(plugin: str, reader: Callable[[Field], T]) -> Reader:
    return lambda args: reader(own_fields(args, plugin))


STOCK: Final[Mapping[str, Reader]] = {
    plugin: _of(plugin, reader)
    for plugin, reader in {
        "DefaultPreemption": _default_preemption,
        "InterPodAffinity": _inter_pod_affinity,
        "NodeAffinity": _node_affinity,
        "NodeResourcesFit": _fit,
        "NodeResourcesBalancedAllocation": _balanced,
        "PodTopologySpread": _spread,
        "VolumeBinding": _volume_binding,
        "DynamicResources": _dynamic_resources,
    }.items()
}
