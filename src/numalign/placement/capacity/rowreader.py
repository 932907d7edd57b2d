"""What a search over nodes may ask of an exact engine: rows, what they have left, and trials on copies of them.

The planner's defragmentation calls it. Nothing is charged; answers are of the moment at which the reader was made, and
the engine must not change meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.placement.capacity import waste
from numalign.placement.capacity.count import may_be_aligned
from numalign.placement.capacity.walk import Came, RowTrial
from numalign.placement.columns.columns import UNREPORTED, VACANT
from numalign.placement.columns.directmachine import DirectMachine
from numalign.placement.columns.shapes import Shape
from numalign.placement.direct import ledger
from numalign.placement.engine import Engine
from numalign.placement.exact import UNSURE
from numalign.placement.explain import whatif
from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.verdicts.verdicts import VerdictTable


class FreeAmount(Struct, frozen=True):
    """A resource that a shape asks for, and how much of it all nodes together have left."""

    resource: str
    asked: int
    free: int


class RowReader:
    def __init__(self, engine: Engine) -> None:
        self._flavour, self._columns = waste.exact(engine), engine.columns
        self._flavour.refresh()
        self.height = engine.height

    def table(self, shape: Shape) -> VerdictTable:
        return self._flavour.verdicts.aside(shape)

    def known(self, shape: Shape) -> NDArray[np.bool_]:
        """Rows with a node of which it is known what its kubelet does with such a pod."""
        kinds = self._columns.kind[: self.height]
        return kinds > UNREPORTED if may_be_aligned(shape) else kinds != VACANT

    @property
    def reported(self) -> NDArray[np.intp]:
        """Rows with a report."""
        return np.flatnonzero(self._columns.kind[: self.height] > UNREPORTED)

    def admitting(self, shape: Shape) -> NDArray[np.bool_]:
        """Rows that may admit such a pod as they are."""
        admits: NDArray[np.bool_] = self._flavour.follow(shape).codes[: self.height] >= 0
        return admits

    def left(self, shape: Shape) -> NDArray[np.float64]:
        """By row, which part of what it offers is left, of the scarcest resource that the shape asks for."""
        columns = self._columns
        asked = [column for column, _ in self.table(shape).totals.pairs]
        if not asked:
            return np.zeros(self.height)
        offered = np.maximum(1, columns.offered[: self.height][:, asked])
        part: NDArray[np.float64] = (columns.spare[: self.height][:, asked] / offered).min(axis=1)
        return part

    def free(self, shape: Shape) -> Iterator[FreeAmount]:
        columns = self._columns
        names = {columns.column(name): name for name in shape.totals}
        rows = np.flatnonzero(columns.most_pods[: self.height] > 0)
        for column, amount in self.table(shape).totals.pairs:
            yield FreeAmount(names[column], amount, int(np.maximum(columns.spare[rows, column], 0).sum()))

    def every_zone(self, row: int) -> int:
        """A mask of the positions of the row's zones; 0: it has no report."""
        rules = self._columns.rules(row)
        return rules.every_zone if rules is not None else 0

    def held(self, row: int) -> Mapping[str, int]:
        """By uid, the zones in which pods of the row hold something, as a mask of positions."""
        machine = self._flavour.machine(row)
        if machine is None:
            return whatif.holders(self._flavour, row)
        pods = self._flavour.direct.ledger.pods(self._columns.names[row])
        return {uid: ledger.zones(machine, each) for uid, each in pods.items()}

    def taken(self, row: int, came: Came) -> int:
        """The same of a pod that a trial placed there."""
        machine = self._flavour.machine(row)
        if machine is not None and came.decided is not None:
            return ledger.zones(machine, came.decided)
        if came.holding is None:
            return self.every_zone(row)
        mask = 0
        for entry in came.holding.entries:
            mask |= entry.zones
        return mask

    def observed(self, row: int) -> Mapping[str, frozenset[int]]:
        """By uid, the ids of the zones in which the node's report shows that a pod holds something. In direct mode, the
        zones of the CPUs on which its aligned containers run, if all their decisions are applied."""
        machine = self._flavour.machine(row)
        if machine is not None:
            return {uid: frozenset(machine.ids(mask)) for uid, mask in self._acknowledged(row, machine).items()}
        rules = self._columns.rules(row)
        reported = self._flavour.mirror.ledger.node(self._columns.names[row])
        if rules is None or reported is None:
            return {}
        held, zones = self.held(row), rules.zones
        return {
            uid: frozenset(zones[place] for place in range(len(zones)) if held.get(uid, 0) >> place & 1)
            for uid, record in reported.records.items()
            if record.cover is Cover.YES and record.life is PodLife.LIVE
        }

    def _acknowledged(self, row: int, machine: DirectMachine) -> Mapping[str, int]:
        pods, found, failed = self._flavour.direct.ledger.pods(self._columns.names[row]), dict[str, int](), set[str]()
        for each in self._flavour.mirror.row(row).facts.applied:
            if each.uid not in pods or each.container not in pods[each.uid].containers:
                continue
            if each.failure:
                failed.add(each.uid)
            for place, inside in enumerate(machine.cpus):
                found[each.uid] = found.get(each.uid, 0) | (1 << place if each.cpus & inside else 0)
        return {uid: mask for uid, mask in found.items() if mask and uid not in failed}

    def trial(self, row: int, gone: frozenset[str], came: Sequence[Came]) -> RowTrial:
        """A copy of the row without some of its pods, and with others that came since."""
        return RowTrial(self._flavour, row, gone, came)


def is_unsure(code: int) -> bool:
    """Whether a node that refuses a pod by this code may admit it all the same."""
    return code in UNSURE
