"""The storm guard: keeps pods of one shape off a node whose kubelet rejected a pod of that shape.

Without it a controller that replaces a rejected pod and a scheduler that selects the same node again would loop.
`intake` reports rejections and changed nodes; `choose` asks which nodes to avoid. One rejection of a pod that this
scheduler placed is enough for all pods of its shape. Of pods placed by others only replicas of one owner count, from
the second rejection on, and only for that owner's pods. A shape is allowed again when its back-off has ended and the
node has changed since; each rejection doubles the back-off. The number of records is bounded. Pure: time is an
argument."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.kube.backoff import Exponential
from numalign.placement.explain import wording

BACKOFF: Final = Exponential(first=1.0, longest=300.0)
PATIENCE: Final = 300.0
"""Seconds after its pause when a node is tried again although nothing is known to have changed there."""
MEMORY: Final = 3600.0
"""Seconds after which a rejection is forgotten, if none followed."""
MOST_KEPT: Final = 8192
"""Beyond that, what happened longest ago is forgotten."""
ENOUGH_OF_OTHERS: Final = 2
"""Rejections of an owner's replicas within `MEMORY` that are more than an accident."""
K = TypeVar("K")
V = TypeVar("V")


class Replicas(NamedTuple):
    """Pods of one shape and one controller, by its uid, no matter which scheduler places them."""

    owner: str
    shape: int


Like = int | Replicas
"""Who is kept off: all pods of a shape, by its number, or some of them."""
TEXTS: Final[Mapping[type, str]] = MappingProxyType(
    {
        int: wording.REJECTED,
        Replicas: wording.REJECTED_REPLICAS,
    }
)
NO_NODES: Final[Mapping[int, str]] = MappingProxyType({})


class GuardedNode(Struct):
    until: float
    last: float
    count: int = 1
    changed: bool = False
    end_reported: bool = False
    """Whether `ended` has returned the node."""
    reason: str = ""
    """What the kubelet said last."""


class StormGuard:
    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Like, str], GuardedNode] = OrderedDict()
        """By who and node; the latest rejection comes last."""
        self._nodes: dict[Like, set[str]] = {}
        self._likes: dict[str, set[Like]] = {}
        """By node."""

    def rejected(self, like: Like, node: str, reason: str, now: float) -> float:
        """Records a rejection. Returns the seconds for which the node is avoided at least; 0: it is not."""
        before = self._kept.get((like, node))
        count = before.count + 1 if before is not None and now - before.last < MEMORY else 1
        further = count - (ENOUGH_OF_OTHERS if isinstance(like, Replicas) else 1)
        if further < 0:
            self.keep(like, node, GuardedNode(now, now, count, changed=True, end_reported=True, reason=reason))
            return 0.0
        pause = BACKOFF.pause(further + 1)
        self.keep(like, node, GuardedNode(now + pause, now, count, reason=reason))
        return pause

    def changed(self, node: str) -> None:
        """The node is not as it was: something was freed, or it reported."""
        for like in self._likes.get(node, ()):
            self._kept[like, node].changed = True

    def gone(self, node: str) -> None:
        for like in tuple(self._likes.get(node, ())):
            self._forget(like, node)

    def has(self, node: str) -> bool:
        """Whether the node rejected some pods lately."""
        return node in self._likes

    def kept_off(self, pod: Pod, shape: int, rows: Mapping[str, int], now: float) -> Mapping[int, str]:
        """Rows that the pod does not go to now, each with why."""
        if not self._kept:
            return NO_NODES
        found = dict[int, str]()
        for like in _likes(pod, shape):
            for node in self._nodes.get(like, ()):
                kept = self._kept[like, node]
                if node in rows and is_on(kept, now):
                    found.setdefault(rows[node], f"{TEXTS[type(like)]} ({kept.reason})")
        return found or NO_NODES

    def ended(self, now: float) -> list[str]:
        """Nodes that are allowed again, each returned once. Drops old records."""
        ended: set[str] = set()
        for (_, node), kept in self._kept.items():
            if not kept.end_reported and not is_on(kept, now):
                kept.end_reported = True
                ended.add(node)
        while self._kept and now - next(iter(self._kept.values())).last >= MEMORY:
            self._forget(*next(iter(self._kept)))
        return sorted(ended)

    def keep(self, like: Like, node: str, kept: GuardedNode) -> None:
        """As it stands from now on, or stood elsewhere."""
        self._kept[like, node] = kept
        self._kept.move_to_end((like, node))
        self._nodes.setdefault(like, set()).add(node)
        self._likes.setdefault(node, set()).add(like)
        if len(self._kept) > MOST_KEPT:
            self._forget(*next(iter(self._kept)))

    def _forget(self, like: Like, node: str) -> None:
        del self._kept[like, node]
        _take(self._nodes, like, node)
        _take(self._likes, node, like)

    def __iter__(self) -> Iterator[tuple[Like, str, GuardedNode]]:
        return ((like, node, kept) for (like, node), kept in self._kept.items())

    def __len__(self) -> int:
        return len(self._kept)


def replicas(pod: Pod, shape: int) -> Replicas | None:
    """The replicas that the pod is one of; None: no controller would replace it."""
    owner = pod.metadata.controller
    return Replicas(owner.uid, shape) if owner is not None else None


def is_on(kept: GuardedNode, now: float) -> bool:
    return now < kept.until or (not kept.changed and now < kept.until + PATIENCE)


def _likes(pod: Pod, shape: int) -> tuple[Like, ...]:
    owned = replicas(pod, shape)
    return (shape,) if owned is None else (shape, owned)


def _take(book: dict[K, set[V]], key: K, value: V) -> None:
    book[key].discard(value)
    if not book[key]:
        del book[key]
