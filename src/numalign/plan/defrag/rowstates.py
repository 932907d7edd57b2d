"""Rows as they would be without some pods and with others: whether a kubelet admits one more, and in which zones.

`board` and `goals` ask. Each answer is that of the exact model, on a copy of the ledger's row (`RowTrial`), and is
kept: a search comes by the same states again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.objects.pod import Pod
from numalign.placement.capacity import rowreader
from numalign.placement.capacity.rowreader import RowReader
from numalign.placement.capacity.walk import Came, RowRefusal, RowTrial
from numalign.placement.columns.shapes import Shape
from numalign.placement.rules.resources.resourcesfit import ResourceRequests
from numalign.placement.rules.rule import FITS, StaticFilter
from numalign.placement.verdicts.verdicts import VerdictTable
from numalign.scheduler.choose import filtering
from numalign.scheduler.choose.filtering import PreparedFilter, Refused
from numalign.scheduler.profiles import Profile
from numalign.scheduler.snapshot.restore import Restored


class Arrival(Struct, frozen=True):
    """A pod of this kind came, and was admitted, when these were gone."""

    kind: int
    gone: frozenset[str | int]


class RowState(Struct, frozen=True):
    """What is different on a row. One pod comes after the other: it keeps its zones whatever goes or comes later."""

    gone: frozenset[str | int] = frozenset()
    """Uids of pods, and places in `came` of pods that left again."""
    came: tuple[Arrival, ...] = ()

    def without(self, *uids: str) -> RowState:
        return RowState(self.gone.union(uids), self.came)

    def without_arrival(self, kind: int) -> RowState:
        """The same without the last pod of this kind that came."""
        place = max(place for place, each in enumerate(self.came) if each.kind == kind and place not in self.gone)
        return RowState(self.gone | {place}, self.came)

    def beside(self, kind: int) -> RowState:
        """The same with one more pod of this kind."""
        return RowState(self.gone, (*self.came, Arrival(kind, self.gone)))

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(each for each in self.gone if isinstance(each, str))

    @property
    def there(self) -> tuple[int, ...]:
        """Kinds of the pods that came and are there."""
        return tuple(each.kind for place, each in enumerate(self.came) if place not in self.gone)


AS_IT_IS: Final = RowState()


class PodKind(Struct, frozen=True):
    """Pods that are alike for all filters and for kubelets."""

    pod: Pod
    shape: Shape
    table: VerdictTable
    open: NDArray[np.bool_]
    """Rows that the filters which look at nodes alone let pass, and whose zones are known if they matter."""
    steps: tuple[PreparedFilter, ...]
    """The other filters, except for NodeResourcesFit, which the model's totals stand for."""


class RowStates:
    """States of the rows of one restored cluster, which must not change meanwhile."""

    def __init__(self, made: Restored) -> None:
        self._engine, self._world, self._profiles = made.engine, made.world, made.profiles
        self.rows = RowReader(made.engine)
        self.kinds: list[PodKind] = []
        self.tried = 0
        """Pods that the row model was asked about."""
        self.unsure: set[tuple[int, RowState, int]] = set()
        """Counts that may be too low: the next pod might be admitted."""
        self._trials: dict[tuple[int, RowState], RowTrial] = {}
        self._arrivals: dict[tuple[int, RowState], Came | None] = {}
        self._counts: dict[tuple[int, RowState, int], int] = {}
        self._held: dict[int, Mapping[str, int]] = {}

    def add_kind(self, pod: Pod) -> int:
        """The number of a kind of pods. BadObject if the pod's annotations make no sense."""
        profile = self.profile(pod)
        shape, height = filtering.shape(profile, self._engine, pod), self.rows.height
        steps = filtering.prepared(pod, profile.filters, self._world)
        fits = np.zeros(height, np.bool_)
        others: tuple[PreparedFilter, ...] = ()
        if not isinstance(steps, Refused):
            fits[self._world.node_rows] = True
            others = tuple(step for step in steps if not _is_decided(step))
            for step in steps:
                if isinstance(step.rule, StaticFilter):
                    fits &= np.asarray(step.rule.filter(step.prepared))[:height] == FITS
                if step.prepared.only is not None:
                    named = [row for name, row in self._world.rows.items() if name in step.prepared.only]
                    only = np.zeros(height, np.bool_)
                    only[named] = True
                    fits &= only
        fits &= self.rows.known(shape)
        self.kinds.append(PodKind(pod, shape, self.rows.table(shape), fits, others))
        return len(self.kinds) - 1

    def profile(self, pod: Pod) -> Profile:
        """That of the pod's scheduler; of other schedulers' pods, the first one."""
        return self._profiles.get(pod.spec.scheduler_name) or next(iter(self._profiles.values()))

    def passes(self, row: int, state: RowState, kind: int, beside: Sequence[int] = ()) -> bool:
        """Whether filters let one more pod of this kind pass there, beside pods of other kinds."""
        own = self.kinds[kind]
        if not own.open[row]:
            return False
        if not own.steps:
            return True
        others, gone = [self.kinds[each].pod for each in (*state.there, *beside)], state.uids
        return all(step.rule.filter_row(step.prepared, row, gone, others) == FITS for step in own.steps)

    def takes(self, row: int, state: RowState, kind: int) -> RowState | None:
        """The row with one more pod of this kind; None: it does not certainly admit it."""
        if not self.passes(row, state, kind):
            return None
        after = state.beside(kind)
        return after if self._arrived(row, after) is not None else None

    def lands_alike(self, row: int, one: RowState, other: RowState) -> bool:
        """Whether the last pod that came has the same zones in both states."""
        return self._zones(row, one) == self._zones(row, other)

    def counted(self, row: int, state: RowState, kind: int) -> int:
        """How many more pods of this kind the row admits at the same time, in whatever order they come."""
        key = row, state, kind
        known = self._counts.get(key)
        if known is None:
            known = self._counts[key] = self._count(row, state, kind)
        return known

    def free_zones(self, row: int, state: RowState) -> int:
        """Zones in which no pod holds anything exclusively; 0: the node has no report."""
        every = self.rows.every_zone(row)
        masks = [mask for uid, mask in self.held(row).items() if uid not in state.gone]
        for place in range(len(state.came)):
            if place not in state.gone:
                arrived = self._arrived(row, RowState(state.came[place].gone, state.came[: place + 1]))
                masks.append(self.rows.taken(row, arrived) if arrived is not None else every)
        held = 0
        for mask in masks:
            held |= mask
        return (every & ~held).bit_count()

    def looks(self, row: int, state: RowState) -> object:
        """Equal for states in which the same pods are gone and equal pods came to the same zones; in direct mode, where
        the same is left as well."""
        there, is_direct = [], False
        for place, each in enumerate(state.came):
            if place not in state.gone:
                arrived = self._arrived(row, RowState(each.gone, state.came[: place + 1]))
                assert arrived is not None, "a state is made only of pods that were admitted"
                is_direct |= arrived.decided is not None
                entries = arrived.holding.entries if arrived.holding is not None else ()
                there.append((each.kind, self.rows.taken(row, arrived), entries))
        left = self._trial(row, state).free if is_direct else None
        return state.uids, tuple(sorted(there, key=repr)), left

    def held(self, row: int) -> Mapping[str, int]:
        """By uid, the zones in which pods of the row hold something, as a mask of positions."""
        known = self._held.get(row)
        if known is None:
            known = self._held[row] = self.rows.held(row)
        return known

    def _zones(self, row: int, state: RowState) -> object:
        """By container, those of the last pod that came."""
        arrived = self._arrived(row, state)
        if arrived is None:
            return None
        if arrived.decided is not None:
            return arrived.decided.containers
        return [each.possible for each in arrived.holding.containers] if arrived.holding is not None else []

    def _count(self, row: int, state: RowState, kind: int) -> int:
        if not self.passes(row, state, kind):
            return 0
        trial, found = self._trial(row, state), 0
        table, looks_at_pods = self.kinds[kind].table, bool(self.kinds[kind].steps)
        most = trial.room(table)
        if not most:
            return 0
        trial = trial.copy()
        while found < most:
            self.tried += 1
            placed = trial.place(table)
            if isinstance(placed, RowRefusal):
                if rowreader.is_unsure(placed.code):
                    self.unsure.add((row, state, kind))
                break
            found += 1
            if looks_at_pods and not self.passes(row, state, kind, (kind,) * found):
                break
        return found

    def _arrived(self, row: int, state: RowState) -> Came | None:
        """The last pod that came, as it was admitted; None: it was not certain to be."""
        key = row, state
        if key not in self._arrivals:
            last = state.came[-1]
            trial, table = self._trial(row, RowState(last.gone, state.came[:-1])), self.kinds[last.kind].table
            found: Came | None = None
            if trial.room(table):
                trial = trial.copy()
                self.tried += 1
                if not isinstance(trial.place(table), RowRefusal):
                    found = trial.last(table)
            self._arrivals[key] = found
        return self._arrivals[key]

    def _trial(self, row: int, state: RowState) -> RowTrial:
        key = row, state
        if key not in self._trials:
            came = []
            for place in range(len(state.came)):
                if place not in state.gone:
                    arrived = self._arrived(row, RowState(state.came[place].gone, state.came[: place + 1]))
                    assert arrived is not None, "a state is made only of pods that were admitted"
                    came.append(arrived)
            self._trials[key] = self.rows.trial(row, state.uids, came)
        return self._trials[key]


def _is_decided(step: PreparedFilter) -> bool:
    prepared: Any = step.prepared
    return isinstance(step.rule, StaticFilter) or isinstance(prepared, ResourceRequests)
