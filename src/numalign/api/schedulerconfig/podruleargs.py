"""Settings of the stock scheduler's plugins that look at pods and volumes, as a scheduler profile writes them.

Named and defaulted like the v1 configuration's kinds, so that a profile's pluginConfig decodes into them; the rules in
`placement` take them as they are. Limits on their values are the configuration's to check.
"""

from typing import Final

from numalign.api.decode.structs import Int32, Int64, Wire
from numalign.api.objects.affinity import TopologySpreadConstraint
from numalign.api.schedulerconfig.ruleargs import UtilizationShapePoint

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
