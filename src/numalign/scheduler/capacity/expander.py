"""Answers cluster-autoscaler's gRPC expander: which node groups are best for pods that wait.

`http.expanderserver` calls `Expander` for each BestOptions request. cluster-autoscaler has found by totals which groups
could take which pods; here it is counted how many of these pods the kubelets of new nodes would admit. Groups that
would admit none are dropped, and those that admit most are kept. Where several admit as many, all are kept, and the
next expander of cluster-autoscaler's list chooses. A group whose zones are not known counts by its totals. Nothing is
charged. Pods of several kinds share nodes as if each kind took a part of a node: that is exact for pods of one kind,
and an estimate for others."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct, structs

from numalign.api.caches import BoundedCache
from numalign.api.errors import BadObject, clipped
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.placement.capacity import count
from numalign.placement.columns.shapes import Shape
from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen, ReportSeen
from numalign.placement.settings import Settings
from numalign.scheduler.capacity import expandermessages, templates
from numalign.scheduler.capacity.expandermessages import ExpansionOption, ExpansionRequest
from numalign.scheduler.capacity.templates import InstanceTypes
from numalign.scheduler.choose.cluster import Cluster

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")
REMEMBERED: Final = 16 << 10
"""Bytes of a pod that is remembered for the next request; few are larger."""
MOST_RESOURCES: Final = 1_000
"""Different resources of a request."""
AT_ONCE: Final = 16
"""Pods or shapes before other tasks have a turn. A node group takes a turn of its own."""
READ_AT_ONCE: Final = 1 << 20
"""Bytes of pods that are read before their shapes are looked up: pods take a multiple of it in memory."""
MOST_TEMPLATES: Final = 512
"""Node templates at which the scratch engine is made anew."""
FOR_CERTAIN, BY_TOTALS = "as their kubelets will place them", "by totals, because nothing is known about their zones"

TemplateKey = tuple[object, ...]


class GroupZones(Struct, frozen=True):
    """What is known of the zones of a group's nodes."""

    topology: NodeTopology | None
    key: TemplateKey
    """Equal for equal zones."""
    words: str
    """How its pods are counted."""


class Judged(Struct, frozen=True):
    """How many of an option's pods find room on its new nodes."""

    option: ExpansionOption
    admitted: int
    words: str

    @property
    def says(self) -> str:
        total = len(self.option.pods)
        return f"numalign: {self.admitted} of {total} pods fit on {self.option.count} new node(s), {self.words}"


class Expander:
    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        """`settings`: those of the scheduler's engine."""
        self._cluster, self._settings = cluster, settings
        self._engine = Engine(settings)
        self._rows: dict[TemplateKey, int] = {}
        self._pods: BoundedCache[bytes, Pod] = BoundedCache(expandermessages.MOST_PODS)
        self._resources = set[str]()
        """Those that the scratch engine knows."""
        self._turn = asyncio.Lock()
        """Requests are answered one after the other, while other tasks run: clients are not authenticated."""

    async def best_options(self, request: ExpansionRequest) -> list[Judged]:
        """The options to keep; empty: no group would help. BadObject or BadProtobuf if the request makes no sense."""
        async with self._turn:
            return await self._best(request)

    async def _best(self, request: ExpansionRequest) -> list[Judged]:
        if len(self._rows) > MOST_TEMPLATES or len(self._resources) > MOST_RESOURCES:
            self._engine, self._rows, self._resources = Engine(self._settings), {}, set()
        if self._cluster.engine.kernel is not self._engine.kernel:
            self._engine.warm()
        learnt, types = dict[str, GroupZones](), InstanceTypes(self._cluster)
        rows = []
        for option in request.options:
            rows.append(self._row(option, request.nodes, learnt, types))
            await asyncio.sleep(0)
        shapes = await self._shapes(request.options)
        asked = [Counter(shapes[each].number for each in option.pods) for option in request.options]
        counts = await self._counts(shapes.values(), sorted({row for row, _ in rows}))
        judged = [
            _judged(option, row, words, own, counts)
            for option, (row, words), own in zip(request.options, rows, asked, strict=True)
        ]
        most = max((each.admitted for each in judged), default=0)
        return [each for each in judged if each.admitted == most and most > 0]

    async def _counts(self, shapes: Iterable[Shape], rows: Sequence[int]) -> dict[int, Mapping[int, int]]:
        """By shape and row."""
        known = sorted({each.number: each for each in shapes}.values(), key=lambda each: each.number)
        counts: dict[int, Mapping[int, int]] = {}
        for first in range(0, len(known), AT_ONCE):
            some = known[first : first + AT_ONCE]
            found = count.count(self._engine, some, np.array(rows, np.int32))
            for shape, each in zip(some, found, strict=True):
                counts[shape.number] = dict(zip(each.rows.tolist(), each.counts.tolist(), strict=True))
            await asyncio.sleep(0)
        return counts

    async def _shapes(self, options: Iterable[ExpansionOption]) -> dict[bytes, Shape]:
        """By pod."""
        asked, most = dict.fromkeys(each for option in options for each in option.pods), expandermessages.MOST_PODS
        if len(asked) > most:
            raise BadObject("BestOptionsRequest", "", "options.pod", f"are more than {most:,} different pods")
        found = dict[bytes, Shape]()
        for some in _in_parts(asked):
            # A thread, because a pod may be large; other tasks have their turns meanwhile.
            pods = await asyncio.to_thread(self._read, some)
            async for data, pod in _unhurried(zip(some, pods, strict=True)):
                self._note(_resources(pod))
                if len(data) <= REMEMBERED:
                    self._pods.keep(data, pod)
                found[data] = self._interned(pod)
        return found

    def _note(self, resources: Iterable[str]) -> None:
        """Every resource costs every row of the scratch engine memory. BadObject if there are too many."""
        self._resources.update(resources)
        if len(self._resources) > 2 * MOST_RESOURCES:
            why = f"has more than {MOST_RESOURCES:,} different resources"
            raise BadObject("BestOptionsRequest", "", "", why)

    def _read(self, some: Sequence[bytes]) -> list[Pod]:
        """The pods that were sent like this."""
        try:
            return [self._pods.get(each) or expandermessages.pod(each) for each in some]
        except ValueError as problem:
            raise BadObject("BestOptionsRequest", "", "options.pod", str(problem)) from None

    def _interned(self, pod: Pod) -> Shape:
        """A pod whose annotations make no sense counts without them: one pod does not spoil the request."""
        try:
            return self._engine.shape(pod)
        except BadObject:
            return self._engine.shape(structs.replace(pod, metadata=ObjectMeta(name=pod.metadata.name)))

    def _row(
        self,
        option: ExpansionOption,
        nodes: Mapping[str, bytes],
        learnt: dict[str, GroupZones],
        types: InstanceTypes,
    ) -> tuple[int, str]:
        """The row of the group's template, and how its pods are counted."""
        if option.group not in nodes:
            raise BadObject("BestOptionsRequest", option.group, "nodeMap", "has no node for this group")
        try:
            node = expandermessages.node(nodes[option.group])
        except ValueError as problem:
            raise BadObject("BestOptionsRequest", option.group, "nodeMap", str(problem)) from None
        zones = _zones(option.group, node, learnt, types)
        self._note(node.allocatable)
        if zones.topology is not None:
            self._note(name for zone in zones.topology.zones for name in zone.resources)
        offered = tuple(sorted((name, amount.nanos) for name, amount in node.allocatable.items()))
        key = zones.key, offered, node.status.node_info.kubelet_version
        if key not in self._rows:
            name = f"template-{len(self._rows)}"
            self._engine.apply(NodeSeen(Node(metadata=ObjectMeta(name=name), status=node.status)))
            if zones.topology is not None:
                self._engine.apply(ReportSeen(templates.renamed(zones.topology, name), 0.0))
            self._rows[key] = self._engine.rows[name]
        return self._rows[key], zones.words


def _in_parts(pods: Iterable[bytes]) -> Iterator[list[bytes]]:
    part, size = list[bytes](), 0
    for each in pods:
        if part and size + len(each) > READ_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(each)
        size += len(each)
    if part:
        yield part


def _resources(pod: Pod) -> Iterator[str]:
    for wants in (pod.spec.resources, *(each.resources for each in pod.in_admission_order())):
        yield from wants.requests
        yield from wants.limits
    yield from pod.spec.overhead


async def _unhurried(things: Iterable[T]) -> AsyncIterator[T]:
    """The things, with turns of other tasks in between."""
    for number, each in enumerate(things):
        if number % AT_ONCE == AT_ONCE - 1:
            await asyncio.sleep(0)
        yield each


def _zones(group: str, node: Node, learnt: dict[str, GroupZones], types: InstanceTypes) -> GroupZones:
    """The zones of a template. Groups of one type are looked up once."""
    notes = node.metadata.annotations
    own = "\n".join(notes.get(name, "") for name in (templates.TOPOLOGY, templates.MACHINE, templates.KUBELET))
    place = own.strip() or f"type {node.metadata.labels.get(templates.INSTANCE_TYPE, '')}"
    if place not in learnt:
        try:
            topology = templates.of_node(node, types).topology
            words = FOR_CERTAIN if topology is not None else BY_TOTALS
        except BadObject as problem:
            # One odd group is no reason to say nothing about the others.
            LOG.warning("Zones of node group %s are not usable: %s", clipped(group), problem)
            topology, words = None, f"by totals: {problem}"
        learnt[place] = GroupZones(topology, _key(topology), words)
    return learnt[place]


def _judged(
    option: ExpansionOption, row: int, words: str, pods: Mapping[int, int], counts: Mapping[int, Mapping[int, int]]
) -> Judged:
    fitting = {shape: number for shape, number in pods.items() if counts[shape].get(row, 0) > 0}
    share = sum((Fraction(number, counts[shape][row]) for shape, number in fitting.items()), Fraction())
    admitted = sum(fitting.values())
    if len(fitting) == 1:
        ((shape, number),) = fitting.items()
        admitted = min(number, counts[shape][row] * max(0, option.count))
    elif share > option.count:
        admitted = int(admitted * Fraction(max(0, option.count)) / share)
    return Judged(option, admitted, words)


def _key(topology: NodeTopology | None) -> TemplateKey:
    if topology is None:
        return ()
    zones = tuple(
        (zone.id, tuple(sorted((name, each.allocatable, each.available) for name, each in zone.resources.items())))
        for zone in topology.zones
    )
    return topology.manager, zones, repr(topology.facts.managers), repr(topology.facts.kubelet)
