"""Asks the kubelet's own managers about a pod, for rows on which ids decide (engine spec R9).

`committer` calls `answer`. `restorekubelet` restores the managers from a report; pending pods are admitted there first,
in the order of their binding. CPUs and memory come out as they would on the node. Which device is taken is not known,
so devices are counted as the row model counts them. Where a choice of devices could change the answer, the answer is
that it is not certain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.kubelet import admission, demand
from numalign.kubelet.demand import Role
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import ContainerPlacement, KubeletState
from numalign.placement.columns import zonesets
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.requests import Program
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.rowmodel.causes import Cause, Shortfall, Stopped
from numalign.placement.rowmodel.devices import DevicePool
from numalign.placement.rowmodel.evaluate import RowVerdict, Verdict
from numalign.placement.rowmodel.merge import Alignment
from numalign.placement.rowmodel.state import RowState


class AdmissionQuestion(Struct, frozen=True, kw_only=True):
    """A pod, and a node whose managers are restored. `row`: the node's row with all pending pods charged."""

    kubelet: Kubelet
    state: KubeletState
    pending: Sequence[Pod]
    pod: Pod
    program: Program
    row: RowState
    resources: Resources


def answer(question: AdmissionQuestion) -> RowVerdict:
    """The managers' verdict on the pod. `possible` has its zones if it is aligned, even to all zones."""
    state = question.state
    for pod in question.pending:
        state, outcome = admission.align(question.kubelet, state, pod)
        if not outcome.admitted:
            return _not(Verdict.NOT_CERTAIN, Cause.UNSETTLED_PODS)
    after, outcome = admission.align(question.kubelet, state, question.pod)
    if outcome.verdict == "undecided":
        return _not(Verdict.NOT_DECIDED, Cause.NEVER_ENDS)
    if _hangs_on_devices(question):
        return _not(Verdict.NOT_CERTAIN, Cause.DEVICE_CHOICE)
    if not outcome.admitted:
        return _not(Verdict.DOES_NOT_FIT, Cause.CPU_IDS)
    return _fits(question, after, [outcome.placement[each.name] for each in question.pod.in_admission_order()])


def _not(code: Verdict, cause: Cause) -> RowVerdict:
    return RowVerdict(code=code, shortfall=Shortfall(cause=cause))


def _hangs_on_devices(question: AdmissionQuestion) -> bool:
    """Whether the answer depends on which devices the kubelet or a plugin chooses."""
    row = question.row
    asked = Counter(column for step in question.program.steps for column, count in step.ask.devices if count)
    unsettled = {entry.column for entry in row.entries}
    return any(
        column in unsettled or (times > 1 and DevicePool(row, column).has_choice)
        for column, times in asked.items()
        if column in row.size
    )


def _fits(question: AdmissionQuestion, after: KubeletState, places: Sequence[ContainerPlacement]) -> RowVerdict:
    zones = question.row.rules.zones
    masks = [None if each.affinity.mask is None else zonesets.from_ids(each.affinity.mask, zones) for each in places]
    alignments = [Alignment(() if mask is None else (mask,)) for mask in masks]
    try:
        devices = tuple(_devices(question, alignments))
    except Stopped as stopped:
        return _not(Verdict.NOT_CERTAIN, stopped.cause)
    held = _Held(question, after)
    return RowVerdict(
        code=Verdict.FITS,
        possible=tuple(alignment.masks for alignment in alignments),
        entries=(*devices, *held.cpus(), *held.memory(initial=False)),
        passing=tuple(held.memory(initial=True)),
    )


def _devices(question: AdmissionQuestion, alignments: Sequence[Alignment]) -> Iterator[Entry]:
    row, program = question.row, question.program
    pools: dict[int, DevicePool] = {}
    for step, alignment in zip(program.steps, alignments, strict=True):
        for column, count in step.ask.devices:
            if column not in row.size:
                continue
            pool = pools.setdefault(column, DevicePool(row, column))
            if program.budget is not None:
                pool.promise(count)
            else:
                pool.take(count, alignment, step.role)
    for pool in pools.values():
        yield from pool.charges()


class _Held:
    """What the managers gave the pod."""

    def __init__(self, question: AdmissionQuestion, after: KubeletState) -> None:
        self.question = question
        self.state = after
        self.demand = demand.of(question.pod, question.kubelet.reading)
        self.zones = question.row.rules.zones

    def cpus(self) -> Iterator[Entry]:
        manager, state, uid = self.question.kubelet.cpu, self.state.cpu, self.demand.uid
        if manager is None or state is None:
            return
        cpus = state.pods.get(uid, 0)
        for assigned in state.assignments.get(uid, {}).values():
            cpus |= assigned
        for zone, count in manager.topology.by_zone(cpus).items():
            if count:
                yield Entry(CPU, count, zonesets.from_ids(zone, self.zones))

    def memory(self, *, initial: bool) -> Iterator[Entry]:
        state, uid = self.state.memory, self.demand.uid
        if state is None:
            return
        if uid in state.pods:
            blocks = () if initial else state.pods[uid]
        else:
            mine = [each for each in self.demand.containers if (each.role is Role.INIT) is initial]
            blocks = tuple(block for each in mine for block in state.held(uid, each.name) or ())
        for block in blocks:
            if block.size:
                zones = zonesets.from_ids(block.zones, self.zones)
                yield Entry(self.question.resources.column(block.kind), block.size, zones, span=zones.bit_count())
