"""Builds numalign's rules for one case: those of the default profile, with the case's settings, on the case's cluster.

`answering` runs them. The order is that of the default profile; it decides whose refusal a node reports (kube-scheduler
spec 1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct

from numalign.api.decode import decode
from numalign.api.decode.structs import Wire
from numalign.api.schedulerconfig.podruleargs import InterPodAffinityArgs, PodTopologySpreadArgs, VolumeBindingArgs
from numalign.api.schedulerconfig.ruleargs import (
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
)
from numalign.oracle.kubescheduler import snapshots
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.nodes.declaredfeatures import NodeDeclaredFeatures
from numalign.placement.rules.nodes.imagelocality import ImageLocality
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.nodes.nodename import NodeName
from numalign.placement.rules.nodes.nodeports import NodePorts
from numalign.placement.rules.nodes.nodeunschedulable import NodeUnschedulable
from numalign.placement.rules.nodes.tainttoleration import TaintToleration
from numalign.placement.rules.pods.interpodaffinity import InterPodAffinity
from numalign.placement.rules.pods.podcounts import PodCounts
from numalign.placement.rules.pods.podterms import PodTerms
from numalign.placement.rules.pods.podtopologyspread import PodTopologySpread
from numalign.placement.rules.resources.balanced import NodeResourcesBalancedAllocation
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.placement.rules.rule import FilterRule, ScoreRule
from numalign.placement.rules.volumes.attachedvolumes import AttachedVolumes
from numalign.placement.rules.volumes.nodevolumelimits import NodeVolumeLimits
from numalign.placement.rules.volumes.volumebinding import VolumeBinding
from numalign.placement.rules.volumes.volumerestrictions import VolumeRestrictions
from numalign.placement.rules.volumes.volumeusers import VolumeUsers
from numalign.placement.rules.volumes.volumezone import VolumeZone

Raw = Mapping[str, Any]
Args = TypeVar("Args", bound=Wire)

WEIGHTS: Final = {"TaintToleration": 3, "NodeAffinity": 2, "PodTopologySpread": 2, "InterPodAffinity": 2}
"""Weights of scores in the default profile; all others count once."""


class Stage(Struct, frozen=True):
    world: World
    filters: tuple[FilterRule[Any], ...]
    scores: tuple[ScoreRule[Any], ...]


class Settings:
    """A profile's plugin configuration."""

    def __init__(self, profile: Raw) -> None:
        self._args = {each["name"]: each["args"] for each in profile.get("pluginConfig") or ()}

    def of(self, plugin: str, kind: type[Args]) -> Args:
        return decode.decode(kind, self._args.get(plugin, {}))


def build(case: Raw) -> Stage:
    seen, settings = snapshots.read(case["snapshot"]), Settings(case.get("profile") or {})
    world, stock = seen.world, seen.stock
    counts = PodCounts(world)
    taints = TaintToleration()
    nodes = NodeAffinity(settings.of("NodeAffinity", NodeAffinityArgs).added_affinity)
    fit = NodeResourcesFit(settings.of("NodeResourcesFit", NodeResourcesFitArgs))
    binding = VolumeBinding(stock, settings.of("VolumeBinding", VolumeBindingArgs))
    spread = PodTopologySpread(counts, seen.owners, settings.of("PodTopologySpread", PodTopologySpreadArgs))
    affinity = InterPodAffinity(
        counts, PodTerms(world), seen.namespaces, settings.of("InterPodAffinity", InterPodAffinityArgs)
    )
    balanced = NodeResourcesBalancedAllocation(
        settings.of("NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocationArgs)
    )
    filters = (
        *(NodeName(), NodeUnschedulable(), taints, nodes, NodePorts(), fit),
        *(VolumeRestrictions(stock, VolumeUsers(world)), NodeVolumeLimits(stock, AttachedVolumes(world, stock))),
        *(binding, VolumeZone(stock), spread, affinity, NodeDeclaredFeatures()),
    )
    return Stage(world, filters, (taints, nodes, fit, binding, spread, affinity, balanced, ImageLocality()))
