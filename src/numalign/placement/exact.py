"""The exact flavour: predicts what each node's kubelet will do with a pod.

`engine` hands facts and pods over. `table` says what every row answers to a shape; `place` puts a pod on one row: on
the columns alone where every container has one zone whatever happens, else by `commit` on the ledger's row. A row on
which the pod is not certain to be admitted answers so until it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.kubelet import demand as demands
from numalign.placement import kernels
from numalign.placement.columns import nodetotals, templates
from numalign.placement.columns.columns import NONE_PENDING, NOT_EXACT, SEVERAL_SHAPES, UNREPORTED, Columns
from numalign.placement.columns.directmachine import DirectMachine
from numalign.placement.columns.holdings import Aligned, Holding, Source
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.columns.nodetotals import NodeTotals
from numalign.placement.columns.shapes import Shape, Shapes
from numalign.placement.columns.templates import Templates, aligned
from numalign.placement.commit.committer import Committer
from numalign.placement.decisions import (
    LAST_RESORT,
    NOTHING,
    Certainty,
    Code,
    Codes,
    Decision,
    Held,
    Holder,
    Statistics,
    Wake,
    WakeCause,
)
from numalign.placement.direct.nodes import DirectNodes
from numalign.placement.facts import BindFailed, Fact
from numalign.placement.kernels import scalar
from numalign.placement.kernels.block import Kernel
from numalign.placement.kernels.plan import Scoring
from numalign.placement.ledger.charges import PodLife
from numalign.placement.ledger.nodeledger import Row
from numalign.placement.ledger.sync import LedgerSync
from numalign.placement.reports.deletedreports import DeletedReports
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.evaluate import Verdict
from numalign.placement.settings import Settings
from numalign.placement.verdicts import chargerow
from numalign.placement.verdicts.evaluation import Evaluation
from numalign.placement.verdicts.verdicts import Settled, Verdicts, VerdictTable

if TYPE_CHECKING:
    from numalign.placement.reference.flavour import ReferenceFlavour

T = TypeVar("T")
NOT_REPORTED: Final = 0
"""Score of a row whose node has no report."""
UNSURE: Final = frozenset({Code.NOT_CERTAIN, Code.NOT_DECIDED})
MOST_TERMINATING: Final = 16
"""Terminating pods of one node that are left out for a trial."""
EVERY_ORDER: Final = 3
"""Terminating pods that are tried in every order of their ends; of more, and where each trial is a search, only the
end of all of them."""
MOST_SEARCHES: Final = 8
"""For one pod: each takes as long as a thousand decisions. Rows beyond count as not certain."""
CODES: Final = {
    Verdict.DOES_NOT_FIT: Code.DOES_NOT_FIT,
    Verdict.NOT_CERTAIN: Code.NOT_CERTAIN,
    Verdict.NOT_DECIDED: Code.NOT_DECIDED,
}


class ExactFlavour:
    """Decisions on the mirrored ledger."""

    def __init__(self, settings: Settings, columns: Columns, shapes: Shapes, node_totals: NodeTotals) -> None:
        self.mirror = LedgerSync(
            columns, shapes, self._placed_by_others, self._revised, DeletedReports(settings.keep_deleted_reports)
        )
        self.committer = Committer(self.mirror, shapes, trust_bind_order=settings.trust_bind_order)
        weights = tuple(sorted((columns.column(name), weight) for name, weight in settings.weights.items()))
        self.evaluation = Evaluation(columns, Scoring(settings.strategy, weights), self._ask, scalar)
        self.verdicts = Verdicts(columns, self.evaluation, settings.live_shapes)
        if settings.typical and self.evaluation.fragmentation is not None:
            self.evaluation.fragmentation.set_typical([(shapes.intern(pod), part) for pod, part in settings.typical])
        self._settings = settings
        self.columns = columns
        self._shapes = shapes
        self.node_totals = node_totals
        self.direct = DirectNodes(settings.strategy, self.mirror.charges)
        self._searches = 0
        """For the pod at hand, so far."""

    def apply(self, fact: Fact) -> list[Wake]:
        wakes = self.mirror.apply(fact)
        changed = self.direct.apply(fact)
        if not changed:
            return wakes
        for node in changed:
            if node in self.columns.rows:
                self.columns.log.append(self.columns.rows[node])
        return [*wakes, *(Wake(node, WakeCause.FREED) for node in changed)]

    def charges(self, uid: str) -> bool:
        """Whether a pod that is gone may still run, for all that is known."""
        return self.mirror.charges(uid)

    def shapes_in_use(self) -> set[int]:
        """Numbers of shapes that the ledger, the tables or pending pods refer to."""
        return self.mirror.ledger.shapes() | self.verdicts.shapes() | set(self.columns.pending_shape.tolist())

    def retain_shapes(self, used: Container[int]) -> None:
        """What was kept for others is forgotten."""
        self.mirror.ledger.forget_shapes()
        self.committer.forget_shapes()
        if self.evaluation.fragmentation is not None:
            self.evaluation.fragmentation.retain(used)

    def survey(self, shape: Shape, rows: NDArray[np.intp] | None = None) -> Codes:
        """Every row's answer as it is now; `place` keeps it true for the pod at hand."""
        return self.follow(shape).codes

    def follow(self, shape: Shape) -> VerdictTable:
        """The table of the shape; searches are counted anew, for the next pod."""
        self.refresh()
        self._searches = 0
        return self.table(shape)

    def certainty(self, code: int, *, aligned: bool) -> int:
        if code == LAST_RESORT:
            return Certainty.BY_SEARCH
        return Certainty.UNKNOWN if aligned and code == NOT_REPORTED else Certainty.BY_SCORE

    @property
    def unreported(self) -> int:
        return NOT_REPORTED

    def lacks_report(self, node: str) -> bool:
        facts = self.mirror.ledger.facts(node)
        return facts is None or not facts.rules.zones

    def kubelet_is_away(self, node: str) -> bool:
        facts = self.mirror.ledger.facts(node)
        return facts is not None and Assumption.KUBELET_AWAY in facts.assumptions

    def waits_for_report(self, code: int) -> bool:
        return code in UNSURE

    def statistics(self) -> Statistics:
        ledger = self.mirror.ledger
        records = (record for book in ledger.nodes() for record in book.records.values())
        held = (record.holding for record in records if record.life is not PodLife.ENDED)
        counts = Counter(holding.source if holding is not None else Source.UNKNOWN for holding in held)
        return Statistics(
            divergences=ledger.divergences.counts,
            model_placements=self.committer.paths,
            rows_evaluated=self.verdicts.evaluated,
            problems=ledger.problems + self.direct.ledger.problems,
            pods_by_source={source.value: counts[source] for source in Source},
        )

    def refresh(self) -> None:
        self.mirror.refresh()
        measure = self.evaluation.fragmentation
        if measure is not None and measure.follows_nodes():
            self.verdicts.forget_answers()

    def either(self, exact: Callable[[ExactFlavour], T], reference: Callable[[ReferenceFlavour], T]) -> T:
        return exact(self)

    def table(self, shape: Shape) -> VerdictTable:
        """The shape's answers, true for the columns as they are now."""
        table = self.verdicts.find(shape)
        if table.seen == self.columns.log.generation:
            return table  # a survey is mostly followed by a placement
        self.verdicts.refresh(table)
        return table

    def place(self, pod: Pod, shape: Shape, number: int) -> Decision | None:
        """The pod on a row that the caller has picked."""
        uid = demands.identity(pod)
        if uid in self.node_totals:
            self._withdraw(uid)
        self.mirror.refresh()
        table = self.table(shape)
        if table.codes.item(number) < 0:
            return None
        decision = self._placed(pod, table, number)
        measure = self.evaluation.fragmentation
        if decision is not None and measure is not None and not self._settings.typical and measure.learn(shape):
            self.verdicts.forget_answers()
        return decision

    @property
    def kernel(self) -> Kernel:
        """What evaluates rows: plain Python until `warm` has loaded machine code."""
        return self.evaluation.kernel

    def warm(self) -> bool:
        """Use machine code from now on; False where numba is missing."""
        loaded = kernels.load()
        if loaded is None:
            return False
        self.evaluation.kernel = loaded
        return True

    def _withdraw(self, uid: str) -> None:
        """A pod is decided once more: what was decided before did not come about."""
        self.mirror.apply(BindFailed(uid))
        self.node_totals.drop(uid)
        self.mirror.refresh()

    def _placed(self, pod: Pod, table: VerdictTable, number: int) -> Decision | None:
        """Like `_placed_now`, and predicts also the zones that the pod gets if terminating pods end before it comes.

        None also where the kubelet may then reject it. More room never harms a pod of one container; of several, the
        first one may move to zones that have no room for the others. On a node in direct mode nothing is predicted."""
        machine = self.machine(number)
        if machine is not None:
            return self._placed_directly(pod, table, number, machine)
        node_ledger = self.mirror.ledger.node(self.columns.names[number])
        if node_ledger is None or not node_ledger.terminating:
            return self._placed_now(pod, table, number)
        terminating = node_ledger.terminating
        most = EVERY_ORDER if not self._is_mixed(table, number) else 0
        later = [self._if_ended(pod, table, number, uids) for uids in _ended_first(tuple(terminating), most)]
        if None in later and self._waits_for(terminating, table.shape):
            self._searches += 1
            table.turn_down(number, Code.NOT_CERTAIN, demands.identity(pod))
            return None
        decision = self._placed_now(pod, table, number)
        if decision is None or not any(later):
            return decision
        placement = reduce(_either_placement, filter(None, later), tuple(decision.placement))
        return structs.replace(decision, holder=Held(placement, decision.entries))

    def _waits_for(self, terminating: Mapping[str, bool], shape: Shape) -> bool:
        """Whether a pod of this shape waits for the end of these pods; not where it takes long, or for many nodes."""
        spec = shape.pod.spec
        several = len(spec.containers) + len(spec.init_containers) > 1
        return several and any(terminating.values()) and self._searches < MOST_SEARCHES

    def _if_ended(self, pod: Pod, table: VerdictTable, number: int, uids: Sequence[str]) -> tuple[Aligned, ...] | None:
        """The pod's zones if these pods have ended; None: it is not certain that it is admitted then.

        The ledger revises what pods on their way hold when it sees the end of others. The annotation is written
        once, so it has to include that."""
        with self.mirror.ledger.without(uids):
            row = self.mirror.ledger.row(self.columns.names[number])
            if row is None:
                return ()
            found = self.committer.place(pod, table.shape, row)
        return aligned(found.holding.containers, row.facts.rules) if found is not None else None

    def _placed_now(self, pod: Pod, table: VerdictTable, number: int) -> Decision | None:
        """Try the pod on a row in earnest. None: it is not certain to be admitted there, which holds until the row
        changes."""
        score = table.codes.item(number)
        if self.columns.flat.kind[number] == UNREPORTED:
            return self._placed_unreported(pod, table, number)
        decision = self._placed_simply(pod, table, number)
        if decision is not None:
            return decision
        if score > LAST_RESORT and self._is_mixed(table, number):
            table.turn_down(number, LAST_RESORT, demands.identity(pod))
            return None
        found = self._placed_by_model(pod, table, number)
        if found is None:
            table.turn_down(number, Code.NOT_CERTAIN, demands.identity(pod))
            return None
        held, in_turn = found
        self.mirror.refresh()
        decision = structs.replace(self._decision(pod, table, number, held), in_turn=in_turn)
        self._count(decision, table)
        return decision

    def machine(self, number: int) -> DirectMachine | None:
        """What the scheduler hands out on this row; None: it is not in direct mode."""
        kind = self.columns.flat.kind[number]
        if kind < 0 or self.columns.kinds[kind].direct is None:
            return None
        facts = self.mirror.facts(number)
        return facts.direct if facts is not None else None

    def direct_states(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """By row a number, as one column: equal for rows with the same machine and the same free state in direct mode;
        0: other rows."""
        found = np.zeros((len(rows), 1), np.int64)
        if any(rules.direct is not None for rules in self.columns.kinds):
            known: dict[object, int] = {}
            for place, row in enumerate(rows.tolist()):
                machine = self.machine(row)
                if machine is not None:
                    state = machine, self.direct.ledger.free(self.columns.names[row], machine)
                    found[place] = known.setdefault(state, len(known) + 1)
        return found

    def _placed_directly(self, pod: Pod, table: VerdictTable, number: int, machine: DirectMachine) -> Decision | None:
        node = self.columns.names[number]
        found = self.direct.place(pod, table.shape, node, machine)
        if found is None:
            table.turn_down(number, Code.DOES_NOT_FIT, demands.identity(pod))
            return None
        decision = self._decision(pod, table, number, Held(found.aligned))
        self._count(decision, table)
        return structs.replace(decision, direct=found.result)

    def _placed_unreported(self, pod: Pod, table: VerdictTable, number: int) -> Decision:
        """Where only the node as a whole counts: whether it has room for another one is known right away."""
        decision, log = self._decision(pod, table, number, NOTHING), self.columns.log
        is_current = table.seen == log.generation
        self._count(decision, table)
        self.mirror.enter(decision, number, NONE_PENDING)
        if is_current:
            table.seen = log.generation
            if not nodetotals.fits_row(self.columns, number, table.totals):
                table.codes[number] = Code.TOTALS
        return decision

    def _placed_simply(self, pod: Pod, table: VerdictTable, number: int) -> Decision | None:
        """By numbers alone, where every container has one zone in whatever order pods arrive."""
        flat = self.columns.flat
        kind, pending_shape, masks = flat.kind[number], flat.pending_shape[number], table.masks[number].tobytes()
        if flat.loose[number] or pending_shape == NOT_EXACT:
            return None
        settled = self._settled(table, kind, masks)
        if settled is None or not chargerow.takes(flat, number, settled[0]):
            return None
        spots, template = settled
        if spots.amounts:
            if self._hangs_on_order(table, number, masks):
                return None
            is_alone = pending_shape in (NONE_PENDING, table.shape.number)
            flat.pending_shape[number] = table.shape.number if is_alone else SEVERAL_SHAPES
        chargerow.take(flat, number, spots, self.evaluation.plan(table, kind))
        decision = self._decision(pod, table, number, template)
        self._count(decision, table)
        self.mirror.enter(decision, number, pending_shape)
        return decision

    def _settled(self, table: VerdictTable, kind: int, masks: bytes) -> Settled | None:
        """What pods of these zones take and hold, the same for all of them; None: they are not simple."""
        width = self.columns.flat.width
        key = kind, width, masks
        if key not in table.settled:
            spots = chargerow.spots(self.evaluation.plan(table, kind), masks, width)
            known = self._templates(table, kind)
            table.settled[key] = (spots, known[templates.key(masks)]) if spots is not None else None
        return table.settled[key]

    def _is_mixed(self, table: VerdictTable, number: int) -> bool:
        """Whether pods of other shapes are on their way to this node, and their order counts."""
        alike = self.columns.flat.pending_shape[number] in (NONE_PENDING, table.shape.number)
        return not self._settings.trust_bind_order and not alike

    def _hangs_on_order(self, table: VerdictTable, number: int, masks: bytes) -> bool:
        """Whether another order of the pods that are on their way to this node could move this one (engine spec R2).

        Free amounts lie between those with none of the others charged and with all of them. Fewer zones are possible
        the less is free, so a pod that gets the same zones at both ends gets them always; and pods of one shape only
        change places with each other."""
        if not self._is_mixed(table, number):
            return False
        kind = self.columns.flat.kind[number]
        settled = self.evaluation.settled_block(kind)
        code, alone = self.evaluation.kernel.evaluate_row(settled, number, self.evaluation.plan(table, kind))
        return code < 0 or bytes(alone) != masks

    def _templates(self, table: VerdictTable, kind: int) -> Templates:
        found = table.templates.get(kind)
        if found is None:
            rules, program = self.columns.kinds[kind], self.evaluation.program(table, kind)
            found = table.templates[kind] = Templates(rules, program, table.shape.number)
        return found

    def _placed_by_model(self, pod: Pod, table: VerdictTable, number: int) -> tuple[Holder, bool] | None:
        """What the pod gets, and whether that changes what pods on their way to the node may get."""
        if self._is_mixed(table, number):
            self._searches += 1
            if self._searches > MOST_SEARCHES:
                return None
        row = self.mirror.row(number)
        found = self.committer.place(pod, table.shape, row)
        if found is None:
            return None
        self.mirror.predict(number, pod, found.holding, found.revised)
        held = Held(aligned(found.holding.containers, row.facts.rules), found.holding.entries)
        return held, bool(found.revised)

    def _decision(self, pod: Pod, table: VerdictTable, number: int, holder: Holder) -> Decision:
        self._searches = 0
        warning = self.evaluation.judgement(table, self.columns.flat.kind[number]).reason
        uid, node, score = demands.identity(pod), self.columns.names[number], table.codes.item(number)
        return Decision(uid, node, score, warning, holder, pod)

    def _count(self, decision: Decision, table: VerdictTable) -> None:
        """For the node as a whole."""
        self.node_totals.put(decision.uid, decision.node, table.totals.pairs)

    def _ask(self, table: VerdictTable, number: int) -> int:
        machine = self.machine(number)
        if machine is not None:
            score = self.direct.score(table.shape, self.columns.names[number], machine)
            return Code.DOES_NOT_FIT if score is None else score
        program = self.evaluation.program(table, int(self.columns.kind[number]))
        verdict = evaluate.evaluate(self.mirror.state(number), program)
        if verdict.code is Verdict.NOT_DECIDED and self.mirror.topology(self.columns.names[number]) is not None:
            return LAST_RESORT
        if not verdict.fits:
            return CODES[verdict.code]
        return self.evaluation.score(table, number, verdict.possible)

    def _placed_by_others(self, pod: Pod, row: Row) -> Sequence[Holding]:
        """Where a pod may be that another scheduler bound; nothing: it cannot be predicted."""
        try:
            shape = self._shapes.intern(pod)
        except BadObject:
            return ()
        found = self.committer.place(pod, shape, row)
        return (found.holding, *found.revised) if found is not None else ()

    def _revised(self, row: Row) -> Sequence[Holding]:
        return self.committer.revised(row)


def _ended_first(terminating: Sequence[str], most: int) -> list[tuple[str, ...]]:
    """The sets of terminating pods that may have ended before another pod comes: all sets of at most so many pods."""
    if len(terminating) > most:
        return [tuple(terminating)] if len(terminating) <= MOST_TERMINATING else []
    return [uids for count in range(1, len(terminating) + 1) for uids in combinations(terminating, count)]


def _either_placement(one: tuple[Aligned, ...], other: tuple[Aligned, ...]) -> tuple[Aligned, ...]:
    return tuple(map(_either, one, other))


def _either(one: Aligned, other: Aligned) -> Aligned:
    """A container that gets the zones of one or the other; none: it is not aligned."""
    return one if not one.zones else Aligned(one.container, tuple(sorted({*one.zones, *other.zones})))
