"""Pods to load a node with, drawn by the seed of its name: more of them than fit, and the same for every scheduler."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from numalign.kubelet.machine.machine import Machine
from numalign.lab.spec import NodeSpec
from tests.lab import fleet
from tests.lab.fleet import HUGEPAGES, Kind

PODS = 20
GIB = 1 << 30

Body = dict[str, Any]


def load(node: NodeSpec, scheduler: str) -> Iterator[Body]:
    chances = random.Random(node.name)
    kind = fleet.KINDS[fleet.kind_of(node.name)]
    selected = {"nodeSelector": {"kubernetes.io/hostname": node.name}, "schedulerName": scheduler}
    for number in range(PODS):
        spec = _spec(kind, chances) | selected
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{node.name}-{number}"}, "spec": spec}


def _spec(kind: Kind, chances: random.Random) -> Body:
    containers = [_container("main", kind, chances)]
    if chances.random() < 0.3:
        containers.append(_container("beside", kind, chances))
    inits = _inits(kind, chances) if kind.inits and chances.random() < 0.5 else []
    return {"containers": containers, "initContainers": inits, "terminationGracePeriodSeconds": 0}


def _inits(kind: Kind, chances: random.Random) -> list[Body]:
    """One that ends, one that stays beside the others, or both in either order."""
    ends, stays = (_container(name, kind, chances) for name in ("before", "sidecar"))
    stays["restartPolicy"] = "Always"
    return chances.choice([[ends], [stays], [ends, stays], [stays, ends]])


def _container(name: str, kind: Kind, chances: random.Random) -> Body:
    amounts = _amounts(kind, chances)
    return {"name": name, "image": "none", "resources": {"requests": amounts, "limits": amounts}}


def _amounts(kind: Kind, chances: random.Random) -> Mapping[str, str]:
    times = 3 if kind.wide and chances.random() < 0.2 else 1
    memory = min(zone.memory for zone in kind.machine.zones) // GIB // 3
    cpus = times * _cpus(kind.machine, chances) + (kind.halves and chances.random() < 0.2)
    found = {"cpu": cpus, "memory": f"{times * chances.randint(1, min(memory, 8))}Gi"}
    for resource in kind.extras:
        amount = f"{64 * chances.randint(1, 6)}Mi" if resource == HUGEPAGES else 1
        found |= {resource: amount} if chances.random() < 0.4 else {}
    return {resource: str(amount) for resource, amount in found.items()}


def _cpus(machine: Machine, chances: random.Random) -> int:
    """Of whole cores, which may have two threads; half a zone at most."""
    core = max(len(core.cpus) for zone in machine.zones for core in zone.cores)
    most = min(len(zone.cores) for zone in machine.zones) // 2
    return core * chances.randint(1, most)
