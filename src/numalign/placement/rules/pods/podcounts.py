"""Counts pods by namespace and selector for every node, and sums the counts by topology domain.

Spreading and pod affinity query it; equal queries share one array over rows. Pods with equal namespace and labels
are one group, which is matched with a query once. Queries that are no longer used are dropped. A topology domain is
a class of a label's values; rows without the label belong to no domain."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.caches import BoundedCache
from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import AssignedPod, ClusterState, Flags
from numalign.placement.rules.pods.matchers import Matcher
from numalign.placement.rules.rowclasses import ABSENT, Ids, RowClasses, grown

MOST_QUESTIONS: Final = 256
MOST_LABELS: Final = 8192

Counts = NDArray[np.int64]
"""By row, or by class of a label."""
KindKey = tuple[str, frozenset[tuple[str, str]], bool]


class PodScope(Struct, frozen=True):
    """Pods by labels, in these namespaces; None: in all."""

    namespaces: frozenset[str] | None
    selector: Matcher

    def has(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)

    def has_pod(self, pod: Pod) -> bool:
        return self.has(pod.metadata.namespace, pod.metadata.labels)


class PodQuery(Struct, frozen=True):
    """Pods that are in all of the scopes; `staying` leaves out those that are being deleted."""

    scopes: tuple[PodScope, ...]
    staying: bool = False


class PodGroup:
    """Pods with equal namespace and labels, counted by row."""

    def __init__(self, pod: Pod) -> None:
        self.namespace, self.labels = pod.metadata.namespace, pod.metadata.labels
        self.leaving = pod.metadata.deletion_timestamp is not None
        self.rows: dict[int, int] = {}
        self.answers: dict[PodQuery, PodCount] = {}

    def is_in(self, question: PodQuery) -> bool:
        if question.staying and self.leaving:
            return False
        return all(scope.has(self.namespace, self.labels) for scope in question.scopes)


class PodCount:
    def __init__(self, rows: int) -> None:
        self.by_row: Counts = np.zeros(rows, np.int64)

    def add(self, row: int, count: int) -> None:
        self.make_room(row + 1)
        self.by_row[row] += count

    def make_room(self, rows: int) -> None:
        if rows > len(self.by_row):
            self.by_row = grown(self.by_row, rows)


class PodCounts:
    """Counts pods by row; follows a cluster state."""

    def __init__(self, world: ClusterState) -> None:
        self._world = world
        self._kinds: dict[KindKey, PodGroup] = {}
        self._answers: OrderedDict[PodQuery, PodCount] = OrderedDict()
        self._labels = BoundedCache[int, tuple[Mapping[str, str], frozenset[tuple[str, str]]]](MOST_LABELS)
        """By the identity of labels that pods share, which are kept with it, so that nothing else gets it."""
        world.follow(self)

    def by_row(self, question: PodQuery) -> Counts:
        """The counts by row, as long as the cluster state's arrays; read-only, and valid until the next change."""
        answer = self._answers.get(question) or self._asked(question)
        self._answers.move_to_end(question)
        answer.make_room(self._world.capacity)
        return answer.by_row

    def node_changed(self, row: int) -> None:
        """Counts are per row, whatever node it has."""

    def pod_added(self, assigned: AssignedPod) -> None:
        key = self._key(assigned.pod)
        kind = self._kinds.get(key) or self._met(key, assigned.pod)
        kind.rows[assigned.row] = kind.rows.get(assigned.row, 0) + 1
        for answer in kind.answers.values():
            answer.add(assigned.row, 1)

    def pod_removed(self, assigned: AssignedPod) -> None:
        key = self._key(assigned.pod)
        kind = self._kinds[key]
        kind.rows[assigned.row] -= 1
        for answer in kind.answers.values():
            answer.add(assigned.row, -1)
        if kind.rows[assigned.row] == 0:
            del kind.rows[assigned.row]
        if not kind.rows:
            del self._kinds[key]

    def _met(self, key: KindKey, pod: Pod) -> PodGroup:
        kind = self._kinds[key] = PodGroup(pod)
        kind.answers = {question: answer for question, answer in self._answers.items() if kind.is_in(question)}
        return kind

    def _asked(self, question: PodQuery) -> PodCount:
        if len(self._answers) == MOST_QUESTIONS:
            self._forget(next(iter(self._answers)))
        answer = self._answers[question] = PodCount(self._world.capacity)
        for kind in self._kinds.values():
            if kind.is_in(question):
                kind.answers[question] = answer
                for row, count in kind.rows.items():
                    answer.add(row, count)
        return answer

    def _forget(self, question: PodQuery) -> None:
        del self._answers[question]
        for kind in self._kinds.values():
            kind.answers.pop(question, None)

    def _key(self, pod: Pod) -> KindKey:
        meta = pod.metadata
        known = self._labels.get(id(meta.labels))
        if known is None:
            known = self._labels.keep(id(meta.labels), (meta.labels, frozenset(meta.labels.items())))
        return meta.namespace, known[1], meta.deletion_timestamp is not None


N = TypeVar("N", bound=np.generic)


class Domains(Struct, frozen=True):
    """The domain of each row, and a sum for each domain, as of one moment."""

    of_row: Ids
    sums: Counts

    @property
    def labelled(self) -> Flags:
        """Rows that are in a domain."""
        return np.not_equal(self.of_row, ABSENT)

    def at_rows(self) -> Counts:
        return gathered(self.sums, self.of_row)

    def at(self, row: int) -> int:
        return int(self.sums[self.of_row[row]])

    def has(self, row: int) -> bool:
        return bool(self.of_row[row] != ABSENT)


def summed(column: RowClasses[str], by_row: Counts, among: Flags | None = None) -> Domains:
    """`among` limits the rows that count."""
    sums = by_class(column.ids, by_row, among, len(column.values))
    sums[ABSENT] = 0
    return Domains(of_row=column.ids, sums=sums)


def by_class(of_row: Ids, by_row: Counts, among: Flags | None, classes: int) -> Counts:
    """Sums by the class of the row, rows without one included."""
    # Most queries concern pods on few of the rows. Sums are made as floats, exact up to 2**53.
    counting = by_row != 0 if among is None else (by_row != 0) & among
    rows = np.flatnonzero(counting)
    return np.bincount(of_row[rows], weights=by_row[rows], minlength=classes).astype(np.int64)


def gathered(by_class: NDArray[N], of_row: Ids) -> NDArray[N]:
    """The value of its class for each row."""
    # Without the check of every class number this takes half the time.
    return np.take(by_class, of_row, mode="clip")


def present(column: RowClasses[str], among: Flags) -> Flags:
    """By class: whether one of those rows is in that domain."""
    found = np.zeros(len(column.values), np.bool_)
    found[column.ids[among]] = True
    found[ABSENT] = False
    return found
