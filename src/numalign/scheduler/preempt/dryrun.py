"""What would become of one node if pods had to leave it for a preemptor: rules and zones asked, nothing done.

`preemption` makes one `DryRun` for a pod and asks it about nodes; `answers` keeps what it says."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

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
from numalign.scheduler.choose.filtering import Step
from numalign.scheduler.preempt import victims
from numalign.scheduler.preempt.budgets import Budgets
from numalign.scheduler.preempt.victims import Victims


class Answer(Struct, frozen=True, kw_only=True):
    """Whom to evict from a node, or why that is no use."""

    victims: Victims | None = None
    reasons: tuple[str, ...] = ()
    budgeted: bool = False
    """Whether disruption budgets had a say."""


class DryRun(Struct, frozen=True, kw_only=True):
    """One preemptor's questions."""

    pod: Pod
    shape: Shape
    steps: tuple[Step, ...]
    """Of the rules; those that look at the node alone have had their say before."""
    whatif: WhatIf
    world: World
    budgets: Budgets

    def on(self, row: int, beside: Sequence[Pod] = ()) -> Answer:
        """`beside`: pods worth as much as this one, or more, that the room there is promised to."""
        there = (each.pod for each in self.world.on_row[row].values())
        lower = sorted((pod for pod in there if pod.spec.priority < self.pod.spec.priority), key=victims.importance)
        if not lower or not self.whatif.is_possible(row):
            return Answer(reasons=(wording.NO_ZONES if lower else wording.NO_VICTIMS,))
        trial = Trial(self, row, beside)
        reasons = trial.refused([pod.metadata.uid for pod in lower])
        if reasons:
            return Answer(reasons=reasons)
        chosen = victims.chosen(lower, self.budgets.violated_by(lower), trial.holders, trial.fits)
        reasons = () if chosen else (wording.NOT_NEEDED,)
        return Answer(victims=chosen, reasons=reasons, budgeted=self.budgets.cover(lower))

    @property
    def likeness(self) -> Hashable | None:
        """Equal for pods to which every node answers the same; None: other nodes have a say, too."""
        if not all(isinstance(step.rule, NodeResourcesFit | NodePorts) for step in self.steps):
            return None
        return self.pod.spec.priority, self.shape.number, self.wants, hostports.wanted(self.pod), len(self.steps)

    @property
    def wants(self) -> tuple[Want, ...] | None:
        """What NodeResourcesFit looks for; None: nobody asks it."""
        return next((step.prepared.refusals.wants for step in self.steps if isinstance(step.prepared, Wants)), None)


class Trial:
    """One node, asked about different victims."""

    def __init__(self, asked: DryRun, row: int, beside: Sequence[Pod]) -> None:
        self._asked, self._row, self._beside = asked, row, beside
        self.holders = asked.whatif.holders(row)
        """What pods hold in which zones; whoever holds nothing does not matter there."""
        self._admitted: dict[frozenset[str], bool] = {}
        self._room = self._freed()
        self._others = tuple(step for step in asked.steps if not isinstance(step.prepared, Wants))

    def fits(self, removed: Collection[str]) -> bool:
        """The same as `refused`, without saying why."""
        if self._room is not None and not self._room.fits(removed):
            return False
        return not any(self._code(step, removed) for step in self._others) and not self._refused_by_engine(removed)

    def refused(self, removed: Collection[str]) -> tuple[str, ...]:
        """Why the pod would not do with these gone; nothing: it would."""
        for step in self._asked.steps:
            code = self._code(step, removed)
            if code != FITS:
                return step.prepared.refusals[code].reasons
        return self._refused_by_engine(removed)

    def _code(self, step: Step, removed: Collection[str]) -> int:
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

    def _freed(self) -> FreedRow | None:
        """NodeResourcesFit is the one rule that everybody asks; others that come only make it less."""
        wants = self._asked.wants
        if wants is None:
            return None
        world = self._asked.world
        return FreedRow(
            FreedRows(wants, self._asked.pod.spec.priority, world), self._row, map(world.totals.charge_of, self._beside)
        )


def moving(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Those of rules that pods on the node can make change their mind."""
    return tuple(step for step in steps if not isinstance(step.rule, StaticFilter))
