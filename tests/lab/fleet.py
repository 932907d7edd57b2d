"""The nodes of the shared lab: every policy and scope on a machine with everything, and machines of other shapes.

Each node has its own load: pods by the seed of its name, more of them than fit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any, get_args

from numalign.api import topologymanager
from numalign.kubelet import machinefile, presets
from numalign.kubelet.machine import Machine
from numalign.lab import spec
from numalign.lab.spec import NodeSpec

POLICIES: tuple[str, ...] = get_args(topologymanager.Policy)
SCOPES: tuple[str, ...] = get_args(topologymanager.Scope)
PLAIN, PODWISE = "plain", "podwise"
NIC, GPU = "example.com/nic", "example.com/gpu"
FULL_CORES = {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
PODS = 24

EVERYTHING = machinefile.read(
    {
        "name": "everything",
        "extends": "2x16",
        "zones": [{"id": 0, "hugepages": {"2Mi": "2Gi"}}, {"id": 1, "hugepages": {"2Mi": "2Gi"}}],
        "devices": {NIC: {0: 4, 1: 4}, GPU: {0: 1, 1: 2}},
    },
    "everything",
)
EIGHT_ZONES = machinefile.read(
    {"name": "eight", "zones": [{"cpus": f"{4 * zone}-{4 * zone + 3}", "memory": "16Gi"} for zone in range(8)]},
    "eight",
)


def nodes() -> tuple[NodeSpec, ...]:
    """Two for tests that look at single pods; the rest for loads."""
    small = presets.machine("2x16")
    podwise = aligned("restricted", "pod")
    return (spec.node(PLAIN, small), spec.node(PODWISE, small, more=podwise), *loaded())


def loaded() -> Iterator[NodeSpec]:
    for policy, scope in product(POLICIES, SCOPES):
        yield spec.node(f"all-{policy}-{scope}", EVERYTHING, more=aligned(policy, scope))
    for scope in SCOPES:
        more = aligned("single-numa-node", scope)
        yield spec.node(f"eight-zones-{scope}", EIGHT_ZONES, more=more)
        yield spec.node(f"full-cores-{scope}", presets.machine("2x32-smt"), more=more | FULL_CORES)


def aligned(policy: str, scope: str) -> dict[str, Any]:
    return {"topologyManagerPolicy": policy, "topologyManagerScope": scope}


def load(node: NodeSpec, scheduler: str) -> Iterator[dict[str, Any]]:
    """The same pods for every scheduler."""
    chances = random.Random(node.name)
    for number in range(PODS):
        body = pod(f"{node.name}-{number}", node, chances)
        body["spec"]["schedulerName"] = scheduler
        yield body


def pod(name: str, node: NodeSpec, chances: random.Random) -> dict[str, Any]:
    machine = node.machine
    inner: dict[str, Any] = {
        "nodeSelector": {"kubernetes.io/hostname": node.name},
        "terminationGracePeriodSeconds": 0,
        "containers": [container("main", machine, chances)],
    }
    if chances.random() < 0.3:
        inner["containers"].append(container("beside", machine, chances))
    if chances.random() < 0.3:
        inner["initContainers"] = [container("before", machine, chances)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": inner}


def container(name: str, machine: Machine, chances: random.Random) -> dict[str, Any]:
    amounts: dict[str, str] = {"cpu": str(_cpus(machine, chances)), "memory": f"{chances.randint(1, 6)}Gi"}
    if machine is EVERYTHING:
        extras = {NIC: "1", GPU: "1", "hugepages-2Mi": f"{64 * chances.randint(1, 6)}Mi"}
        amounts |= {resource: amount for resource, amount in extras.items() if chances.random() < 0.3}
    return {"name": name, "image": "none", "resources": {"requests": amounts, "limits": amounts}}


def _cpus(machine: Machine, chances: random.Random) -> int:
    """In whole cores, where a core has two threads."""
    core = max(len(core.cpus) for zone in machine.zones for core in zone.cores)
    most = min(len(zone.cores) for zone in machine.zones) // 2
    return core * chances.randint(1, most)
