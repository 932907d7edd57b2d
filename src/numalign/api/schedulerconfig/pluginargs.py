"""Settings of plugins, `<plugin>Args`: read strictly, completed with the stock defaults, held against the stock limits.

`configuration` reads a profile's pluginConfig through `read`. The structs are those that the rules take; two that no
rule takes are here (kube-scheduler spec 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from msgspec import structs

from numalign.api import errors
from numalign.api.decode import fields, strict
from numalign.api.decode.fields import Field
from numalign.api.decode.structs import Int32, Wire
from numalign.api.schedulerconfig import argchecks, durations
from numalign.api.schedulerconfig.podruleargs import InterPodAffinityArgs, PodTopologySpreadArgs, VolumeBindingArgs
from numalign.api.schedulerconfig.ruleargs import (
    CPU_AND_MEMORY,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
)

GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
META: Final = ("apiVersion", "kind")

T = TypeVar("T", bound=Wire)
Reader = Callable[[Field], Wire]
"""Makes settings of the `args` of one plugin, which may not be there."""


class DefaultPreemptionArgs(Wire, frozen=True):
    """How many nodes are tried: a share of them, but no fewer than so many."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(Wire, frozen=True):
    """In seconds. Kept for configurations that have them: pods with resource claims are left alone."""

    filter_timeout: float = 10.0
    binding_timeout: float = 600.0


def read(plugin: str, args: Field, others: Mapping[str, Reader]) -> Wire | None:
    """The settings of that plugin, its defaults if nothing is given; None: it has none."""
    reader = {**STOCK, **others}.get(plugin)
    return reader(args) if reader is not None else None


def own_fields(args: Field, plugin: str, versions: tuple[str, ...] = (API_VERSION,)) -> Field:
    """Without apiVersion and kind, which may be left out, and must be right if they are not."""
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
    read = strict.read(args, DefaultPreemptionArgs)
    if not args.given:
        return read
    percentage, absolute = read.min_candidate_nodes_percentage, read.min_candidate_nodes_absolute
    argchecks.within(args.at("minCandidateNodesPercentage"), percentage, 0, 100)
    argchecks.within(args.at("minCandidateNodesAbsolute"), absolute, 0, fields.INT32_MAX)
    if not percentage and not absolute:
        raise args.at("minCandidateNodesPercentage").bad("cannot be 0 together with minCandidateNodesAbsolute")
    return read


def _inter_pod_affinity(args: Field) -> InterPodAffinityArgs:
    read = strict.read(args, InterPodAffinityArgs)
    if args.given:
        argchecks.within(args.at("hardPodAffinityWeight"), read.hard_pod_affinity_weight, 0, 100)
    return read


def _node_affinity(args: Field) -> NodeAffinityArgs:
    read = strict.read(args, NodeAffinityArgs)
    if args.given and args.at("addedAffinity").given:
        argchecks.node_affinity(args.at("addedAffinity"), read.added_affinity)
    return read


def _fit(args: Field) -> NodeResourcesFitArgs:
    read = strict.read(args, NodeResourcesFitArgs)
    if not args.given:
        return read
    argchecks.resource_names(args.at("ignoredResources"), read.ignored_resources)
    argchecks.resource_groups(args.at("ignoredResourceGroups"), read.ignored_resource_groups)
    strategy = args.at("scoringStrategy")
    if not strategy.given:
        return read
    argchecks.strategy(strategy, read.scoring_strategy)
    resources = _completed(read.scoring_strategy.resources)
    argchecks.weights(strategy.at("resources"), resources, 100)
    return structs.replace(read, scoring_strategy=structs.replace(read.scoring_strategy, resources=resources))


def _balanced(args: Field) -> NodeResourcesBalancedAllocationArgs:
    read = strict.read(args, NodeResourcesBalancedAllocationArgs)
    resources = _completed(read.resources)
    if args.given:
        argchecks.weights(args.at("resources"), resources, 1)
        argchecks.distinct(args.at("resources"), [each.name for each in resources], "name")
    return structs.replace(read, resources=resources)


def _spread(args: Field) -> PodTopologySpreadArgs:
    read = strict.read(args, PodTopologySpreadArgs)
    if args.given:
        argchecks.spreading(args, read)
    return read


def _volume_binding(args: Field) -> VolumeBindingArgs:
    read = strict.read(args, VolumeBindingArgs)
    if not args.given:
        return read
    argchecks.within(args.at("bindTimeoutSeconds"), read.bind_timeout_seconds, 0, 2**63 - 1)
    shape = read.shape or VolumeBindingArgs().shape
    argchecks.shape(args.at("shape"), shape)
    return structs.replace(read, shape=shape)


def _dynamic_resources(args: Field) -> DynamicResourcesArgs:
    default = DynamicResourcesArgs()
    if not args.given:
        return default
    fields.only(args, ("filterTimeout", "bindingTimeout"))
    filtering, binding = args.at("filterTimeout"), args.at("bindingTimeout")
    read = DynamicResourcesArgs(
        filter_timeout=durations.seconds(filtering) if filtering.given else default.filter_timeout,
        binding_timeout=durations.seconds(binding) if binding.given else default.binding_timeout,
    )
    argchecks.at_least(filtering, read.filter_timeout, 0)
    argchecks.at_least(binding, read.binding_timeout, 1)
    return read


def _completed(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """None at all are cpu and memory; a weight of nothing is 1."""
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
