"""Cases with something less: questions, objects of the cluster, features of pods and nodes, amounts, settings.

What a case cannot be without stays, and questions about nodes and pods that are gone go with them, so that whatever is
dropped, the real scheduler can still be asked."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from numalign.oracle.shrinking import cuts
from numalign.oracle.shrinking.anatomy import Case

NEEDED: Final = frozenset({"questions", "nodes", "containers", "nodeSelectorTerms", "values", "resources", "shape"})
"""Lists that are never empty."""
OPEN: Final = frozenset(
    (
        *("snapshot", "labels", "annotations", "affinity", "podAffinity", "podAntiAffinity", "nodeAffinity"),
        *("requests", "allocatable", "nodeSelector", "matchLabels"),
    )
)
"""Objects any entry of which can go."""
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
"""Settings are dropped plugin by plugin only."""


def smaller(case: Case) -> Iterator[Case]:
    """The larger things gone first."""
    for place, gone in sorted(_cuts(case), key=lambda cut: len(cut[0])):
        candidate = deepcopy(case)
        del cuts.at(candidate, place)[gone]
        if "snapshot" in candidate and "nodes" in candidate["snapshot"]:
            yield _mended(candidate)


def _cuts(case: Case) -> Iterator[tuple[cuts.Place, Any]]:
    """Places, each with the items or the key that could go there."""
    for place, thing in cuts.objects(case, closed=CLOSED):
        for key, child in thing.items():
            if key in OPTIONAL or (place and place[-1] in OPEN):
                yield place, key
            if isinstance(child, list) and len(child) > (1 if key in NEEDED else 0):
                blocks = (each for each in cuts.blocks(len(child)) if _leaves(key, child, each))
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
