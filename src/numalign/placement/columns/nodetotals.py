"""The engine's account of node totals: what nodes offer, what pods request of them, and whether there is room.

Both flavours report where pods are; `NodeTotals` counts each pod once and keeps the columns' sums. Verdicts ask `fits`
before any zone is looked at: requests are compared with node allocatable less the requests of all pods on the node, and
a resource that a pod does not ask for never refuses it (kube-scheduler spec, NodeResourcesFit). A deleted pod counts as
long as its containers may run, unlike in the rules of kube-scheduler (`rules.resources.totals`), which let it go at
once. Zones are not tracked here."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from numalign.placement.columns.columns import LARGEST, Columns
from numalign.placement.columns.shapes import Shape


class PodRequests(Struct, frozen=True, dict=True):
    """What a shape asks of a node as a whole, by column; amounts of zero are left out."""

    columns: tuple[int, ...]
    amounts: tuple[int, ...]

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        return tuple(zip(self.columns, self.amounts, strict=True))


def totals(shape: Shape, columns: Columns) -> PodRequests:
    """Worked out once for a shape: columns keep their numbers."""
    known: dict[int, tuple[Columns, PodRequests]] = shape.__dict__.setdefault("_totals", {})
    found = known.get(id(columns))
    if found is None or found[0] is not columns:
        found = known[id(columns)] = columns, _totals(shape, columns)
    return found[1]


def _totals(shape: Shape, columns: Columns) -> PodRequests:
    # One more than the largest amount of any node, so that cutting never makes a pod fit.
    asked = {columns.column(name): min(amount, LARGEST + 1) for name, amount in shape.totals.items() if amount > 0}
    return PodRequests(tuple(asked), tuple(asked.values()))


def fits_row(columns: Columns, row: int, totals: PodRequests) -> bool:
    """Whether the row has room; kernels compare the same for many rows."""
    flat = columns.flat
    if flat.pods[row] >= flat.most_pods[row]:
        return False
    spare, first = flat.spare, row * flat.width
    for column, amount in totals.pairs:  # noqa: SIM110 (a generator takes longer)
        if amount > spare[first + column]:
            return False
    return True


def room(columns: Columns, row: int, totals: PodRequests) -> int:
    """How many such pods the row has room for; kernels compute the same for many rows."""
    most = int(columns.most_pods[row]) - int(columns.pods[row])
    for column, amount in totals.pairs:
        most = min(most, columns.spare.item(row, column) // amount)
    return max(0, most)


Pairs = tuple[tuple[int, int], ...]
"""Columns and amounts."""


class NodeTotals:
    """Pods by uid, with the node that they count for. Only for nodes that have no row it keeps which pods they have."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._node_of: dict[str, str] = {}
        self._requests: dict[str, Pairs] = {}
        self._waiting: dict[str, dict[str, None]] = {}
        """By node that has no row, the uids of its pods."""

    def __contains__(self, uid: str) -> bool:
        """Whether the pod counts for some node."""
        return uid in self._node_of

    def requests(self, uid: str, node: str) -> Pairs | None:
        """What the pod counts for on that node; None: it does not."""
        return self._requests[uid] if self._node_of.get(uid) == node else None

    def put(self, uid: str, node: str, requests: Pairs) -> None:
        """The pod is on this node and nowhere else."""
        before = self._node_of.get(uid)
        if before == node and self._requests[uid] == requests:
            return
        if before is not None:
            self.drop(uid)
        self._node_of[uid], self._requests[uid] = node, requests
        if not self._charge(node, requests, 1):
            self._waiting.setdefault(node, {})[uid] = None

    def drop(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        if not self._charge(node, self._requests.pop(uid), -1):
            del self._waiting[node][uid]
            if not self._waiting[node]:
                del self._waiting[node]

    def arrived(self, node: str) -> None:
        """The node's row was made just now; pods may have been there before."""
        for uid in self._waiting.pop(node, ()):
            self._charge(node, self._requests[uid], 1)

    def left(self, node: str) -> None:
        """The node's row is no more, and what was charged to it is gone; its pods may outlive that."""
        pods = {uid: None for uid, at in self._node_of.items() if at == node}
        if pods:
            self._waiting[node] = pods

    def _charge(self, node: str, requests: Pairs, sign: int) -> bool:
        """Whether there is a row to charge."""
        row = self._columns.rows.get(node)
        if row is None:
            return False
        changes = requests if sign > 0 else [(column, -amount) for column, amount in requests]
        self._columns.charge_totals(row, changes, sign)
        return True
