"""Node totals: what each node offers to pods, and what its pods request.

`ClusterState` writes, the resource plugins read, by [column, row]. cpu counts in millicores, everything else in
units, rounded up. Additions wrap around as kube-scheduler's int64 does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter, is_
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.caches import BoundedCache, LruCache
from numalign.api.decode import quantity
from numalign.api.objects import requests, resourcenames
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Container, Pod, ResourceList
from numalign.placement.columns.changelog import ChangeLog
from numalign.placement.rules import nodeamounts
from numalign.placement.rules.alike import VACANT, AlikeRows
from numalign.placement.rules.nodeamounts import AmountRanks, Amounts, AmountsKernel, AmountTerms, RankedRows
from numalign.placement.rules.rowclasses import Follows, Rows, RowTable, Small, grown

CPU, MEMORY = 0, 1
SCORED: Final = (CPU, MEMORY)
FIRST: Final[tuple[str, ...]] = (resourcenames.CPU, resourcenames.MEMORY, "ephemeral-storage")
"""The resources that come first in every list of reasons."""
NOWHERE: Final = len(FIRST)
"""A column that stays empty, for resources that no node and no pod on one knows: waiting pods can make up any name."""
PODS: Final = "pods"
ATTACHABLE_PREFIX: Final = "attachable-volumes-"
FIRST_COLUMNS: Final = 8
MOST_TABLES: Final = 256
MOST_READ: Final = 8192
MOST_NUMBERS: Final = 32_768
OVERFLOW: Final = 1 << 63
MANY: Final = 256
"""Rows from which it pays to ask how many of them are alike."""

T = TypeVar("T")
N = TypeVar("N", np.int32, np.int64)
CountedAmounts = Mapping[str, int]
"""By resource, as the totals count them."""
ASKING: Final = attrgetter("containers", "init_containers", "resources", "overhead")


class Charge(Struct, frozen=True):
    """What one pod counts for: amounts by column, and the cpu and memory that scores assume."""

    amounts: tuple[tuple[int, int], ...]
    scored: tuple[int, int]

    def of(self, column: int) -> int:
        return next((amount for each, amount in self.amounts if each == column), 0)


class ByAmounts(Struct, frozen=True):
    """What follows from amounts, by row: codes, or scores before weights."""

    terms: AmountTerms
    amounts: Totals

    def rows(self, rows: Rows) -> Small:
        return self.amounts.evaluated(self.terms, rows)

    def row(self, row: int) -> int:
        return nodeamounts.evaluated(self.terms, self.amounts, row)


class Best(NamedTuple):
    rank: int
    fitting: int
    """Rows that have a rank at all."""


class Totals:
    def __init__(self, rows: int) -> None:
        self.columns: dict[str, int] = {name: column for column, name in enumerate((*FIRST, ""))}
        self.allocatable: Amounts = np.zeros((FIRST_COLUMNS, rows), np.int64)
        self.requested: Amounts = np.zeros((FIRST_COLUMNS, rows), np.int64)
        self.scored: Amounts = np.zeros((2, rows), np.int64)
        """cpu and memory requested, with what a container that asks for nothing is taken to need."""
        self.pods: Amounts = np.zeros(rows, np.int64)
        self.most_pods: Amounts = np.zeros(rows, np.int64)
        self.log = ChangeLog()
        self.likes: list[int] = [VACANT] * rows
        """By row, a number: rows that have the same one offer the same, and have as much of it taken. `VACANT`: a row
        without node and pods."""
        self._numbers: BoundedCache[bytes, int] = BoundedCache(MOST_NUMBERS)
        self._moves: BoundedCache[tuple[int, int, int], tuple[Charge, int]] = BoundedCache(MOST_NUMBERS)
        """By number, charge and sign, the number after it. A charge is known by its identity, and kept."""
        self._latest = 0
        self._offered: list[ResourceList | None] = [None] * rows
        """None: there is no node."""
        self.kernel: Callable[[], AmountsKernel] = lambda: nodeamounts
        """What evaluates amounts: asked again every time, because machine code may be loaded meanwhile."""
        self._view()
        self._alike = AlikeRows(self)
        self._tables: LruCache[Follows, RowTable] = LruCache(MOST_TABLES)
        self._once: LruCache[Hashable, dict[Hashable, Any]] = LruCache(MOST_READ)
        """By what a pod asks for, what was read of it."""
        self._latest_read: tuple[tuple[object, ...], dict[Hashable, Any]] = (None,) * 4, {}
        """With the parts of the spec that say what the pod asks for."""
        self._charges: BoundedCache[int, tuple[tuple[Container, ...], Charge]] = BoundedCache(MOST_READ)

    def column(self, name: str) -> int:
        """The resource's column, a new one if it has none; arrays may be replaced by longer ones."""
        if name not in self.columns:
            self.columns[name] = column = len(self.columns)
            if column == len(self.allocatable):
                self.allocatable = grown(self.allocatable.T, 2 * column).T.copy()
                self.requested = grown(self.requested.T, 2 * column).T.copy()
                self._view()
        return self.columns[name]

    def known(self, name: str) -> int:
        """The resource's column, `NOWHERE` if it has none."""
        return self.columns.get(name, NOWHERE)

    def offer(self, row: int, node: Node | None) -> None:
        """What the node says it has for pods; nothing when it is gone."""
        offered = node.allocatable if node else None
        if offered == self._offered[row]:
            return
        self._offered[row] = offered
        amounts = self._by_column(counted_amounts(offered or {}))
        self.allocatable[:, row] = 0
        for column, amount in amounts:
            self.allocatable[column, row] = amount
        self.most_pods[row] = offered[PODS].value if offered and PODS in offered else 0
        self.likes[row] = VACANT if offered is None and self._has_no_pods(row) else self._number(row)
        self.log.append(row)

    def table(self, follows: Follows) -> Small:
        """By row, what follows from amounts, kept for all that are equal to it. The array is not to be written to, nor
        to be kept beyond the next change."""
        return self._tables.get(follows, lambda: RowTable(follows)).current(self.log, self._every_row)

    def evaluated(self, terms: AmountTerms, rows: Rows) -> Small:
        """What follows from the amounts of these rows, evaluated once for those that are alike."""
        alike = self._kinds_of(rows)
        if alike is None:
            return self.kernel().amounts(terms, self, rows)
        found = self._by_kind(terms, alike)
        # Most pods fit every kind of nodes, and gathering as many zeros takes longer than making them.
        if not found.any():
            return np.zeros(len(rows), np.int32)
        return _gathered(found, alike, rows, self._every_row)

    def summed(self, weighted: Sequence[tuple[int, AmountTerms]], rows: Rows, same: int = 0) -> Amounts:
        """The weighted sum of several, and of what is the same for all rows. Rows that are alike are added up once."""
        alike = self._kinds_of(rows)
        total: Amounts = np.full(len(rows) if alike is None else alike.count, same, np.int64)
        for weight, terms in weighted:
            part = self.kernel().amounts(terms, self, rows) if alike is None else self._by_kind(terms, alike)
            total += np.int64(weight) * part
        return total if alike is None else _gathered(total, alike, rows, self._every_row)

    def ranked(self, terms: AmountRanks, rows: Rows) -> Small:
        """What these rules say about each of the rows, as `AmountsKernel.ranked` has it."""
        return self.kernel().ranked(terms, self, rows)

    def rank(self, terms: AmountRanks, base: Small, codes: NDArray[np.uint8], by_code: Small, ranks: Small) -> Best:
        """The same about the first rows, so many as there are `ranks`, with what else is added, as
        `AmountsKernel.rank` has it."""
        every_row, count = self._every_row, len(ranks)
        alike = self._kinds_of(every_row)
        columns, places, place = (self, every_row, every_row) if alike is None else (alike, alike.places, alike.of_row)
        rows = RankedRows(place[:count], base[:count], codes, by_code)
        return Best(*self.kernel().rank(terms, columns, places, rows, ranks))

    def _kinds_of(self, rows: Rows) -> AlikeRows | None:
        """The kinds of rows, as they are now; None: to evaluate these rows one by one takes less."""
        if len(rows) < MANY:
            return None
        self._alike.refresh()
        return self._alike if self._alike.count <= len(rows) else None

    def _by_kind(self, terms: AmountTerms, alike: AlikeRows) -> Small:
        found = self.kernel().amounts(terms, alike, alike.places)
        found[VACANT] = 0
        return found

    def once(self, what: Hashable, pod: Pod, read: Callable[[], T]) -> T:
        """What is read from the amounts in a pod's spec, read once for all its replicas: adding them up takes longer
        than recognising them. `what` stands for the function."""
        known, key = self._read_of(pod), (what, len(self.columns))
        if key not in known:
            known[key] = read()
        found: T = known[key]
        return found

    def asked(self, pod: Pod) -> CountedAmounts:
        """What the pod requests, whatever its status says."""
        return self.once(counted_amounts, pod, lambda: counted_amounts(requests.effective(pod)))

    def held(self, pod: Pod) -> CountedAmounts:
        """What the pod counts for on its node: what it requests, unless it is being resized."""
        return counted_amounts(requests.assigned(pod)) if requests.is_resized(pod) else self.asked(pod)

    def _read_of(self, pod: Pod) -> dict[Hashable, Any]:
        """What was read of pods that ask for the same."""
        asking, (before, known) = ASKING(pod.spec), self._latest_read
        # Several rules ask about a pod, one after the other.
        if all(map(is_, asking, before)):
            return known
        known = self._once.get(_written(pod), dict)
        self._latest_read = asking, known
        return known

    def charge_of(self, pod: Pod) -> Charge:
        spec = pod.spec
        if requests.is_resized(pod):
            return self._charge_of(pod)
        if spec.init_containers or spec.overhead or spec.resources.requests:
            return self.once(Charge, pod, lambda: self._charge_of(pod))
        # Containers are mostly one object for all pods of a kind; kept here, nothing else gets its identity.
        known = self._charges.get(id(spec.containers))
        if known is None:
            charge = self.once(Charge, pod, lambda: self._charge_of(pod))
            known = self._charges.keep(id(spec.containers), (spec.containers, charge))
        return known[1]

    def add(self, row: int, charge: Charge) -> None:
        self._move(row, charge, 1)

    def subtract(self, row: int, charge: Charge) -> None:
        self._move(row, charge, -1)

    def grow(self, rows: int) -> None:
        for name in ("allocatable", "requested", "scored", "pods", "most_pods"):
            setattr(self, name, grown(getattr(self, name), rows))
        self._view()
        self._offered += [None] * (rows - len(self._offered))
        self.likes += [VACANT] * (rows - len(self.likes))

    def _view(self) -> None:
        """Arrays were replaced. A pod changes single numbers, and views of the same in one line are quicker at that:
        column after column, each as long as there are rows."""
        self._requested_at, self._scored_at = _in_line(self.requested), _in_line(self.scored)
        self._pods_at = self.pods.data
        self._every_row: Rows = np.arange(len(self.pods))

    def _charge_of(self, pod: Pod) -> Charge:
        held = self.held(pod)
        scored = held if is_complete(pod) else counted_amounts(requests.scored(pod, requests.assigned(pod)))
        return Charge(self._by_column(held), (scored.get(resourcenames.CPU, 0), scored.get(resourcenames.MEMORY, 0)))

    def _by_column(self, amounts: CountedAmounts) -> tuple[tuple[int, int], ...]:
        return tuple([(self.column(name), amount) for name, amount in amounts.items()])

    def _move(self, row: int, charge: Charge, sign: int) -> None:
        requested, scored, rows = self._requested_at, self._scored_at, len(self._pods_at)
        for column, amount in charge.amounts:
            place = column * rows + row
            requested[place] = _wrapped(requested[place] + sign * amount)
        cpu, memory = charge.scored
        at_cpu, at_memory = CPU * rows + row, MEMORY * rows + row
        scored[at_cpu] = _wrapped(scored[at_cpu] + sign * cpu)
        scored[at_memory] = _wrapped(scored[at_memory] + sign * memory)
        self._pods_at[row] += sign
        self.likes[row] = self._number_after(row, charge, sign)
        self.log.append(row)

    def _has_no_pods(self, row: int) -> bool:
        return not (self.pods[row] or self.requested[:, row].any() or self.scored[:, row].any())

    def _number_after(self, row: int, charge: Charge, sign: int) -> int:
        move = self.likes[row], id(charge), sign
        moved = self._moves.get(move)
        if moved is None:
            moved = self._moves.keep(move, (charge, self._number(row)))
        return moved[1]

    def _number(self, row: int) -> int:
        columns = self.allocatable[:, row], self.requested[:, row], self.scored[:, row]
        parts = *columns, self.pods[row], self.most_pods[row]
        key = b"".join([each.tobytes() for each in parts])
        known = self._numbers.get(key)
        if known is not None:
            return known
        # Numbers are not given again, so that one from before the cache was emptied still means the same amounts.
        self._latest += 1
        return self._numbers.keep(key, self._latest)


def counted_amounts(amounts: ResourceList) -> CountedAmounts:
    """Resources that kube-scheduler does not count are left out."""
    return {name: counted(name, amount) for name, amount in amounts.items() if is_counted(name)}


def is_complete(pod: Pod) -> bool:
    """Whether scores take the pod as it is: every container says how much cpu and memory it needs, and the pod as a
    whole does not."""
    if pod.spec.resources.requests or requests.is_resized(pod):
        return False
    asked = [container.resources.requests for container in pod.in_admission_order()]
    return all(resourcenames.CPU in each and resourcenames.MEMORY in each for each in asked)


def counted(name: str, amount: quantity.Quantity) -> int:
    return amount.milli if name == resourcenames.CPU else amount.value


@lru_cache(maxsize=MOST_READ)
def is_counted(name: str) -> bool:
    return name in FIRST or is_scalar(name)


@lru_cache(maxsize=MOST_READ)
def is_scalar(name: str) -> bool:
    """Counted by name, and only for pods that ask for it (kube-scheduler spec 1.8)."""
    return (
        resourcenames.is_extended(name)
        or resourcenames.is_hugepages(name)
        or resourcenames.NATIVE_DOMAIN in name
        or name.startswith(ATTACHABLE_PREFIX)
    )


def _gathered(by_kind: NDArray[N], alike: AlikeRows, rows: Rows, every_row: Rows) -> NDArray[N]:
    # Every kind is there: `clip` only spares the check.
    return by_kind.take(alike.of_row if rows is every_row else alike.of_row[rows], mode="clip")


def _in_line(amounts: Amounts) -> memoryview:
    """A view, never a copy: TypeError where the array does not lie in one piece."""
    return amounts.data.cast("B").cast("q")


def _wrapped(amount: int) -> int:
    if -OVERFLOW <= amount < OVERFLOW:
        return amount
    return (amount + OVERFLOW) % (2 * OVERFLOW) - OVERFLOW


def _written(pod: Pod) -> tuple[object, ...]:
    """All of the spec that enters what a pod asks for, as something to look it up by."""
    spec = pod.spec
    return (
        *(_items(container.resources.requests) for container in spec.containers),
        *((container.restart_policy, _items(container.resources.requests)) for container in spec.init_containers),
        _items(spec.resources.requests) if spec.resources.requests else None,
        _items(spec.overhead) if spec.overhead else None,
    )


def _items(amounts: ResourceList) -> tuple[tuple[str, int], ...]:
    return tuple([(name, amount.nanos) for name, amount in amounts.items()])
