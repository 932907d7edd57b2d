"""How many more pods of some kinds fit now, what stops the next one, and what one more of a resource would give.

`numalign plan capacity` calls `answer`. The counts are those of POST /v1/capacity. A mix of kinds is placed pod by pod,
by their weights, until the first pod finds no node. What more hardware or another policy would give is counted on the
changed nodes, with every pod where it is; nodes that read the same are asked once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args

import numpy as np
from msgspec import Struct, structs

from numalign.api.errors import BadObject
from numalign.api.nrt.topologymanager import Policy, Scope
from numalign.api.objects import requests, resourcenames
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.placement.capacity import reasons
from numalign.placement.explain.reasons import Reason
from numalign.plan.questions import nodes, scene
from numalign.plan.questions.nodes import ChangedNode, KnownNode
from numalign.plan.questions.scene import Kind, Opened
from numalign.scheduler.capacity.messages import NodeCapacity
from numalign.scheduler.capacity.service import CountedNodes
from numalign.scheduler.snapshot.snapshot import Snapshot

MOST_MIXED: Final = 200_000
"""Pods of a mix that are placed before the planner stops."""


class Binding(Struct, frozen=True, kw_only=True, rename="camel"):
    """What stops the next pod on some nodes."""

    nodes: int
    resource: str = ""
    """Empty: it is not an amount."""
    together_in: int = 0
    """The number of zones that must hold it together; 0: the node as a whole."""
    cause: str
    examples: tuple[str, ...] = ()


class CapacityGain(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a change of all nodes would give."""

    change: str
    count: int
    gained: int
    nodes: int
    """Nodes of which it can be said."""


class KindCapacity(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    count: int
    bound: str
    roomy_nodes: int
    nodes: tuple[NodeCapacity, ...]
    binding: tuple[Binding, ...]
    gains: tuple[CapacityGain, ...] = ()


class Mix(Struct, frozen=True, kw_only=True, rename="camel"):
    """How many pods fit together, in the proportion of their weights."""

    total: int
    pods: Mapping[str, int]
    stopped_by: str = ""
    """The kind that found no node; empty: the planner stopped before."""
    why: str = ""


class CapacityPlan(Struct, frozen=True, kw_only=True, rename="camel"):
    kinds: tuple[KindCapacity, ...]
    mix: Mix | None = None
    fits: bool = True
    """Whether the pods of the workload fit together; without a workload, whether any pod fits."""
    missing: Mapping[str, int] = {}
    """By kind, the pods of the workload that find no node."""
    problems: tuple[str, ...] = ()


class CapacityQuestion(Struct, frozen=True, kw_only=True):
    kinds: tuple[Kind, ...]
    is_workload: bool = False
    """Whether the kinds come with numbers of pods that are to fit together."""
    gains: bool = True
    seed: int = 0


def answer(taken: Snapshot, asked: CapacityQuestion) -> CapacityPlan:
    opened = scene.opened(taken, asked.seed)
    counted = opened.service.counted([scene.asked(kind) for kind in asked.kinds], None)
    kinds = [
        KindCapacity(
            name=kind.name,
            count=own.found.total,
            bound=own.bound,
            roomy_nodes=int((own.found.counts > 0).sum()),
            nodes=tuple(opened.service.nodes(own)),
            binding=tuple(_binding(opened, own)),
        )
        for kind, own in zip(asked.kinds, counted, strict=True)
    ]
    if asked.gains:
        changed = _Changed(taken, opened, counted[0], asked.kinds)
        kinds = [structs.replace(each, gains=tuple(changed.gains(place))) for place, each in enumerate(kinds)]
    mix = _mixed(scene.opened(taken, asked.seed), asked.kinds) if len(asked.kinds) > 1 else None
    missing = _missing(scene.opened(taken, asked.seed), asked.kinds) if asked.is_workload else {}
    fits = not missing if asked.is_workload else any(each.count for each in kinds)
    return CapacityPlan(kinds=tuple(kinds), mix=mix, fits=fits, missing=missing, problems=opened.made.problems)


def _binding(opened: Opened, counted: CountedNodes) -> Iterator[Binding]:
    """What stops the next pod, the most frequent first. Nodes that read the same have the same reason."""
    found, engine = counted.found, opened.made.engine
    why, refusals = reasons.of(engine, found), opened.service.refusals(counted)
    groups: dict[tuple[str, int, str], list[str]] = {}
    for place, row in enumerate(found.rows.tolist()):
        refused = refusals.get(row)
        key = ("", 0, refused) if refused is not None else _key(why.reason(place))
        groups.setdefault(key, []).append(engine.names[row])
    for (resource, zones, cause), names in sorted(groups.items(), key=lambda each: (-len(each[1]), each[0])):
        yield Binding(
            nodes=len(names), resource=resource, together_in=zones, cause=cause, examples=tuple(sorted(names)[:3])
        )


def _key(reason: Reason) -> tuple[str, int, str]:
    lack = reason.worst or next(iter(reason.named_lacks), None)
    if lack is None:
        return "", 0, str(reason.cause)
    return lack.resource, lack.zones, str(reason.cause)


class _Changed:
    """One node of each kind of equal ones, changed in one way after the other."""

    def __init__(self, taken: Snapshot, opened: Opened, counted: CountedNodes, kinds: Sequence[Kind]) -> None:
        self._taken, self._kinds = taken, kinds
        found, names = counted.found, opened.made.engine.names
        _, first, number = np.unique(found.which, return_index=True, return_counts=True)
        self._alike = {names[int(found.rows[place])]: int(times) for place, times in zip(first, number, strict=True)}
        self._known = nodes.known(taken, frozenset(self._alike))
        self._counted: dict[str, dict[str, list[int]]] = {}
        """By change and node: the count of each kind."""

    def gains(self, place: int) -> Iterator[CapacityGain]:
        for resource in _resources(self._kinds[place]):
            unit = "core" if resource == resourcenames.CPU else resource
            yield from self._gain(place, f"one more {unit} in each zone", f"+{resource}")
        policies = {each.topology.manager.policy for each in self._known.values() if each.topology is not None}
        scopes = {each.topology.manager.scope for each in self._known.values() if each.topology is not None}
        for policy in get_args(Policy):
            if policies - {policy}:
                yield from self._gain(place, f"topologyManagerPolicy {policy}", f"policy={policy}")
        for scope in get_args(Scope):
            if scopes - {scope} and policies - {"none"}:
                yield from self._gain(place, f"topologyManagerScope {scope}", f"scope={scope}")

    def _gain(self, place: int, words: str, change: str) -> Iterator[CapacityGain]:
        before, after = self._counts(""), self._counts(change)
        there = [name for name in after if name in before]
        now = sum(self._alike[name] * before[name][place] for name in there)
        then = sum(self._alike[name] * after[name][place] for name in there)
        if there:
            yield CapacityGain(
                change=words, count=then, gained=then - now, nodes=sum(self._alike[name] for name in there)
            )

    def _counts(self, change: str) -> dict[str, list[int]]:
        if change not in self._counted:
            made = {name: found for name, each in self._known.items() if (found := _with(each, change)) is not None}
            self._counted[change] = self._count(made)
        return self._counted[change]

    def _count(self, made: Mapping[str, ChangedNode]) -> dict[str, list[int]]:
        opened = scene.opened(alone(self._taken, made))
        found: dict[str, list[int]] = {name: [] for name in made}
        for own in opened.service.counted([scene.asked(kind) for kind in self._kinds], None):
            by_name = {
                opened.made.engine.names[row]: int(count)
                for row, count in zip(own.found.rows.tolist(), own.found.counts, strict=True)
            }
            for name, counts in found.items():
                counts.append(by_name.get(name, 0))
        return found


def alone(taken: Snapshot, made: Mapping[str, ChangedNode]) -> Snapshot:
    """The snapshot with these nodes only."""
    stays = {pod.metadata.uid for each in made.values() for pod in each.stays}
    objects = {
        **taken.objects,
        NODES.plural: tuple(each.node for each in made.values()),
        TOPOLOGIES.plural: tuple(each.report for each in made.values() if each.report is not None),
        PODS.plural: tuple(pod for pod in taken.every(PODS) if pod.metadata.uid in stays),
    }
    return structs.replace(taken, objects=objects, state=None)


def _resources(kind: Kind) -> list[str]:
    """CPUs, if a kubelet pins them, and devices."""
    asked = requests.effective(kind.pod)
    devices = [name for name, amount in asked.items() if resourcenames.is_extended(name) and amount.nanos]
    return [*([resourcenames.CPU] if resourcenames.CPU in asked else []), *devices]


def _with(each: KnownNode, change: str) -> ChangedNode | None:
    """The node changed; None: it cannot be said what it would be, or it is so already."""
    same = ChangedNode(node=each.node, report=nodes.written(each), stays=each.pods)
    if not change:
        return same
    if change.startswith("+"):
        return nodes.with_more(each, change[1:])
    if each.topology is None:
        return same
    name, _, value = change.partition("=")
    written = nodes.with_manager(each, structs.replace(each.topology.manager, **{name: value}))
    return structs.replace(same, report=written) if written is not None else None


def _mixed(opened: Opened, kinds: Sequence[Kind]) -> Mix:
    """Pods in the proportion of their weights, until one finds no node."""
    placed = dict.fromkeys((kind.name for kind in kinds), 0)
    wanted = [kind for kind in kinds if kind.weight]
    for _ in range(MOST_MIXED):
        # The kind that is furthest behind its part.
        kind = min(wanted, key=lambda each: (placed[each.name] + 1) / each.weight)
        pod = scene.copy(kind, placed[kind.name])
        if opened.arrivals.place(pod) is None:
            total = sum(placed.values())
            return Mix(total=total, pods=placed, stopped_by=kind.name, why=scene.why_not(opened, pod))
        placed[kind.name] += 1
    return Mix(total=sum(placed.values()), pods=placed)


def _missing(opened: Opened, kinds: Sequence[Kind]) -> dict[str, int]:
    found: dict[str, int] = {}
    for kind, pod in scene.copies(kinds):
        if opened.arrivals.place(pod) is None:
            found[kind.name] = found.get(kind.name, 0) + 1
    return found


def check(kinds: Sequence[Kind]) -> None:
    """BadObject if nothing can be asked about these kinds."""
    seen = set[str]()
    for kind in kinds:
        if kind.name in seen:
            raise BadObject("Workload", kind.name, "name", "is the name of two kinds of pods; rename one of them")
        seen.add(kind.name)
    if not any(kind.weight for kind in kinds):
        raise BadObject("Workload", "", "weight", "is 0 for every kind; give one a weight above 0")
