"""Answers capacity requests from the scheduler's engine: no charge, no state change.

`http.capacitypage`, the autoscaler bridges and `numalign capacity` call `CapacityService`. The filter plugins of the
pod's profile decide once which nodes may take such a pod at all; the engine then counts how many of them fit. Where
plugins look at other pods, ports or volumes, the next pod may be refused earlier, and the count is an upper bound.
Shapes are counted some at a time, and the event loop runs other tasks in between: each shape's answer is of one
moment. A reason takes a hundred times as long as a count, so a scheduler that serves requests gives the reasons of a
limited number of nodes (`SERVED`)."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct, structs

from numalign.api.decode import quantity
from numalign.api.errors import BadObject, clipped
from numalign.api.objects import requests as podrequests
from numalign.api.objects import selectors
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.placement.capacity import count, gang, reasons
from numalign.placement.capacity.count import Bound, ShapeCount
from numalign.placement.capacity.gang import Room
from numalign.placement.capacity.reasons import CountReasons
from numalign.placement.explain import obstacles, wording
from numalign.placement.kernels.block import Rows
from numalign.placement.kernels.plan import ZONES
from numalign.placement.rules.nodes.nodespec import TaintToleration
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.scheduler.capacity import templates
from numalign.scheduler.capacity.messages import (
    BoundName,
    CapacityRequest,
    CapacityResponse,
    NodeCapacity,
    NodeChoice,
    PlacedPods,
    ShapeCapacity,
    ShapeRequest,
    TemplateRequest,
    TogetherAnswer,
    ZonePods,
)
from numalign.scheduler.capacity.templates import InstanceTypes
from numalign.scheduler.choose import filtering
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.filtering import Refused
from numalign.scheduler.profiles import Profile

AT_ONCE: Final = 16
"""Shapes that are counted before the event loop runs other tasks."""
LISTED_AT_ONCE: Final = 2_000
"""Answers of single nodes that are made for them."""
WALKED_AT_ONCE: Final = 200
"""Pods that are placed by the row model for them."""
SEARCHES: Final = 3
"""Searches for room for all pods, where the nodes change meanwhile."""
MOST_SHAPES: Final = 1_000
MOST_TEMPLATES: Final = 1_000
MOST_REPLICAS: Final = 100_000
NAMES: Final[Mapping[Bound | None, BoundName]] = {
    Bound.EXACT: "exact",
    Bound.AT_LEAST: "at-least",
    Bound.AT_MOST: "at-most",
    None: "unknown",
}


class CapacityLimits(Struct, frozen=True, kw_only=True):
    """What a request may cost a process that has other work."""

    reasons: int
    """Groups of nodes, for each shape, whose reason is given."""
    listed: int
    """Answers of single nodes in one response."""


SERVED: Final = CapacityLimits(reasons=64, listed=250_000)


class AskedShape(Struct, frozen=True):
    """One kind of pod of a request."""

    name: str
    pod: Pod
    replicas: int = 1


class PluginRefusal(Struct, frozen=True):
    plugin: str
    """Empty: the pod is refused wherever it goes."""
    text: str


class CountedNodes(Struct, frozen=True, kw_only=True):
    """One shape on the nodes of a cluster."""

    pod: Pod
    found: ShapeCount
    refused: Mapping[int, PluginRefusal]
    """By row, why plugins refuse the pod there. Their counts are 0."""
    is_bounded: bool
    """Whether plugins that look at other pods may refuse the next one earlier."""

    @property
    def bound(self) -> BoundName:
        return NAMES[_limited(self.found.bound, is_bounded=self.is_bounded and self.found.total > 0)]


class CapacityService:
    """Counts on one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        profiles: Mapping[str, Profile],
        config: Configuration,
        limits: CapacityLimits | None = None,
    ) -> None:
        """`profiles`: by scheduler name; pods of other names are counted by the first one. `limits`: None where nothing
        else waits for this process."""
        self._cluster, self._profiles, self._config, self._limits = cluster, profiles, config, limits
        self._turn = asyncio.Lock()
        """Requests are answered one after the other, so that many of them delay other work no more than one does."""

    async def answer(self, request: CapacityRequest) -> CapacityResponse:
        """BadObject if the request cannot be answered."""
        async with self._turn:
            return await self._answered(request)

    async def _answered(self, request: CapacityRequest) -> CapacityResponse:
        shapes = list(asked_shapes(request.shapes))
        if len(request.templates) > MOST_TEMPLATES:
            raise BadObject("CapacityRequest", "", "templates", f"has more than {MOST_TEMPLATES:,}; split the request")
        types, named = InstanceTypes(self._cluster), dict[str, TemplateRequest]()
        for number, each in enumerate(request.templates):
            name = each.name or f"template-{number}"
            if name in named:
                raise BadObject("CapacityRequest", name, f"templates[{number}].name", "is the name of an earlier one")
            named[name] = each
        scratch = templates.Scratch(self._config)
        for name, each in named.items():
            scratch.add(templates.made(each, name, types))
            await asyncio.sleep(0)
        made = scratch.cluster()
        beside = CapacityService(made.cluster, made.profiles, self._config, self._limits)
        rows = self._rows(request.nodes, only_templates=bool(request.templates))
        listed = len(request.templates) + (0 if request.summary else len(rows))
        self._check_size(len(shapes), listed)
        answers, at_once = [], max(1, min(AT_ONCE, LISTED_AT_ONCE // max(1, listed)))
        for first in range(0, len(shapes), at_once):
            some = shapes[first : first + at_once]
            own, others = self.counted(some, rows), beside.counted(some, None)
            for shape, here, there in zip(some, own, others, strict=True):
                answers.append(
                    ShapeCapacity(
                        name=shape.name,
                        count=here.found.total,
                        bound=here.bound,
                        roomy_nodes=int((here.found.counts > 0).sum()),
                        nodes=() if request.summary else tuple(self.nodes(here)),
                        templates=tuple(beside.nodes(there)),
                    )
                )
            await asyncio.sleep(0)
        together = await self.together(shapes, rows) if request.all_or_nothing else None
        notes = (*made.notes, *self._left_out(answers))
        return CapacityResponse(shapes=tuple(answers), all_or_nothing=together, notes=notes)

    def _check_size(self, shapes: int, listed: int) -> None:
        most = self._limits.listed if self._limits is not None else None
        if most is not None and shapes * listed > most:
            why = f"asks for {shapes * listed:,} answers of single nodes, and {most:,} are given; ask for a summary, "
            raise BadObject("CapacityRequest", "", "nodes", f"{why}fewer shapes or fewer nodes")

    def _left_out(self, answers: Iterable[ShapeCapacity]) -> Iterator[str]:
        lacking = any(not group.reason for each in answers for group in (*each.nodes, *each.templates))
        if self._limits is not None and lacking:
            yield LIMITED.format(groups=self._limits.reasons)

    def counted(self, shapes: Sequence[AskedShape], rows: Rows | None) -> list[CountedNodes]:
        """BadObject if a pod's annotations make no sense."""
        engine = self._cluster.engine
        profiles = [self._profile(each.pod) for each in shapes]
        known = [filtering.shape(profile, engine, each.pod) for profile, each in zip(profiles, shapes, strict=True)]
        found = count.count(engine, known, rows, WALKED_AT_ONCE)
        return [
            self._filtered(profile, each.pod, one) for profile, each, one in zip(profiles, shapes, found, strict=True)
        ]

    def nodes(self, counted: CountedNodes) -> Iterator[NodeCapacity]:
        """Nodes with the same answer together, in the order of the rows."""
        why, groups = reasons.of(self._cluster.engine, counted.found), self._groups(counted)
        explained = set(groups)
        if self._limits is not None:
            counted_ones = (key for key in groups if not key[1])
            explained = set(heapq.nlargest(self._limits.reasons, counted_ones, key=lambda key: len(groups[key])))
        for key, places in groups.items():
            yield self._answer(counted, places, why if key in explained else None, key[1])

    def _groups(self, counted: CountedNodes) -> dict[tuple[int, str], list[int]]:
        """Places of rows with the same answer."""
        found, groups, texts = counted.found, dict[tuple[int, str], list[int]](), self.refusals(counted)
        for place, row in enumerate(found.rows.tolist()):
            key = int(found.which[place]), texts.get(row, "")
            groups.setdefault(key, []).append(place)
        return groups

    def refusals(self, counted: CountedNodes) -> dict[int, str]:
        """By row, why plugins refuse the pod there. Names the taints where there are few kinds."""
        texts = {row: each.text for row, each in counted.refused.items()}
        tainted = [row for row, each in counted.refused.items() if each.plugin == TaintToleration.name]
        alike = dict(zip(tainted, self._cluster.world.taints.ids[tainted].tolist(), strict=True))
        if len(kinds := {number: row for row, number in alike.items()}) > MOST_TAINTS:
            return texts
        named = {number: self._named(counted.pod, row) or texts[row] for number, row in kinds.items()}
        return texts | {row: named[number] for row, number in alike.items()}

    def _named(self, pod: Pod, row: int) -> str:
        node = self._cluster.node_named(self._cluster.engine.names[row])
        found = obstacles.of(TaintToleration.name, pod, node) if node is not None else None
        return wording.obstacle(found) if found is not None else ""

    def _answer(
        self, counted: CountedNodes, places: Sequence[int], why: CountReasons | None, refusal: str
    ) -> NodeCapacity:
        """`why`: None where the reason is not given. `refusal`: of the plugins."""
        engine, found, place = self._cluster.engine, counted.found, places[0]
        row = int(found.rows[place])
        names = tuple(engine.names[row] for row in found.rows[places].tolist())
        if row in counted.refused:
            return NodeCapacity(nodes=names, reason=refusal)
        zones, spread = count.zone_ids(engine, row), found.spread[place].tolist()
        bounded = counted.is_bounded and found.counts[place] > 0
        return NodeCapacity(
            nodes=names,
            count=int(found.counts[place]),
            bound=NAMES[_limited(Bound(found.bounds[place]), is_bounded=bounded)],
            zones=tuple(ZonePods(zones[at], pods) for at, pods in enumerate(spread[:ZONES]) if pods),
            across_zones=spread[ZONES],
            reason=wording.sentence(why.reason(place)) if why is not None else "",
        )

    async def together(self, shapes: Sequence[AskedShape], rows: Rows | None) -> TogetherAnswer:
        """Whether all pods of the shapes find room at the same time. Other tasks run meanwhile; where they use room
        that was found for the pods, the search begins again."""
        counted = list[CountedNodes]()
        for first in range(0, len(shapes), AT_ONCE):
            counted += self.counted(shapes[first : first + AT_ONCE], rows)
            await asyncio.sleep(0)
        found = await self._found_together(shapes, counted)
        if found is None:
            return TogetherAnswer(fits="unknown", message=CHANGED)
        names = [shape.name for shape in shapes]
        missing = {names[place]: pods for place, pods in enumerate(found.missing) if pods}
        if found.room is not Room.FITS:
            if found.room is Room.DOES_NOT_FIT:
                return TogetherAnswer(fits="no", missing=missing, message=NO_ROOM)
            return TogetherAnswer(fits="unknown", missing=missing, message=NOT_FOUND)
        placed = tuple(
            PlacedPods(node=self._cluster.engine.names[row], shape=names[place], pods=pods)
            for row, own in found.placed.items()
            for place, pods in own.items()
        )
        if any(each.is_bounded for each in counted):
            return TogetherAnswer(fits="unknown", placed=placed, message=BOUNDED)
        return TogetherAnswer(fits="yes", placed=placed)

    async def _found_together(
        self, shapes: Sequence[AskedShape], counted: Sequence[CountedNodes]
    ) -> gang.GangFit | None:
        """None: the nodes changed during every search."""
        wanted = [(each.found.shape, shape.replicas) for shape, each in zip(shapes, counted, strict=True)]
        allowed = [_allowed(each) for each in counted]
        for _ in range(SEARCHES):
            steps = gang.fitting(self._cluster.engine, wanted, allowed)
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    found: gang.GangFit | None = end.value
                    break
                await asyncio.sleep(0)
            if found is not None:
                return found
        return None

    async def room(self, shapes: Sequence[AskedShape]) -> TogetherAnswer:
        """The same on all nodes. BadObject if a pod cannot be counted."""
        return await self.together(shapes, self._with_nodes())

    def shortfall(self, shapes: Sequence[AskedShape]) -> list[str]:
        """A sentence for each shape of which the nodes do not admit as many as are asked for, whatever the others."""
        return [
            f"{each.found.total:,} of {shape.replicas:,} pods of {shape.name} fit{self._most_common_reason(each)}"
            for shape, each in zip(shapes, self.counted(shapes, self._with_nodes()), strict=True)
            if each.found.total < shape.replicas
        ]

    def _most_common_reason(self, counted: CountedNodes) -> str:
        groups = self._groups(counted)
        if not groups:
            return ""
        why = reasons.of(self._cluster.engine, counted.found)
        (_, refusal), places = max(groups.items(), key=lambda group: len(group[1]))
        largest = self._answer(counted, places, why, refusal)
        return f" ({len(largest.nodes):,} nodes: {largest.reason})" if largest.reason else ""

    def number(self, pod: Pod) -> int:
        """Equal for pods that ask for the same, whatever became of them; BadObject if the pod's annotations make no
        sense."""
        asked = structs.replace(pod, status=PodStatus())
        return filtering.shape(self._profile(pod), self._cluster.engine, asked).number

    def _profile(self, pod: Pod) -> Profile:
        return self._profiles.get(pod.spec.scheduler_name) or next(iter(self._profiles.values()))

    def _filtered(self, profile: Profile, pod: Pod, found: ShapeCount) -> CountedNodes:
        """The counts of nodes that plugins refuse are 0; NodeResourcesFit refuses by totals, which are counted."""
        world = self._cluster.world
        said = filtering.filtered(pod, profile.filters, world)
        if isinstance(said, Refused):
            refused = dict.fromkeys(found.rows.tolist(), PluginRefusal("", ", ".join(said.refusal.reasons)))
        else:
            refused = {}
            for plugin, refusal, rows in said.tallies():
                if plugin != NodeResourcesFit.name:
                    refused |= dict.fromkeys(rows.tolist(), PluginRefusal(plugin, ", ".join(refusal.reasons)))
        if refused:
            gone = np.isin(found.rows, list(refused))
            found = structs.replace(
                found,
                counts=np.where(gone, 0, found.counts),
                bounds=np.where(gone, np.int8(Bound.EXACT), found.bounds),
            )
        return CountedNodes(pod=pod, found=found, refused=refused, is_bounded=_looks_around(profile, pod))

    def _rows(self, chosen: NodeChoice | None, *, only_templates: bool) -> Rows:
        if chosen is None:
            return np.zeros(0, np.int32) if only_templates else self._with_nodes()
        known = self._cluster.engine.rows
        names: Iterable[str] = known if chosen.names is None else chosen.names
        unknown = [name for name in chosen.names or () if not self._cluster.has_node(name)]
        if unknown:
            listed = wording.joined([clipped(each) for each in unknown[:3]])
            raise BadObject("CapacityRequest", "", "nodes.names", f"{listed} not known; see kubectl get nodes")
        found = [known[name] for name in names if self._matches(name, chosen)]
        return np.array(sorted(set(found)), np.int32)

    def _matches(self, name: str, chosen: NodeChoice) -> bool:
        node = self._cluster.node_named(name)
        if node is None:
            return False
        return chosen.selector is None or selectors.matches(chosen.selector, node.metadata.labels)

    def _with_nodes(self) -> Rows:
        return self._cluster.world.node_rows.astype(np.int32)


MOST_TAINTS: Final = 64
"""Sets of taints that are named for one shape: where each node has its own, the nodes remain one group."""
CHANGED: Final = "the nodes changed while room for all of the pods was looked for; ask again"
NO_ROOM: Final = "the nodes do not have room for all of the pods"
NOT_FOUND: Final = "no arrangement was found that holds in every order of arrival; not all were tried"
LIMITED: Final = "reasons are given for {groups} groups of nodes of each shape; name nodes to get theirs"
BOUNDED: Final = "the zones have room; affinity, spreading, ports or volumes may refuse some of the pods"


def asked_shapes(given: Sequence[ShapeRequest]) -> Iterator[AskedShape]:
    if not given:
        raise BadObject("CapacityRequest", "", "shapes", "is empty; name at least one kind of pod")
    if len(given) > MOST_SHAPES:
        raise BadObject("CapacityRequest", "", "shapes", f"has more than {MOST_SHAPES:,}; split the request")
    for number, each in enumerate(given):
        name = each.name or f"shape-{number}"
        if not 0 <= each.replicas <= MOST_REPLICAS:
            why = f"{each.replicas} is not between 0 and {MOST_REPLICAS:,}"
            raise BadObject("CapacityRequest", name, f"shapes[{number}].replicas", why)
        yield AskedShape(name, _pod(each, name, f"shapes[{number}]"), each.replicas)


def _pod(asked: ShapeRequest, name: str, path: str) -> Pod:
    given = [each for each in (asked.pod, asked.spec, asked.requests) if each]
    if len(given) != 1:
        raise BadObject("CapacityRequest", name, path, "needs exactly one of pod, spec and requests")
    if asked.pod is not None:
        pod = asked.pod
    elif asked.spec is not None:
        pod = Pod(spec=asked.spec)
    else:
        own = ResourceRequirements(requests=asked.requests, limits=asked.requests)
        pod = Pod(spec=PodSpec(containers=(Container(name="container", resources=own),)))
    for amounts in _amounts(pod):
        for resource, amount in amounts.items():
            if amount.nanos < 0:
                raise BadObject("CapacityRequest", name, path, f"{resource} {amount} is negative")
    metadata = ObjectMeta(
        name=pod.metadata.name or name,
        namespace=pod.metadata.namespace or "default",
        uid=f"capacity-{name}",
        labels=pod.metadata.labels,
        annotations=pod.metadata.annotations,
    )
    return podrequests.defaulted(structs.replace(pod, metadata=metadata))


def _amounts(pod: Pod) -> Iterator[Mapping[str, quantity.Quantity]]:
    for wants in (pod.spec.resources, *(each.resources for each in pod.in_admission_order())):
        yield wants.requests
        yield wants.limits
    yield pod.spec.overhead


def _looks_around(profile: Profile, pod: Pod) -> bool:
    """Whether the next pod of the kind may be refused for reasons other than amounts and zones."""
    around = any(each.filter is not None and each.concerns(pod) for each in profile.around)
    return around or bool(pod.spec.resource_claims)


def _limited(bound: Bound | None, *, is_bounded: bool) -> Bound | None:
    if not is_bounded or bound is None:
        return bound
    return Bound.AT_MOST if bound is not Bound.AT_LEAST else None


def _allowed(counted: CountedNodes) -> Rows:
    rows = counted.found.rows
    return rows[~np.isin(rows, list(counted.refused))] if counted.refused else rows
