"""What the exact flavour's rows say to one pod, as reasons.

`explain` asks row by row. Codes come from the shape's table, so that what is said is what was decided; for rows that do
not fit, the row model is asked again for its shortfall, once for all rows that are alike."""

from __future__ import annotations

from numalign.api.objects.pod import Pod
from numalign.placement.columns.columns import UNREPORTED
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Code
from numalign.placement.exact import CODES, ExactFlavour
from numalign.placement.explain import rowreasons
from numalign.placement.explain.reasons import Reason
from numalign.placement.explain.rowreasons import Asked
from numalign.placement.reports.nodefacts import Assumption
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.causes import Cause, Shortfall
from numalign.placement.rowmodel.evaluate import RowVerdict


class ExactAnswers:
    """One pod held against every row."""

    def __init__(self, flavour: ExactFlavour, pod: Pod, shape: Shape) -> None:
        flavour.mirror.refresh()
        self._mirror = flavour.mirror
        self._columns = flavour.columns
        self._evaluation = flavour.evaluation
        self._pod = pod
        self._table = flavour.verdicts.table(shape)
        self._unkept: dict[int, Reason] = {}
        self._shared: dict[tuple[object, ...], Reason] = {}

    def reason(self, row: int) -> Reason | None:
        code = int(self._table.codes[row])
        if code >= 0:
            return None
        if code == Code.TOTALS:
            return rowreasons.of_totals(self._columns, row, self._table.totals)
        return self.warning(row) if code == Code.INTENT else self._shortfall(row, Code(code))

    def untold(self, row: int) -> Reason:
        """Of a row that seemed to fit, and on which the pod turned out not to be certain of admission."""
        return self._by_model(row)

    def warning(self, row: int) -> Reason | None:
        """A wish that the node does not keep."""
        kind = int(self._columns.kind[row])
        unkept = self._evaluation.judgement(self._table, kind).unkept
        if unkept is None:
            return None
        if kind not in self._unkept:
            self._unkept[kind] = rowreasons.of_wish(self._table.shape.intent, unkept, self._columns.rules(row))
        return self._unkept[kind]

    def assumptions(self, row: int) -> frozenset[Assumption]:
        if self._columns.kind[row] == UNREPORTED:
            return frozenset({Assumption.NO_REPORT})
        facts = self._mirror.facts(row)
        return facts.assumptions if facts else frozenset()

    def _shortfall(self, row: int, code: Code) -> Reason:
        if code != Code.DOES_NOT_FIT or self._columns.loose[row]:
            return self._by_model(row)
        key = self._likeness(row)
        if key not in self._shared:
            self._shared[key] = self._by_model(row)
        return self._shared[key]

    def _by_model(self, row: int) -> Reason:
        kind = int(self._columns.kind[row])
        program = self._evaluation.program(self._table, kind)
        verdict = evaluate.evaluate(self._mirror.state(row), program)
        code, shortfall = _verdict(verdict)
        waits = shortfall.cause is Cause.UNSETTLED_PODS
        return rowreasons.of_shortfall(
            Asked(self._pod, program, self._columns.kinds[kind], self._columns.resources),
            code,
            shortfall,
            waiting_for=[each.name for each in self._mirror.row(row).pending] if waits else (),
            assumptions=self.assumptions(row),
        )

    def _likeness(self, row: int) -> tuple[object, ...]:
        """Equal for rows that kernels cannot tell apart, and so refuse for the same reason."""
        columns = self._columns
        arrays = (columns.free, columns.size, columns.homeless, columns.homeless_size, columns.cells)
        numbers = (columns.kind, columns.full_core_cpus, columns.busy, columns.split_known)
        amounts = (array[row].tobytes() for array in arrays)
        return (*amounts, *(int(array[row]) for array in numbers), self.assumptions(row))


def _verdict(verdict: RowVerdict) -> tuple[Code, Shortfall]:
    """A row that has room was refused all the same when the pod was tried there among those on their way."""
    if verdict.shortfall is None:
        return Code.NOT_CERTAIN, Shortfall(cause=Cause.UNSETTLED_PODS)
    return CODES[verdict.code], verdict.shortfall
