"""Generates the schedule of a campaign from a seed: pods created and deleted, programs stopped, rests. Pure.

`running` performs the steps in order. Pods arrive in bursts that keep the nodes about full. No program is stopped twice
at the same time, and all run again before the next rest, in which the campaign checks every pod."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from numalign.lab.campaign import load
from numalign.lab.campaign.load import Body
from numalign.lab.spec import NodeSpec

How = Literal["kill", "end", "hang"]

BURST_GAP: Final = 5.0
"""Seconds between bursts of pods, on average; `FAULT_GAP` likewise."""
BURSTS: Final = (1, 1, 2, 3, 6)
LIFETIME: Final = 45.0
FAULT_GAP: Final = 8.0
ROUND: Final = 120.0
"""Seconds between rests."""
SCHEDULERS: Final = ("scheduler", "scheduler-2")
LONGEST: Final = {"kubelet": 15.0, "agent": 20.0, "scheduler": 10.0, "device-plugin": 8.0, "kube-apiserver": 10.0}
"""Seconds that a program of this name is stopped at most."""
FAR_LONGER: Final = ("kube-apiserver", 60.0)
WEIGHTS: Final = {"kubelet": 6, "scheduler": 5, "agent": 4, "device-plugin": 4, "kube-apiserver": 1}


class Create(Struct, frozen=True, tag=True):
    at: float
    name: str
    body: Body


class Delete(Struct, frozen=True, tag=True):
    at: float
    name: str
    forced: bool
    """Delete the object at once; the kubelet learns of it later."""


class Fault(Struct, frozen=True, tag=True):
    at: float
    part: str
    """The title of a program of the lab."""
    how: How
    away: float
    """Seconds until it runs again."""

    @property
    def words(self) -> str:
        deed = {"kill": "killed", "end": "ended", "hang": "hung"}[self.how]
        return f"{self.part} {deed}, away for {self.away:.1f} s"


class Rest(Struct, frozen=True, tag=True):
    at: float


Step = Create | Delete | Fault | Rest


def drawn(seed: int, seconds: float, nodes: Sequence[NodeSpec]) -> tuple[Step, ...]:
    """The steps of a campaign of this length, in order. It ends with a rest."""
    rests = [*(ROUND * n for n in range(1, int(seconds // ROUND) + 1) if ROUND * n < seconds - ROUND / 4), seconds]
    steps: list[Step] = [*map(Rest, rests)]
    steps += _pods(random.Random(f"{seed}/pods"), seconds, nodes)
    steps += _faults(random.Random(f"{seed}/faults"), rests, nodes)
    return tuple(sorted(steps, key=lambda step: step.at))


def _pods(chances: random.Random, seconds: float, nodes: Sequence[NodeSpec]) -> Iterator[Step]:
    at, number = 0.0, 0
    while at < seconds:
        for _ in range(chances.choice(BURSTS)):
            number += 1
            name = f"p-{number}"
            yield Create(at, name, load.pod(name, nodes, chances))
            gone = at + chances.expovariate(1 / LIFETIME)
            if gone < seconds:
                yield Delete(gone, name, chances.random() < 0.2)
        at += chances.expovariate(1 / BURST_GAP)


def _faults(chances: random.Random, rests: Sequence[float], nodes: Sequence[NodeSpec]) -> Iterator[Fault]:
    back: dict[str, float] = {}
    at = chances.uniform(3.0, FAULT_GAP)
    while at < rests[-1]:
        fault = _fault(chances, at, nodes)
        rest = next(rest for rest in rests if rest > at)
        if back.get(fault.part, 0.0) < at and at + fault.away < rest:
            back[fault.part] = at + fault.away
            yield fault
        at += chances.expovariate(1 / FAULT_GAP)


def _fault(chances: random.Random, at: float, nodes: Sequence[NodeSpec]) -> Fault:
    (name,) = chances.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))
    away = chances.uniform(0.0, LONGEST[name])
    if name == FAR_LONGER[0] and chances.random() < 0.25:
        away = chances.uniform(LONGEST[name], FAR_LONGER[1])
    return Fault(at, _part(name, chances, nodes), chances.choice(("kill", "kill", "end", "hang")), away)


def _part(name: str, chances: random.Random, nodes: Sequence[NodeSpec]) -> str:
    if name == "scheduler":
        return chances.choice(SCHEDULERS)
    if name == "kube-apiserver":
        return name
    able = [node.name for node in nodes if name != "device-plugin" or node.machine.devices]
    return f"{chances.choice(able)}/{name}"
