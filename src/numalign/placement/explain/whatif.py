"""Answers whether a node would take a pod if something were different: pods gone, pods nominated, another policy.

This is the only interface for that question. Preemption asks before it evicts pods, the scheduling cycle before it
takes room of a nominated pod, explanations and advice before they say that a pod fits. The exact flavour answers by the
ledger's row without those pods and by the committer, the reference flavour by the plugin's own simulation (scheduler
plugin spec 16). Nothing is charged: ledger and columns stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, structs

from numalign.api.errors import BadObject
from numalign.api.nrt.topologymanager import Policy, Scope
from numalign.api.objects.pod import Pod
from numalign.kubelet.demand import identity
from numalign.placement.columns import intent, nodetotals, requests
from numalign.placement.columns.columns import NONE_PENDING, UNREPORTED, VACANT
from numalign.placement.columns.directmachine import DirectMachine
from numalign.placement.columns.holdings import Holding
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.columns.shapes import Shape
from numalign.placement.commit.committer import NONE_COMING, CommittedPod
from numalign.placement.commit.place import Path
from numalign.placement.decisions import LAST_RESORT, Code
from numalign.placement.engine import Engine
from numalign.placement.exact import CODES, ExactFlavour
from numalign.placement.explain import answers
from numalign.placement.explain.answers import RefusedPod
from numalign.placement.explain.reasons import Reason
from numalign.placement.ledger import rows
from numalign.placement.ledger.charges import PodLife
from numalign.placement.ledger.nodeledger import Row
from numalign.placement.reference import demand
from numalign.placement.reference.flavour import ReferenceFlavour
from numalign.placement.rowmodel.causes import Cause, Shortfall

NO_HOLDERS: Final[Mapping[str, int]] = {}
NO_PODS: Final[frozenset[str]] = frozenset()


class Supposition(Struct, frozen=True, kw_only=True):
    """What would be different on a node."""

    without: frozenset[str] = NO_PODS
    """Pods, by uid, that are not there."""
    policy: Policy | None = None
    """Another Topology Manager policy; None: as it is."""
    scope: Scope | None = None

    @property
    def is_configuration(self) -> bool:
        return self.policy is not None or self.scope is not None


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

    def reason(self, row: int, supposed: Supposition) -> Reason | None:
        """Why the zones of the node would refuse the pod then; None: they would certainly admit it.

        The row has a report. Pods that stay keep their zones, as they do when a kubelet restarts."""

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
        left = {column: columns.spare.item(row, column) - amount for column, amount in self._table.totals.pairs}
        for sign, pairs in (*((1, each) for each in gone), *((-1, each) for each in others)):
            for column, amount in pairs:
                if column in left:
                    left[column] += sign * amount
        return all(amount >= 0 for amount in left.values())

    def admits(self, row: int, without: Collection[str], beside: Sequence[Pod] = ()) -> bool:
        kind = int(self._columns.kind[row])
        if not self._is_allowed(kind):
            return False
        machine = self._flavour.machine(row)
        if machine is not None:
            return self._admits_directly(row, machine, (*beside, self._pod), without)
        if self._asks_nothing(kind):
            return True
        with self._mirror.ledger.without(without):
            return self._admits_all(self._row(row, changed=bool(without)), (*beside, self._pod))

    def leaves_room(self, row: int, leaving: Collection[str], promised: Sequence[Pod]) -> bool:
        kind = int(self._columns.kind[row])
        machine = self._flavour.machine(row)
        if machine is not None:
            hopeful = [other for other in promised if self._admits_directly(row, machine, (other,), leaving)]
            return self._admits_directly(row, machine, (self._pod, *hopeful), leaving)
        own = None if self._asks_nothing(kind) else self._placed(self._pod, self._mirror.row(row), {})
        if own is None:
            return True
        with self._mirror.ledger.without(leaving):
            supposed = self._row(row, changed=bool(leaving))
            # A nominated pod that would not be admitted anyway does not count.
            hopeful = [other for other in promised if self._admits_all(supposed, (other,))]
            return self._admits_all(self._with(supposed, own), hopeful, {identity(self._pod): self._pod})

    def holders(self, row: int) -> Mapping[str, int]:
        if self._flavour.machine(row) is None and self._asks_nothing(int(self._columns.kind[row])):
            return NO_HOLDERS
        return holders(self._flavour, row)

    def is_possible(self, row: int) -> bool:
        kind = int(self._columns.kind[row])
        if not self._is_allowed(kind):
            return False
        is_easy = self._flavour.machine(row) is None and self._asks_nothing(kind)
        return is_easy or answers.shortfall_when_empty(self._flavour, self._table, row) is None

    def is_final(self, row: int) -> bool:
        columns = self._columns
        if columns.kind[row] == UNREPORTED or self._flavour.machine(row) is not None:
            return True
        code = int(self._table.codes[row])
        return bool(code > LAST_RESORT and not columns.loose[row] and columns.pending_shape[row] == NONE_PENDING)

    def reason(self, row: int, supposed: Supposition) -> Reason | None:
        machine = self._flavour.machine(row)
        if machine is not None:
            return self._direct_reason(row, machine, supposed)
        with self._mirror.ledger.without(supposed.without):
            there = self._row(row, changed=bool(supposed.without))
            rules = _under(there.facts.rules, supposed)
            program = requests.program(self._shape, rules, self._columns.resources)
            judged = intent.judge(self._shape.intent, rules, program)
            if judged.unkept is not None and not judged.allowed:
                return answers.of_wish(self._shape.intent, judged.unkept, rules)
            row_then = structs.replace(there, facts=structs.replace(there.facts, rules=rules))
            placement = self._flavour.committer.placement(self._pod, self._shape, row_then)
        verdict = placement.verdict
        # Pods that have not arrived may get other zones once pods are gone.
        is_settled = not supposed.without or not there.pending
        if placement.path is Path.KUBELET_MODEL and supposed.is_configuration:
            # The kubelet model has the configuration that the node reports.
            code, shortfall = Code.NOT_DECIDED, Shortfall(cause=Cause.CPU_IDS)
        elif verdict.fits and is_settled:
            return None
        elif verdict.fits:
            code, shortfall = Code.NOT_CERTAIN, Shortfall(cause=Cause.UNSETTLED_PODS)
        else:
            code = CODES[verdict.code]
            shortfall = verdict.shortfall or Shortfall(cause=Cause.UNSETTLED_PODS)
        asked = RefusedPod(self._pod, program, rules, self._columns.resources)
        waiting = [each.name for each in there.pending]
        return answers.of_shortfall(asked, code, shortfall, waiting_for=waiting, assumptions=there.facts.assumptions)

    def pending(self, row: int) -> frozenset[str]:
        node_ledger = self._mirror.ledger.node(self._columns.names[row])
        return frozenset(node_ledger.pending) if node_ledger is not None else NO_PODS

    def known(self, row: int) -> frozenset[str]:
        node_ledger = self._mirror.ledger.node(self._columns.names[row])
        return frozenset(node_ledger.records) if node_ledger is not None else NO_PODS

    def _admits_directly(self, row: int, machine: DirectMachine, pods: Sequence[Pod], without: Collection[str]) -> bool:
        """Whether the node in direct mode has room for these pods, one after the other."""
        try:
            shapes = [self._shape if pod is self._pod else self._engine.shape(pod) for pod in pods]
        except BadObject:
            return False
        return self._flavour.direct.admits(self._columns.names[row], machine, shapes, without)

    def _direct_reason(self, row: int, machine: DirectMachine, supposed: Supposition) -> Reason | None:
        """In direct mode the kubelet's policy and scope do not matter."""
        found = answers.ExactAnswers(self._flavour, self._pod, self._shape)
        if not self._is_allowed(int(self._columns.kind[row])):
            return found.warning(row)
        node = self._columns.names[row]
        return found.in_state(row, machine, self._flavour.direct.ledger.without(node, machine, supposed.without))

    def _asks_nothing(self, kind: int) -> bool:
        return kind == UNREPORTED or not any(map(_is_something, _asks(self._program(kind))))

    def _program(self, kind: int) -> Program:
        return self._flavour.evaluation.program(self._table, kind)

    def _is_allowed(self, kind: int) -> bool:
        return kind != VACANT and self._flavour.evaluation.judgement(self._table, kind).allowed

    def _row(self, row: int, *, changed: bool) -> Row:
        return supposed_row(self._flavour, row, changed=changed)

    def _admits_all(self, row: Row, pods: Sequence[Pod], coming: Mapping[str, Pod] = NONE_COMING) -> bool:
        """Whether all these pods are admitted together."""
        known = dict(coming)
        for pod in pods:
            committed = self._placed(pod, row, known)
            if committed is None:
                return False
            row, known[identity(pod)] = self._with(row, committed), pod
        return True

    def _with(self, row: Row, committed: CommittedPod) -> Row:
        return rows.with_pending(row, committed.holding, committed.revised, self._columns.resources)

    def _placed(self, pod: Pod, row: Row, coming: Mapping[str, Pod]) -> CommittedPod | None:
        try:
            shape = self._shape if pod is self._pod else self._engine.shape(pod)
        except BadObject:
            return None
        return self._flavour.committer.place(pod, shape, row, coming)


def holders(flavour: ExactFlavour, row: int) -> Mapping[str, int]:
    """By uid, a mask of the positions of zones in which a pod of this row holds something or may hold something."""
    node = flavour.columns.names[row]
    machine = flavour.machine(row)
    if machine is not None:
        return dict.fromkeys(flavour.direct.ledger.pods(node), machine.every_zone)
    node_ledger = flavour.mirror.ledger.node(node)
    if node_ledger is None:
        return NO_HOLDERS
    everywhere = (1 << len(node_ledger.zones)) - 1
    found = {}
    for uid, record in node_ledger.records.items():
        if record.life is PodLife.ENDED:
            continue
        entries = record.holding.entries if record.holding is not None else None
        mask = everywhere if entries is None else _union(entry.zones for entry in entries)
        if mask or entries:
            found[uid] = mask
    return found


def supposed_row(flavour: ExactFlavour, row: int, *, changed: bool) -> Row:
    """The ledger's row; `changed`: pods of it are left out, so that pending pods may settle in other zones."""
    supposed = flavour.mirror.row(row)
    if not changed or not supposed.pending:
        return supposed
    return _revised(supposed, {each.uid: each for each in flavour.committer.revised(supposed)})


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

    def reason(self, row: int, supposed: Supposition) -> Reason | None:
        """The plugin reads policy and scope from the report alone."""
        if supposed.is_configuration:
            return answers.NOT_CERTAIN
        found = self._flavour.status_without(self._wanted, row, supposed.without)
        return None if found.is_success else answers.REASONS.get(found, answers.NOT_CERTAIN)

    def pending(self, row: int) -> frozenset[str]:
        return NO_PODS

    def known(self, row: int) -> frozenset[str]:
        return NO_PODS


def _under(rules: NodeRules, supposed: Supposition) -> NodeRules:
    if not supposed.is_configuration:
        return rules
    return structs.replace(rules, policy=supposed.policy or rules.policy, scope=supposed.scope or rules.scope)


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
