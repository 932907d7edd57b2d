"""Who requests what of which node as a whole.

Both flavours tell it where pods are; it keeps the columns' totals, each pod counted once however often it is told.
Zones are no affair of it. Decisions come in batches: whose they are is known at once, the rest is put down when it is
needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from numalign.placement.columns import LARGEST, Columns

Pairs = tuple[tuple[int, int], ...]


class Tenants:
    """Pods by uid, with the node that they count for."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._node_of: dict[str, str] = {}
        self._requests: defaultdict[str, dict[str, Pairs]] = defaultdict(dict)
        """By node and uid."""
        self._noted: list[str] = []
        """Pods that are not in there yet, what they request beside."""
        self._noted_requests: list[Pairs] = []

    def known(self, uids: Iterable[str]) -> list[str]:
        """Those that count for some node."""
        return [] if self._node_of.keys().isdisjoint(uids) else [uid for uid in uids if uid in self._node_of]

    def requests(self, uid: str, node: str) -> Pairs | None:
        """What the pod counts for on that node; None: it does not."""
        self._settle()
        return self._requests[node].get(uid) if self._node_of.get(uid) == node else None

    def put(self, uid: str, node: str, requests: Pairs) -> None:
        """The pod is on this node and nowhere else."""
        self._settle()
        if self._node_of.get(uid) != node or self._requests[node][uid] != requests:
            self.drop(uid)
            self._node_of[uid] = node
            self._requests[node][uid] = requests
            self._charge(node, requests, 1)

    def note(self, uids: Sequence[str], nodes: Sequence[str], requests: Pairs) -> None:
        """The same for pods that are new and in the columns' totals already."""
        self._node_of.update(zip(uids, nodes))  # noqa: B905
        self._noted += uids
        self._noted_requests += [requests] * len(uids)

    def drop(self, uid: str) -> None:
        self._settle()
        node = self._node_of.pop(uid, None)
        if node is not None:
            self._charge(node, self._requests[node].pop(uid), -1)

    def arrived(self, node: str) -> None:
        """The node's row was made just now; pods may have been there before."""
        self._settle()
        for requests in self._requests[node].values() if node in self._requests else ():
            self._charge(node, requests, 1)

    def _settle(self) -> None:
        if self._noted:
            for uid, requests in zip(self._noted, self._noted_requests, strict=True):
                self._requests[self._node_of[uid]][uid] = requests
            self._noted.clear()
            self._noted_requests.clear()

    def _charge(self, node: str, requests: Pairs, sign: int) -> None:
        row = self._columns.rows.get(node)
        if row is not None:
            changes = [(column, sign * min(amount, LARGEST)) for column, amount in requests]
            self._columns.charge_totals(row, changes, sign)
