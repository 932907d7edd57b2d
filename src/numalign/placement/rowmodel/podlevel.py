"""Pod-level resources: whether a pod that is served as one allocation can be divided among its containers.

`evaluate` asks before and after it found room for the budget itself. Nothing here depends on the row (kubelet spec 10.3
and 10.4)."""

from __future__ import annotations

from collections.abc import Sequence

from numalign.kubelet.demand import Role
from numalign.placement.columns.requests import Ask, Step
from numalign.placement.rowmodel.causes import Cause, Refuses


def require_shared_pool(steps: Sequence[Step], budget: Ask) -> None:
    """Containers without CPUs or memory of their own must find something left of the budget."""
    if budget.cpus:
        _require_rest(steps, [step.ask.cpus or None for step in steps], budget.cpus)
    if not budget.memory:
        return
    if any(step.ask.memory is None for step in steps):
        raise Refuses(Cause.NOT_WHOLE_BYTES)
    for column, size in budget.memory:
        own = [dict(step.ask.memory).get(column, 0) if step.ask.memory else None for step in steps]
        _require_rest(steps, own, size)


def _require_rest(steps: Sequence[Step], own: Sequence[int | None], budget: int) -> None:
    """`own`: what each container has for itself; None: it shares what the others leave."""
    exclusive, sharing = 0, False
    for step, amount in zip(steps, own, strict=True):
        if step.role is not Role.INIT:
            exclusive += amount or 0
            sharing = sharing or amount is None
        elif amount is None and exclusive >= budget:
            raise Refuses(Cause.BUDGET_USED_UP)
    if sharing and exclusive >= budget:
        raise Refuses(Cause.BUDGET_USED_UP)


def require_parts(steps: Sequence[Step], budget: Ask) -> None:
    """The CPUs of the budget must suffice for every container that wants some for itself."""
    kept = 0
    for step in steps:
        if budget.cpus and step.ask.cpus > budget.cpus - kept:
            raise Refuses(Cause.TOO_FEW_CPUS)
        kept += step.ask.cpus if step.role is not Role.INIT else 0
