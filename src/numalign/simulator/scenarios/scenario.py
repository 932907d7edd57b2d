"""A scenario as a value: nodes, load, faults and expectations.

`scenariofile` creates it; `play` and `judge` read it. Times are in seconds from the start."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.api.schedulerconfig import configuration
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.scenarios.durations import Span
from numalign.simulator.trees import Tree

ANY_SCHEDULER: Final = "any"
SCHEDULERS: Final = (DEFAULT_SCHEDULER, configuration.NAME)
"""The schedulers that can play a scenario."""

REVERSED: Final[Mapping[str, str]] = {
    "stop-kubelet": "start-kubelet",
    "break-devices": "mend-devices",
    "stop-reports": "start-reports",
    "cordon": "uncordon",
}
"""Faults with a duration, and the fault that ends each."""
FAULTS: Final = ("reboot", "restart-kubelet", "delete-node", *REVERSED, *REVERSED.values())


AT_ONCE: Final = Span(0.0, 0.0)


class PodKind(Struct, frozen=True, kw_only=True):
    """A kind of pod in a stream, with its weight."""

    name: str
    spec: Tree
    weight: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


class PodStream(Struct, frozen=True, kw_only=True):
    """Pods that arrive one after another."""

    at: float
    pods: int
    mix: tuple[PodKind, ...]
    every: Span = AT_ONCE
    lifetime: Span | None = None
    """None means until the end of the scenario."""
    namespace: str = "default"


class CreatedObjects(Struct, frozen=True):
    """Objects that are created together."""

    at: float
    objects: tuple[Tree, ...]


class Deletion(Struct, frozen=True, kw_only=True):
    """Deletes one object by name, or all that a selector matches."""

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
    """Devices of the resource; empty means all."""


class Expectation(Struct, frozen=True):
    """A measure of the history, compared with a number: rejected == 0."""

    measure: str
    comparison: str
    number: float

    def __str__(self) -> str:
        return f"{self.measure} {self.comparison} {self.number:g}"


class Scenario(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    lasts: float
    nodes: tuple[NodeSpec, ...]
    about: str = ""
    seed: int = 1
    traffic: tuple[Traffic, ...] = ()
    faults: tuple[Fault, ...] = ()
    expect: Mapping[str, tuple[Expectation, ...]] = field(default_factory=dict)
    """The expectations by scheduler name; `any` means all schedulers."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What a reader should know about the numbers of a scheduler, by its name."""
    written: Any = None
    """The mapping that it was read from."""
