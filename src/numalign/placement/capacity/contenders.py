"""How schedulers choose a node on machines with zones: by node totals alone, or by the zones of the kubelet model.

The planner calls `Chooser`. A blind contender sees what fits the node as a whole, so that a kubelet may reject the pod;
one with a filter leaves out nodes that the model refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.placement.capacity.pluginrule import PluginRule, Published
from numalign.placement.columns.columns import Columns
from numalign.placement.decisions import Code, Codes
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.kernels.block import Rows
from numalign.placement.referenceargs import Strategy
from numalign.placement.rules import nodeamounts
from numalign.placement.rules.nodeamounts import AmountTerms, Asked
from numalign.placement.verdicts.fragmentation import Fragmentation, Typical
from numalign.placement.verdicts.verdicts import Verdicts, VerdictTable


class Contender(Struct, frozen=True, kw_only=True):
    """What a policy looks at."""

    strategy: Strategy | None = None
    """Of the exact engine, whose scores decide; None: `by_totals` decides."""
    by_totals: int = nodeamounts.LEAST
    """A rule of `nodeamounts`, or `FRAGMENTS`."""
    has_filter: bool = False
    asks_plugin: bool = False
    """Whether the Go plugin filters and scores beside the rule for totals."""


FRAGMENTS: Final = -1
CONTENDERS: Final[Mapping[str, Contender]] = {
    "least-blind": Contender(by_totals=nodeamounts.LEAST),
    "most-blind": Contender(by_totals=nodeamounts.MOST),
    "go-plugin": Contender(by_totals=nodeamounts.LEAST, asks_plugin=True),
    "fgd": Contender(by_totals=FRAGMENTS),
    "fgd-filter": Contender(by_totals=FRAGMENTS, has_filter=True),
    "numalign-least": Contender(strategy=Strategy.LEAST_ALLOCATED, has_filter=True),
    "numalign-most": Contender(strategy=Strategy.MOST_ALLOCATED, has_filter=True),
    "zone-fgd": Contender(strategy=Strategy.LEAST_FRAGMENTATION, has_filter=True),
}


class NodeAmounts(Struct, frozen=True):
    """Some rows as `nodeamounts` reads them, by column and place."""

    allocatable: NDArray[np.int64]
    requested: NDArray[np.int64]
    scored: NDArray[np.int64]
    pods: NDArray[np.int64]
    most_pods: NDArray[np.int64]


class TotalsJudge:
    """Evaluates rows by node totals alone."""

    def __init__(
        self, engine: Engine, flavour: ExactFlavour, rule: int, typical: Typical, plugin: PluginRule | None
    ) -> None:
        self._columns, self._flavour, self._rule, self._plugin = engine.columns, flavour, rule, plugin
        self._fragments = Fragmentation(engine.columns, flavour.evaluation, by_totals=True)
        self._fragments.set_typical(typical)
        self._one: Rows = np.zeros(1, np.int32)

    def survey_row(self, table: VerdictTable, row: int) -> None:
        self._one[0] = row
        self.survey(table, self._one)

    def survey(self, table: VerdictTable, rows: Rows) -> None:
        columns, fits = self._columns, self._columns.pods[rows] < self._columns.most_pods[rows]
        for column, amount in table.totals.pairs:
            fits &= amount <= columns.spare[rows, column]
        table.codes[rows] = Code.TOTALS
        fitting = rows[fits]
        if self._rule != FRAGMENTS:
            table.codes[fitting] = self._by_amounts(columns, table, fitting)
            if self._plugin is not None:
                self._ask(self._plugin, table, fitting)
            return
        kinds = columns.kind[fitting]
        table.codes[fitting] = 1
        for kind in set(kinds.tolist()):
            self._fragments.score(kind, table.shape, fitting[kinds == kind], table.codes, table.masks)

    def _ask(self, plugin: PluginRule, table: VerdictTable, rows: Rows) -> None:
        """The mean of both scores where the plugin accepts the node; its own tells nodes of one policy only apart."""
        for row in rows.tolist():
            found = plugin.score(table.shape, row)
            if found is None:
                table.codes[row] = Code.DOES_NOT_FIT
            elif plugin.tells_apart(row):
                table.codes[row] = (int(table.codes[row]) + found + 1) // 2

    def _by_amounts(self, columns: Columns, table: VerdictTable, rows: Rows) -> NDArray[np.int32]:
        asked = tuple(Asked(column, amount) for column, amount in table.totals.pairs)
        requested = np.ascontiguousarray((columns.offered[rows] - columns.spare[rows]).T)
        given = NodeAmounts(
            np.ascontiguousarray(columns.offered[rows].T),
            requested,
            requested,
            columns.pods[rows].astype(np.int64),
            columns.most_pods[rows].astype(np.int64),
        )
        places = np.arange(len(rows), dtype=np.intp)
        # One more: a score of 0 means that nothing is known about the node.
        return self._flavour.kernel.amounts(AmountTerms(self._rule, asked), given, places) + 1


class Chooser:
    """Scores of all rows for a shape, as one contender sees them."""

    def __init__(
        self,
        engine: Engine,
        flavour: ExactFlavour,
        contender: Contender,
        typical: Typical,
        published: Callable[[int], Published],
    ) -> None:
        """`published`: by row, for contenders that ask the Go plugin."""
        self._engine, self._contender = engine, contender
        plugin = PluginRule(engine.columns, published) if contender.asks_plugin else None
        judge = TotalsJudge(engine, flavour, contender.by_totals, typical, plugin)
        self._by_totals = Verdicts(engine.columns, judge, engine.settings.live_shapes)

    def scores(self, table: VerdictTable) -> Codes:
        """Below 1 where the contender does not put the pod. `table`: what the model says, up to date."""
        if self._contender.strategy is not None:
            return table.codes
        seen = self._by_totals.table(table.shape).codes
        return np.where(table.codes > 0, seen, Code.DOES_NOT_FIT) if self._contender.has_filter else seen
