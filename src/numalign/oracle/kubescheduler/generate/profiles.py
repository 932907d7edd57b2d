"""Generates scheduler profiles: the default plugins with other settings."""

from __future__ import annotations

from random import Random
from typing import Final

from numalign.oracle.generate.draws import chance, some
from numalign.oracle.kubescheduler.generate import affinities, nodes, words
from numalign.oracle.kubescheduler.generate.words import Object

SHAPE: Final = ((0, 0), (30, 4), (70, 9), (100, 10))
RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", nodes.GPU, "hugepages-2Mi")


def profile(rng: Random, names: list[str]) -> Object | None:
    """None is the default profile."""
    drawn = {
        "NodeResourcesFit": _fit(rng),
        "NodeResourcesBalancedAllocation": {"resources": _resources(rng, weighted=False)},
        "NodeAffinity": {"addedAffinity": affinities.node_affinity(rng, names) or None},
        "PodTopologySpread": _spread(rng),
        "InterPodAffinity": _pod_affinity(rng),
        "VolumeBinding": {"shape": _shape(rng)},
    }
    chosen = {name: args for name, args in drawn.items() if chance(rng, 0.25)}
    if not chosen:
        return None
    return {"pluginConfig": [{"name": name, "args": _typed(name, args)} for name, args in chosen.items()]}


def _typed(name: str, args: Object) -> Object:
    given = {key: value for key, value in args.items() if value is not None}
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{name}Args", **given}


def _fit(rng: Random) -> Object:
    kind = rng.choice(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
    strategy: Object = {"type": kind, "resources": _resources(rng, weighted=True)}
    if kind == "RequestedToCapacityRatio":
        strategy["requestedToCapacityRatio"] = {"shape": _shape(rng)}
    made: Object = {"scoringStrategy": strategy}
    if chance(rng, 0.3):
        made["ignoredResources"] = [nodes.NIC]
    if chance(rng, 0.2):
        made["ignoredResourceGroups"] = ["vendor.com"]
    return made


def _resources(rng: Random, *, weighted: bool) -> list[Object]:
    picked = some(rng, RESOURCES, 0.5) or ["cpu"]
    return [{"name": name, "weight": rng.choice((1, 2, 3, 7, 100)) if weighted else 1} for name in picked]


def _shape(rng: Random) -> list[Object]:
    points = some(rng, SHAPE, 0.6) or [SHAPE[-1]]
    scores = [score for _, score in points]
    if chance(rng, 0.5):
        scores = [10 - score for score in scores]
    return [{"utilization": point, "score": score} for (point, _), score in zip(points, scores, strict=True)]


def _spread(rng: Random) -> Object:
    keys = some(rng, list(words.SPREAD_KEYS), 0.4)
    constraints = [
        {
            "maxSkew": rng.choice((1, 2, 5)),
            "topologyKey": key,
            "whenUnsatisfiable": rng.choice(("ScheduleAnyway", "DoNotSchedule")),
        }
        for key in keys
    ]
    return {"defaultingType": "List", "defaultConstraints": constraints}


def _pod_affinity(rng: Random) -> Object:
    return {
        "hardPodAffinityWeight": rng.choice((0, 1, 10, 100)),
        "ignorePreferredTermsOfExistingPods": chance(rng, 0.3),
    }
