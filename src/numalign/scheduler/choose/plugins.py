"""The stock scheduler's rules on one world, and what they look at beside nodes and pods.

`main` makes one per process and asks for a profile's rules by the names of their plugins; `watching` brings namespaces,
owners and volumes to it. Rules of one plugin are made once for each profile, with the profile's own settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from numalign.api.decode.structs import Wire
from numalign.api.schedulerconfig import configuration
from numalign.api.schedulerconfig.pluginargs import DefaultPreemptionArgs
from numalign.api.schedulerconfig.plugins import ZONES, Point
from numalign.api.schedulerconfig.podruleargs import InterPodAffinityArgs, PodTopologySpreadArgs, VolumeBindingArgs
from numalign.api.schedulerconfig.ruleargs import (
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
)
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.nodes.declaredfeatures import NodeDeclaredFeatures
from numalign.placement.rules.nodes.imagelocality import ImageLocality
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.nodes.nodename import NodeName
from numalign.placement.rules.nodes.nodeports import NodePorts
from numalign.placement.rules.nodes.nodeunschedulable import NodeUnschedulable
from numalign.placement.rules.nodes.tainttoleration import TaintToleration
from numalign.placement.rules.pods.interpodaffinity import InterPodAffinity
from numalign.placement.rules.pods.namespaces import Namespaces
from numalign.placement.rules.pods.owners import Owners
from numalign.placement.rules.pods.podcounts import PodCounts
from numalign.placement.rules.pods.podterms import PodTerms
from numalign.placement.rules.pods.podtopologyspread import PodTopologySpread
from numalign.placement.rules.resources.balanced import NodeResourcesBalancedAllocation
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.placement.rules.volumes.attachedvolumes import AttachedVolumes
from numalign.placement.rules.volumes.nodevolumelimits import NodeVolumeLimits
from numalign.placement.rules.volumes.volumebinding import VolumeBinding
from numalign.placement.rules.volumes.volumerestrictions import VolumeRestrictions
from numalign.placement.rules.volumes.volumestock import VolumeStock
from numalign.placement.rules.volumes.volumeusers import VolumeUsers
from numalign.placement.rules.volumes.volumezone import VolumeZone
from numalign.scheduler import settings
from numalign.scheduler.choose.profiles import Profile, Scored
from numalign.scheduler.intake import dra
from numalign.scheduler.intake.dra import DynamicResources
from numalign.scheduler.preempt.budgets import Budgets
from numalign.scheduler.queue.interests import PREEMPTION

ALL = 100
T = TypeVar("T", bound=Wire)
Args = Mapping[str, Wire]


class Plugins:
    def __init__(self, world: World) -> None:
        self.world = world
        self.namespaces = Namespaces()
        self.owners = Owners()
        self.volumes = VolumeStock()
        self.device_classes = dra.shelf()
        self.budgets = Budgets()
        self._counts = PodCounts(world)
        self._terms = PodTerms(world)
        self._users = VolumeUsers(world)
        self._attached = AttachedVolumes(world, self.volumes)

    def profile(self, config: configuration.Profile) -> Profile:
        made = {name: make(config.args) for name, make in self._makers().items() if config.plugins.has(name)}
        at, weights = config.plugins.at, config.plugins.weights
        percentage = config.percentage_of_nodes_to_score
        binding, scoring = made.get(VolumeBinding.name), made.keys() - {DynamicResources.name}
        return Profile(
            name=config.scheduler_name,
            filters=tuple(made[name] for name in _filtering(config) if name in made),
            scores=tuple(Scored(made[name], weights.get(name) or 1) for name in at[Point.SCORE] if name in scoring),
            zones=settings.looks_at_zones(config),
            zones_weight=(weights.get(ZONES) or 1) if ZONES in at[Point.SCORE] else 0,
            percentage=ALL if percentage is None else percentage,
            preemption=_of(config.args, PREEMPTION, DefaultPreemptionArgs)
            if PREEMPTION in at[Point.POST_FILTER]
            else None,
            volumes=binding if isinstance(binding, VolumeBinding) else None,
            volume_seconds=float(_of(config.args, VolumeBinding.name, VolumeBindingArgs).bind_timeout_seconds),
        )

    def _makers(self) -> Mapping[str, Callable[[Args], Any]]:
        """Rules by plugin; those that others answer for, and those that rule nothing, are not among them."""
        stock = self.volumes
        return {
            "NodeName": lambda _: NodeName(),
            "NodeUnschedulable": lambda _: NodeUnschedulable(),
            "TaintToleration": lambda _: TaintToleration(),
            "NodeAffinity": lambda args: NodeAffinity(_of(args, "NodeAffinity", NodeAffinityArgs).added_affinity),
            "NodePorts": lambda _: NodePorts(),
            "NodeResourcesFit": lambda args: NodeResourcesFit(_of(args, "NodeResourcesFit", NodeResourcesFitArgs)),
            "VolumeRestrictions": lambda _: VolumeRestrictions(stock, self._users),
            "NodeVolumeLimits": lambda _: NodeVolumeLimits(stock, self._attached),
            "VolumeBinding": lambda args: VolumeBinding(stock, _of(args, "VolumeBinding", VolumeBindingArgs)),
            "VolumeZone": lambda _: VolumeZone(stock),
            "PodTopologySpread": lambda args: PodTopologySpread(
                self._counts, self.owners, _of(args, "PodTopologySpread", PodTopologySpreadArgs)
            ),
            "InterPodAffinity": lambda args: InterPodAffinity(
                self._counts, self._terms, self.namespaces, _of(args, "InterPodAffinity", InterPodAffinityArgs)
            ),
            "DynamicResources": lambda _: DynamicResources(self.device_classes),
            "NodeResourcesBalancedAllocation": lambda args: NodeResourcesBalancedAllocation(
                _of(args, "NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocationArgs)
            ),
            "ImageLocality": lambda _: ImageLocality(),
            "NodeDeclaredFeatures": lambda _: NodeDeclaredFeatures(),
        }


def _filtering(config: configuration.Profile) -> tuple[str, ...]:
    return tuple(name for name in config.plugins.at[Point.FILTER] if name != ZONES)


def _of(args: Args, plugin: str, kind: type[T]) -> T:
    found = args.get(plugin)
    return found if isinstance(found, kind) else kind()
