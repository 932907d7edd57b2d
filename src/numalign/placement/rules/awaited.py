"""Nodes of which something is awaited for some time: the first report of a Ready node, or a kubelet that comes back.

`scheduler.choose.cluster` calls `put` and `drop` with what it sees and `tick` as time passes; `TopologyReports`
(`rules.nodes`) filters with it. A publisher starts with its node, so that the first report of a new node comes soon
after the node is Ready. A kubelet that is stopped for longer makes its Node not Ready. Time is an argument, in seconds
of any steady clock."""

from __future__ import annotations

from typing import Final

NOT_READY: Final = float("inf")


class AwaitedNodes:
    def __init__(self) -> None:
        self.generation = 0
        """Raised whenever another set of nodes is awaited."""
        self._since: dict[int, float] = {}
        """By row: since when the node is awaited; for a first report, when the node was first seen Ready."""
        self._graces: set[float] = set()
        self._now = 0.0

    def watch(self, grace: float) -> None:
        """From now on `tick` says when this grace period ends."""
        self._graces.add(grace)

    def put(self, row: int, now: float, *, is_ready: bool) -> None:
        """The node of this row is awaited. Its grace period begins when it becomes Ready."""
        before = self._since.get(row, NOT_READY)
        since = NOT_READY if not is_ready else now if before == NOT_READY else before
        if row not in self._since or since != before:
            self._since[row] = since
            self.generation += 1

    def drop(self, row: int) -> None:
        """The node is not awaited any more, or is gone."""
        if self._since.pop(row, None) is not None:
            self.generation += 1

    def waiting(self, grace: float) -> list[int]:
        """Rows of nodes that are still awaited: they are not Ready, or not for so long."""
        return [row for row, since in self._since.items() if since == NOT_READY or since + grace > self._now]

    def since(self, row: int) -> float | None:
        """When the node's grace period began; None: it is not awaited, or not Ready."""
        found = self._since.get(row, NOT_READY)
        return None if found == NOT_READY else found

    def __len__(self) -> int:
        """All of them, whether their grace periods have ended or not."""
        return len(self._since)

    def tick(self, now: float) -> list[int]:
        """Time passed; rows of nodes for which a grace period has ended since the last call."""
        before, self._now = self._now, now
        ended = [
            row for row, since in self._since.items() if any(before < since + grace <= now for grace in self._graces)
        ]
        self.generation += bool(ended)
        return ended
