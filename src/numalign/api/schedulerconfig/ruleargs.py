"""Settings of the stock scheduler's plugins that look at one node at a time, as a scheduler profile writes them.

Named and defaulted like the v1 configuration's kinds, so that a profile's pluginConfig decodes into them; the rules in
`placement` take them as they are. Limits on their values are the configuration's to check.
"""

from typing import Final

from numalign.api.decode.structs import Int32, Int64, Wire
from numalign.api.objects.affinity import NodeAffinity
from numalign.api.objects.resourcenames import CPU, MEMORY

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
