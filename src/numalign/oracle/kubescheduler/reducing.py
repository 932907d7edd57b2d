"""Shrinks cases: questions, objects of the cluster, features of pods and nodes, amounts, settings.

Required parts stay. Questions about removed nodes and pods are removed as well, so that the real scheduler can answer
every candidate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from numalign.oracle.shrinking import generic
from numalign.oracle.shrinking.generic import Case

NEEDED: Final = frozenset({"questions", "nodes", "containers", "nodeSelectorTerms", "values", "resources", "shape"})
"""Lists that are never empty."""
OPEN: Final = frozenset(
    (
        *("snapshot", "labels", "annotations", "affinity", "podAffinity", "podAntiAffinity", "nodeAffinity"),
        *("requests", "allocatable", "nodeSelector", "matchLabels"),
    )
)
"""Objects from which any entry can be removed."""
OPTIONAL: Final = frozenset(
    (
        *("profile", "what_if", "removed", "added"),
        *("unschedulable", "taints", "images", "declaredFeatures"),
        *("initContainers", "overhead", "resources", "ports", "hostIP", "restartPolicyRules", "volumeMounts"),
        *("affinity", "nodeSelector", "tolerations", "effect", "topologySpreadConstraints", "minDomains"),
        *("matchLabelKeys", "nodeAffinityPolicy", "nodeTaintsPolicy", "namespaces", "namespaceSelector"),
        *("volumes", "ownerReferences", "deletionTimestamp", "hostNetwork", "hostUsers"),
        *("containerStatuses", "initContainerStatuses", "allocatedResources", "conditions"),
        *("allowedTopologies", "nodeTopology", "maximumVolumeSize"),
    )
)
CLOSED: Final = frozenset({"args"})
"""Settings are removed per plugin only."""


def smaller(case: Case) -> Iterator[Case]:
    """Smaller cases, larger cuts first."""
    for candidate in generic.candidates(case, _cuts(case)):
        if "snapshot" in candidate and "nodes" in candidate["snapshot"]:
            yield _mended(candidate)


def _cuts(case: Case) -> Iterator[tuple[generic.Place, Any]]:
    """Places, each with the items or the key to remove there."""
    for place, thing in generic.objects(case, closed=CLOSED):
        for key, child in thing.items():
            if key in OPTIONAL or (place and place[-1] in OPEN):
                yield place, key
            if isinstance(child, list) and len(child) > (1 if key in NEEDED else 0):
                blocks = (each for each in generic.blocks(len(child)) if _leaves(key, child, each))
                yield from (((*place, key), slice(*each)) for each in blocks)


def _leaves(key: str, items: list[Any], block: tuple[int, int]) -> bool:
    return key not in NEEDED or len(items) > block[1] - block[0]


def _mended(case: Case) -> Case:
    nodes = {each["metadata"]["name"] for each in case["snapshot"]["nodes"]}
    there = {each["metadata"]["uid"]: each["spec"].get("nodeName") for each in case["snapshot"].get("pods") or ()}
    for question in case["questions"]:
        asked = [each for each in question.pop("what_if", ()) if each["node"] in nodes]
        for each in asked:
            if removed := [uid for uid in each.pop("removed", ()) if there.get(uid) == each["node"]]:
                each["removed"] = removed
        if asked:
            question["what_if"] = asked
    return case
