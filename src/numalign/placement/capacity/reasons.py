"""Says why a node admits no pod beyond those that were counted.

The scheduler calls `CountReasons` for the nodes that an answer names. The reason is that of the row with the counted
pods on it: the kernel counts once more on the one row and leaves what is free then, and the row model names what is
short. Rows that read the same share a reason."""

from __future__ import annotations

import numpy as np
from msgspec import structs

from numalign.placement.capacity.count import ShapeCount
from numalign.placement.columns.columns import UNREPORTED
from numalign.placement.decisions import Code
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.explain import answers
from numalign.placement.explain.answers import RefusedPod
from numalign.placement.explain.reasons import NodeCause, Reason
from numalign.placement.kernels import scalar
from numalign.placement.kernels.block import Pending
from numalign.placement.kernels.plan import ZONES
from numalign.placement.reference.flavour import ReferenceFlavour
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.causes import Cause, Shortfall
from numalign.placement.rowmodel.state import RowState
from numalign.placement.verdicts.verdicts import VerdictTable

NOT_COUNTED = Reason(code=Code.NOT_DECIDED, cause=NodeCause.NOT_COUNTED)


def of(engine: Engine, counted: ShapeCount) -> CountReasons:
    """The reasons of counts that `count.count` has just made on this engine."""

    def reference(_: ReferenceFlavour) -> CountReasons:
        raise AssertionError("counting has refused the flavour")

    return engine.flavour.either(lambda exact: CountReasons(engine, exact, counted), reference)


class CountReasons:
    """The reasons of one shape's counts; valid as long as the counts are."""

    def __init__(self, engine: Engine, flavour: ExactFlavour, counted: ShapeCount) -> None:
        self._engine, self._flavour, self._counted = engine, flavour, counted
        self._known: dict[int, Reason] = {}

    def reason(self, place: int) -> Reason:
        """Of the row at this place of `ShapeCount.rows`."""
        alike = int(self._counted.which[place])
        if alike not in self._known:
            self._known[alike] = self._reason(place)
        return self._known[alike]

    def _reason(self, place: int) -> Reason:
        counted, columns = self._counted, self._engine.columns
        row, code = int(counted.rows[place]), Code(counted.codes[place])
        table = self._flavour.verdicts.aside(counted.shape)
        if code is Code.TOTALS:
            return answers.of_totals(columns, row, table.totals, int(counted.counts[place]))
        kind = int(columns.kind[row])
        if code is Code.INTENT:
            unkept = self._flavour.evaluation.judgement(table, kind).unkept
            assert unkept is not None, "a wish that is kept refuses no node"
            return answers.of_wish(counted.shape.intent, unkept, columns.rules(row))
        walk = counted.walks.get(int(counted.which[place]))
        if walk is None:
            return self._of_zones(table, row, code, self._shortfall(table, row), ())
        if walk.refusal.shortfall is None:
            return NOT_COUNTED
        return self._of_zones(table, row, code, walk.refusal.shortfall, walk.pending)

    def _of_zones(
        self, table: VerdictTable, row: int, code: Code, shortfall: Shortfall, pending: tuple[str, ...]
    ) -> Reason:
        kind = int(self._engine.columns.kind[row])
        assert kind != UNREPORTED, "without a report only totals decide"
        program = self._flavour.evaluation.program(table, kind)
        facts = self._flavour.mirror.facts(row)
        return answers.of_shortfall(
            RefusedPod(table.shape.pod, program, self._engine.columns.kinds[kind], self._engine.columns.resources),
            code,
            shortfall,
            waiting_for=pending,
            assumptions=facts.assumptions if facts else (),
        )

    def _shortfall(self, table: VerdictTable, row: int) -> Shortfall:
        """By the row model, on what the kernel leaves."""
        evaluation, kind = self._flavour.evaluation, int(self._engine.columns.kind[row])
        verdict = evaluate.evaluate(self._left(table, row), evaluation.program(table, kind))
        return verdict.shortfall or Shortfall(cause=Cause.NO_COMMON_ZONES)

    def _left(self, table: VerdictTable, row: int) -> RowState:
        columns, evaluation = self._engine.columns, self._flavour.evaluation
        kind = int(columns.kind[row])
        question = evaluation.counting(table, kind)
        trusted = self._engine.settings.trust_bind_order
        pending = Pending(columns.settled, columns.pending_shape, table.shape.number, trusted)
        scalar.count_row(evaluation.block(kind), question, pending, row, np.zeros(ZONES + 1, np.int64))
        state, zones = self._flavour.mirror.state(row), len(columns.kinds[kind].zones)
        base = dict(state.base)
        for place, column in enumerate(question.plan.columns):
            if column in base:
                base[column] = tuple(scalar.SCRATCH.before[place * ZONES : place * ZONES + zones])
        full = state.full_core_cpus
        if full is not None:
            taken = sum(state.base.get(0, ())) - sum(base.get(0, ()))
            full = full[0] - taken, full[1] - taken
        return structs.replace(state, base=base, full_core_cpus=full, cores=None)
