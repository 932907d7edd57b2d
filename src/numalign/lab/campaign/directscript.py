"""Generates a campaign on nodes in direct mode from a seed: its nodes, its pods, and the schedule of faults and rests.

`directrun` performs the steps; `script` has those of campaigns on kubelets that decide themselves. Pure. Every pod fits
on each empty node, so that none waits for ever. Containers run a program that waits, so that there are no init
containers that end."""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

from numalign.api.attributes import directspec
from numalign.kubelet.machine import machinefile
from numalign.lab import spec
from numalign.lab.campaign.script import BURSTS, Create, Delete, Fault, How, Rest
from numalign.lab.containers import images
from numalign.lab.spec import NodeSpec
from numalign.scheduler import profiles

Body = dict[str, Any]
DirectStep = Create | Delete | Fault | Rest

PAIR: Final = machinefile.read(
    {"name": "pair", "zones": [{"cpus": "0-7", "memory": "16Gi"}, {"cpus": "8-15", "memory": "16Gi"}]}, "pair"
)
QUAD: Final = machinefile.read(
    {"name": "quad", "zones": [{"cpus": f"{8 * zone}-{8 * zone + 7}", "memory": "8Gi"} for zone in range(4)]}, "quad"
)
ZONE: Final = 8
"""CPUs of a zone."""
SMALLEST: Final = 15
"""CPUs of the smaller node that may be handed out."""
LIFETIME: Final = 60.0
BURST_GAP: Final = 8.0
FAULT_GAP: Final = 9.0
ROUND: Final = 120.0
"""Seconds between rests."""
LONGEST: Final = {"agent": 20.0, "containerd": 10.0, "kubelet": 12.0, "scheduler": 10.0, "kube-apiserver": 8.0}
"""Seconds that a program of this name is stopped at most."""
WEIGHTS: Final = {"agent": 6, "containerd": 4, "kubelet": 3, "scheduler": 4, "kube-apiserver": 1}
HOWS: Final[tuple[How, ...]] = ("kill", "kill", "end", "hang")


def nodes() -> tuple[NodeSpec, ...]:
    reserved = {**spec.UNMANAGED, "reservedSystemCPUs": "0"}
    return (
        spec.node("pair", PAIR, kubelet=reserved, direct=True),
        spec.node("quad", QUAD, kubelet=reserved, direct=True),
    )


def drawn(seed: int, seconds: float, nodes: Sequence[NodeSpec]) -> tuple[DirectStep, ...]:
    """The steps of a campaign of this length, in order. It ends with a rest."""
    rests = [*(ROUND * n for n in range(1, int(seconds // ROUND) + 1) if ROUND * n < seconds - ROUND / 4), seconds]
    steps: list[DirectStep] = [*map(Rest, rests)]
    steps += _pods(random.Random(f"{seed}/pods"), seconds)
    steps += _faults(random.Random(f"{seed}/faults"), rests, [node.name for node in nodes])
    return tuple(sorted(steps, key=lambda step: step.at))


def _pods(chances: random.Random, seconds: float) -> Iterator[DirectStep]:
    at, number = 0.0, 0
    while at < seconds:
        for _ in range(chances.choice(BURSTS[:-1])):
            number += 1
            name = f"p-{number}"
            yield Create(at, name, pod(name, chances))
            gone = at + chances.expovariate(1 / LIFETIME)
            if gone < seconds:
                yield Delete(gone, name, chances.random() < 0.15)
        at += chances.expovariate(1 / BURST_GAP)


def pod(name: str, chances: random.Random) -> Body:
    """Whole CPUs in one or two containers, and sometimes a third one without CPUs of its own."""
    policy = chances.choice(("SingleNUMANode", "SingleNUMANode", "Restricted", "BestEffort", "None"))
    scope = chances.choice(("Container", "Container", "Pod"))
    most = ZONE - 1 if policy == "SingleNUMANode" else SMALLEST - ZONE
    first = chances.randint(1, most)
    second = chances.randint(1, most) if chances.random() < 0.5 else 0
    if scope == "Pod" and policy == "SingleNUMANode":
        second = min(second, most - first)
    containers = [_container(f"own-{place}", str(cpus)) for place, cpus in enumerate((first, second)) if cpus]
    asked: dict[str, Any] = {"policy": policy, "scope": scope, "strategy": chances.choice(directspec.STRATEGIES)}
    if chances.random() < 0.5:
        asked["memory"] = "Enforce"
    if chances.random() < 0.4:
        containers.append(_container("shared", "300m"))
        if chances.random() < 0.5:
            asked["containers"] = {"exclude": ["shared"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {directspec.TOPOLOGY_SPEC: json.dumps(asked)}},
        "spec": {
            "schedulerName": profiles.NAME,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": chances.choice((0, 1)),
            "containers": containers,
        },
    }


def _container(name: str, cpus: str) -> Body:
    amounts = {"cpu": cpus, "memory": "16Mi"}
    return {
        "name": name,
        "image": images.PAUSE,
        "imagePullPolicy": "Never",
        "resources": {"requests": amounts, "limits": amounts},
    }


def _faults(chances: random.Random, rests: Sequence[float], nodes: Sequence[str]) -> Iterator[Fault]:
    back: dict[str, float] = {}
    at = chances.uniform(3.0, FAULT_GAP)
    while at < rests[-1]:
        (name,) = chances.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))
        part = name if name in ("scheduler", "kube-apiserver") else f"{chances.choice(nodes)}/{name}"
        away, how = chances.uniform(0.0, LONGEST[name]), chances.choice(HOWS)
        if back.get(part, 0.0) < at and at + away < next(rest for rest in rests if rest > at):
            back[part] = at + away
            yield Fault(at, part, how, away)
        at += chances.expovariate(1 / FAULT_GAP)
