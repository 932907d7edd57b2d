"""A scenario as a value: who the nodes are, what arrives when, what goes wrong, and what has to hold at the end.

`scenariofile` makes one of a mapping; `playing`, `traffic` and `judging` read it. Times are seconds from the beginning
of the story."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.scenarios.durations import Span
from numalign.simulator.trees import Tree

ANY_SCHEDULER: Final = "any"

REVERSED: Final[Mapping[str, str]] = {
    "stop-kubelet": "start-kubelet",
    "break-devices": "mend-devices",
    "stop-reports": "start-reports",
    "cordon": "uncordon",
}
"""Faults that last, and what ends them."""
FAULTS: Final = ("reboot", "restart-kubelet", "delete-node", *REVERSED, *REVERSED.values())


AT_ONCE: Final = Span(0.0, 0.0)


class PodKind(Struct, frozen=True, kw_only=True):
    """A pod that a stream may send next, and how likely it is beside the others."""

    name: str
    spec: Tree
    weight: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


class PodStream(Struct, frozen=True, kw_only=True):
    """Pods that arrive one after the other."""

    at: float
    pods: int
    mix: tuple[PodKind, ...]
    every: Span = AT_ONCE
    lifetime: Span | None = None
    """None: they run until the end."""
    namespace: str = "default"


class CreatedObjects(Struct, frozen=True):
    """Manifests that are created together."""

    at: float
    objects: tuple[Tree, ...]


class Deletion(Struct, frozen=True, kw_only=True):
    """One object by its name, or all that a selector names."""

    at: float
    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    labels: str = ""


Traffic = PodStream | CreatedObjects | Deletion


class Fault(Struct, frozen=True, kw_only=True):
    at: float
    kind: str
    nodes: tuple[str, ...]
    resource: str = ""
    devices: tuple[str, ...] = ()
    """Of the resource; none named: all."""


class Expectation(Struct, frozen=True):
    """A number of the history, and what it is held against: rejected == 0."""

    measure: str
    comparison: str
    number: float

    def __str__(self) -> str:
        return f"{self.measure} {self.comparison} {self.number:g}"


class Story(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    lasts: float
    nodes: tuple[NodeSpec, ...]
    about: str = ""
    seed: int = 1
    traffic: tuple[Traffic, ...] = ()
    faults: tuple[Fault, ...] = ()
    expect: Mapping[str, tuple[Expectation, ...]] = field(default_factory=dict)
    """By the name of the scheduler that plays, or under `any` for all of them."""
    written: Any = None
    """The mapping it was read from, for who wants to see it."""
