"""The storm guard: a node that turned away a pod of some shape gets no more of that shape for a while.

Without it, a controller that replaces a rejected pod and a scheduler that believes in the node keep each other busy for
ever. `intake` tells of rejections and of nodes that changed, `cycle` asks whom to keep off. A shape comes back to a
node when its pause is over and the node has changed since; each rejection doubles the pause. Pure: time is an
argument."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.pod import Pod
from numalign.placement.rules.rule import Rows

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 300.0
PATIENCE: Final = 300.0
"""Seconds after its pause when a node is tried again although nothing is known to have changed there."""
MEMORY: Final = 3600.0
"""Seconds after which a rejection is forgotten, if none followed."""
REASONS: Final = frozenset({"TopologyAffinityError", "UnexpectedAdmissionError", "SMTAlignmentError"})
"""What kubelets write into the status of a pod that they do not admit, where resources are the matter."""
OUT_OF: Final = "OutOf"


class Kept(Struct):
    until: float
    last: float
    count: int = 1
    changed: bool = False
    told: bool = False
    """Whether the end of it was."""


class Rejections:
    def __init__(self) -> None:
        self._kept: dict[int, dict[str, Kept]] = {}
        """By shape's number and node."""

    def rejected(self, shape: int, node: str, now: float) -> float:
        """A pod of the shape was turned away; for how many seconds its like is kept off at least."""
        nodes = self._kept.setdefault(shape, {})
        before = nodes.get(node)
        count = before.count + 1 if before is not None and now - before.last < MEMORY else 1
        pause = min(FIRST_PAUSE * 2.0 ** min(count - 1, 30), LONGEST_PAUSE)
        nodes[node] = Kept(now + pause, now, count)
        return pause

    def changed(self, node: str) -> None:
        """The node is not as it was: something was freed, or it reported."""
        for nodes in self._kept.values():
            if node in nodes:
                nodes[node].changed = True

    def gone(self, node: str) -> None:
        for nodes in self._kept.values():
            nodes.pop(node, None)

    def kept_off(self, shape: int, rows: dict[str, int], now: float) -> Rows | None:
        """Rows that pods of the shape do not go to now; None: none."""
        nodes = self._kept.get(shape)
        if not nodes:
            return None
        found = [rows[name] for name, kept in nodes.items() if name in rows and is_on(kept, now)]
        return np.array(sorted(found), np.intp) if found else None

    def ended(self, now: float) -> list[str]:
        """Nodes that take pods again which they were kept off; each is told once. Old rejections are forgotten."""
        ended: set[str] = set()
        for shape, nodes in list(self._kept.items()):
            for name, kept in list(nodes.items()):
                if not kept.told and not is_on(kept, now):
                    kept.told = True
                    ended.add(name)
                if now - kept.last >= MEMORY:
                    del nodes[name]
            if not nodes:
                del self._kept[shape]
        return sorted(ended)

    def keep(self, shape: int, node: str, kept: Kept) -> None:
        """As it stood elsewhere."""
        self._kept.setdefault(shape, {})[node] = kept

    def __iter__(self) -> Iterator[tuple[int, str, Kept]]:
        return ((shape, name, kept) for shape, nodes in self._kept.items() for name, kept in nodes.items())

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))


def is_on(kept: Kept, now: float) -> bool:
    return now < kept.until or (not kept.changed and now < kept.until + PATIENCE)


def is_rejection(pod: Pod) -> bool:
    """Whether its node did not admit it; a pod that ran and failed has started."""
    reason = pod.status.reason
    return pod.status.phase == "Failed" and (reason in REASONS or reason.startswith(OUT_OF)) and not pod.has_started
