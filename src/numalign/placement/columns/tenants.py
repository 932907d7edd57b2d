"""Who requests what of which node as a whole.

Both flavours report where pods are; this module keeps the columns' totals and counts each pod once. Zones are not
tracked here. Which pods a node has is only kept for nodes that have no row, until they get one."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.placement.columns.columns import Columns

Pairs = tuple[tuple[int, int], ...]


class Tenants:
    """Pods by uid, with the node that they count for."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._node_of: dict[str, str] = {}
        self._requests: dict[str, Pairs] = {}
        self._waiting: dict[str, dict[str, None]] = {}
        """By node that has no row, the uids of its pods."""

    def __contains__(self, uid: str) -> bool:
        """Whether the pod counts for some node."""
        return uid in self._node_of

    def known(self, uids: Iterable[str]) -> list[str]:
        """Those that count for some node."""
        return [] if self._node_of.keys().isdisjoint(uids) else [uid for uid in uids if uid in self._node_of]

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

    def note(self, uid: str, node: str, requests: Pairs) -> None:
        """The same for a pod that is new and in the columns' totals already."""
        self._node_of[uid], self._requests[uid] = node, requests

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
