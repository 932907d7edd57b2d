"""Generates memory manager cases: zones with memory and huge pages, and pods allocated under hints."""

from __future__ import annotations

from random import Random

from numalign.oracle.generate import pods, topologies
from numalign.oracle.generate.draws import chance, cut, weighted

GIB, MIB = 1 << 30, 1 << 20
PAGE_SIZES = {2048: "hugepages-2Mi", 1048576: "hugepages-1Gi"}


def case(rng: Random, name: str) -> dict[str, object]:
    zones = topologies.zone_ids(rng, weighted(rng, {1: 1, 2: 5, 3: 2, 4: 4, 5: 1, 6: 1}))
    nodes = memory_nodes(rng, zones)
    sizes = page_sizes(nodes)
    wishes = pods.Wishes(cpus=2, memory=_typical(rng, nodes), hugepages=sizes)
    listed = [pods.pod(rng, f"p{n}", wishes) for n in range(rng.randint(1, 5))]
    return {
        "id": name,
        "nodes": nodes,
        "reserved": {str(z): {"memory": part} for z, part in zip(zones, _parts(rng, len(zones)), strict=True)},
        "pods": listed,
        "ops": _ops(rng, listed, zones),
    }


def memory_nodes(rng: Random, zones: list[int]) -> list[dict[str, object]]:
    sizes = [size for size in PAGE_SIZES if chance(rng, 0.4)]
    even = rng.choice((8, 16, 24, 32)) * GIB
    uneven = chance(rng, 0.25)
    return [
        {
            "id": zone,
            "memory": even + rng.randint(0, 8) * GIB if uneven else even,
            "hugepages": [{"page_size_kb": size, "num_pages": _pages(rng, size)} for size in sizes],
        }
        for zone in zones
    ]


def page_sizes(nodes: list[dict[str, object]]) -> tuple[str, ...]:
    pages = nodes[0]["hugepages"]
    return tuple(PAGE_SIZES[page["page_size_kb"]] for page in pages) if isinstance(pages, list) else ()


def _pages(rng: Random, size: int) -> int:
    return rng.randint(0, 4) if size > 2048 else rng.randint(0, 400)


def _parts(rng: Random, zones: int) -> list[int]:
    parts = cut(rng, rng.randint(1, 10), zones)
    return [part * 100 * MIB for part in parts]


def _typical(rng: Random, nodes: list[dict[str, object]]) -> int:
    return int(str(nodes[0]["memory"])) * rng.choice((1, 1, 2))


def _ops(rng: Random, listed: list[dict[str, object]], zones: list[int]) -> list[dict[str, object]]:
    """Hints and allocation per container, with removals in between. The runner removes a pod that fails."""
    ops: list[dict[str, object]] = []
    for pod in listed:
        ops.append({"op": "pod_hints", "pod": pod["uid"]})
        for name in container_names(pod):
            ops.append({"op": "hints", "pod": pod["uid"], "container": name})
            ops.append({"op": "allocate", "pod": pod["uid"], "container": name, "affinity": _affinity(rng, zones)})
        if chance(rng, 0.3):
            gone = rng.choice(listed[: listed.index(pod) + 1])
            ops += [{"op": "remove", "pod": gone["uid"], "container": name} for name in container_names(gone)]
    return ops


def container_names(pod: dict[str, object]) -> list[str]:
    containers = [*_listed(pod, "init"), *_listed(pod, "containers")]
    return [str(each["name"]) for each in containers]


def _listed(pod: dict[str, object], key: str) -> list[dict[str, object]]:
    value = pod.get(key, [])
    return value if isinstance(value, list) else []


def _affinity(rng: Random, zones: list[int]) -> dict[str, object]:
    if chance(rng, 0.3):
        return {"mask": None, "preferred": chance(rng, 0.5)}
    size = min(len(zones), weighted(rng, {1: 6, 2: 3, 3: 1}))
    return {"mask": sorted(rng.sample(zones, size)), "preferred": chance(rng, 0.6)}
