"""Generates merge cases: hint lists as providers return them, and lists that no provider returns."""

from __future__ import annotations

from itertools import combinations
from math import prod
from random import Random
from typing import Final

from numalign.oracle.generate import topologies
from numalign.oracle.generate.draws import chance, weighted

POLICIES: Final = ("none", "best-effort", "restricted", "single-numa-node")

PERMUTATIONS: Final = {300: 10, 3_000: 5, 30_000: 1, 300_000: 0.05}
"""The size of the product of all lists, and how often. Small products already contain every combination of lists; the
large ones check that size changes nothing."""

Hint = dict[str, object]
HintMap = dict[str, list[Hint] | None]


def case(rng: Random, name: str) -> dict[str, object]:
    count = weighted(rng, {1: 1, 2: 4, 3: 2, 4: 4, 5: 1, 6: 1, 7: 1, 8: 3})
    zones = topologies.zone_ids(rng, count)
    policy = weighted(rng, {"none": 0.3, "best-effort": 4, "restricted": 3, "single-numa-node": 2})
    closest = policy in ("best-effort", "restricted") and chance(rng, 0.35)
    return {
        "id": name,
        "policy": policy,
        "prefer_closest": closest,
        "numa_nodes": zones,
        "distances": _distances(rng, zones[-1] + 1) if closest else None,
        "providers": _providers(rng, zones, weighted(rng, PERMUTATIONS)),
    }


def _distances(rng: Random, width: int) -> list[list[int]]:
    symmetric = chance(rng, 0.7)
    rows = [[10 if a == b else rng.randint(11, 32) for b in range(width)] for a in range(width)]
    return [[rows[min(a, b)][max(a, b)] if symmetric else rows[a][b] for b in range(width)] for a in range(width)]


def _providers(rng: Random, zones: list[int], most: int) -> list[HintMap | None]:
    providers: list[HintMap | None] = []
    sizes: list[int] = []
    for number in range(weighted(rng, {0: 0.3, 1: 2, 2: 4, 3: 5, 4: 1})):
        if chance(rng, 0.1):
            providers.append(None if chance(rng, 0.5) else {})
            continue
        resources: HintMap = {}
        for kind in range(weighted(rng, {1: 6, 2: 2, 3: 1})):
            hints = _hints(rng, zones)
            if hints is not None:
                hints = _some(rng, hints, max(1, most // max(1, prod(sizes))))
                sizes.append(max(1, len(hints)))
            resources[f"r{number}-{kind}"] = hints
        providers.append(resources)
    return providers


def _some(rng: Random, hints: list[Hint], room: int) -> list[Hint]:
    """As many of the hints as fit, in order."""
    kept = sorted(rng.sample(range(len(hints)), min(room, len(hints))))
    return [hints[place] for place in kept]


def _hints(rng: Random, zones: list[int]) -> list[Hint] | None:
    if chance(rng, 0.05):
        return None
    if chance(rng, 0.05):
        return []
    return _as_managers_do(rng, zones) if chance(rng, 0.75) else _at_random(rng, zones)


def _as_managers_do(rng: Random, zones: list[int]) -> list[Hint]:
    """Masks with enough free amount, preferred if they have the minimum number of zones on an empty machine."""
    domain = zones if chance(rng, 0.7) else sorted(rng.sample(zones, rng.randint(1, len(zones))))
    size = {zone: rng.choice((4, 8, 8, 8, 16)) for zone in domain}
    free = {zone: rng.randint(0, size[zone]) for zone in domain}
    need = rng.randint(1, max(1, sum(size.values()) // rng.choice((1, 2, 4))))
    masks = [list(mask) for n in range(1, len(domain) + 1) for mask in combinations(domain, n)]
    smallest = min((len(mask) for mask in masks if sum(size[z] for z in mask) >= need), default=len(domain))
    fitting = [mask for mask in masks if sum(free[z] for z in mask) >= need]
    return [{"mask": mask, "preferred": len(mask) == smallest} for mask in fitting]


def _at_random(rng: Random, zones: list[int]) -> list[Hint]:
    hints: list[Hint] = []
    for _ in range(rng.randint(1, 8)):
        mask = None if chance(rng, 0.1) else sorted(rng.sample(zones, rng.randint(1, len(zones))))
        hints.append({"mask": mask, "preferred": chance(rng, 0.5)})
    return hints
