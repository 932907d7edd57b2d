"""Decisions that the ledger does not know yet.

They were made on the columns alone; `mirror` keeps them here and enters them together, before anybody looks into the
ledger again. A pod that is seen on its node before that, as it was decided, is nothing new: it is entered as bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from numalign.api.pod import Pod
from numalign.placement import shapes
from numalign.placement.decisions import Decision

NOT_BEGUN: Final = ("", "Pending")

Entered = tuple[Decision, int, int, Pod | None]
"""A decision, its row, the row's tenure before, and the pod as it was seen on its node, if it was."""


class Entering:
    """Side by side: a tuple for each of a hundred thousand pods would keep the garbage collector busy."""

    __slots__ = ("_by_uid", "_decisions", "_indexed", "_rows", "_seen", "_tenures")

    def __init__(self) -> None:
        self._decisions: list[Decision] = []
        self._rows: list[int] = []
        self._tenures: list[int] = []
        self._by_uid: dict[str, Decision] = {}
        self._indexed = 0
        """How many of the decisions can be found by uid: as many as there were when somebody last asked."""
        self._seen: dict[str, Pod] = {}

    def __bool__(self) -> bool:
        return bool(self._decisions)

    def __iter__(self) -> Iterator[Entered]:
        seen = self._seen
        for decision, row, tenure in zip(self._decisions, self._rows, self._tenures, strict=True):
            yield decision, row, tenure, seen.get(decision.uid)

    def add(self, decisions: Sequence[Decision], rows: Sequence[int], tenures: Sequence[int]) -> None:
        self._decisions.extend(decisions)
        self._rows.extend(rows)
        self._tenures.extend(tenures)

    def confirms(self, uid: str, pod: Pod) -> bool:
        """Whether a pod that was seen is just what was decided; if so, that is noted.

        Of plain pods only the containers can change, and what is told of how they fare."""
        if self._indexed < len(self._decisions):
            for decision in self._decisions[self._indexed :]:
                self._by_uid[decision.uid] = decision
            self._indexed = len(self._decisions)
        decided, spec, status = self._by_uid.get(uid), pod.spec, pod.status
        if decided is None or decided.pod is None or decided.node != spec.node_name:
            return False
        as_decided = spec.containers is decided.pod.spec.containers and shapes.is_plain(pod)
        if not as_decided or status.phase not in NOT_BEGUN or status.init_container_statuses:
            return False
        self._seen[uid] = pod
        return True
