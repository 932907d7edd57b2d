"""Who requests what of which node as a whole.

Both flavours tell it where pods are; it keeps the columns' totals, each pod counted once however often it is told.
Zones are no affair of it."""

from __future__ import annotations

from collections import defaultdict

from numalign.placement.columns import LARGEST, Columns

Pairs = tuple[tuple[int, int], ...]
Tenant = tuple[str, Pairs]
"""A pod's node and requests; plain, as one is made for every decision."""


class Tenants:
    """Pods by uid, with the node that they count for."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._by_uid: dict[str, Tenant] = {}
        self._by_node: defaultdict[str, set[str]] = defaultdict(set)

    def node_of(self, uid: str) -> str | None:
        tenant = self._by_uid.get(uid)
        return tenant[0] if tenant else None

    def uids_on(self, node: str) -> frozenset[str]:
        return frozenset(self._by_node.get(node, ()))

    def put(self, uid: str, node: str, requests: Pairs) -> None:
        """The pod is on this node and nowhere else."""
        tenant = node, requests
        if self._by_uid.get(uid) != tenant:
            self.drop(uid)
            self._by_uid[uid] = tenant
            self._by_node[node].add(uid)
            self._charge(tenant, 1)

    def note(self, uid: str, node: str, requests: Pairs) -> None:
        """The same for a pod that is new and in the columns' totals already."""
        self._by_uid[uid] = node, requests
        self._by_node[node].add(uid)

    def drop(self, uid: str) -> None:
        tenant = self._by_uid.pop(uid, None)
        if tenant:
            self._by_node[tenant[0]].discard(uid)
            self._charge(tenant, -1)

    def arrived(self, node: str) -> None:
        """The node's row was made just now; pods may have been there before."""
        for uid in self._by_node.get(node, ()):
            self._charge(self._by_uid[uid], 1)

    def _charge(self, tenant: Tenant, sign: int) -> None:
        node, requests = tenant
        row = self._columns.rows.get(node)
        if row is not None:
            changes = [(column, sign * min(amount, LARGEST)) for column, amount in requests]
            self._columns.charge_totals(row, changes, sign)
