"""Which nodes have amounts that are free and of no use for any waiting pod.

`fleet` asks once for every moment. A waiting pod counts for a node that could take it without other pods: what a pod
needs that fits on no node of a kind is not stranded there. Only the amounts of the pod as a whole, and of each aligned
container in one zone, are compared for that; whether the pod fits now, the engine says."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numalign.api.errors import BadObject
from numalign.api.objects import qos, requests, resourcenames
from numalign.api.objects.pod import Pod, ResourceList
from numalign.api.objects.qos import QoS
from numalign.cli.results.moments.scene import Scene
from numalign.placement.columns.shapes import Shape
from numalign.placement.engine import Engine
from numalign.placement.explain import nodeview
from numalign.placement.explain.nodeview import Occupancy

MOST_SHAPES: Final = 64
"""Kinds of waiting pods that are looked at; any further ones are not."""
MILLI: Final = 1000


class Kind(NamedTuple):
    """Waiting pods of one shape."""

    shape: Shape
    whole: Mapping[str, int]
    parts: tuple[Mapping[str, int], ...]
    """What each container has to get from one zone, where the node aligns containers to one."""
    fits: NDArray[np.bool_]
    """By row."""


class Usefulness:
    """Remembers which pods a kind of hardware could take."""

    def __init__(self) -> None:
        self._possible: dict[tuple[int, Hashable], bool] = {}

    def useless(self, scene: Scene) -> dict[str, frozenset[str]]:
        """By node, the resources of which no waiting pod can use what is free."""
        engine = scene.cluster.engine
        kinds = list(_kinds(scene))
        if not kinds:
            return {}
        self._forget(kinds)
        resources = {name for kind in kinds for name in kind.whole}
        useful = {name: np.logical_or.reduce([kind.fits for kind in kinds if name in kind.whole]) for name in resources}
        found = {}
        for node, row in engine.rows.items():
            refused = [name for name in resources if not useful[name][row]]
            lost = refused and self._wanted(engine, node, kinds) & set(refused)
            if lost:
                found[node] = frozenset(lost)
        return found

    def _wanted(self, engine: Engine, node: str, kinds: list[Kind]) -> set[str]:
        """The resources of pods that the node could take."""
        hardware = nodeview.hardware(engine, node)
        wanted = set[str]()
        for kind in kinds:
            key = (kind.shape.number, hardware)
            if key not in self._possible:
                self._possible[key] = _is_possible(engine, node, kind)
            if self._possible[key]:
                wanted |= kind.whole.keys()
        return wanted

    def _forget(self, kinds: list[Kind]) -> None:
        numbers = {kind.shape.number for kind in kinds}
        self._possible = {key: possible for key, possible in self._possible.items() if key[0] in numbers}


def _kinds(scene: Scene) -> Iterator[Kind]:
    engine, seen = scene.cluster.engine, set[int]()
    for pod in scene.waiting.values():
        try:
            shape = engine.shape(pod)
        except BadObject:
            # No node takes a pod whose annotations make no sense.
            continue
        if shape.number in seen:
            continue
        seen.add(shape.number)
        parts = tuple(map(_amounts, _aligned(pod)))
        yield Kind(shape, asked(pod), parts, np.asarray(engine.survey(shape))[: engine.height] >= 0)
        if len(seen) >= MOST_SHAPES:
            return


def asked(pod: Pod) -> dict[str, int]:
    """What the pod requests: cpu in thousandths."""
    return _amounts(requests.effective(pod))


def _amounts(written: ResourceList) -> dict[str, int]:
    return {name: each.milli if name == resourcenames.CPU else each.value for name, each in written.items()}


def _aligned(pod: Pod) -> Iterator[ResourceList]:
    """Of containers whose CPUs and devices are aligned; memory may be spread."""
    is_pinned = qos.of(pod) is QoS.GUARANTEED
    for container in pod.spec.containers:
        yield {
            name: each
            for name, each in container.resources.requests.items()
            if not resourcenames.is_bytes(name)
            and (name != resourcenames.CPU or (is_pinned and each.milli % MILLI == 0))
        }


def _is_possible(engine: Engine, node: str, kind: Kind) -> bool:
    """Whether the node could take the pod if there were no other."""
    seen = engine.view(node)
    offered = {name: total.offered for name, total in seen.totals.items()} if seen is not None else {}
    if any(offered.get(name, 0) < need for name, need in kind.whole.items()):
        return False
    held = nodeview.of(engine, node, with_pods=False)
    if held is None or held.policy != "single-numa-node":
        return True
    return all(_most(held, name) >= need for part in kind.parts for name, need in part.items())


def _most(held: Occupancy, resource: str) -> int:
    """The most that a zone of the empty node has."""
    unit = MILLI if resource == resourcenames.CPU else 1
    return max((cell.allocatable * unit for cell in held.resources.get(resource, ()) if cell.zones), default=0)
