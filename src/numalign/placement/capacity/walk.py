"""Places pods on a copy of one row by the row model and the committer, where numbers alone do not decide.

`count` calls `RowWalks` for rows that the kernel leaves open: charges known as intervals, pods on their way whose order
counts, CPUs that ids decide. `gang` places pods of several shapes on one row with `RowTrial`. Each pod is evaluated and
placed as `Engine.place` does it, on a copy of the ledger's row. That takes a thousand times as long as the kernel, so
equal rows are walked once and a call places a limited number of pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy

import numpy as np
from msgspec import Struct, structs

from numalign.api.objects.pod import Pod
from numalign.placement.columns import nodetotals
from numalign.placement.columns.columns import UNREPORTED
from numalign.placement.columns.directmachine import DirectMachine, FreeState
from numalign.placement.columns.holdings import Holding
from numalign.placement.commit import committer
from numalign.placement.decisions import Code
from numalign.placement.direct import decider, ledger
from numalign.placement.direct.decider import Placed
from numalign.placement.direct.ledger import PodHolding
from numalign.placement.direct.scope import Unplaced
from numalign.placement.exact import CODES, ExactFlavour
from numalign.placement.explain.whatif import supposed_row
from numalign.placement.kernels.block import Amounts
from numalign.placement.kernels.plan import ZONES
from numalign.placement.ledger import rows
from numalign.placement.ledger.nodeledger import Row
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.causes import Shortfall
from numalign.placement.rowmodel.evaluate import Verdict
from numalign.placement.verdicts.verdicts import VerdictTable


class RowRefusal(Struct, frozen=True):
    """Why a row is not certain to admit a pod."""

    code: int
    """A `decisions.Code`."""
    shortfall: Shortfall | None = None
    """None: the totals of the node, the pod's wishes, or it was not tried."""


class Came(Struct, frozen=True):
    """A pod that was placed on a row earlier, and that is there. It keeps what it holds."""

    table: VerdictTable
    holding: Holding | None = None
    """None: the node has no report, or it is in direct mode."""
    decided: PodHolding | None = None
    """What the scheduler decided, on a node in direct mode."""


class RowTrial:
    """A copy of a row, without some of its pods, and with those that were placed on it."""

    def __init__(
        self, flavour: ExactFlavour, number: int, without: frozenset[str] = frozenset(), came: Sequence[Came] = ()
    ) -> None:
        """`without`: uids of pods that are taken to have ended; `came`: pods that have been admitted since then."""
        self._flavour, self._number, self._without = flavour, number, without
        self._kind = int(flavour.columns.kind[number])
        self._machine = flavour.machine(number)
        node = flavour.columns.names[number]
        self.free: FreeState | None = None
        """What is left on a node in direct mode."""
        if self._machine is not None:
            held = flavour.direct.ledger
            self.free = held.without(node, self._machine, without) if without else held.free(node, self._machine)
        self.row: Row | None = None
        if self._kind != UNREPORTED:
            with flavour.mirror.ledger.without(without):
                self.row = supposed_row(flavour, number, changed=bool(without))
        self._answered: tuple[Placed, FreeState] | None = None
        """The last decision on a node in direct mode, and what was free before."""
        self._pods: dict[str, Pod] = {}
        self._requested: Counter[int] = Counter()
        self._ended = 0
        for uid in without:
            asked = flavour.node_totals.requests(uid, node)
            if asked is not None:
                self._ended += 1
                self._requested.subtract(dict(asked))
        for each in came:
            self._settle(each)

    def _settle(self, came: Came) -> None:
        self._ended -= 1
        self._requested.update(dict(came.table.totals.pairs))
        if self._machine is not None and self.free is not None and came.decided is not None:
            self.free, _ = ledger.less(self._machine, self.free, came.decided)
        elif self.row is not None and came.holding is not None:
            self.row = rows.with_settled(self.row, came.holding, self._flavour.columns.resources)

    def last(self, table: VerdictTable) -> Came:
        """The pod that was placed last."""
        if self._answered is not None and self._machine is not None:
            (found, before), ask = self._answered, self._flavour.direct.decider.ask(table.shape, self._machine)
            result = decider.result(table.shape.pod, "", ask, self._machine, before, found)
            return Came(table, decided=ledger.holding(result))
        return Came(table, self.row.pending[-1] if self.row is not None and self._pods else None)

    def copy(self) -> RowTrial:
        """The same, to go on from here in another way."""
        found = copy(self)
        found._pods, found._requested = dict(self._pods), Counter(self._requested)
        return found

    def room(self, table: VerdictTable) -> int:
        """How many pods the totals of the node have room for."""
        columns, row = self._flavour.columns, self._number
        most = int(columns.most_pods[row]) - int(columns.pods[row]) + self._ended - len(self._pods)
        for column, amount in table.totals.pairs:
            left = columns.spare.item(row, column) - self._requested[column]
            most = min(most, left // amount)
        return max(0, most)

    def place(self, table: VerdictTable) -> int | RowRefusal:
        """The place of one more pod in `Counts.spread`, or why the row is not certain to admit it."""
        if not self._flavour.evaluation.judgement(table, self._kind).allowed:
            return RowRefusal(Code.INTENT)
        if self.room(table) == 0:
            return RowRefusal(Code.TOTALS)
        name = f"counted-{len(self._pods)}"
        pod = structs.replace(table.shape.pod, metadata=structs.replace(table.shape.pod.metadata, name=name, uid=name))
        zone = ZONES
        if self._machine is not None and self.free is not None:
            answer = self._directly(table, self._machine, self.free)
            if isinstance(answer, RowRefusal):
                return answer
            zone = answer
        elif self.row is not None:
            with self._flavour.mirror.ledger.without(self._without):
                found = self._with(table, pod, self.row)
            if isinstance(found, RowRefusal):
                return found
            self.row, zone = found, _lone_zone(found.pending[-1])
        self._pods[name] = pod
        self._requested.update(dict(table.totals.pairs))
        return zone

    def _directly(self, table: VerdictTable, machine: DirectMachine, free: FreeState) -> int | RowRefusal:
        flavour = self._flavour
        found = flavour.direct.decider.answer(table.shape, machine, free)
        if isinstance(found, Unplaced):
            shortfall = flavour.direct.shortfall(table.shape, machine, free, flavour.columns.resources)
            return RowRefusal(Code.DOES_NOT_FIT, shortfall)
        self._answered = found, free
        self.free = found.assignment.after
        masks = {grant.zones for grant in found.assignment.grants if grant.zones}
        return _position(masks)

    def _with(self, table: VerdictTable, pod: Pod, row: Row) -> Row | RowRefusal:
        flavour, resources = self._flavour, self._flavour.columns.resources
        program = flavour.evaluation.program(table, self._kind)
        verdict = evaluate.evaluate(rows.charged(row, resources), program)
        undecided = verdict.code is Verdict.NOT_DECIDED and flavour.mirror.topology(row.facts.node) is not None
        if not verdict.fits and not undecided:
            return RowRefusal(CODES[verdict.code], verdict.shortfall)
        placement = flavour.committer.placement(pod, table.shape, row, self._pods)
        if not placement.verdict.fits:
            return RowRefusal(CODES[placement.verdict.code], placement.verdict.shortfall)
        found = committer.committed(pod, table.shape, placement)
        return rows.with_pending(row, found.holding, found.revised, resources)


class Walk(Struct, frozen=True, kw_only=True):
    """The pods that were placed on a row, and why no other was."""

    refusal: RowRefusal
    spread: Amounts
    pending: tuple[str, ...] = ()
    """Names of pods that are on their way to the node."""


class RowWalks:
    """The walks of one call, which places at most so many pods."""

    def __init__(self, flavour: ExactFlavour, most: int) -> None:
        self._flavour, self._left = flavour, most
        self._known: dict[tuple[object, ...], Walk] = {}

    def walked(self, table: VerdictTable, number: int) -> Walk:
        """The walk of a row from where it is now."""
        row = self._flavour.mirror.row(number)
        most = nodetotals.room(self._flavour.columns, number, table.totals)
        is_known = not row.pending and row.facts.direct is None
        key = (most, *committer.looks(table.shape, row)) if is_known else (number, table.shape.number)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._walk(table, number)
        return found

    def _walk(self, table: VerdictTable, number: int) -> Walk:
        spread, trial = np.zeros(ZONES + 1, np.int64), RowTrial(self._flavour, number)
        pending = tuple(each.name for each in trial.row.pending) if trial.row is not None else ()
        refusal = None
        while refusal is None:
            placed = trial.place(table) if self._left > 0 else RowRefusal(Code.NOT_DECIDED)
            self._left -= 1
            if isinstance(placed, RowRefusal):
                refusal = placed
            else:
                spread[placed] += 1
        return Walk(refusal=refusal, spread=spread, pending=pending)


def _lone_zone(holding: Holding) -> int:
    """The zone that every aligned container has; `ZONES` where that is not one zone for certain."""
    return _position({mask for each in holding.containers for mask in each.possible})


def _position(masks: set[int]) -> int:
    mask = masks.pop() if len(masks) == 1 else 0
    return mask.bit_length() - 1 if mask and mask & (mask - 1) == 0 and mask < 1 << ZONES else ZONES
