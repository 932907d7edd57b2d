"""Decides one pod on one row as the kubelet would: the reference of all kernels.

`commit`, the engine and `explain` ask it for single rows; tests compare kernels with it. A program is walked in
admission order on pools of what the row has (engine spec 3 to 6). Amounts that are known exactly give exact answers.
Where amounts are known between bounds, or an answer depends on the ids of CPUs or on a choice of devices, the verdict
says so instead. A pod with pod-level resources is served as one allocation; whether that can be divided among its
containers does not depend on the row (kubelet spec 10.3 and 10.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct, structs

from numalign.kubelet.demand import Role
from numalign.kubelet.refusals import Undecided
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.requests import Ask, Program, Step
from numalign.placement.rowmodel import cpusplit, merge, state
from numalign.placement.rowmodel.causes import BY_IDS, Cause, Refuses, Shortfall, Stopped, Unsure
from numalign.placement.rowmodel.cpus import CPUPool
from numalign.placement.rowmodel.cpusplit import Run
from numalign.placement.rowmodel.devices import DevicePool
from numalign.placement.rowmodel.memory import MemoryPool
from numalign.placement.rowmodel.merge import Alignment, Listing
from numalign.placement.rowmodel.state import Amounts, RowState


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


EMPTY_REQUESTS_ARE_SKIPPED = (1, 37)
"""The first minor that leaves containers without a memory request alone (kubelet spec 6.2)."""


class Verdict(StrEnum):
    """The answer for one pod on one row."""

    FITS = "fits"
    DOES_NOT_FIT = "does-not-fit"
    NOT_CERTAIN = "not-certain"
    NOT_DECIDED = "not-decided"
    """Amounts do not decide it, but the kubelet's managers may be asked."""


class RowVerdict(Struct, frozen=True, kw_only=True):
    """The verdict and, if the pod fits, what it holds."""

    code: Verdict
    possible: tuple[tuple[int, ...], ...] = ()
    """By step the masks of which the kubelet will choose one; none: it is not aligned to anything."""
    entries: tuple[Entry, ...] = ()
    """What the pod holds as long as it lives."""
    passing: tuple[Entry, ...] = ()
    """Memory that its plain init containers hold besides, until the next container starts."""
    runs: tuple[Run, ...] | None = None
    """Runs of the CPU picker, where the zones of everything that it takes are known."""
    steady: bool = False
    """Whether the pod gets the same zones with less free, if it fits: amounts affect only the choice of masks."""
    shortfall: Shortfall | None = None

    @property
    def fits(self) -> bool:
        return self.code is Verdict.FITS

    @property
    def everything(self) -> tuple[Entry, ...]:
        return self.entries + self.passing

    def after(self, row: RowState) -> RowState:
        """The row with the pod on it."""
        return state.charged(row, self.everything, self.cores_left(row))

    def cores_left(self, row: RowState) -> tuple[Amounts, ...] | None:
        """What the pod leaves of the row's cores; None: that is not known."""
        if not self.runs:
            return row.cores if self.runs is not None else None
        cores = cpusplit.of(row)
        return None if cores is None else cpusplit.after(cores, self.runs)


def evaluate(row: RowState, program: Program) -> RowVerdict:
    """Whether the kubelet of this row would admit a pod with this program, and in which zones."""
    walk = PodWalk(row, program)
    try:
        walk.pod()
    except Refuses as stopped:
        return RowVerdict(code=Verdict.DOES_NOT_FIT, shortfall=walk.shortfall(stopped, stopped.cause))
    except (Unsure, Undecided) as stopped:
        cause = walk.doubt(stopped.cause if isinstance(stopped, Unsure) else Cause.MANY_ZONES)
        code = Verdict.NOT_DECIDED if cause in BY_IDS else Verdict.NOT_CERTAIN
        return RowVerdict(code=code, shortfall=walk.shortfall(stopped, cause))
    return walk.verdict()


class PodWalk:
    """A pod's way through the pools of a row, in the kubelet's order (kubelet spec 3.6)."""

    def __init__(self, row: RowState, program: Program) -> None:
        self.row = row
        self.rules = row.rules
        self.program = program
        self.step = -1
        self.alignments: list[Alignment] = []
        self._devices: dict[int, DevicePool] = {}
        self._cpus: CPUPool | None = None
        self._memory: MemoryPool | None = None

    @property
    def cpus(self) -> CPUPool:
        if self._cpus is None:
            self._cpus = CPUPool(self.row)
        return self._cpus

    @property
    def memory(self) -> MemoryPool:
        if self._memory is None:
            self._memory = MemoryPool(self.row)
        return self._memory

    def devices(self, ask: Ask) -> Iterator[tuple[DevicePool, int]]:
        """The resources that a device plugin serves on this row."""
        for column, count in ask.devices:
            if column in self.row.size:
                pool = self._devices.get(column)
                if pool is None:
                    pool = self._devices[column] = DevicePool(self.row, column)
                yield pool, count

    # The walk

    def pod(self) -> None:
        if self.program.whole is None:
            self._by_container()
        else:
            self._as_a_whole(self.program.whole)

    def _by_container(self) -> None:
        aligned = self.rules.policy != "none"
        for step in self._steps():
            alignment = self._aligned(step.ask) if aligned else merge.ANYWHERE
            self.alignments.append(alignment)
            self._allocate(step, alignment)

    def _as_a_whole(self, whole: Ask) -> None:
        budget = self.program.budget
        if budget is not None:
            require_shared_pool(self.program.steps, budget)
        alignment = self._aligned(whole)
        if not self._covers_memory(whole):
            alignment = structs.replace(alignment, holds_memory=False)
        self.alignments += [alignment] * len(self.program.steps)
        if budget is not None:
            self._allocate_budget(budget, alignment)
            return
        for step in self._steps():
            self._allocate(step, alignment)

    def _steps(self) -> Iterator[Step]:
        for place, step in enumerate(self.program.steps):
            self.step = place
            yield step

    def _aligned(self, ask: Ask) -> Alignment:
        return merge.merged(list(self._listings(ask)), self.rules)

    def _listings(self, ask: Ask) -> Iterator[Listing]:
        for pool, count in self.devices(ask):
            listing = pool.listing(count)
            if listing is not None:
                yield listing
        if ask.cpus:
            yield self.cpus.listing(ask.cpus)
        if ask.memory:
            yield self.memory.listing(ask.memory)

    def _covers_memory(self, whole: Ask) -> bool:
        """Whether room for the pod's total is room for each container in turn: init containers are counted apart."""
        types = {column for column, _ in whole.memory or ()}
        for step in self.program.steps:
            asked = {column for column, _ in step.ask.memory or ()}
            if asked and (step.role is Role.INIT or not asked <= types):
                return False
        return True

    def _allocate(self, step: Step, alignment: Alignment) -> None:
        ask = step.ask
        for pool, count in self.devices(ask):
            pool.take(count, alignment, step.role)
        if ask.cpus:
            self.cpus.take(ask.cpus, alignment, step.role)
        if ask.memory is None:
            raise Refuses(Cause.NOT_WHOLE_BYTES)
        if ask.memory:
            self.memory.take(ask.memory, alignment, step.role)
        elif self.program.pinned and self.rules.static_memory and self.rules.minor < EMPTY_REQUESTS_ARE_SKIPPED:
            self.memory.take_nothing(alignment)

    def _allocate_budget(self, budget: Ask, alignment: Alignment) -> None:
        """One allocation for the pod; devices come when containers start, from wherever (kubelet spec 10.3 to 10.5)."""
        steps = self.program.steps
        if budget.cpus:
            self.cpus.take(budget.cpus, alignment, Role.APP)
            require_parts(steps, budget)
            self.cpus.require_parts(step.ask.cpus for step in steps)
        if budget.memory:
            self.memory.take(budget.memory, alignment, Role.APP)
        for step in steps:
            for pool, count in self.devices(step.ask):
                pool.promise(count)

    # Results

    def verdict(self) -> RowVerdict:
        cpus, memory = self._cpus, self._memory
        entries = [entry for pool in self._devices.values() for entry in pool.charges()]
        entries += cpus.charges() if cpus else ()
        entries += memory.charges(initial=False) if memory else ()
        return RowVerdict(
            code=Verdict.FITS,
            possible=tuple(each.masks if each.listed else () for each in self.alignments),
            entries=tuple(entries),
            passing=tuple(memory.charges(initial=True)) if memory else (),
            runs=cpus.settled_runs() if cpus else (),
            steady=all(each.preferred or not each.listed for each in self.alignments)
            and all(map(self._is_settled, entries))
            and (cpus is None or cpus.is_steady),
        )

    def _is_settled(self, entry: Entry) -> bool:
        span = entry.span if entry.column in self.row.memory else 1
        return entry.zones.bit_count() <= span

    def shortfall(self, stopped: Exception, cause: Cause) -> Shortfall:
        if not isinstance(stopped, Stopped):
            return Shortfall(cause=cause, step=self.step)
        return Shortfall(cause=cause, step=self.step, wants=stopped.wants, best=stopped.best)

    def doubt(self, cause: Cause) -> Cause:
        """The exact cause of doubt if only the pod's own containers are unsettled."""
        if cause is not Cause.UNSETTLED_PODS or self.row.entries:
            return cause
        if any(pool.chosen_blindly() for pool in self._devices.values()):
            return Cause.DEVICE_CHOICE
        if self.row.groups is None and self.rules.static_memory and self.rules.policy != "single-numa-node":
            return Cause.GROUPS_UNKNOWN
        return Cause.CPU_IDS
