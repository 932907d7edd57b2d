"""The known plugins: their extension points, and which run by default.

`configuration` combines them with a profile's lists. Order and weights are kube-scheduler's (kube-scheduler spec 1.1);
the zone plugin comes last, as in configurations of the Go plugin."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Point(StrEnum):
    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"
    PLACEMENT_GENERATE = "placementGenerate"
    PLACEMENT_SCORE = "placementScore"
    POD_GROUP_POST_FILTER = "podGroupPostFilter"


MULTI_POINT: Final = "multiPoint"
ZONES: Final = "NodeResourceTopologyMatch"
NUMALIGN: Final = "Numalign"
"""Not a plugin: the name of numalign's own arguments in a profile."""

_BEFORE_FILTER: Final = (Point.PRE_FILTER, Point.FILTER)
_BEFORE_SCORE: Final = (Point.PRE_SCORE, Point.SCORE)

POINTS: Final[Mapping[str, tuple[Point, ...]]] = {
    "SchedulingGates": (Point.PRE_ENQUEUE,),
    "PrioritySort": (Point.QUEUE_SORT,),
    "NodeName": _BEFORE_FILTER,
    "NodeUnschedulable": (Point.FILTER,),
    "TaintToleration": (Point.FILTER, *_BEFORE_SCORE),
    "NodeAffinity": (*_BEFORE_FILTER, *_BEFORE_SCORE),
    "NodePorts": _BEFORE_FILTER,
    "NodeResourcesFit": (*_BEFORE_FILTER, *_BEFORE_SCORE),
    "VolumeRestrictions": _BEFORE_FILTER,
    "NodeVolumeLimits": _BEFORE_FILTER,
    "VolumeBinding": (*_BEFORE_FILTER, *_BEFORE_SCORE, Point.RESERVE, Point.PRE_BIND),
    "VolumeZone": _BEFORE_FILTER,
    "PodTopologySpread": (*_BEFORE_FILTER, *_BEFORE_SCORE),
    "InterPodAffinity": (*_BEFORE_FILTER, *_BEFORE_SCORE),
    "DynamicResources": (
        Point.PRE_ENQUEUE,
        *_BEFORE_FILTER,
        Point.POST_FILTER,
        *_BEFORE_SCORE,
        Point.RESERVE,
        Point.PRE_BIND,
    ),
    "DefaultPreemption": (Point.PRE_ENQUEUE, Point.POST_FILTER),
    "NodeResourcesBalancedAllocation": _BEFORE_SCORE,
    "ImageLocality": (Point.SCORE,),
    "DefaultBinder": (Point.BIND,),
    "NodeDeclaredFeatures": _BEFORE_FILTER,
    ZONES: (*_BEFORE_FILTER, Point.SCORE, Point.RESERVE, Point.POST_BIND),
}
"""By plugin, in the order in which they run."""

REMOVED: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Removed plugins: their volumes are CSI volumes now. kube-scheduler refuses the names, too."""


class Plugin(Struct, frozen=True):
    name: str
    weight: int = 0
    """0: unset, which counts as 1."""


_WEIGHTS: Final = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}

DEFAULTS: Final = tuple(Plugin(name, _WEIGHTS.get(name, 0)) for name in POINTS)
