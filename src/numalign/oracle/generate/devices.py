"""Generates device manager cases: devices in one zone, in several, in none, healthy and unhealthy."""

from __future__ import annotations

from random import Random

from numalign.oracle.generate import pods, topologies
from numalign.oracle.generate.draws import chance, weighted
from numalign.oracle.generate.memory import container_names

NAMES = ("vendor.com/a", "vendor.com/b")


def case(rng: Random, name: str) -> dict[str, object]:
    zones = topologies.zone_ids(rng, weighted(rng, {1: 1, 2: 5, 3: 2, 4: 4, 6: 1, 8: 1}))
    resources = plugins(rng, zones)
    wishes = pods.Wishes(cpus=2, memory=1 << 30, devices=tuple(resources))
    listed = [pods.pod(rng, f"p{n}", wishes) for n in range(rng.randint(1, 5))]
    ops: list[dict[str, object]] = []
    for pod in listed:
        ops.append({"op": "pod_hints", "pod": pod["uid"]})
        for container in container_names(pod):
            ops.append({"op": "hints", "pod": pod["uid"], "container": container})
            ops.append({"op": "allocate", "pod": pod["uid"], "container": container, "affinity": _affinity(rng, zones)})
        if chance(rng, 0.25):
            ops.append({"op": "remove_pod", "pod": rng.choice(listed[: listed.index(pod) + 1])["uid"]})
    return {"id": name, "numa_nodes": zones, "resources": resources, "pods": listed, "ops": ops}


def plugins(rng: Random, zones: list[int], *, always_preferring: bool = False) -> dict[str, object]:
    return {
        resource: {
            "preferred_allocation": always_preferring or chance(rng, 0.9),
            "devices": [_device(rng, zones, f"{resource[-1]}{n:02}", style) for n in range(rng.randint(1, 10))],
        }
        for resource in NAMES[: weighted(rng, {1: 3, 2: 2})]
        for style in [weighted(rng, {"one": 6.0, "several": 2.0, "none": 1.0, "mixed": 2.0})]
    }


def _device(rng: Random, zones: list[int], name: str, style: str) -> dict[str, object]:
    return {"id": name, "healthy": chance(rng, 0.93), "numa": _zones(rng, zones, style)}


def _zones(rng: Random, zones: list[int], style: str) -> list[int] | None:
    if style == "none" or (style == "mixed" and chance(rng, 0.3)):
        return None if chance(rng, 0.8) else []
    if style == "several" or (style == "mixed" and chance(rng, 0.3)):
        return sorted(rng.sample(zones, rng.randint(1, min(3, len(zones)))))
    return [rng.choice(zones)]


def _affinity(rng: Random, zones: list[int]) -> dict[str, object]:
    if chance(rng, 0.25):
        return {"mask": None, "preferred": chance(rng, 0.5)}
    return {"mask": sorted(rng.sample(zones, rng.randint(1, min(3, len(zones))))), "preferred": chance(rng, 0.6)}
