"""The fewest or cheapest machines for a workload, over several orders of arrival.

`numalign plan fit` calls `needs` and `answer`. Pods arrive in the order that a seed gives and are placed by the
scheduler. A pod that finds no node gets a new machine. Then the same pods arrive on all these machines from the
beginning, because a scheduler that has more nodes to choose from spreads pods differently; machines are added until all
pods find a node. Each type is tried alone, and all together, where a new machine is of the type that costs least for
what it takes of the pods that are left. This is a search: the lower bound says how much better a plan could be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from statistics import median
from typing import Final

import numpy as np
from msgspec import Struct, structs

from numalign.api.errors import BadObject
from numalign.api.objects import requests
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.plan.questions import scene
from numalign.plan.questions.scene import Kind, Opened
from numalign.plan.sources import scenes
from numalign.plan.sources.catalogue import Catalogue, MachineType
from numalign.scheduler.snapshot.snapshot import Snapshot

MOST_MACHINES: Final = 20_000
MIXED: Final = "mixed"


class Need(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one order of arrival takes."""

    seed: int
    machines: Mapping[str, int]
    """By type."""
    total: int
    cost: float | None = None
    at_once: int
    """Machines, if they are bought one by one as pods arrive."""


class Spread(Struct, frozen=True, kw_only=True, rename="camel"):
    least: float
    median: float
    most: float


class FitPlan(Struct, frozen=True, kw_only=True, rename="camel"):
    """One way to choose types, over all orders of arrival."""

    types: str
    """The only type, or `mixed`."""
    fits: bool
    machines: Mapping[str, int] = {}
    """Those of the order that takes most."""
    enough_in: int | None = None
    """In how many of the orders these machines are enough; None: it was not tried."""
    spread: Spread | None = None
    """Of the number of machines."""
    cost: Spread | None = None
    needs: tuple[Need, ...] = ()
    why: str = ""
    """Why it does not fit."""


class FitAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    fits: bool
    best: str = ""
    """The types of the best plan."""
    pods: int
    least_machines: int
    """No plan has fewer machines."""
    least_cost: float | None = None
    currency: str = ""
    plans: tuple[FitPlan, ...] = ()


class FitQuestion(Struct, frozen=True, kw_only=True):
    kinds: tuple[Kind, ...]
    seeds: tuple[int, ...]
    by_cost: bool = False
    config: Configuration | None = None


def check(catalogue: Catalogue, asked: FitQuestion) -> None:
    if asked.by_cost and not catalogue.is_priced:
        why = "the catalogue has no prices; add price to every type, or ask for --objective machines"
        raise BadObject("Option", "--objective", "", why)


def steps(catalogue: Catalogue, asked: FitQuestion) -> int:
    """How many results `needs` gives."""
    return len(_ways(catalogue)) * len(asked.seeds)


def _ways(catalogue: Catalogue) -> list[tuple[str, tuple[MachineType, ...]]]:
    alone = [(kind.name, (kind,)) for kind in catalogue.types]
    return [*alone, *([(MIXED, catalogue.types)] if len(alone) > 1 else [])]


class Misfit(Struct, frozen=True):
    """A pod for which there is no machine."""

    why: str


def needs(catalogue: Catalogue, asked: FitQuestion) -> Iterator[tuple[str, Need | Misfit]]:
    """By way of choosing types and order of arrival, what it takes."""
    worth = _Worth(catalogue, asked)
    for name, types in _ways(catalogue):
        for seed in asked.seeds:
            yield name, _need(types, asked, seed, worth)


def answer(catalogue: Catalogue, asked: FitQuestion, found: Sequence[tuple[str, Need | Misfit]]) -> FitAnswer:
    plans = tuple(_plan(name, [each for way, each in found if way == name]) for name, _ in _ways(catalogue))
    fitting = [each for each in plans if each.fits]
    best = min(fitting, key=lambda each: _rank(each, by_cost=asked.by_cost), default=None)
    if best is not None:
        tried = structs.replace(best, enough_in=_enough_in(catalogue, asked, best.machines))
        plans, best = tuple(tried if each is best else each for each in plans), tried
    bound = _Worth(catalogue, asked)
    return FitAnswer(
        fits=best is not None,
        best=best.types if best is not None else "",
        pods=sum(kind.pods for kind in asked.kinds),
        least_machines=bound.least_machines() if best is not None else 0,
        least_cost=float(bound.least_cost()) if best is not None and catalogue.is_priced else None,
        currency=catalogue.currency,
        plans=plans,
    )


def _enough_in(catalogue: Catalogue, asked: FitQuestion, machines: Mapping[str, int]) -> int:
    """In how many orders all pods find a node on these machines."""
    enough = 0
    for seed in asked.seeds:
        pool = _Pool(asked, seed, machines, catalogue.types)
        enough += all(pool.place(pod) for _, pod in scene.shuffled(scene.copies(asked.kinds), seed))
    return enough


def _rank(plan: FitPlan, *, by_cost: bool) -> tuple[float, float]:
    machines, cost = plan.spread, plan.cost
    assert machines is not None, "a plan that fits has machines"
    dear = cost.most if cost is not None else 0.0
    return (dear, machines.most) if by_cost else (machines.most, dear)


def _plan(name: str, found: Sequence[Need | Misfit]) -> FitPlan:
    misfit = next((each for each in found if isinstance(each, Misfit)), None)
    done = tuple(each for each in found if isinstance(each, Need))
    if misfit is not None:
        return FitPlan(types=name, fits=False, needs=done, why=misfit.why)
    costs = [each.cost for each in done if each.cost is not None]
    largest = max(done, key=lambda each: (each.cost or 0.0, each.total))
    return FitPlan(
        types=name,
        fits=True,
        machines=largest.machines,
        spread=_spread([each.total for each in done]),
        cost=_spread(costs) if costs else None,
        needs=done,
    )


def _spread(numbers: Sequence[float]) -> Spread:
    return Spread(least=min(numbers), median=median(numbers), most=max(numbers))


class _Worth:
    """How many pods of each kind an empty machine of each type takes, by the exact count."""

    def __init__(self, catalogue: Catalogue, asked: FitQuestion) -> None:
        self._types, self._asked = catalogue.types, asked
        empty = [scenes.machine(kind, kind.name) for kind in catalogue.types]
        opened = scene.opened(scenes.snapshot(empty, asked.config))
        rows = np.array([opened.made.engine.rows[kind.name] for kind in catalogue.types], np.int32)
        self.counts: dict[tuple[str, str], int] = {}
        for kind, own in zip(
            asked.kinds, opened.service.counted([scene.asked(kind) for kind in asked.kinds], rows), strict=True
        ):
            by_row = dict(zip(own.found.rows.tolist(), own.found.counts.tolist(), strict=True))
            for machine, row in zip(catalogue.types, rows.tolist(), strict=True):
                self.counts[machine.name, kind.name] = int(by_row.get(row, 0))
        self._offered = {each.node.metadata.name: each.node.status.allocatable for each in empty}
        self._needed = requests.together(
            [requests.effective(kind.pod) for kind in asked.kinds for _ in range(kind.pods)]
        )

    def least_machines(self) -> int:
        bound = Fraction(0)
        for kind in self._asked.kinds:
            most = max(self.counts[machine.name, kind.name] for machine in self._types)
            bound = max(bound, Fraction(kind.pods, most)) if most else bound
        for name, needed in self._needed.items():
            most_offered = max(self._offer(machine, name) for machine in self._types)
            bound = max(bound, Fraction(needed.nanos, most_offered)) if most_offered else bound
        return -(-bound.numerator // bound.denominator)

    def least_cost(self) -> Fraction:
        bound = Fraction(0)
        for kind in self._asked.kinds:
            rates = [
                Fraction(machine.price or 0) / count
                for machine in self._types
                if (count := self.counts[machine.name, kind.name])
            ]
            bound = max(bound, kind.pods * min(rates)) if rates else bound
        for name, needed in self._needed.items():
            rates = [
                Fraction(machine.price or 0) / offer for machine in self._types if (offer := self._offer(machine, name))
            ]
            bound = max(bound, needed.nanos * min(rates)) if rates else bound
        return bound

    def _offer(self, machine: MachineType, resource: str) -> int:
        offered = self._offered[machine.name]
        return offered[resource].nanos if resource in offered else 0

    def value(self, machine: MachineType, left: Mapping[str, int]) -> Fraction:
        """What a machine costs, or counts, for the work that it takes off the list."""
        work = sum(
            (
                Fraction(min(pods, self.counts[machine.name, kind]), self._best(kind))
                for kind, pods in left.items()
                if self.counts[machine.name, kind]
            ),
            Fraction(),
        )
        price = Fraction(machine.price or 0) if self._asked.by_cost else Fraction(1)
        return price / work if work else Fraction(MOST_MACHINES)

    def _best(self, kind: str) -> int:
        return max(1, max(self.counts[machine.name, kind] for machine in self._types))


class _Pool:
    """The machines that are there, and the pods that arrive on them."""

    def __init__(self, asked: FitQuestion, seed: int, made: Mapping[str, int], types: Sequence[MachineType]) -> None:
        self._types = {kind.name: kind for kind in types}
        self.made: dict[str, int] = dict.fromkeys(self._types, 0)
        self.scene: Opened = scene.opened(_empty(asked), seed)
        for name, number in made.items():
            for _ in range(number):
                self.add(self._types[name])

    def add(self, kind: MachineType) -> None:
        new = scenes.machine(kind, f"{kind.name}-{self.made[kind.name]}")
        self.made[kind.name] += 1
        cluster = self.scene.made.cluster
        cluster.node(new.node)
        cluster.report(new.report, self.scene.made.now)

    def place(self, pod: Pod) -> bool:
        return bool(self.total) and self.scene.arrivals.place(pod) is not None

    @property
    def total(self) -> int:
        return sum(self.made.values())


def _empty(asked: FitQuestion) -> Snapshot:
    return scenes.snapshot((), asked.config)


def _need(types: tuple[MachineType, ...], asked: FitQuestion, seed: int, worth: _Worth) -> Need | Misfit:
    arriving = scene.shuffled(scene.copies(asked.kinds), seed)
    grown = _grown(types, asked, seed, worth, arriving)
    if isinstance(grown, Misfit):
        return grown
    at_once, made = grown.total, dict(grown.made)
    while True:
        again = _Pool(asked, seed, made, types)
        rest: dict[str, int] = {}
        misplaced: tuple[Kind, Pod] | None = None
        for kind, pod in arriving:
            if not again.place(pod):
                misplaced = misplaced or (kind, pod)
                rest[kind.name] = rest.get(kind.name, 0) + 1
        if misplaced is None:
            break
        more = _next(types, made, misplaced[0], rest, worth)
        if more is None:
            return Misfit(_no_more(types, misplaced[0]))
        made[more.name] += 1
    cost = sum((made[kind.name] * kind.price for kind in types if kind.price is not None), Decimal())
    return Need(
        seed=seed,
        machines={name: number for name, number in made.items() if number},
        total=sum(made.values()),
        cost=float(cost) if types[0].price is not None else None,
        at_once=at_once,
    )


def _grown(
    types: tuple[MachineType, ...], asked: FitQuestion, seed: int, worth: _Worth, arriving: Sequence[tuple[Kind, Pod]]
) -> _Pool | Misfit:
    """The machines after all pods have arrived, each new one bought when a pod found no node."""
    pool = _Pool(asked, seed, {}, types)
    left: dict[str, int] = {kind.name: kind.pods for kind in asked.kinds}
    for kind, pod in arriving:
        if not pool.place(pod):
            new = _next(types, pool.made, kind, left, worth)
            if new is None:
                if not any(worth.counts[each.name, kind.name] for each in types):
                    return Misfit(_no_more(types, kind))
                # All of these are there. When all pods arrive on them once more, the pod may find a node.
                continue
            pool.add(new)
            if not pool.place(pod):
                why = scene.why_not(pool.scene, pod)
                return Misfit(f"a pod of {kind.name} finds no node, not even a new one of {new.name}: {why}")
        left[kind.name] -= 1
    return pool


def _next(
    types: tuple[MachineType, ...], made: Mapping[str, int], kind: Kind, left: Mapping[str, int], worth: _Worth
) -> MachineType | None:
    """The type of the next machine: it takes the pod, can still be had, and costs least for what it would take."""
    able = [
        each
        for each in types
        if worth.counts[each.name, kind.name]
        and (each.count is None or made[each.name] < each.count)
        and sum(made.values()) < MOST_MACHINES
    ]
    return min(able, key=lambda each: (worth.value(each, left), each.name), default=None)


def _no_more(types: tuple[MachineType, ...], kind: Kind) -> str:
    limits = [f"{each.name} ({each.count})" for each in types if each.count is not None]
    if limits:
        return f"a pod of {kind.name} finds no node, and no more machines can be had: {', '.join(limits)}"
    return f"no empty machine of {', '.join(each.name for each in types)} admits a pod of {kind.name}"
