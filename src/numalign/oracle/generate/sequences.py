"""Generates sequences: a node with all managers, with admissions, removals, container starts and kubelet restarts."""

from __future__ import annotations

from math import ceil
from random import Random

from numalign.api.attributes import cpuset
from numalign.oracle.families.hardware import Topology
from numalign.oracle.generate import cpus, devices, memory, pods
from numalign.oracle.generate.draws import chance, cut, some, weighted

MIB = 1 << 20


def case(rng: Random, name: str, topology: Topology, *, pod_level: bool = False) -> dict[str, object]:
    zones = [node.id for node in topology.numa]
    nodes = memory.memory_nodes(rng, zones)
    config = _config(rng, topology, pod_level=pod_level)
    plugins = devices.plugins(rng, zones, always_preferring=True) if chance(rng, 0.5) else {}
    # The real merge multiplies all lists, so large machines get fewer resources.
    if len(zones) > 4:
        plugins = {}
    sizes = memory.page_sizes(nodes) if len(zones) <= 4 else ()
    wishes = pods.Wishes(
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
    options = cpus.cpu_options(rng)
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
        {"numa": node.id, "limits": {"memory": part * 100 * MIB}}
        for node, part in zip(topology.numa, parts, strict=True)
        if part
    ]


def _ops(rng: Random, wishes: pods.Wishes, *, share: float) -> list[dict[str, object]]:
    ops: list[dict[str, object]] = []
    alive: list[str] = []
    for number in range(rng.randint(2, 12)):
        uid = f"p{number:02}"
        ops.append({"op": "admit", "pod": pods.pod(rng, uid, wishes, pod_level=share)})
        alive.append(uid)
        if chance(rng, 0.3):
            ops.append({"op": "start", "uid": uid})
        for gone in some(rng, alive, 0.08):
            alive.remove(gone)
            ops.append({"op": "remove", "uid": gone})
        if chance(rng, 0.05):
            ops.append({"op": "restart"})
    return ops
