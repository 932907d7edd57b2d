"""Observations from upstream's placement codec, read with the pods that a report is known to cover.

`reconcile` calls this module where a plain report carries a placement payload and its fingerprint says exactly which
pods it covers. Publishers write the payload under single-numa-node only, for every container that the pod resources API
shows to hold something (exporter spec 4.7); plain init containers are never part of it. The codec names containers by
their order among all of them, so it proves something for all of them or for none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import structs

from numalign.api.nrt import placementcodec
from numalign.api.nrt.placementcodec import ContainerRef, Payload, PlacementError
from numalign.kubelet.demand import Role
from numalign.placement.columns.holdings import ContainerZones, Entry
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.requests import Ask
from numalign.placement.columns.resources import CPU
from numalign.placement.ledger.observed import Observation
from numalign.placement.ledger.podrecord import PodRecord
from numalign.placement.ledger.unobserved import UnobservedPods


class NamedContainer(NamedTuple):
    """A container that holds something, and its request."""

    record: PodRecord
    container: str
    ask: Ask

    @property
    def ref(self) -> ContainerRef:
        meta = self.record.pod.metadata
        return ContainerRef(meta.namespace, meta.name, self.container)


def observed(
    payload: Payload, covered: Iterable[PodRecord], facts: RowFacts, unobserved: UnobservedPods
) -> Mapping[str, Observation]:
    """By uid, the observations in the payload. `covered`: all pods that the report covers.

    Empty if the payload does not match these pods."""
    seats = [seat for record in covered for seat in _seats(record, facts, unobserved)]
    try:
        zones = placementcodec.decode(payload, [seat.ref for seat in seats])
    except PlacementError:
        return {}
    places = {zone: position for position, zone in enumerate(facts.rules.zones)}
    if len(zones) != len(seats) or not places.keys() >= set(zones.values()):
        return {}
    by_pod: dict[str, list[tuple[NamedContainer, int]]] = {}
    for seat in seats:
        by_pod.setdefault(seat.record.uid, []).append((seat, 1 << places[zones[seat.ref]]))
    return {uid: _observation(own, facts, unobserved) for uid, own in by_pod.items()}


def _seats(record: PodRecord, facts: RowFacts, unobserved: UnobservedPods) -> list[NamedContainer]:
    program = unobserved.program(record, facts)
    # No publisher lists what a pod holds as a whole (exporter spec, D-34).
    served = program.steps if program.budget is None else ()
    steps = zip(record.pod.in_admission_order(), served, strict=False)
    found = (
        NamedContainer(record, container.name, step.ask) for container, step in steps if step.role is not Role.INIT
    )
    return [seat for seat in found if _entries(seat.ask, 1, facts, unobserved)]


def _entries(ask: Ask, zone: int, facts: RowFacts, unobserved: UnobservedPods) -> list[Entry]:
    """Everything is in the one zone, except devices that may lie in none."""
    found = [Entry(CPU, ask.cpus, zone)] if ask.cpus else []
    found += [Entry(column, amount, zone, span=1) for column, amount in ask.memory or () if amount]
    names = unobserved.resources.names
    for column, count in ask.devices:
        supply = facts.supplies.get(names[column])
        if count and supply is not None and any(supply.size):
            found.append(Entry(column, count, zone, certain=names[column] not in facts.unknown_size))
    return found


def _observation(
    seats: Iterable[tuple[NamedContainer, int]], facts: RowFacts, unobserved: UnobservedPods
) -> Observation:
    entries: dict[tuple[int, int], Entry] = {}
    containers = []
    for seat, zone in seats:
        containers.append(ContainerZones(seat.container, (zone,)))
        for entry in _entries(seat.ask, zone, facts, unobserved):
            before = entries.get((entry.column, zone))
            amount = entry.amount + (before.amount if before else 0)
            entries[entry.column, zone] = structs.replace(entry, amount=amount)
    return Observation(tuple(entries[where] for where in sorted(entries)), tuple(containers))
