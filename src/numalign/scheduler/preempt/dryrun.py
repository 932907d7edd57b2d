"""Dry runs: whether one node would take a pod if some of its pods were gone, by filter plugins and zones.

`preemption` makes one `DryRun` for a preemptor and asks it about nodes; `answers` caches the results. Advice asks a
`Trial` about pods that could be freed. Nothing is evicted or charged here."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from functools import cached_property

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.explain import wording
from numalign.placement.explain.whatif import WhatIf
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.nodes import hostports
from numalign.placement.rules.nodes.nodeports import NodePorts
from numalign.placement.rules.resources.candidates import FreedRow, FreedRows
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit, Want, Wants
from numalign.placement.rules.rule import FITS, StaticFilter
from numalign.scheduler.choose.filtering import PreparedFilter
from numalign.scheduler.preempt import victims
from numalign.scheduler.preempt.budgets import Budgets
from numalign.scheduler.preempt.victims import Victims


class DryRunResult(Struct, frozen=True, kw_only=True):
    """Whom to evict from a node, or why that is no use."""

    victims: Victims | None = None
    reasons: tuple[str, ...] = ()
    budgeted: bool = False
    """Whether disruption budgets had a say."""


class TrialPod(Struct, frozen=True, kw_only=True):
    """A pod that trials are about, as filter plugins and the engine prepared it."""

    pod: Pod
    steps: tuple[PreparedFilter, ...]
    whatif: WhatIf
    world: World

    @property
    def wants(self) -> tuple[Want, ...] | None:
        """What NodeResourcesFit looks for; None: the profile does not have it."""
        return next((step.prepared.refusals.wants for step in self.steps if isinstance(step.prepared, Wants)), None)


class DryRun(TrialPod, frozen=True, kw_only=True):
    """A preemptor. Its `steps` leave out the plugins that look at the node alone."""

    shape: Shape
    budgets: Budgets

    def on(self, row: int, beside: Sequence[Pod] = ()) -> DryRunResult:
        """`beside`: pods worth as much as this one, or more, that the room there is promised to."""
        there = (each.pod for each in self.world.on_row[row].values())
        lower = sorted((pod for pod in there if pod.spec.priority < self.pod.spec.priority), key=victims.importance)
        if not lower or not self.whatif.is_possible(row):
            return DryRunResult(reasons=(wording.NO_ZONES if lower else wording.NO_VICTIMS,))
        trial = Trial(self, row, beside)
        reasons = trial.refused([pod.metadata.uid for pod in lower])
        if reasons:
            return DryRunResult(reasons=reasons)
        chosen = victims.chosen(lower, self.budgets.violated_by(lower), trial.holders, trial.fits)
        reasons = () if chosen else (wording.NOT_NEEDED,)
        return DryRunResult(victims=chosen, reasons=reasons, budgeted=self.budgets.cover(lower))

    @property
    def likeness(self) -> Hashable | None:
        """Equal for pods to which every node answers the same; None: other nodes have a say, too."""
        if not all(isinstance(step.rule, NodeResourcesFit | NodePorts) for step in self.steps):
            return None
        shape = type(self.whatif), self.shape.number
        return self.pod.spec.priority, shape, self.wants, hostports.wanted(self.pod), len(self.steps)


class Trial:
    """One node, asked about different victims."""

    def __init__(self, asked: TrialPod, row: int, beside: Sequence[Pod]) -> None:
        self._asked, self._row, self._beside = asked, row, beside
        self.holders = asked.whatif.holders(row)
        """What pods hold in which zones; whoever holds nothing does not matter there."""
        self._admitted: dict[frozenset[str], bool] = {}
        self._others = tuple(step for step in asked.steps if not isinstance(step.prepared, Wants))

    def fits(self, removed: Collection[str]) -> bool:
        """The same as `refused`, without saying why."""
        if self._freed is not None and not self._freed.fits(removed):
            return False
        return not any(self._code(step, removed) for step in self._others) and not self._refused_by_engine(removed)

    def refused(self, removed: Collection[str]) -> tuple[str, ...]:
        """Why the pod would not do with these gone; nothing: it would."""
        for step in self._asked.steps:
            code = self._code(step, removed)
            if code != FITS:
                return step.prepared.refusals[code].reasons
        return self._refused_by_engine(removed)

    def _code(self, step: PreparedFilter, removed: Collection[str]) -> int:
        """With those that were promised room there, and without them, as they may never come (spec 4.5)."""
        code = step.rule.filter_row(step.prepared, self._row, removed, self._beside)
        if code != FITS or not self._beside:
            return code
        return step.rule.filter_row(step.prepared, self._row, removed, ())

    def _refused_by_engine(self, removed: Collection[str]) -> tuple[str, ...]:
        if not self._asked.whatif.has_totals(self._row, removed, self._beside):
            return (wording.NOT_ENDED,)
        key = frozenset(uid for uid in removed if uid in self.holders)
        if key not in self._admitted:
            self._admitted[key] = self._asked.whatif.admits(self._row, key, self._beside)
        return () if self._admitted[key] else (wording.NO_ZONES,)

    @cached_property
    def _freed(self) -> FreedRow | None:
        """NodeResourcesFit by numbers, for pods of lower priority: nearly every pod asks it."""
        wants = self._asked.wants
        if wants is None:
            return None
        world = self._asked.world
        return FreedRow(
            FreedRows(wants, self._asked.pod.spec.priority, world), self._row, map(world.totals.charge_of, self._beside)
        )


def moving(steps: Sequence[PreparedFilter]) -> tuple[PreparedFilter, ...]:
    """Those of rules that pods on the node can make change their mind."""
    return tuple(step for step in steps if not isinstance(step.rule, StaticFilter))
