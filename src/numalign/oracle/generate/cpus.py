"""Generates CPU manager cases: a machine, options, assigned CPUs, and a pod whose containers are allocated under
hints."""

from __future__ import annotations

from random import Random

from numalign.api.attributes import cpuset
from numalign.oracle.families.hardware import Topology
from numalign.oracle.generate import merges, pods
from numalign.oracle.generate.draws import chance, some, weighted

OPTIONS = {
    "full-pcpus-only": 0.35,
    "strict-cpu-reservation": 0.2,
    "prefer-align-cpus-by-uncorecache": 0.25,
    "distribute-cpus-across-numa": 0.25,
    "align-by-socket": 0.2,
    "distribute-cpus-across-cores": 0.12,
}


def case(rng: Random, name: str, topology: Topology) -> dict[str, object]:
    options = cpu_options(rng)
    made = _node(rng, name, topology, options)
    wishes = pods.Wishes(cpus=topology.num_cpus, memory=1 << 30)
    made["pod"] = pod = pods.pod(rng, "pod", wishes)
    containers = [*_containers(pod, "init"), *_containers(pod, "containers")]
    made["steps"] = [{"container": each["name"], "affinity": affinity(rng, topology)} for each in containers]
    names = [each["name"] for each in containers]
    rng.shuffle(names)
    made["removals"] = [{"container": each} for each in names]
    return made


def distributing(rng: Random, name: str, topology: Topology) -> dict[str, object]:
    """One container, distributed over zones: the code path with the most edge cases."""
    options = {"distribute-cpus-across-numa": "true"}
    options |= dict.fromkeys(some(rng, ("full-pcpus-only", "align-by-socket"), 0.4), "true")
    made = _node(rng, name, topology, options)
    need = str(rng.randint(1, max(1, topology.num_cpus - 1)))
    amounts = {"cpu": need, "memory": "100Mi"}
    container = {"name": "c0", "requests": amounts, "limits": amounts}
    made["pod"] = {"uid": "pod", "containers": [container]}
    made["steps"] = [{"container": "c0", "affinity": affinity(rng, topology)}]
    return made


def cpu_options(rng: Random) -> dict[str, str]:
    """Mostly combinations that start; sometimes a conflict, or an option set to false."""
    chosen = {option: "true" for option, share in OPTIONS.items() if chance(rng, share)}
    if "distribute-cpus-across-cores" in chosen and chance(rng, 0.8):
        kept = {"distribute-cpus-across-cores", "strict-cpu-reservation", "align-by-socket"}
        chosen = {option: text for option, text in chosen.items() if option in kept}
    if "distribute-cpus-across-numa" in chosen and chance(rng, 0.9):
        chosen.pop("prefer-align-cpus-by-uncorecache", None)
    if chosen and chance(rng, 0.04):
        chosen[rng.choice(list(chosen))] = "false"
    return chosen


def affinity(rng: Random, topology: Topology) -> dict[str, object]:
    if chance(rng, 0.3):
        return {"mask": None, "preferred": chance(rng, 0.5)}
    zones = [node.id for node in topology.numa]
    size = weighted(rng, {1: 6, 2: 2, 3: 1, 4: 1})
    mask = sorted(rng.sample(zones, min(size, len(zones))))
    return {"mask": mask, "preferred": chance(rng, 0.7)}


def _node(rng: Random, name: str, topology: Topology, options: dict[str, str]) -> dict[str, object]:
    every = cpuset.of(cpu for node in topology.numa for core in node.cores for cpu in core.cpus)
    reserved, count = _reserved(rng, topology, every)
    shared = every & ~reserved
    busy = cpuset.of(some(rng, cpuset.members(shared), rng.choice((0.0, 0.0, 0.2, 0.5, 0.8))))
    if chance(rng, 0.3):
        busy = cpuset.of(cpu for core in _cores(topology) if chance(rng, 0.4) for cpu in core) & shared
    strict = options.get("strict-cpu-reservation") == "true"
    explicit = reserved.bit_count() == count and reserved != 0
    if not explicit:
        busy = 0  # the CPUs that the policy reserves by itself are unknown here, so no assignment may overlap them
    default = every & ~busy & ~(reserved if strict and explicit else 0)
    return {
        "id": name,
        "topology": topology.name,
        "options": options,
        "tm_policy": rng.choice(merges.POLICIES),
        "num_reserved": count,
        "reserved_cpus": cpuset.text(reserved) if explicit else "",
        "default": cpuset.text(default),
        "assignments": {"pre": {"c": cpuset.text(busy)}} if busy else {},
    }


def _reserved(rng: Random, topology: Topology, every: int) -> tuple[int, int]:
    """Reserved CPUs, or only their number if the policy picks them."""
    count = min(weighted(rng, {1: 4, 2: 4, 3: 1, 4: 2}), max(1, topology.num_cpus - 1))
    if chance(rng, 0.35):
        return 0, count
    if chance(rng, 0.5):
        return cpuset.of(rng.sample(cpuset.members(every), count)), count
    core = rng.choice(_cores(topology))
    return cpuset.of(core), len(core)


def _cores(topology: Topology) -> list[tuple[int, ...]]:
    return [core.cpus for node in topology.numa for core in node.cores]


def _containers(pod: dict[str, object], key: str) -> list[dict[str, object]]:
    listed = pod.get(key, [])
    return listed if isinstance(listed, list) else []
