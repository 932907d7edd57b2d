"""Answers whether a node would take a pod if something were different: pods gone, pods nominated, another policy.

This is the only interface for that question. Preemption asks before it evicts pods, the scheduling cycle before it
takes room of a nominated pod, explanations and advice before they say that a pod fits. The exact flavour answers by the
ledger's row without those pods and by the committer, the reference flavour by the plugin's own simulation (scheduler
plugin spec 16). Nothing is charged: ledger and columns stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import structs

from numalign.api.errors import BadObject
from numalign.api.nrt.topologymanager import Policy
from numalign.api.objects.pod import Pod
from numalign.kubelet.demand import identity
from numalign.placement.columns import nodetotals
from numalign.placement.columns.columns import NONE_PENDING, UNREPORTED, VACANT
from numalign.placement.columns.holdings import Holding
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.columns.shapes import Shape
from numalign.placement.commit.committer import NONE_COMING, CommittedPod
from numalign.placement.decisions import LAST_RESORT
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.ledger.nodeledger import Row
from numalign.placement.reference import demand
from numalign.placement.reference.flavour import ReferenceFlavour
from numalign.placement.rowmodel import evaluate, state
from numalign.placement.rowmodel.evaluate import Verdict

NO_HOLDERS: Final[Mapping[str, int]] = {}
NO_PODS: Final[frozenset[str]] = frozenset()


class WhatIf(Protocol):
    """What-if questions about one pod. Answers are valid until the next fact or decision."""

    def has_totals(self, row: int, without: Collection[str], beside: Sequence[Pod] = ()) -> bool:
        """Whether the node's totals would suffice without pods of these uids and with these other pods."""

    def admits(self, row: int, without: Collection[str], beside: Sequence[Pod] = ()) -> bool:
        """Whether the kubelet would certainly admit the pod then, in whatever order the other pods arrive."""

    def leaves_room(self, row: int, leaving: Collection[str], promised: Sequence[Pod]) -> bool:
        """Whether these nominated pods, for which `leaving` are evicted, would still be admitted after the pod."""

    def holders(self, row: int) -> Mapping[str, int]:
        """By uid, a mask of the positions of zones in which a pod holds something or may hold something."""

    def is_possible(self, row: int) -> bool:
        """Whether the node could admit the pod if it were empty."""

    def is_final(self, row: int) -> bool:
        """Whether a row that fits by its code certainly admits the pod: no pod is pending, and amounts decide."""

    def admits_under(self, row: int, policy: Policy) -> bool:
        """Whether the node would admit the pod with this Topology Manager policy, and no other pod on it."""

    def pending(self, row: int) -> frozenset[str]:
        """Uids of pods that are pending on the node."""

    def known(self, row: int) -> frozenset[str]:
        """Uids of all pods on the node in the ledger."""


def of(engine: Engine, pod: Pod, shape: Shape) -> WhatIf:
    def exact(flavour: ExactFlavour) -> WhatIf:
        return ExactWhatIf(engine, flavour, pod, shape)

    def reference(flavour: ReferenceFlavour) -> WhatIf:
        return PluginWhatIf(flavour, pod)

    return engine.flavour.either(exact, reference)


class ExactWhatIf:
    def __init__(self, engine: Engine, flavour: ExactFlavour, pod: Pod, shape: Shape) -> None:
        self._engine, self._flavour, self._pod, self._shape = engine, flavour, pod, shape
        self._columns, self._mirror = flavour.columns, flavour.mirror
        self._mirror.refresh()
        self._table = flavour.verdicts.table(shape)

    def has_totals(self, row: int, without: Collection[str], beside: Sequence[Pod] = ()) -> bool:
        columns, node = self._columns, self._columns.names[row]
        gone = [requests for uid in without if (requests := self._flavour.node_totals.requests(uid, node)) is not None]
        others = [nodetotals.totals(self._engine.shape(other), columns).pairs for other in beside]
        if int(columns.pods[row]) - len(gone) + len(others) >= int(columns.most_pods[row]):
            return False
        left = {
            column: columns.offered.item(row, column) - columns.requested.item(row, column) - amount
            for column, amount in self._table.totals.pairs
        }
        for sign, pairs in (*((1, each) for each in gone), *((-1, each) for each in others)):
            for column, amount in pairs:
                if column in left:
                    left[column] += sign * amount
        return all(amount >= 0 for amount in left.values())

    def admits(self, row: int, without: Collection[str], beside: Sequence[Pod] = ()) -> bool:
        kind = int(self._columns.kind[row])
        if not self._is_allowed(kind):
            return False
        if self._asks_nothing(kind):
            return True
        with self._mirror.ledger.without(without):
            return self._admits_all(self._row(row, changed=bool(without)), (*beside, self._pod))

    def leaves_room(self, row: int, leaving: Collection[str], promised: Sequence[Pod]) -> bool:
        kind = int(self._columns.kind[row])
        own = None if self._asks_nothing(kind) else self._placed(self._pod, self._mirror.row(row), {})
        if own is None:
            return True
        with self._mirror.ledger.without(leaving):
            supposed = self._row(row, changed=bool(leaving))
            # A nominated pod that would not be admitted anyway does not count.
            hopeful = [other for other in promised if self._admits_all(supposed, (other,))]
            return self._admits_all(_with(supposed, own), hopeful, {identity(self._pod): self._pod})

    def holders(self, row: int) -> Mapping[str, int]:
        node_ledger = self._mirror.ledger.node(self._columns.names[row])
        if node_ledger is None or self._asks_nothing(int(self._columns.kind[row])):
            return NO_HOLDERS
        everywhere = (1 << len(node_ledger.zones)) - 1
        found = {}
        for uid, record in node_ledger.records.items():
            entries = record.holding.entries if record.holding is not None else None
            mask = everywhere if entries is None else _union(entry.zones for entry in entries)
            if mask or entries:
                found[uid] = mask
        return found

    def is_possible(self, row: int) -> bool:
        kind = int(self._columns.kind[row])
        if not self._is_allowed(kind):
            return False
        facts = self._mirror.facts(row)
        if facts is None or self._asks_nothing(kind):
            return True
        known, key = self._table.possible, (kind, facts.supplies.stock)
        if key not in known:
            verdict = evaluate.evaluate(state.empty(facts, self._columns.resources), self._program(kind))
            known[key] = verdict.code is not Verdict.DOES_NOT_FIT
        return known[key]

    def is_final(self, row: int) -> bool:
        columns = self._columns
        if columns.kind[row] == UNREPORTED:
            return True
        code = int(self._table.codes[row])
        return bool(code > LAST_RESORT and not columns.loose[row] and columns.pending_shape[row] == NONE_PENDING)

    def admits_under(self, row: int, policy: Policy) -> bool:
        if self._columns.kind[row] == UNREPORTED:
            return False
        with self._mirror.ledger.without(self.known(row)):
            there = self._mirror.row(row)
        rules = structs.replace(there.facts.rules, policy=policy)
        supposed = structs.replace(there, facts=structs.replace(there.facts, rules=rules))
        return self._placed(self._pod, supposed, {}) is not None

    def pending(self, row: int) -> frozenset[str]:
        node_ledger = self._mirror.ledger.node(self._columns.names[row])
        return frozenset(node_ledger.pending) if node_ledger is not None else NO_PODS

    def known(self, row: int) -> frozenset[str]:
        node_ledger = self._mirror.ledger.node(self._columns.names[row])
        return frozenset(node_ledger.records) if node_ledger is not None else NO_PODS

    def _asks_nothing(self, kind: int) -> bool:
        return kind == UNREPORTED or not any(map(_is_something, _asks(self._program(kind))))

    def _program(self, kind: int) -> Program:
        return self._flavour.evaluation.program(self._table, kind)

    def _is_allowed(self, kind: int) -> bool:
        return kind != VACANT and self._flavour.evaluation.judgement(self._table, kind).allowed

    def _row(self, row: int, *, changed: bool) -> Row:
        """The row; if pods are gone, pending pods may settle in other zones."""
        supposed = self._mirror.row(row)
        if not changed or not supposed.pending:
            return supposed
        return _revised(supposed, {each.uid: each for each in self._flavour.committer.revised(supposed)})

    def _admits_all(self, row: Row, pods: Sequence[Pod], coming: Mapping[str, Pod] = NONE_COMING) -> bool:
        """Whether all these pods are admitted together."""
        known = dict(coming)
        for pod in pods:
            committed = self._placed(pod, row, known)
            if committed is None:
                return False
            row, known[identity(pod)] = _with(row, committed), pod
        return True

    def _placed(self, pod: Pod, row: Row, coming: Mapping[str, Pod]) -> CommittedPod | None:
        try:
            shape = self._shape if pod is self._pod else self._engine.shape(pod)
        except BadObject:
            return None
        return self._flavour.committer.place(pod, shape, row, coming)


class PluginWhatIf:
    """The reference plugin knows neither nominated pods nor node totals, which other plugins check."""

    def __init__(self, flavour: ReferenceFlavour, pod: Pod) -> None:
        self._flavour, self._wanted = flavour, demand.of(pod)

    def has_totals(self, row: int, without: Collection[str], beside: Sequence[Pod] = ()) -> bool:
        return True

    def admits(self, row: int, without: Collection[str], beside: Sequence[Pod] = ()) -> bool:
        return self._flavour.status_without(self._wanted, row, without).is_success

    def leaves_room(self, row: int, leaving: Collection[str], promised: Sequence[Pod]) -> bool:
        return True

    def holders(self, row: int) -> Mapping[str, int]:
        """The plugin does not provide the zones of pods."""
        return dict.fromkeys(self._flavour.pods_on(row), 1)

    def is_possible(self, row: int) -> bool:
        return True

    def is_final(self, row: int) -> bool:
        return True

    def admits_under(self, row: int, policy: Policy) -> bool:
        return False

    def pending(self, row: int) -> frozenset[str]:
        return NO_PODS

    def known(self, row: int) -> frozenset[str]:
        return NO_PODS


def _with(row: Row, committed: CommittedPod) -> Row:
    """The row with one more pending pod."""
    revised = _revised(row, {each.uid: each for each in committed.revised})
    return structs.replace(revised, pending=(*revised.pending, committed.holding))


def _revised(row: Row, holdings: Mapping[str, Holding]) -> Row:
    return structs.replace(row, pending=tuple(holdings.get(each.uid, each) for each in row.pending))


def _asks(program: Program) -> list[Ask]:
    every = [step.ask for step in program.steps]
    return [*every, *(ask for ask in (program.whole, program.budget) if ask is not None)]


def _is_something(ask: Ask) -> bool:
    named = (*(ask.memory or ()), *ask.devices)
    return bool(ask.cpus or ask.memory is None or any(amount for _, amount in named))


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
