"""The vocabulary of generated objects, so that selectors match labels and claims match volumes.

Selectors are drawn over the same labels that objects have. A small vocabulary makes matches and near misses common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from numalign.oracle.generate.draws import chance, some, weighted

Object = dict[str, Any]

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION: Final = "failure-domain.beta.kubernetes.io/region"
ZONES: Final = ("us-east1-a", "us-east1-b", "us-east1-c")
"""In the form that translations of in-tree volumes expect."""
REGIONS: Final = ("r1", "r2")

NAMESPACES: Final = ("default", "team-a", "team-b")
UNKNOWN_NAMESPACE: Final = "unknown"
"""A namespace with pods but without a Namespace object."""

POD_LABELS: Final[Mapping[str, Sequence[str]]] = {
    "app": ("web", "db", "cache"),
    "tier": ("front", "back"),
    "version": ("v1", "v2"),
}
NAMESPACE_LABELS: Final[Mapping[str, Sequence[str]]] = {"team": ("a", "b"), "env": ("prod", "test")}
SPREAD_KEYS: Final[Mapping[str, float]] = {HOSTNAME: 4.0, ZONE: 5.0, REGION: 1.0, "rack": 1.0, "nowhere": 0.1}


def labels(rng: Random, words: Mapping[str, Sequence[str]], share: float) -> dict[str, str]:
    return {key: rng.choice(values) for key, values in words.items() if chance(rng, share)}


def selector(rng: Random, words: Mapping[str, Sequence[str]]) -> Object:
    """Mostly by labels, sometimes by expressions, rarely one that matches everything."""
    style = weighted(rng, {"labels": 6.0, "expressions": 3.0, "both": 0.7, "everything": 0.6})
    made: Object = {}
    if style in ("labels", "both"):
        made["matchLabels"] = labels(rng, words, 0.5) or one_label(rng, words)
    if style in ("expressions", "both"):
        keys = some(rng, list(words), 0.5) or [rng.choice(list(words))]
        made["matchExpressions"] = [expression(rng, key, words[key]) for key in keys]
    return made


def one_label(rng: Random, words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    key = rng.choice(list(words))
    return {key: rng.choice(words[key])}


def expression(rng: Random, key: str, values: Sequence[str]) -> Object:
    operator = weighted(rng, {"In": 4.0, "NotIn": 2.0, "Exists": 1.0, "DoesNotExist": 1.0})
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": some(rng, values, 0.5) or [rng.choice(values)]}
