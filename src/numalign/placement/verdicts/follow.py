"""Many pods of one shape at once, with machine code: the Python side of `repeating`.

`exactflavour` has one as soon as compiled kernels are ready. Runs go as far as they can; rows and pods that ask for
more than numbers are left to the flavour, one by one, and what was placed is entered into ledger and totals. Importing
this module needs numba."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numalign.api.objects.pod import Pod
from numalign.kubelet import demand as demands
from numalign.placement.columns import templates
from numalign.placement.columns.changelog import LENGTH
from numalign.placement.columns.columns import UNREPORTED, Columns
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.shapes import Shapes
from numalign.placement.columns.templates import Templates
from numalign.placement.columns.tenants import Tenants
from numalign.placement.decisions import Decision
from numalign.placement.kernels.compiled import WORK, recorded
from numalign.placement.reports.nodefacts import RowFacts
from numalign.placement.verdicts import chargerow, followkernel, kernelargs, pick
from numalign.placement.verdicts.kernelargs import (
    ASK_ROW,
    ASKED,
    AT_MASKS,
    DONE,
    FULL,
    KIND,
    NUMBERS,
    PEAKED,
    PENALTY,
    REASONS,
    ROW,
    SHAPE,
    TRUSTING,
    Ground,
    Own,
)
from numalign.placement.verdicts.verdicts import VerdictTable

if TYPE_CHECKING:
    from numalign.placement.exact import ExactFlavour


def warm() -> None:
    """Compile `run`, or load it, with a run in which nothing fits."""
    from numalign.placement.exact import ExactFlavour
    from numalign.placement.settings import Settings

    columns, shapes = Columns(), Shapes()
    toy = ExactFlavour(Settings(), columns, shapes, Tenants(columns))
    columns.describe(columns.row("toy"), RowFacts(node="toy", rules=NodeRules(zones=(0, 1))))
    table = toy.verdicts.find(shapes.intern(Pod()))
    table.kind, table.seen = 0, columns.log.generation
    repeater = Repeater(toy, trusting=False)
    kept = repeater.prepared(table, 1)
    followkernel.run(kept.handle, 0, 0, 1)


Asking = tuple[Sequence[Pod], Sequence[str], list[float]]
"""Pods of one shape, their uids, and what was drawn for each."""


class Floor(NamedTuple):
    """What all jobs have in common, and the handle by which it is passed on."""

    arrays: Ground
    handle: Any


class Kept(NamedTuple):
    """A job, the handle by which it is passed on, and what its outcomes are read with."""

    job: Own
    floor: Floor
    handle: Any
    kind: int
    room: int
    """For so many pods."""
    templates: Templates
    warning: str


class Repeater:
    """Runs for pods of one shape, with what they leave over done by the flavour."""

    def __init__(self, flavour: ExactFlavour, *, trusting: bool) -> None:
        self._flavour = flavour
        self._columns = flavour.columns
        self._trusting = trusting
        self._kind = UNREPORTED
        """Of the row that was picked last; new tables start with it."""
        self._floor: Floor | None = None
        self._masks: dict[int, Any] = {}
        """Scratch space by the number of containers."""

    def decide(self, asking: Asking, table: VerdictTable) -> list[Decision]:
        done, (pods, uids, chances) = list[Decision](), asking
        self._catch_up(table)
        while len(done) < len(pods):
            if table.kind < 0:
                done.append(self._decide_by_the_book(pods[len(done)], table, chances[len(done)]))
                continue
            wanted = len(pods) - len(done)
            kept = self._at_hand(table, wanted)
            kept.job.chances[:wanted] = chances[len(done) :]
            placed, why = self._run(kept, table, wanted)
            if placed:
                these = slice(len(done), len(done) + placed)
                done += self._decisions(kept, table, pods[these], uids[these])
            if why != DONE:
                # The last pod's row may be one to ask about, too.
                if placed < wanted:
                    chances[len(done)] = float(kept.job.chances[placed])
                self._go_on(why, kept, table, asking, done)
        return done

    def decide_one(self, pod: Pod, uid: str, table: VerdictTable, chance: float) -> Decision:
        """The same for a pod that comes alone, without lists of one."""
        self._catch_up(table)
        if table.kind < 0:
            return self._decide_by_the_book(pod, table, chance)
        kept = self._at_hand(table, 1)
        kept.job.chances[0] = chance
        placed, why = self._run(kept, table, 1)
        if why == DONE:
            return self._decision(kept, table, pod, uid)
        done = [self._decision(kept, table, pod, uid)] if placed else []
        asking = (pod,), (uid,), [float(kept.job.chances[0])]
        self._go_on(why, kept, table, asking, done)
        return done[0] if done else self.decide(asking, table)[0]

    def follow(self, table: VerdictTable) -> None:
        """Bring a table up to date for whoever picks rows by more than codes: `verdicts.refresh`, with all rows that
        changed in one call."""
        flavour, log = self._flavour, self._columns.log
        behind = log.generation - table.seen
        if table.kind < 0 or table.seen < 0 or behind > LENGTH:
            flavour.verdicts.refresh(table)
            self._take_to(table, self._columns.kind.item(log.last))
        elif behind:
            table.make_room(self._columns.room)
            kept = self._at_hand(table, 1)
            flavour.verdicts.evaluated += behind
            if followkernel.run(kept.handle, log.generation, table.seen, 0) == ASK_ROW:
                self._ask_rows(kept, table)
            table.seen = log.generation

    def place(self, pod: Pod, table: VerdictTable, row: int) -> Decision | None:
        """One pod on a row that somebody else has picked; None: numbers alone do not do."""
        if table.kind < 0 or table.kind != self._columns.kind.item(row):
            return None
        self._flavour.verdicts.evaluated += 1
        kept = self._at_hand(table, 1)
        placed, why = self._run(kept, table, ~row)
        # The decision first: rows are asked what they say with the pod.
        decision = self._decision(kept, table, pod, demands.identity(pod)) if placed else None
        if why == ASK_ROW:
            self._ask_rows(kept, table)
        return decision

    def _run(self, kept: Kept, table: VerdictTable, wanted: int) -> tuple[int, int]:
        """How many pods were placed, and why no more."""
        log = self._columns.log
        placed, why = divmod(followkernel.run(kept.handle, log.generation, table.seen, wanted), REASONS)
        table.seen = log.generation = log.generation + placed
        return placed, why

    def _go_on(self, why: int, kept: Kept, table: VerdictTable, asking: Asking, done: list[Decision]) -> None:
        """Do what a run has left to us."""
        flavour, numbers = self._flavour, kept.job.numbers.tolist()
        if why == FULL:
            done += [flavour.refused(pod, table) for pod in asking[0][len(done) :]]
        elif why == ASK_ROW:
            self._ask_rows(kept, table)
        else:
            self._place(numbers[ROW], table, asking, done)

    def _ask_rows(self, kept: Kept, table: VerdictTable) -> None:
        """The rows that a run noted as strange."""
        strange = kept.floor.arrays.strange[: kept.job.numbers.item(ASKED)].tolist()
        for row in dict.fromkeys(strange):
            table.put(row, self._flavour.evaluation.row(table, row))

    def _catch_up(self, table: VerdictTable) -> None:
        """All rows at once, where a run cannot tell what has changed; it will be of the usual kind."""
        table.make_room(self._columns.room)
        if table.seen < 0 or self._columns.log.generation - table.seen > LENGTH:
            self._flavour.verdicts.refresh(table)
            self._take_to(table, self._kind)

    def _take_to(self, table: VerdictTable, kind: int) -> None:
        """Runs are of this kind from now on, if there are none yet and these nodes may be used."""
        if table.kind < 0 <= kind and self._flavour.evaluation.judgement(table, kind).allowed:
            table.kind = kind

    def _place(self, row: int, table: VerdictTable, asking: Asking, done: list[Decision]) -> None:
        """The best row is not for a run of this kind: let the next run be of its kind, or place one pod by the book."""
        kind = int(self._columns.kind[row])
        if kind != table.kind and kind >= 0 and not self._columns.loose[row]:
            table.kind = kind
            return
        decision = self._flavour.placed(asking[0][len(done)], table, row)
        if decision is None:
            asking[2][len(done)] = pick.another(asking[2][len(done)])
        else:
            done.append(decision)

    def _decide_by_the_book(self, pod: Pod, table: VerdictTable, chance: float) -> Decision:
        decision = self._flavour.decide(pod, table, chance)
        if decision.node is not None:
            table.kind = self._kind = int(self._columns.kind[self._columns.rows[decision.node]])
        return decision

    def prepared(self, table: VerdictTable, wanted: int) -> Kept:
        """A run over the table as it is, with room for so many pods; kept from run to run."""
        kept: Kept | None = table.job
        if kept is None or not self._is_current(kept, table) or kept.room < wanted:
            kept = table.job = self._kept(table, max(1, wanted))
        return kept

    def _at_hand(self, table: VerdictTable, wanted: int) -> Kept:
        """The same, and the run knows whether the best rows have to be found first."""
        kept = self.prepared(table, wanted)
        if not table.is_peaked:
            kept.job.numbers[PEAKED], table.is_peaked = 0, True
        return kept

    def _kept(self, table: VerdictTable, room: int) -> Kept:
        floor, job = self._current_floor(), self._new_job(table, room)
        return Kept(
            job=job,
            floor=floor,
            handle=kernelargs.handle(floor.handle, *job),
            kind=table.kind,
            room=room,
            templates=self._flavour.templates(table, table.kind),
            warning=self._flavour.evaluation.judgement(table, table.kind).reason,
        )

    def _is_current(self, kept: Kept, table: VerdictTable) -> bool:
        """Whether no array has been replaced by a larger one since, and the kind is the same."""
        free = kept.floor.arrays.free
        return free is self._columns.free and kept.job.codes is table.codes and kept.kind == table.kind

    def _current_floor(self) -> Floor:
        columns, floor = self._columns, self._floor
        if floor is None or floor.arrays.free is not columns.free:
            block = self._flavour.evaluation.block(0)[1:]
            whole = columns.offered, columns.requested, columns.pods, columns.most_pods
            rows = columns.kind, columns.loose, columns.tenure, columns.log.ring
            # Room for all rows, or for as many changes as the log keeps.
            some = (np.empty(max(LENGTH, len(columns.kind)), np.int32) for _ in range(3))
            arrays = np.zeros(1, WORK), *block, columns.settled, *whole, *rows, *some, chargerow.charges()
            floor = self._floor = Floor(Ground._make(arrays), kernelargs.ground(arrays))
            self._masks.clear()
        return floor

    def _new_job(self, table: VerdictTable, room: int) -> Own:
        kind, peaks = table.kind, table.own_peaks
        plan = self._flavour.evaluation.plan(table, kind)
        numbers = np.zeros(NUMBERS, np.int64)
        numbers[KIND], numbers[SHAPE], numbers[TRUSTING] = kind, table.shape.number, self._trusting
        numbers[PENALTY] = self._flavour.evaluation.judgement(table, kind).penalty
        own = table.codes, table.masks, peaks.best, peaks.count, peaks.tops, peaks.tops_count
        placed = np.empty((AT_MASKS + templates.key_length(plan.steps), room), np.int64)
        pods = numbers, np.empty(room), placed, self._some_masks(plan.steps)
        return Own._make((recorded(plan), *table.totals.arrays, *own, *pods))

    def _some_masks(self, steps: int) -> Any:
        found = self._masks.get(steps)
        if found is None:
            found = self._masks[steps] = np.zeros((max(LENGTH, len(self._columns.kind)), steps), np.uint8)
        return found

    def _decisions(self, kept: Kept, table: VerdictTable, pods: Sequence[Pod], uids: Sequence[str]) -> list[Decision]:
        """Enter what a run has placed, and say so."""
        rows, scores, tenures, *masks = kept.job.placed[:, : len(pods)].tolist()
        names, templates = self._columns.names, kept.templates
        nodes = [names[row] for row in rows]
        holders = [templates[key] for key in zip(*masks)]  # noqa: B905
        made = list(map(Decision, uids, nodes, scores, repeat(kept.warning), holders, pods))
        self._flavour.next_pod()
        self._flavour.tenants.note(uids, nodes, table.totals.pairs)
        self._flavour.mirror.enter(made, rows, tenures)
        return made

    def _decision(self, kept: Kept, table: VerdictTable, pod: Pod, uid: str) -> Decision:
        """The same for one pod."""
        row, score, tenure, *masks = kept.job.placed[:, 0].tolist()
        node, flavour = self._columns.names[row], self._flavour
        decision = Decision(uid, node, score, kept.warning, kept.templates[tuple(masks)], pod)
        flavour.next_pod()
        flavour.tenants.note_one(uid, node, table.totals.pairs)
        flavour.mirror.enter((decision,), (row,), (tenure,))
        return decision
