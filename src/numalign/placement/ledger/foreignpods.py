"""Places pods that another scheduler or a former leader has bound, as far as no report says where they are.

The ledger puts such pods off until their node is read, and then calls `ForeignPods.place`. The model places them in the
order in which they were likely bound. A forecast that a scheduler like this one has written on a pod is compared with
the model. Where both agree, the pod is predicted. Where they disagree, pods may have ended in between that this process
never saw, and either may be true: a pod that runs is charged to all zones that either names; a pod that has not started
is charged to every zone, and so are other pods on the node that only the model has placed. A forecast that the node's
kubelet cannot have made is ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_

from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.placement.columns import zonesets
from numalign.placement.columns.holdings import ContainerZones, Holding, Source
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.noderules import BY_SOCKET, NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shape
from numalign.placement.facts import Forecast
from numalign.placement.ledger import nodeledger, reconcile
from numalign.placement.ledger.divergences import Problem
from numalign.placement.ledger.nodeledger import NodeLedger, Row
from numalign.placement.ledger.podrecord import PodRecord
from numalign.placement.ledger.unobserved import UnobservedPods

Containers = tuple[ContainerZones, ...]
Placer = Callable[[Pod, Row], Sequence[Holding]]
"""Places a pod of another scheduler with the model: its holding, and the changed holdings of pending pods. Empty: the
model finds no zones for it."""


def read(forecast: Forecast, pod: Pod, facts: RowFacts) -> Containers | None:
    """The forecast by position, in admission order; None: it is about other containers, or other zones."""
    rules, names = facts.rules, [container.name for container in pod.in_admission_order()]
    chosen = [zones for sets in forecast.values() for zones in sets]
    known = forecast.keys() <= set(names) and all(zones and set(zones) <= set(rules.zones) for zones in chosen)
    if not known or not _keeps_policy(forecast, rules):
        return None
    return tuple(ContainerZones(name, tuple(_mask(zones, rules) for zones in forecast.get(name, ()))) for name in names)


def is_possible(forecast: Containers, program: Program, facts: RowFacts, resources: Resources) -> bool:
    """Whether the zones are large enough, were they empty; where zones may be left, that says nothing."""
    if not _is_strict(facts.rules):
        return True
    asks = [program.whole or step.ask for step in program.steps]
    return all(
        _holds(mask, ask, facts, resources) for each, ask in zip(forecast, asks, strict=False) for mask in each.possible
    )


def confirmed(
    forecasts: Sequence[tuple[PodRecord, Containers]], placer: Placer, row: Row, shape: Callable[[Pod], Shape]
) -> PodRecord | None:
    """The first pod whose forecast the model confirms; equal pods are evaluated once."""
    said: dict[int, Holding | None] = {}
    for record, forecast in forecasts:
        number = shape(record.pod).number
        if number not in said:
            own = (holding for holding in placer(record.pod, row) if holding.uid == record.uid)
            said[number] = next(own, None)
        if agrees(forecast, said[number]):
            return record
    return None


def agrees(forecast: Containers, modelled: Holding | None) -> bool:
    """Whether forecast and model agree. Containers that hold nothing may be missing in either."""
    if modelled is None:
        return False
    masks = _masks(modelled.containers)
    return all(masks.get(name) == own for name, own in _masks(forecast).items())


def either(forecast: Containers, modelled: Holding | None, anywhere: Holding, facts: RowFacts) -> Holding:
    """A holding that covers forecast and model. `anywhere`: all that the pod may hold, in every zone."""
    if not _is_strict(facts.rules):
        return anywhere
    both = _masks(forecast), _masks(modelled.containers if modelled is not None else ())
    joined = tuple(
        ContainerZones(each.container, tuple(sorted({mask for half in both for mask in half.get(each.container, ())})))
        for each in forecast
    )
    # A container that neither names may be in any zone, if it holds anything.
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

    def __init__(self, unobserved: UnobservedPods, placer: Placer) -> None:
        self._unobserved = unobserved
        self._placer = placer

    def place(self, node_ledger: NodeLedger, facts: RowFacts) -> None:
        """Places all pods of the node that wait to be placed."""
        # A pod takes nothing from others before it is placed itself, even if it has a holding already.
        for record in node_ledger.unplaced.values():
            if record.holding is not None:
                record.holding = None
                node_ledger.put(record)
        while node_ledger.unplaced:
            record = self._next_in_turn(node_ledger, facts)
            del node_ledger.unplaced[record.uid]
            self._place(node_ledger, record, facts)

    def revise(self, node_ledger: NodeLedger, holdings: Iterable[Holding]) -> None:
        """Replaces the holdings of these pods, unless a report shows them."""
        for holding in holdings:
            record = node_ledger.records.get(holding.uid)
            if record is not None and (record.holding is None or record.holding.source is not Source.OBSERVED):
                record.holding = holding
                reconcile.refresh(node_ledger, record, self._unobserved)

    def _next_in_turn(self, node_ledger: NodeLedger, facts: RowFacts) -> PodRecord:
        """The next pod to place: one whose forecast the model confirms.

        The order in which the pods were bound is lost, but forecasts are confirmed in that order."""
        waiting = list(node_ledger.unplaced.values())
        forecasts = [(record, own) for record in waiting if (own := self._forecast(record, facts)) is not None]
        row = node_ledger.row(self._unobserved.resources) if forecasts and len(waiting) > 1 else None
        found = confirmed(forecasts, self._placer, row, self._unobserved.shape) if row is not None else None
        return found or waiting[0]

    def _forecast(self, record: PodRecord, facts: RowFacts) -> Containers | None:
        if record.forecast is None:
            return None
        found = read(record.forecast, record.pod, facts)
        program, resources = self._unobserved.program(record, facts), self._unobserved.resources
        if found is None or not is_possible(found, program, facts, resources):
            self._unobserved.problems[Problem.FORECAST_IMPOSSIBLE] += 1
            record.forecast = found = None
        return found

    def _place(self, node_ledger: NodeLedger, record: PodRecord, facts: RowFacts) -> None:
        anywhere, record.holding = self._unobserved.ensure(record, facts), None
        forecast, record.forecast = self._forecast(record, facts), None
        node_ledger.put(record)
        # Most pods of a cluster hold nothing exclusively, so the model is not needed for them.
        row = node_ledger.row(self._unobserved.resources) if anywhere.entries else None
        self.revise(node_ledger, self._placer(record.pod, row) if row is not None else ())
        modelled = record.holding
        if forecast is not None and not agrees(forecast, modelled):
            # Pods that are not admitted yet may still get other zones; a pod that is charged everywhere cannot.
            has_come = record.started is not None
            lost = structs.replace(anywhere, promised=True)
            record.holding = either(forecast, modelled, anywhere, facts) if has_come else lost
            node_ledger.put(record)
            self._give_up_on(node_ledger, facts)
        elif modelled is None:
            self._unobserved.problems[Problem.PLACED_NOWHERE] += bool(anywhere.entries)
            record.holding = anywhere
            node_ledger.put(record)

    def _give_up_on(self, node_ledger: NodeLedger, facts: RowFacts) -> None:
        """Charges pods that only the model placed to every zone, because the model contradicts the node."""
        for record in [each for each in node_ledger.pending.values() if each.after < 0 and each.is_predicted]:
            record.holding = None
            record.holding = structs.replace(self._unobserved.ensure(record, facts), promised=True)
            node_ledger.put(record)
