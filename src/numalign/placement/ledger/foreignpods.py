"""Pods that somebody else has bound, placed by the model as far as no report tells where they are.

The ledger puts them off until somebody looks at their node, and then calls `place`. What a scheduler like us has
written on a pod outweighs the model: where they disagree, the node is not as the model has it.

What a former leader foretold of a pod, held against the node and against the model.

The ledger comes here with pods that were bound before this engine knew them, and that no report covers. Where the model
says today what was foretold then, the pod is predicted. Where it says something else, pods may have ended in between
that nobody here ever heard of: either may be true. A pod that runs is then charged to all zones that either names, one
that is not there yet to every zone, and so are others on the node of which only the model speaks. What the node's
kubelet cannot have done at all is no forecast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_

from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.placement.columns import zonesets
from numalign.placement.columns.noderules import BY_SOCKET, NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shape
from numalign.placement.facts import Forecast
from numalign.placement.ledger import nodeledger, reconcile
from numalign.placement.ledger.divergences import Problem
from numalign.placement.ledger.holdings import ContainerZones, Holding, Source
from numalign.placement.ledger.nodeledger import NodeLedger, Row
from numalign.placement.ledger.podrecord import PodRecord
from numalign.placement.ledger.unobserved import UnobservedPods
from numalign.placement.reports.nodefacts import RowFacts

Containers = tuple[ContainerZones, ...]
Placer = Callable[[Pod, Row], Sequence[Holding]]
"""Where the model says that a pod goes which somebody else has bound: its holding, and those of pending pods that it
may push elsewhere. Nothing: the model has no room for it."""


def read(forecast: Forecast, pod: Pod, facts: RowFacts) -> Containers | None:
    """The forecast by position, in admission order; None: it is about other containers, or other zones."""
    rules, names = facts.rules, [container.name for container in pod.in_admission_order()]
    chosen = [zones for sets in forecast.values() for zones in sets]
    known = forecast.keys() <= set(names) and all(zones and set(zones) <= set(rules.zones) for zones in chosen)
    if not known or not _keeps_policy(forecast, rules):
        return None
    return tuple(ContainerZones(name, tuple(_mask(zones, rules) for zones in forecast.get(name, ()))) for name in names)


def is_possible(foretold: Containers, program: Program, facts: RowFacts, resources: Resources) -> bool:
    """Whether the zones are large enough, were they empty; where zones may be left, that says nothing."""
    if not _is_strict(facts.rules):
        return True
    asks = [program.whole or step.ask for step in program.steps]
    return all(
        _holds(mask, ask, facts, resources) for each, ask in zip(foretold, asks, strict=False) for mask in each.possible
    )


def coming_true(
    foretold: Sequence[tuple[PodRecord, Containers]], placer: Placer, row: Row, shape: Callable[[Pod], Shape]
) -> PodRecord | None:
    """The first pod of which the model now says what was foretold; equal pods are asked about once."""
    said: dict[int, Holding | None] = {}
    for record, told in foretold:
        number = shape(record.pod).number
        if number not in said:
            own = (holding for holding in placer(record.pod, row) if holding.uid == record.uid)
            said[number] = next(own, None)
        if agrees(told, said[number]):
            return record
    return None


def agrees(foretold: Containers, modelled: Holding | None) -> bool:
    """Of containers that hold nothing the one may say something, and the other nothing."""
    if modelled is None:
        return False
    masks = _masks(modelled.containers)
    return all(masks.get(name) == own for name, own in _masks(foretold).items())


def either(foretold: Containers, modelled: Holding | None, anywhere: Holding, facts: RowFacts) -> Holding:
    """`anywhere`: all that the pod may hold, in all zones where anybody may; the model may have no place for it."""
    if not _is_strict(facts.rules):
        return anywhere
    told = _masks(foretold), _masks(modelled.containers if modelled is not None else ())
    joined = tuple(
        ContainerZones(each.container, tuple(sorted({mask for half in told for mask in half.get(each.container, ())})))
        for each in foretold
    )
    # A container of which nothing is told may be anywhere, if it holds anything.
    zones = reduce(or_, (each.union or facts.rules.every_zone for each in joined), 0)
    entries = (structs.replace(entry, zones=entry.zones & zones or entry.zones) for entry in anywhere.entries)
    return structs.replace(anywhere, entries=tuple(entries), containers=joined)


def _is_strict(rules: NodeRules) -> bool:
    """Whether a container that is aligned to zones gets everything there."""
    leaves = BY_SOCKET in rules.cpu_options or rules.l3_straddles
    return rules.policy in ("single-numa-node", "restricted") and not leaves


def _keeps_policy(forecast: Forecast, rules: NodeRules) -> bool:
    sizes = {len(zones) for sets in forecast.values() for zones in sets}
    if rules.policy == "none" or (rules.policy == "single-numa-node" and sizes - {1}):
        return False
    return rules.scope != "pod" or len({frozenset(sets) for sets in forecast.values()}) <= 1


def _holds(mask: int, ask: Ask, facts: RowFacts, resources: Resources) -> bool:
    tops = nodeledger.ceilings(facts, resources)
    wanted = {CPU: ask.cpus, **dict(ask.memory or ()), **dict(ask.devices)}
    return all(
        sum(tops[column][position] for position in zonesets.positions(mask)) >= amount
        for column, amount in wanted.items()
        if column in tops and not _has_homeless(column, facts, resources)
    )


def _has_homeless(column: int, facts: RowFacts, resources: Resources) -> bool:
    supply = facts.supplies.get(resources.names[column])
    return supply is not None and bool(supply.homeless_size)


def _mask(zones: Sequence[int], rules: NodeRules) -> int:
    return sum(1 << rules.zones.index(zone) for zone in zones)


def _masks(containers: Containers) -> dict[str, frozenset[int]]:
    return {each.container: frozenset(each.possible) for each in containers if each.possible}


class ForeignPods:
    """Places pods one by one, in the order in which they were likely bound."""

    def __init__(self, beliefs: UnobservedPods, placer: Placer) -> None:
        self._beliefs = beliefs
        self._placer = placer

    def place(self, book: NodeLedger, facts: RowFacts) -> None:
        """All that wait for it on this node."""
        # Nobody is in the way of others before it is placed itself, even if it was weighed already.
        for record in book.unplaced.values():
            if record.holding is not None:
                record.holding = None
                book.put(record)
        while book.unplaced:
            record = self._next_in_turn(book, facts)
            del book.unplaced[record.uid]
            self._place(book, record, facts)

    def revise(self, book: NodeLedger, holdings: Iterable[Holding]) -> None:
        """Something else is known of these pods, unless they were seen where they are."""
        for holding in holdings:
            record = book.records.get(holding.uid)
            if record is not None and (record.holding is None or record.holding.source is not Source.OBSERVED):
                record.holding = holding
                reconcile.refresh(book, record, self._beliefs)

    def _next_in_turn(self, book: NodeLedger, facts: RowFacts) -> PodRecord:
        """Who is to be placed now: somebody of whom the model says what was foretold. The order in which pods were
        bound is not known any more, but forecasts come true in it."""
        waiting = list(book.unplaced.values())
        foretold = [(record, told) for record in waiting if (told := self._foretold(record, facts)) is not None]
        row = book.row(self._beliefs.resources) if foretold and len(waiting) > 1 else None
        found = coming_true(foretold, self._placer, row, self._beliefs.shape) if row is not None else None
        return found or waiting[0]

    def _foretold(self, record: PodRecord, facts: RowFacts) -> Containers | None:
        if record.forecast is None:
            return None
        found = read(record.forecast, record.pod, facts)
        program, resources = self._beliefs.program(record, facts), self._beliefs.resources
        if found is None or not is_possible(found, program, facts, resources):
            self._beliefs.problems[Problem.FORECAST_IMPOSSIBLE] += 1
            record.forecast = found = None
        return found

    def _place(self, book: NodeLedger, record: PodRecord, facts: RowFacts) -> None:
        anywhere, record.holding = self._beliefs.ensure(record, facts), None
        foretold, record.forecast = self._foretold(record, facts), None
        book.put(record)
        # Most pods of a cluster hold nothing exclusively, and there is nothing to ask about them.
        row = book.row(self._beliefs.resources) if anywhere.entries else None
        self.revise(book, self._placer(record.pod, row) if row is not None else ())
        modelled = record.holding
        if foretold is not None and not agrees(foretold, modelled):
            # Pods that are not there yet may still be moved by others; who may be anywhere cannot.
            has_come = record.started is not None
            lost = structs.replace(anywhere, promised=True)
            record.holding = either(foretold, modelled, anywhere, facts) if has_come else lost
            book.put(record)
            self._give_up_on(book, facts)
        elif modelled is None:
            self._beliefs.problems[Problem.PLACED_NOWHERE] += bool(anywhere.entries)
            record.holding = anywhere
            book.put(record)

    def _give_up_on(self, book: NodeLedger, facts: RowFacts) -> None:
        """The node is not as the model has it, so that others it was asked about may be anywhere, too."""
        for record in [each for each in book.pending.values() if each.after < 0 and each.is_predicted]:
            record.holding = None
            record.holding = structs.replace(self._beliefs.ensure(record, facts), promised=True)
            book.put(record)
