"""The scheduler's plugins, and the state that they read beside nodes and pods.

`main` makes one `Plugins` per process and asks it for the plugins of each profile; `watching` feeds it with
namespaces, owners, volumes and PodDisruptionBudgets. A plugin is made once per profile, with the profile's
arguments. DynamicResources rejects every pod that needs dynamically allocated devices, because this scheduler does
not allocate them. `Budgets` reads what PodDisruptionBudgets allow from their status (kube-scheduler spec 1.20)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct

from numalign.api.decode.structs import Wire
from numalign.api.objects.pod import Pod
from numalign.api.objects.workloads import IMPLICIT, DeviceClass, PodDisruptionBudget
from numalign.api.schedulerconfig import configuration
from numalign.api.schedulerconfig.pluginargs import (
    DefaultPreemptionArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    VolumeBindingArgs,
)
from numalign.api.schedulerconfig.plugins import NUMALIGN, ZONES, Point
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodes.imagelocality import ImageLocality
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.nodes.nodeports import NodePorts
from numalign.placement.rules.nodes.nodespec import NodeDeclaredFeatures, NodeName, NodeUnschedulable, TaintToleration
from numalign.placement.rules.nodes.topologyreports import AnsweringKubelets, AwaitedNodesFilter, TopologyReports
from numalign.placement.rules.pods.interpodaffinity import InterPodAffinity
from numalign.placement.rules.pods.matchers import Matcher, Namespaces
from numalign.placement.rules.pods.owners import Owners
from numalign.placement.rules.pods.podcounts import PodCounts
from numalign.placement.rules.pods.podterms import PodTerms
from numalign.placement.rules.pods.podtopologyspread import PodTopologySpread
from numalign.placement.rules.resources.balanced import NodeResourcesBalancedAllocation
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.placement.rules.rule import FITS, Coded, Codes, Refusal
from numalign.placement.rules.volumes.nodevolumelimits import AttachedVolumes, NodeVolumeLimits
from numalign.placement.rules.volumes.volumebinding import VolumeBinding
from numalign.placement.rules.volumes.volumerestrictions import VolumeRestrictions, VolumeUsers
from numalign.placement.rules.volumes.volumestock import Shelf, VolumeStock
from numalign.placement.rules.volumes.volumezone import VolumeZone
from numalign.scheduler import settings
from numalign.scheduler.profiles import Profile, Scored
from numalign.scheduler.queue.wakeups import PREEMPTION
from numalign.scheduler.settings import NumalignArgs

LEFT_ALONE: Final = Refusal(
    ("pod uses resource claims, which this scheduler does not allocate; name another scheduler for it",),
    unresolvable=True,
)
BACKED: Final = (
    "pod asks for {resource}, which DeviceClass {name} stands for and this scheduler does not allocate; "
    "name another scheduler for it"
)


def shelf() -> Shelf[DeviceClass]:
    """The cluster's classes, by the resource that each stands for."""
    return Shelf(resource=lambda each: each.spec.extended_resource_name)


class DynamicResources:
    name: Final = "DynamicResources"

    def __init__(self, classes: Shelf[DeviceClass] | None = None) -> None:
        self._classes = shelf() if classes is None else classes

    def concerns(self, pod: Pod) -> bool:
        return self._refusal(pod) is not None

    @property
    def surroundings(self) -> int:
        return self._classes.generation

    def prepare(self, pod: Pod, world: ClusterState) -> Refusal | None:
        return self._refusal(pod)

    def filter(self, prepared: Coded) -> Codes:
        return np.zeros(len(prepared.codes), np.int32)

    def filter_row(self, prepared: Coded, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        return FITS

    def _refusal(self, pod: Pod) -> Refusal | None:
        if pod.spec.resource_claims:
            return LEFT_ALONE
        if not self._classes.generation:
            # Most clusters have no class, and a pod of a new shape may ask for several devices.
            return None
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            for resource, amount in container.resources.requests.items():
                # Nearly all are CPU and memory; only names with a slash can be extended resources.
                backing = self._backing(resource) if "/" in resource and amount.nanos else ""
                if backing:
                    return Refusal((BACKED.format(resource=resource, name=backing),), unresolvable=True)
        return None

    def _backing(self, resource: str) -> str:
        """The class that stands for the resource; empty: none."""
        found = next(iter(self._classes.among("resource", resource)), None)
        if found is not None:
            return found.metadata.name
        implied = self._classes.get(resource.removeprefix(IMPLICIT)) if resource.startswith(IMPLICIT) else None
        return implied.metadata.name if implied is not None else ""


class TrackedBudget(Struct, frozen=True):
    budget: PodDisruptionBudget
    selector: Matcher

    def covers(self, pod: Pod) -> bool:
        """A budget with an empty selector covers no pod, and a pod without labels is not covered."""
        labels = pod.metadata.labels
        return bool(labels) and not self.selector.is_empty and self.selector.matches(labels)


class Budgets:
    def __init__(self) -> None:
        self._kept: defaultdict[str, dict[str, TrackedBudget]] = defaultdict(dict)
        """By namespace and name."""
        self.selections = 0
        """Raised whenever other pods are covered than before."""
        self.generation = 0
        """Raised with every change."""

    def put(self, budget: PodDisruptionBudget) -> None:
        meta = budget.metadata
        before = self._kept[meta.namespace].get(meta.name)
        kept = TrackedBudget(budget, Matcher(budget.spec.selector))
        self._kept[meta.namespace][meta.name] = kept
        self._changed(before is None or before.selector != kept.selector)

    def drop(self, namespace: str, name: str) -> None:
        if self._kept[namespace].pop(name, None) is not None:
            self._changed(True)

    def cover(self, pods: Iterable[Pod]) -> bool:
        """Whether any budget speaks for any of them."""
        return any(True for pod in pods for _ in self._covering(pod))

    def names_for(self, pod: Pod) -> tuple[str, ...]:
        """The budgets that speak for the pod, as namespace/name."""
        return tuple(kept.budget.metadata.full_name for kept in self._covering(pod))

    def violated_by(self, pods: Iterable[Pod]) -> set[str]:
        """By uid, those whose end goes beyond a budget, if all of them ended, one after the other."""
        left: dict[tuple[str, str], int] = {}
        found: set[str] = set()
        for pod in pods:
            for kept in self._covering(pod):
                meta, status = kept.budget.metadata, kept.budget.status
                if pod.metadata.name in status.disrupted_pods:
                    continue
                key = meta.namespace, meta.name
                left[key] = left.get(key, status.disruptions_allowed) - 1
                if left[key] < 0:
                    found.add(pod.metadata.uid)
                    # Further budgets of a pod that is counted already are left as they are, as stock does.
                    break
        return found

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def _covering(self, pod: Pod) -> Iterator[TrackedBudget]:
        return (kept for kept in self._kept.get(pod.metadata.namespace, {}).values() if kept.covers(pod))

    def _changed(self, selects_otherwise: bool) -> None:
        self.generation += 1
        self.selections += selects_otherwise


ALL = 100
T = TypeVar("T", bound=Wire)
Args = Mapping[str, Wire]


class Plugins:
    def __init__(self, world: ClusterState) -> None:
        self.world = world
        self.namespaces = Namespaces()
        self.owners = Owners()
        self.volumes = VolumeStock()
        self.device_classes = shelf()
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
            filters=(*(made[name] for name in _filtering(config) if name in made), *self._reports(config)),
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

    def _reports(self, config: configuration.Profile) -> Iterator[AwaitedNodesFilter]:
        """The filters for nodes of which too little is known; without a report, all pods may be allowed there."""
        if not settings.looks_at_zones(config):
            return
        yield AnsweringKubelets(self.world.kubelets_away)
        own = _of(config.args, NUMALIGN, NumalignArgs)
        if own.nodes_without_report != "allow":
            yield TopologyReports(self.world.unreported, own.nodes_without_report, own.first_report_grace_period)

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
