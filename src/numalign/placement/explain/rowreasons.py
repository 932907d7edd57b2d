"""Turns verdicts into reasons: columns become resources, positions become zones, steps become containers.

The answers of the exact engine call `of_shortfall` for rows that the row model refuses or cannot decide, `of_totals`
for nodes without enough resources as a whole, and `of_wish` for nodes that do not keep what the pod's annotations ask
for. `numalign kubelet admit` calls `of_kubelet` for a node that exists as a kubelet model only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, structs

from numalign.api.attributes.intent import Intent
from numalign.api.objects.pod import Pod
from numalign.kubelet import report, zonetable
from numalign.kubelet.demand import Role
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.zonetable import Total
from numalign.placement.columns import requests
from numalign.placement.columns.columns import Columns
from numalign.placement.columns.fit import Totals
from numalign.placement.columns.intent import Unkept
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shapes
from numalign.placement.decisions import Code
from numalign.placement.explain.reasons import WHOLE_NODE, Lack, NodeCause, Reason, ZoneShare
from numalign.placement.reports import read
from numalign.placement.reports.nodefacts import Assumption
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel import state as rowstate
from numalign.placement.rowmodel.causes import Cause, Shortfall, Want
from numalign.placement.rowmodel.evaluate import Verdict

ONE_ZONE = "single-numa-node"
BY_SIZE = frozenset({Cause.DIFFERENT_ZONE_COUNTS, Cause.PARTIAL_CORES, Cause.NOT_WHOLE_BYTES})
"""Causes that have nothing to do with what is free."""


class Asked(Struct, frozen=True):
    """Who was asked what: one pod on nodes that follow the same rules."""

    pod: Pod
    program: Program
    rules: NodeRules
    resources: Resources


def of_shortfall(
    asked: Asked,
    code: Code,
    shortfall: Shortfall,
    *,
    waiting_for: Iterable[str] = (),
    assumptions: Iterable[Assumption] = (),
) -> Reason:
    """What the row model says, with names instead of numbers."""
    rules, step = asked.rules, shortfall.step
    waits = shortfall.cause is Cause.UNSETTLED_PODS
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


def of_totals(columns: Columns, row: int, totals: Totals) -> Reason:
    """Of a node that has not enough left as a whole; resources of which there is enough are left out."""
    if not columns.most_pods[row]:
        return Reason(code=Code.TOTALS, cause=NodeCause.NO_NODE, structural=True)
    requested, offered = columns.requested[row].tolist(), columns.offered[row].tolist()
    left = {column: offered[column] - requested[column] for column, _ in totals.pairs}
    return _of_lacks(
        tuple(
            Lack(
                resource=columns.resources.names[column],
                need=need,
                most=max(0, left[column]),
                too_large=offered[column] < need,
            )
            for column, need in totals.pairs
            if left[column] < need
        )
    )


def _of_lacks(lacks: tuple[Lack, ...]) -> Reason:
    cause = NodeCause.TOTALS if lacks else NodeCause.POD_COUNT
    return Reason(code=Code.TOTALS, cause=cause, lacks=lacks, structural=any(lack.too_large for lack in lacks))


def of_kubelet(kubelet: Kubelet, state: KubeletState, pod: Pod) -> Reason | None:
    """Why the kubelet refuses the pod in this state; None where amounts do not tell.

    The managers decide first, then the node's totals, as in an admission."""
    facts, resources = read.read(report.of(kubelet.machine.name, kubelet, state), None), Resources()
    # The kubelet does not read the annotations that state an intent.
    shape = Shapes().intern(structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={})))
    program = requests.program(shape, facts.rules, resources)
    verdict = evaluate.evaluate(rowstate.of(facts, resources), program)
    if verdict.code is Verdict.DOES_NOT_FIT and verdict.shortfall is not None:
        asked = Asked(pod, program, facts.rules, resources)
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
    """A wish is kept or not whatever runs on the node."""
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


def _lack(asked: Asked, cause: Cause, want: Want) -> Lack:
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
        # Devices of several zones count in each of them: a sum that would do is no contradiction.
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
