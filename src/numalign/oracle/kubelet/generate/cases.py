"""Generates kubelet cases of every family from a seed and a number: merges and sequences here, the others in
`managers`.

`sources` passes `draw` to campaigns. The weights favour edge cases: gaps in zone ids, zones without CPUs, uneven zones,
full nodes, odd amounts, combined options."""

from collections.abc import Mapping
from itertools import combinations
from math import ceil, prod
from random import Random
from typing import Any, Final

import msgspec

from numalign.api.decode import cpuset
from numalign.kubelet.versions import Minor
from numalign.oracle.harness.divergence import Case
from numalign.oracle.harness.draws import chance, cut, some, weighted
from numalign.oracle.kubelet.forms import Topology
from numalign.oracle.kubelet.generate import machines, managers


def sequence_case(rng: Random, name: str, topology: Topology, *, pod_level: bool = False) -> dict[str, object]:
    zones = [node.id for node in topology.numa]
    nodes = managers.memory_nodes(rng, zones)
    config = _config(rng, topology, pod_level=pod_level)
    plugins = managers.plugins(rng, zones, always_preferring=True) if chance(rng, 0.5) else {}
    # The real merge multiplies all lists, so large machines get fewer resources.
    if len(zones) > 4:
        plugins = {}
    sizes = managers.page_sizes(nodes) if len(zones) <= 4 else ()
    wishes = managers.RequestLimits(
        cpus=max(1, topology.num_cpus * 2 // 3),
        memory=int(str(nodes[0]["memory"])),
        hugepages=sizes,
        devices=tuple(plugins),
    )
    return {
        "id": name,
        "topology": topology.name,
        "config": config,
        "memory_nodes": nodes,
        "devices": plugins,
        "ops": _ops(rng, wishes, share=0.6 if pod_level else 0.05),
    }


def _config(rng: Random, topology: Topology, *, pod_level: bool) -> dict[str, object]:
    policy = weighted(rng, {"none": 1.5, "best-effort": 4, "restricted": 3, "single-numa-node": 3})
    options = managers.cpu_options(rng)
    every = [cpu for node in topology.numa for core in node.cores for cpu in core.cpus]
    milli = min(rng.choice((1000, 1500, 2000, 2500)), 1000 * max(1, len(every) - 1))
    explicit = cpuset.text(cpuset.of(rng.sample(every, ceil(milli / 1000)))) if chance(rng, 0.5) else ""
    tm_options = {"prefer-closest-numa-nodes": "true"} if policy != "none" and chance(rng, 0.2) else {}
    return {
        "tm_policy": policy,
        "tm_scope": rng.choice(("container", "pod")),
        "tm_options": tm_options,
        "cpu_policy": weighted(rng, {"static": 9, "none": 1}),
        "cpu_options": options,
        "reserved_cpus": explicit,
        "reserved_cpu_milli": milli,
        "memory_policy": weighted(rng, {"Static": 6, "None": 4}),
        "reserved_memory": _reserved_memory(rng, topology),
        "gate_pod_level_resource_managers": pod_level,
    }


def _reserved_memory(rng: Random, topology: Topology) -> list[dict[str, object]]:
    parts = cut(rng, rng.randint(1, 10), len(topology.numa))
    return [
        {"numa": node.id, "limits": {"memory": part * 100 * managers.MIB}}
        for node, part in zip(topology.numa, parts, strict=True)
        if part
    ]


def _ops(rng: Random, wishes: managers.RequestLimits, *, share: float) -> list[dict[str, object]]:
    ops: list[dict[str, object]] = []
    alive: list[str] = []
    for number in range(rng.randint(2, 12)):
        uid = f"p{number:02}"
        ops.append({"op": "admit", "pod": managers.generated_pod(rng, uid, wishes, pod_level=share)})
        alive.append(uid)
        if chance(rng, 0.3):
            ops.append({"op": "start", "uid": uid})
        for gone in some(rng, alive, 0.08):
            alive.remove(gone)
            ops.append({"op": "remove", "uid": gone})
        if chance(rng, 0.05):
            ops.append({"op": "restart"})
    return ops


PERMUTATIONS: Final = {300: 10, 3_000: 5, 30_000: 1, 300_000: 0.05}
"""The size of the product of all lists, and how often. Small products already contain every combination of lists; the
large ones check that size changes nothing."""

Hint = dict[str, object]
HintMap = dict[str, list[Hint] | None]


def merge_case(rng: Random, name: str) -> dict[str, object]:
    count = weighted(rng, {1: 1, 2: 4, 3: 2, 4: 4, 5: 1, 6: 1, 7: 1, 8: 3})
    zones = machines.zone_ids(rng, count)
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


WEIGHTS: Final[Mapping[str, float]] = {
    "tm_merge": 45,
    "cpu_static": 33,
    "cpu_distribute": 5,
    "mem_static": 5,
    "device_hints": 7,
    "sequence": 5,
    "sequence_podlevel": 1,
}
"""How often each family is drawn. Most are cheap; sequences of whole nodes are slower."""

POD_LEVEL_SINCE: Final = Minor(1, 36)


def families(minor: Minor) -> Mapping[str, float]:
    """The families that a kubelet of this minor can answer."""
    if minor >= POD_LEVEL_SINCE:
        return WEIGHTS
    return {name: weight for name, weight in WEIGHTS.items() if name != "sequence_podlevel"}


def draw(seed: int, number: int, minor: Minor) -> tuple[str, Case]:
    """The family and the case with this number."""
    rng = Random(f"{seed}/{number}")
    weights = families(minor)
    family = rng.choices(list(weights), list(weights.values()))[0]
    return family, make(rng, family, f"{PREFIXES[family]}{seed}-{number}")


def make(rng: Random, family: str, name: str) -> Case:
    match family:
        case "tm_merge":
            return merge_case(rng, name)
        case "mem_static":
            return managers.memory_case(rng, name)
        case "device_hints":
            return managers.device_case(rng, name)
        case "cpu_static":
            return _on_a_machine(rng, lambda machine: managers.cpu_case(rng, name, machine))
        case "cpu_distribute":
            return _on_a_machine(rng, lambda machine: managers.distributed_cpu_case(rng, name, machine))
        case _:
            pod_level = family == "sequence_podlevel"
            return _on_a_machine(rng, lambda machine: sequence_case(rng, name, machine, pod_level=pod_level), most=6)


# Id prefixes distinguish families with the same schema.
PREFIXES: Final[Mapping[str, str]] = {
    "tm_merge": "merge-",
    "cpu_static": "cpu-",
    "cpu_distribute": "cpud-",
    "mem_static": "mem-",
    "device_hints": "dev-",
    "sequence": "seq-",
    "sequence_podlevel": "seqpl-",
}


def _on_a_machine(rng: Random, made_for: Any, most: int = machines.MAX_ZONES) -> Case:
    described = machines.topology(rng, "made-up", most_zones=most)
    case: Case = made_for(msgspec.convert(described, Topology))
    return {**case, "topology": described}
