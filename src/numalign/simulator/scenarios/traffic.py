"""A scenario's load as calls in time: which object is created or deleted when.

`playing` performs them. Drawn from a seed, so that two schedulers meet the same load; whoever has no scheduler of its
own gets the one that plays. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from numalign.simulator.nodes import workloads
from numalign.simulator.scenarios.durations import Span
from numalign.simulator.scenarios.story import Choice, Deletion, Objects, Stream, Traffic
from numalign.simulator.trees import Tree

TEMPLATES: Final = {
    "Pod": ("spec",),
    "Deployment": ("spec", "template", "spec"),
    "ReplicaSet": ("spec", "template", "spec"),
    "DaemonSet": ("spec", "template", "spec"),
    "Job": ("spec", "template", "spec"),
}
"""Where kinds keep the spec of their pods."""


class Creation(Struct, frozen=True):
    at: float
    tree: Tree


Call = Creation | Deletion


def calls(traffic: Iterable[Traffic], scheduler: str, seed: int) -> list[Call]:
    """In the order of time; what is due at once stays in the order of the file."""
    made = [call for number, each in enumerate(traffic) for call in _calls(each, scheduler, f"{seed}/{number}")]
    return sorted(made, key=lambda call: call.at)


def _calls(each: Traffic, scheduler: str, seed: str) -> Iterator[Call]:
    match each:
        case Stream():
            yield from _arrivals(each, scheduler, random.Random(seed))
        case Objects(at=at, objects=objects):
            yield from (Creation(at, with_scheduler(tree, scheduler)) for tree in objects)
        case Deletion():
            yield each


def _arrivals(stream: Stream, scheduler: str, chances: random.Random) -> Iterator[Creation]:
    at = stream.at
    weights = [choice.weight for choice in stream.mix]
    for number in range(stream.pods):
        (choice,) = chances.choices(stream.mix, weights)
        tree = _pod(stream, choice, number, chances)
        yield Creation(at, with_scheduler(tree, scheduler))
        at += drawn(stream.every, chances)


def _pod(stream: Stream, choice: Choice, number: int, chances: random.Random) -> Tree:
    annotations, spec = dict(choice.annotations), dict(choice.spec)
    if stream.lifetime is not None:
        # What lives for a time is done then, unless the story says otherwise.
        spec = {"restartPolicy": "Never"} | spec
        annotations[workloads.RUN_SECONDS] = f"{drawn(stream.lifetime, chances):.3f}"
    metadata: dict[str, Any] = {
        "name": f"{choice.name}-{number}",
        "namespace": stream.namespace,
        "labels": {"app": choice.name} | dict(choice.labels),
        "annotations": annotations,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def drawn(span: Span, chances: random.Random) -> float:
    return span.least if span.least == span.most else chances.uniform(span.least, span.most)


def with_scheduler(tree: Tree, scheduler: str) -> Tree:
    """A copy whose pods are for this scheduler, unless they name one themselves."""
    return _with(tree, TEMPLATES.get(tree.get("kind", ""), ()), scheduler)


def _with(tree: Tree, path: tuple[str, ...], scheduler: str) -> Tree:
    if not path:
        return tree
    inner = tree.get(path[0], {})
    spec = {"schedulerName": scheduler} | inner if len(path) == 1 else _with(inner, path[1:], scheduler)
    return tree | {path[0]: spec}
