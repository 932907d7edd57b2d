"""Says for each node why it does not take a pod, as reasons.

The scheduler calls `of` when it parks a pod; explanations and replays call it for commands and pages. The codes come
from the shape's verdicts, so a reason always matches the decision; for a row that does not fit, the row model gives the
shortfall, once for all equal rows. The reference plugin names neither container nor resource, so its reasons say no
more than its status. `numalign kubelet admit` calls `of_kubelet` for a node that exists as a kubelet model only.
Nothing is charged, and no text is made here: `wording` does that (docs/use/explain.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
from msgspec import Struct, structs

from numalign.api.attributes.intent import Intent
from numalign.api.objects.pod import Pod
from numalign.kubelet.demand import Role
from numalign.kubelet.report import report, zonetable
from numalign.kubelet.report.zonetable import Total
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.placement.columns import nodetotals, requests
from numalign.placement.columns.columns import UNREPORTED, Columns
from numalign.placement.columns.directmachine import DirectMachine, FreeState
from numalign.placement.columns.intent import Unkept
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.nodetotals import PodRequests
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shape, Shapes
from numalign.placement.decisions import Code
from numalign.placement.engine import Engine
from numalign.placement.exact import CODES, ExactFlavour
from numalign.placement.explain import reasons
from numalign.placement.explain.reasons import WHOLE_NODE, Lack, NodeCause, Reason, ZoneShare
from numalign.placement.reference import demand, status
from numalign.placement.reference.flavour import ReferenceFlavour
from numalign.placement.reference.status import Status
from numalign.placement.reports import read
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel import state as rowstate
from numalign.placement.rowmodel.causes import Cause, Shortfall, Want
from numalign.placement.rowmodel.evaluate import RowVerdict, Verdict
from numalign.placement.rules.rule import Rows
from numalign.placement.verdicts.verdicts import VerdictTable

ONE_ZONE = "single-numa-node"
BY_SIZE = frozenset({Cause.DIFFERENT_ZONE_COUNTS, Cause.PARTIAL_CORES, Cause.NOT_WHOLE_BYTES})
"""Causes that do not depend on free amounts."""
BY_AMOUNTS: Final = frozenset({Code.TOTALS, Code.DOES_NOT_FIT})
"""Codes of nodes that may be too small as well as too full."""


class RefusedPod(Struct, frozen=True):
    """One pod, and the rules of the nodes that refuse it."""

    pod: Pod
    program: Program
    rules: NodeRules
    resources: Resources


def of_shortfall(
    asked: RefusedPod,
    code: Code,
    shortfall: Shortfall,
    *,
    waiting_for: Iterable[str] = (),
    assumptions: Iterable[Assumption] = (),
) -> Reason:
    """The row model's shortfall as a reason, with names instead of numbers."""
    rules, step = asked.rules, shortfall.step
    waits = shortfall.cause in (Cause.UNSETTLED_PODS, Cause.TERMINATING_PODS)
    lacks = tuple(_lack(asked, shortfall.cause, want) for want in shortfall.wants)
    return Reason(
        code=code,
        cause=shortfall.cause,
        policy=rules.policy,
        scope=rules.scope,
        container=_name(asked.pod, step),
        place=step,
        role=asked.program.steps[step].role if step >= 0 else None,
        lacks=lacks,
        closest=rules.real(shortfall.best),
        structural=shortfall.cause in BY_SIZE or any(lack.too_large for lack in lacks),
        after_init=_is_after_init(asked.program, shortfall),
        threads_per_core=rules.threads_per_core,
        waiting_for=tuple(waiting_for) if waits else (),
        assumptions=tuple(sorted(assumptions)),
    )


def _of_empty(asked: RefusedPod, shortfall: Shortfall) -> Reason:
    """The reason of a node that has no other pod: its amounts are all that there ever is."""
    reason = of_shortfall(asked, Code.DOES_NOT_FIT, shortfall)
    lacks = tuple(structs.replace(lack, too_large=lack.is_short) for lack in reason.lacks)
    return structs.replace(reason, lacks=lacks, structural=True)


def of_totals(columns: Columns, row: int, totals: PodRequests, beside: int = 0) -> Reason:
    """The reason of a node whose totals do not suffice; resources that suffice are left out.

    `beside`: so many pods of the kind are there already, though they are not charged."""
    return _of_empty_totals(columns, row, totals) or _of_lacks(
        tuple(
            Lack(resource=columns.resources.names[column], need=need, most=max(0, left))
            for column, need in totals.pairs
            if (left := columns.spare.item(row, column) - beside * need) < need
        )
    )


def _of_empty_totals(columns: Columns, row: int, totals: PodRequests) -> Reason | None:
    """The same if there were no pod on the node; None: the node as a whole is large enough."""
    if not columns.most_pods[row]:
        return Reason(code=Code.TOTALS, cause=NodeCause.NO_NODE, structural=True)
    lacks = tuple(
        Lack(resource=columns.resources.names[column], need=need, most=offered, too_large=True)
        for column, need in totals.pairs
        if (offered := columns.offered.item(row, column)) < need
    )
    return _of_lacks(lacks) if lacks else None


def _of_lacks(lacks: tuple[Lack, ...]) -> Reason:
    cause = NodeCause.TOTALS if lacks else NodeCause.POD_COUNT
    return Reason(code=Code.TOTALS, cause=cause, lacks=lacks, structural=any(lack.too_large for lack in lacks))


def of_kubelet(kubelet: Kubelet, state: KubeletState, pod: Pod) -> Reason | None:
    """Why the kubelet refuses the pod in this state; None where amounts do not decide.

    The managers decide first, then the node's totals, as in an admission."""
    facts, resources = read.read(report.of(kubelet.machine.name, kubelet, state), None), Resources()
    # The kubelet does not read the annotations that state an intent.
    shape = Shapes().intern(structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={})))
    program = requests.program(shape, facts.rules, resources)
    asked = RefusedPod(pod, program, facts.rules, resources)
    verdict = evaluate.evaluate(rowstate.of(facts, resources), program)
    if verdict.code is Verdict.DOES_NOT_FIT and verdict.shortfall is not None:
        empty = evaluate.evaluate(rowstate.empty(facts, resources), program)
        if empty.code is Verdict.DOES_NOT_FIT and empty.shortfall is not None:
            return _of_empty(asked, empty.shortfall)
        return of_shortfall(asked, Code.DOES_NOT_FIT, verdict.shortfall)
    short = tuple(_short_totals(shape.totals, zonetable.of(kubelet, state).totals))
    if short:
        return _of_lacks(short)
    is_full = len(state.active) >= kubelet.settings.max_pods
    return Reason(code=Code.TOTALS, cause=NodeCause.POD_COUNT) if is_full else None


def _short_totals(needs: Mapping[str, int], totals: Mapping[str, Total]) -> Iterator[Lack]:
    for name, need in needs.items():
        total = totals.get(name)
        if total is not None and total.free < need:
            yield Lack(resource=name, need=need, most=max(0, total.free), too_large=total.allocatable < need)


def of_wish(wish: Intent, unkept: Unkept, rules: NodeRules | None) -> Reason:
    """The reason of a node that does not keep the pod's intent, whatever runs there."""
    return Reason(
        code=Code.INTENT,
        cause=unkept,
        policy=rules.policy if rules else None,
        scope=rules.scope if rules else None,
        structural=True,
        wish=wish,
    )


def _name(pod: Pod, step: int) -> str:
    return pod.in_admission_order()[step].name if step >= 0 else ""


def _lack(asked: RefusedPod, cause: Cause, want: Want) -> Lack:
    unit = 1000 if want.column == CPU else 1
    # Under single-numa-node what takes more zones by size still has to be in one.
    zones = min(want.zones, 1) if asked.rules.policy == ONE_ZONE else want.zones
    free = sorted(want.free, reverse=True)
    most = sum(free[:zones] if zones else free)
    unclear = zones == WHOLE_NODE and (most >= want.need or cause is Cause.TOO_FEW_FULL_CORES)
    return Lack(
        resource=asked.resources.names[want.column],
        need=want.need * unit,
        zones=zones,
        # Devices of several zones count in each of them, so the sum may exceed the need.
        most=None if unclear else most * unit,
        too_large=want.zones > zones,
        by_zone=tuple(
            ZoneShare(zone, amount * unit, max(0, want.need - amount) * unit)
            for zone, amount in zip(asked.rules.zones, want.free, strict=False)
        ),
    )


def _is_after_init(program: Program, shortfall: Shortfall) -> bool:
    """A container must include the zones of CPUs and devices that init containers leave (kubelet spec 5.5, 7.2)."""
    if shortfall.cause is not Cause.NO_COMMON_ZONES or shortfall.step < 0:
        return False
    wanted = {want.column for want in shortfall.wants}
    before = (step for step in program.steps[: shortfall.step] if step.role is Role.INIT)
    return any(wanted & _left(step.ask) for step in before)


def _left(ask: Ask) -> set[int]:
    devices = {column for column, count in ask.devices if count}
    return devices | {CPU} if ask.cpus else devices


class ExactAnswers:
    """The exact flavour's answers to one pod."""

    def __init__(self, flavour: ExactFlavour, pod: Pod, shape: Shape) -> None:
        flavour.mirror.refresh()
        self._mirror = flavour.mirror
        self._columns = flavour.columns
        self._evaluation = flavour.evaluation
        self._pod = pod
        self._table = flavour.verdicts.table(shape)
        self._flavour = flavour
        self._unkept: dict[int, Reason] = {}
        self._never: dict[tuple[int, int], Reason] = {}
        self._shared: dict[tuple[object, ...], Reason] = {}

    def reason(self, row: int) -> Reason | None:
        code = int(self._table.codes[row])
        if code >= 0:
            return None
        if code == Code.INTENT:
            return self.warning(row)
        if code in BY_AMOUNTS and (never := self.never(row)) is not None:
            return never
        return of_totals(self._columns, row, self._table.totals) if code == Code.TOTALS else self._shortfall(row, code)

    def never(self, row: int) -> Reason | None:
        totals = _of_empty_totals(self._columns, row, self._table.totals)
        if totals is not None:
            return totals
        shortfall = shortfall_when_empty(self._flavour, self._table, row)
        if shortfall is None:
            return None
        machine = self._flavour.machine(row)
        if machine is not None:
            return self.in_state(row, machine, machine.empty, structural=True)
        key = int(self._columns.kind[row]), id(shortfall)
        if key not in self._never:
            self._never[key] = _of_empty(self._refused(key[0]), shortfall)
        return self._never[key]

    def never_on_any(self, rows: Rows) -> Reason | None:
        columns, pairs = self._columns, self._table.totals.pairs
        needed = [column for column, _ in pairs]
        offered = columns.offered[rows][:, needed]
        small = (offered < np.array([need for _, need in pairs], offered.dtype)).any(axis=1) | (
            columns.most_pods[rows] == 0
        )
        # By a node that stands for others: how many there are of its size.
        nodes = Counter[int]()
        shortfalls: dict[tuple[int, int], int] = {}
        for row in rows[~small].tolist():
            shortfall = shortfall_when_empty(self._flavour, self._table, row)
            if shortfall is None:
                return None
            nodes[shortfalls.setdefault((int(columns.kind[row]), id(shortfall)), row)] += 1
        if small.any():
            _, first, counts = np.unique(offered[small], axis=0, return_index=True, return_counts=True)
            nodes.update(dict(zip(rows[small][first].tolist(), counts.tolist(), strict=True)))
        return _most_frequent(nodes, self.never)

    def uncertain(self, row: int) -> Reason:
        return self._by_model(row)

    def warning(self, row: int) -> Reason | None:
        """An intent that the node does not keep."""
        kind = int(self._columns.kind[row])
        unkept = self._evaluation.judgement(self._table, kind).unkept
        if unkept is None:
            return None
        if kind not in self._unkept:
            self._unkept[kind] = of_wish(self._table.shape.intent, unkept, self._columns.rules(row))
        return self._unkept[kind]

    def assumptions(self, row: int) -> frozenset[Assumption]:
        if self._columns.kind[row] == UNREPORTED:
            return frozenset({Assumption.NO_REPORT})
        facts = self._mirror.facts(row)
        return facts.assumptions if facts else frozenset()

    def _shortfall(self, row: int, code: int) -> Reason:
        if code != Code.DOES_NOT_FIT or self._columns.loose[row] or self._flavour.machine(row) is not None:
            return self._by_model(row)
        key = self._likeness(row)
        if key not in self._shared:
            self._shared[key] = self._by_model(row)
        return self._shared[key]

    def _by_model(self, row: int) -> Reason:
        machine = self._flavour.machine(row)
        if machine is not None:
            free = self._flavour.direct.ledger.free(self._columns.names[row], machine)
            # A pod that fits by zones was refused by a decision that is not known any more.
            assumed = tuple(self.assumptions(row))
            return self.in_state(row, machine, free) or Reason(
                code=Code.NOT_CERTAIN, cause=Cause.UNSETTLED_PODS, assumptions=assumed
            )
        kind = int(self._columns.kind[row])
        program = self._evaluation.program(self._table, kind)
        verdict = evaluate.evaluate(self._mirror.state(row), program)
        code, shortfall = _verdict(verdict)
        others: Sequence[str] = ()
        if shortfall.cause is Cause.UNSETTLED_PODS:
            others = [each.name for each in self._mirror.row(row).pending]
            if not others and verdict.shortfall is None and (others := self._terminating(row)):
                shortfall = Shortfall(cause=Cause.TERMINATING_PODS)
        return of_shortfall(
            self._refused(kind),
            code,
            shortfall,
            waiting_for=others,
            assumptions=self.assumptions(row),
        )

    def in_state(self, row: int, machine: DirectMachine, free: FreeState, *, structural: bool = False) -> Reason | None:
        """Why the scheduler finds nothing for the pod on a node in direct mode that is in this state; None: it does."""
        shape, asked = self._table.shape, self._flavour.direct.decider.ask(self._table.shape, machine)
        shortfall = self._flavour.direct.shortfall(shape, machine, free, self._columns.resources)
        if shortfall is None:
            return None
        refused = self._refused(int(self._columns.kind[row]))
        place = shortfall.step
        policy = asked.containers[place].policy if place >= 0 else asked.policy
        rules = structs.replace(refused.rules, policy=policy, scope=asked.scope, threads_per_core=machine.threads)
        refused = structs.replace(refused, rules=rules)
        if structural:
            return _of_empty(refused, shortfall)
        return of_shortfall(refused, Code.DOES_NOT_FIT, shortfall, assumptions=self.assumptions(row))

    def _refused(self, kind: int) -> RefusedPod:
        program = self._evaluation.program(self._table, kind)
        return RefusedPod(self._pod, program, self._columns.kinds[kind], self._columns.resources)

    def _terminating(self, row: int) -> Sequence[str]:
        node_ledger = self._mirror.ledger.node(self._columns.names[row])
        return [node_ledger.records[uid].name for uid in node_ledger.terminating] if node_ledger is not None else ()

    def _likeness(self, row: int) -> tuple[object, ...]:
        """Equal for rows with equal numbers, which refuse the pod for the same reason."""
        columns = self._columns
        arrays = (columns.free, columns.homeless, columns.cells)
        numbers = (columns.kind, columns.stock, columns.full_core_cpus, columns.busy, columns.split_known)
        amounts = (array[row].tobytes() for array in arrays)
        return (*amounts, *(int(array[row]) for array in numbers), self.assumptions(row))


def _verdict(verdict: RowVerdict) -> tuple[Code, Shortfall]:
    """The verdict's shortfall. A row without one fits alone and was refused beside pending or terminating pods."""
    if verdict.shortfall is None:
        return Code.NOT_CERTAIN, Shortfall(cause=Cause.UNSETTLED_PODS)
    return CODES[verdict.code], verdict.shortfall


def _most_frequent(nodes: Mapping[int, int], reason: Callable[[int], Reason | None]) -> Reason | None:
    """The reason that most nodes have, with the best amounts of them. `nodes`: by row, how many have its reason."""
    kinds: dict[Hashable, list[Reason]] = {}
    counts = Counter[Hashable]()
    for row, count in nodes.items():
        found = reason(row)
        if found is not None:
            kinds.setdefault(found.kind, []).append(found)
            counts[found.kind] += count
    return reasons.merged(kinds[max(counts, key=lambda kind: counts[kind])]) if kinds else None


def shortfall_when_empty(flavour: ExactFlavour, table: VerdictTable, row: int) -> Shortfall | None:
    """Why the managers refuse the pod if there is no other on the node; None: they may admit it then."""
    kind, facts = int(flavour.columns.kind[row]), flavour.mirror.facts(row)
    if facts is None or kind == UNREPORTED:
        return None
    if facts.direct is not None:
        machine, resources = facts.direct, flavour.columns.resources
        return flavour.direct.shortfall(table.shape, machine, machine.empty, resources)
    known, key = table.refused_when_empty, (kind, facts.supplies.stock)
    if key not in known:
        empty = rowstate.empty(facts, flavour.columns.resources)
        verdict = evaluate.evaluate(empty, flavour.evaluation.program(table, kind))
        known[key] = verdict.shortfall if verdict.code is Verdict.DOES_NOT_FIT else None
    return known[key]


NOT_CERTAIN: Final = Reason(code=Code.NOT_CERTAIN, cause=NodeCause.PLUGIN)
REASONS: Final[Mapping[Status, Reason]] = {
    status.POD: Reason(code=Code.DOES_NOT_FIT, cause=NodeCause.PLUGIN, scope="pod"),
    status.INIT_CONTAINER: Reason(code=Code.DOES_NOT_FIT, cause=NodeCause.PLUGIN, scope="container", role=Role.INIT),
    status.SIDECAR: Reason(code=Code.DOES_NOT_FIT, cause=NodeCause.PLUGIN, scope="container", role=Role.SIDECAR),
    status.CONTAINER: Reason(code=Code.DOES_NOT_FIT, cause=NodeCause.PLUGIN, scope="container", role=Role.APP),
}
"""The plugin's other statuses are about reports that are not current."""


class ReferenceAnswers:
    """The reference plugin's answers to one pod."""

    def __init__(self, flavour: ReferenceFlavour, pod: Pod, shape: Shape, columns: Columns) -> None:
        self._flavour = flavour
        self._columns = columns
        self._wanted = demand.of(pod)
        self._totals = nodetotals.totals(shape, columns)

    def reason(self, row: int) -> Reason | None:
        if not nodetotals.fits_row(self._columns, row, self._totals):
            return of_totals(self._columns, row, self._totals)
        found = self._flavour.status(self._wanted, self._columns.names[row])
        return None if found.is_success else REASONS.get(found, NOT_CERTAIN)

    def never(self, row: int) -> Reason | None:
        """The plugin does not look at sizes."""
        return None

    def never_on_any(self, rows: Rows) -> Reason | None:
        return None

    def uncertain(self, row: int) -> Reason:
        return NOT_CERTAIN

    def warning(self, row: int) -> Reason | None:
        """The plugin does not read annotations."""
        return None

    def assumptions(self, row: int) -> frozenset[Assumption]:
        """The plugin does not say what it assumes."""
        return frozenset()


class Answers(Protocol):
    """The answers of a flavour's rows to one pod."""

    def reason(self, row: int) -> Reason | None:
        """Why the row refuses the pod; None: the row is a candidate."""
        ...

    def never(self, row: int) -> Reason | None:
        """Why the node would refuse the pod even if there were no other on it; None: it may admit it then."""
        ...

    def never_on_any(self, rows: Rows) -> Reason | None:
        """The same for many nodes, as most of them have it; None: one of them may admit the pod when empty."""
        ...

    def uncertain(self, row: int) -> Reason:
        """Why it is not certain that a row which fits by its code admits the pod."""
        ...

    def warning(self, row: int) -> Reason | None: ...

    def assumptions(self, row: int) -> frozenset[Assumption]: ...


def of(engine: Engine, pod: Pod, shape: Shape | None = None) -> Answers:
    """The answers of all rows to the pod. BadObject if the pod is invalid. `shape`: if it is known already."""
    known = shape or engine.shape(pod)

    def exact(flavour: ExactFlavour) -> Answers:
        return ExactAnswers(flavour, pod, known)

    def reference(flavour: ReferenceFlavour) -> Answers:
        return ReferenceAnswers(flavour, pod, known, engine.columns)

    return engine.flavour.either(exact, reference)
