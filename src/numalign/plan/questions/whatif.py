"""The same cluster, changed: what runs, what moves, what finds no place, and whose pods they are.

`numalign plan what-if` and `sweep` call `compared`. On both sides the pods that wait, and those of a workload, arrive
in the order of their priority. With the change, three kinds of pods arrive beside them: those of nodes that are gone,
those that a changed kubelet refuses, and those that are evicted for others. A pod comes back if its controller creates
it again and it finds a node."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from numalign.api.errors import BadObject
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects import requests, resourcenames
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.placement.capacity import waste
from numalign.placement.columns.shapes import Shape
from numalign.plan.questions import changes, nodes, scene
from numalign.plan.questions.changes import Change
from numalign.plan.questions.nodes import ChangedNode, Refusal
from numalign.plan.questions.scene import Blind, Kind
from numalign.scheduler.choose import filtering
from numalign.scheduler.snapshot.snapshot import Snapshot

MOST_NAMED: Final = 20
GONE, EMPTIED = "its node is gone", "every pod is created again"
REFUSED, EVICTED = "its kubelet refuses it", "evicted for a pod of higher priority"
NOTHING: Final = "it has no controller that creates it again"


class Figures(Struct, frozen=True, kw_only=True, rename="camel"):
    """One side of the comparison."""

    nodes: int
    running: int
    """Pods that have a node in the end, those of the workload included."""
    refused: int = 0
    """Pods that their own kubelet refuses at its start."""
    moved: int = 0
    """Pods that come back on another node, or on the same one after another start."""
    lost: int = 0
    """Pods that ran and do not come back."""
    placed: int = 0
    """Pods that waited, or are of the workload, and find a node."""
    waiting: int = 0
    """Those that do not."""
    rejected_if_blind: int = 0
    """Rejections by kubelets if a scheduler that sees node totals only placed all pods that arrive."""
    free_zones: Mapping[str, int] = {}
    """By device: zones of which every device is free, of nodes that have the device in several zones."""
    stranded: Mapping[str, float] = {}
    """By device: free devices of nodes that have room for a waiting pod by totals, and for none in their zones."""
    capacity: Mapping[str, int] = {}
    """By kind of the workload: how many more fit in the end."""


class Loser(Struct, frozen=True, kw_only=True, rename="camel"):
    """The pods of one owner that ran and do not come back, or that no longer find a node."""

    owner: str
    pods: int
    of: int
    """All its pods that ran or waited."""
    priority: int
    because: str
    """Why they lost their node; empty: they waited."""
    why: str
    """Why no node takes them."""
    names: tuple[str, ...]


class WhatIf(Struct, frozen=True, kw_only=True, rename="camel"):
    now: Figures
    then: Figures
    losers: tuple[Loser, ...] = ()
    """In the order in which their pods failed to come back."""
    unchanged: Mapping[str, tuple[str, ...]] = {}
    """Why nodes are as they were, with their names."""
    problems: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether nothing is lost that ran, and nothing waits that found a node before."""
        return not self.then.lost and not self.losers


class WhatIfQuestion(Struct, frozen=True, kw_only=True):
    change: Change
    kinds: tuple[Kind, ...] = ()
    """A workload that arrives, too."""
    seed: int | None = None
    """The order of arrival among pods of equal priority; None: as they were created."""
    is_blind: bool = True
    """Whether rejections of a scheduler without zones are counted."""


class _Arriving(Struct, frozen=True):
    pod: Pod
    owner: str
    because: str = ""
    why: str = ""
    node: str = ""
    """Where it ran."""

    @property
    def ran(self) -> bool:
        return bool(self.because)


def check(taken: Snapshot, change: Change) -> None:
    """BadObject for nodes that are not there."""
    there = {node.metadata.name for node in taken.every(NODES)}
    for name in sorted((change.nodes or frozenset()) | change.gone):
        if name not in there:
            raise BadObject("Node", name, "", "is not in the cluster; see kubectl get nodes")


def compared(taken: Snapshot, asked: WhatIfQuestion, source: str = "change") -> WhatIf:
    check(taken, asked.change)
    changes.check(asked.change, source)
    taken = structs.replace(taken, state=None)
    neutral = Change(from_empty=asked.change.from_empty)
    now = _Side(taken, structs.replace(asked, change=neutral), source)
    then = _Side(taken, asked, source)
    before = {each.pod.metadata.full_name for each in now.failed}
    return WhatIf(
        now=now.figures(),
        then=then.figures(),
        losers=_losers(
            [each for each in then.failed if each.ran or each.pod.metadata.full_name not in before], then.by_owner
        ),
        unchanged=then.unchanged,
        problems=then.opened.made.problems,
    )


def one(taken: Snapshot, asked: WhatIfQuestion, source: str = "change") -> Figures:
    """The changed side alone."""
    check(taken, asked.change)
    changes.check(asked.change, source)
    return _Side(structs.replace(taken, state=None), asked, source).figures()


class _Side:
    """The cluster with the change, and all pods that arrive in it."""

    def __init__(self, taken: Snapshot, asked: WhatIfQuestion, source: str) -> None:
        change = asked.change
        self._asked, self.unchanged = asked, dict[str, tuple[str, ...]]()
        made = self._made(taken, change, source)
        left, arriving = _leaving(taken, made, change)
        self._refused = sum(each.because == REFUSED for each in arriving)
        self._there: dict[str, _Arriving | None] = {pod.metadata.uid: None for pod in left.every(PODS)}
        """By uid, all pods that have a node; None: it never left its node."""
        self._nodes = len(left.every(NODES))
        self.opened = scene.opened(left, asked.seed or 0, change.strategy)
        blind = Blind(left, asked.seed or 0) if asked.is_blind else None
        arriving += [_Arriving(copy, kind.name) for kind, copy in scene.copies(asked.kinds)]
        self.by_owner: dict[str, int] = {}
        for each in arriving:
            self.by_owner[each.owner] = self.by_owner.get(each.owner, 0) + 1
        for pod in left.every(PODS):
            self.by_owner[_owner(pod)] = self.by_owner.get(_owner(pod), 0) + 1
        self.failed: list[_Arriving] = []
        self._play(_in_order(arriving, asked.seed))
        if blind is not None:
            for each in _in_order(arriving, asked.seed):
                if _comes_back(each):
                    blind.place(_fresh(each))
        self._rejected = blind.rejected if blind is not None else 0

    def _made(self, taken: Snapshot, change: Change, source: str) -> dict[str, ChangedNode]:
        """The nodes that are different."""
        if not change.is_of_nodes:
            return {}
        names = None if change.nodes is None else change.nodes - change.gone
        made, unchanged = {}, dict[str, list[str]]()
        for name, each in nodes.known(taken, names).items():
            if name in change.gone:
                continue
            found = nodes.changed(each, change, source)
            made[name] = found
            if found.problem:
                unchanged.setdefault(found.problem, []).append(name)
        if made and len(made) == sum(map(len, unchanged.values())):
            why = "; ".join(unchanged)
            raise BadObject("Cluster", "", "", f"no node can be changed: {why}")
        self.unchanged = {why: tuple(sorted(names)) for why, names in unchanged.items()}
        return made

    def _play(self, arriving: Iterable[_Arriving]) -> None:
        queue = deque(arriving)
        while queue:
            each = queue.popleft()
            if not _comes_back(each):
                self.failed.append(structs.replace(each, why=each.why or NOTHING))
                continue
            pod = _fresh(each)
            found = self.opened.arrivals.place(pod)
            if found is None:
                self.failed.append(structs.replace(each, why=scene.why_not(self.opened, pod)))
                continue
            self._there[pod.metadata.uid] = each
            for victim in found.preempted.victims.pods if found.preempted is not None else ():
                known = self._there.pop(victim.metadata.uid, None)
                queue.append(known or _Arriving(victim, _owner(victim), EVICTED, node=victim.spec.node_name))

    def figures(self) -> Figures:
        lost = [each for each in self.failed if each.ran]
        waiting = [each for each in self.failed if not each.ran]
        shapes = [shape for each in waiting if (shape := self._shape(each.pod)) is not None]
        devices = self._devices()
        engine = self.opened.made.engine
        kinds = self._asked.kinds
        counted = self.opened.service.counted([scene.asked(kind) for kind in kinds], None) if kinds else []
        return Figures(
            nodes=self._nodes,
            running=len(self._there),
            refused=self._refused,
            moved=sum(each is not None and each.ran for each in self._there.values()),
            lost=len(lost),
            placed=sum(each is not None and not each.ran for each in self._there.values()),
            waiting=len(waiting),
            rejected_if_blind=self._rejected,
            free_zones={name: waste.free_zones(engine, name) for name in devices},
            stranded={name: waste.stranded(engine, name, _asking(shapes, name)) for name in devices},
            capacity={kind.name: own.found.total for kind, own in zip(kinds, counted, strict=True)},
        )

    def _devices(self) -> list[str]:
        made = self.opened.made
        found = {
            name
            for row in made.engine.rows
            if (node := made.cluster.node_named(row)) is not None
            for name, amount in node.status.allocatable.items()
            if resourcenames.is_extended(name) and amount.nanos
        }
        return sorted(found)

    def _shape(self, pod: Pod) -> Shape | None:
        try:
            return filtering.shape(self.opened.arrivals.profile(pod), self.opened.made.engine, pod)
        except BadObject:
            return None


def _asking(shapes: Iterable[Shape], device: str) -> list[tuple[Shape, None]]:
    """Those that ask for the device, on whatever row."""
    return [(shape, None) for shape in shapes if device in requests.effective(shape.pod)]


def _leaving(taken: Snapshot, made: Mapping[str, ChangedNode], change: Change) -> tuple[Snapshot, list[_Arriving]]:
    """The cluster without what is gone, and the pods that arrive in it."""
    refused: dict[str, Refusal] = {each.pod.metadata.uid: each for node in made.values() for each in node.refused}
    stays, arriving = list[Pod](), list[_Arriving]()
    for pod in taken.every(PODS):
        if pod.status.is_finished or pod.spec.scheduling_gates:
            continue
        found = _fate(pod, change, refused)
        if found is None:
            stays.append(pod)
        # Pods that belong to a node end with it.
        elif found.because != GONE or not scene.is_of_node(pod):
            arriving.append(found)
    objects = {
        **taken.objects,
        NODES.plural: tuple(_node(node, made) for node in taken.every(NODES) if node.metadata.name not in change.gone),
        TOPOLOGIES.plural: tuple(each for name, each in _reports(taken, made, change) if name not in change.gone),
        PODS.plural: tuple(stays),
    }
    return structs.replace(taken, objects=objects), arriving


def _fate(pod: Pod, change: Change, refused: Mapping[str, Refusal]) -> _Arriving | None:
    """None: the pod stays on its node."""
    node = pod.spec.node_name
    if not node:
        return _Arriving(pod, _owner(pod))
    if node in change.gone:
        return _Arriving(pod, _owner(pod), GONE, node=node)
    if change.from_empty:
        # Pods that belong to a node start with it.
        return None if scene.is_of_node(pod) else _Arriving(pod, _owner(pod), EMPTIED, node=node)
    if pod.metadata.uid in refused:
        return _Arriving(pod, _owner(pod), REFUSED, refused[pod.metadata.uid].why, node)
    return None


def _node(node: Node, made: Mapping[str, ChangedNode]) -> Node:
    return made[node.metadata.name].node if node.metadata.name in made else node


def _reports(
    taken: Snapshot, made: Mapping[str, ChangedNode], change: Change
) -> Iterator[tuple[str, NodeResourceTopology]]:
    known = nodes.known(taken) if change.from_empty else {}
    for each in taken.every(TOPOLOGIES):
        name = each.metadata.name
        empty = nodes.emptied(known[name]) if name in known else each
        changed = made[name].report if name in made else empty
        if changed is not None:
            yield name, changed


def _in_order(arriving: Sequence[_Arriving], seed: int | None) -> list[_Arriving]:
    """By priority; among equals those that ran come first, in the order of creation or of the seed."""
    listed = list(arriving)
    if seed is not None:
        listed = scene.shuffled(listed, seed)
    else:
        listed.sort(key=lambda each: each.pod.metadata.creation_timestamp or "~")
    return sorted(listed, key=lambda each: (-each.pod.spec.priority, not each.ran))


def _comes_back(each: _Arriving) -> bool:
    """Whether there is something that creates the pod again. A pod that waits is there already."""
    return (
        not each.ran
        or each.because == EMPTIED
        or (each.pod.metadata.controller is not None and not scene.is_of_node(each.pod))
    )


def _fresh(each: _Arriving) -> Pod:
    return scene.again(each.pod) if each.ran else each.pod


def _owner(pod: Pod) -> str:
    owner = pod.metadata.controller
    if owner is None:
        return f"Pod {pod.metadata.full_name}"
    return f"{owner.kind} {pod.metadata.namespace}/{owner.name}"


def _losers(failed: Sequence[_Arriving], by_owner: Mapping[str, int]) -> tuple[Loser, ...]:
    groups: dict[tuple[str, str], list[_Arriving]] = {}
    for each in failed:
        groups.setdefault((each.owner, each.because), []).append(each)
    return tuple(
        Loser(
            owner=owner,
            pods=len(own),
            of=by_owner.get(owner, len(own)),
            priority=own[0].pod.spec.priority,
            because=because,
            why=own[0].why,
            names=tuple(each.pod.metadata.full_name for each in own[:MOST_NAMED]),
        )
        for (owner, because), own in groups.items()
    )
