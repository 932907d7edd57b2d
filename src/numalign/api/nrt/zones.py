"""The zones of a topology report: wire structs in, canonical zones out.

`nrt` calls `read` and `write`. Only zones of the type for NUMA nodes count, and only under names that carry an id
(exporter spec 1.7). Of two entries for one zone, resource or cost the later one counts, as in the reference (scheduler
plugin spec 4); of two attributes the first. What is skipped or repaired is noted, and never costs more than itself.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from numalign.api import errors
from numalign.api.attributes import attributelist
from numalign.api.decode import quantity
from numalign.api.nrt import amounts as nrtamounts
from numalign.api.nrt import wire as nrtwire
from numalign.api.nrt import zonename
from numalign.api.nrt.nodetopology import Amounts, Zone
from numalign.api.nrt.repairs import Guess, GuessCode
from numalign.api.objects.resourcenames import CPU

HIGHEST_IN_MASK: Final = 63
"""The kubelet keeps zone sets in 64-bit masks."""
DISTANCES: Final = 1024
"""Lists of distances that are remembered: nodes of one make have the same."""


def read(wire: Sequence[nrtwire.Zone], guesses: list[Guess]) -> tuple[Zone, ...]:
    """The NUMA zones, ascending by id."""
    chosen: dict[int, tuple[str, nrtwire.Zone]] = {}
    for place, zone in enumerate(wire):
        where = f"zones[{place}]"
        zone_id = _zone_id(zone, where, guesses)
        if zone_id is None:
            continue
        if zone_id in chosen:
            guesses.append(Guess(GuessCode.ZONE_DUPLICATE, chosen[zone_id][0], zone.name, where))
        chosen[zone_id] = where, zone
    if not chosen:
        guesses.append(Guess(GuessCode.NO_ZONES, "zones"))
    zones = tuple(_zone(zone_id, chosen, guesses) for zone_id in sorted(chosen))
    _note_absent_cpus(zones, guesses)
    return zones


def write(zones: Iterable[Zone], vectors: Mapping[int, nrtwire.Attribute]) -> tuple[nrtwire.Zone, ...]:
    """The zones with their attributes, and among them the placement vector of each that has one."""
    return tuple(_written(zone, vectors.get(zone.id)) for zone in sorted(zones, key=lambda zone: zone.id))


def _zone_id(zone: nrtwire.Zone, where: str, guesses: list[Guess]) -> int | None:
    if zone.type != nrtwire.NUMA_ZONE:
        guesses.append(Guess(GuessCode.ZONE_TYPE_OTHER, f"{where}.type", errors.echo(zone.type)))
        return None
    try:
        zone_id = zonename.id_of(zone.name)
    except zonename.ZoneNameError:
        guesses.append(Guess(GuessCode.ZONE_NAME_UNKNOWN, f"{where}.name", errors.echo(zone.name)))
        return None
    name = zonename.name_of(zone_id)
    if zone.name != name:
        guesses.append(Guess(GuessCode.ZONE_NAME_ODD, f"{where}.name", errors.echo(zone.name), name))
    if zone_id > HIGHEST_IN_MASK:
        guesses.append(Guess(GuessCode.ZONE_BEYOND_MASK, f"{where}.name", zone.name, name))
    if zone.parent:
        guesses.append(Guess(GuessCode.ZONE_PARENT, f"{where}.parent", errors.echo(zone.parent)))
    return zone_id


def _zone(zone_id: int, chosen: Mapping[int, tuple[str, nrtwire.Zone]], guesses: list[Guess]) -> Zone:
    where, wire = chosen[zone_id]
    return Zone(
        id=zone_id,
        resources=_resources(wire.resources, f"{where}.resources", guesses),
        costs=_costs(wire.costs, frozenset(chosen), f"{where}.costs", guesses),
        attributes=attributelist.by_name(wire.attributes, f"{where}.attributes", guesses),
    )


def _resources(wire: Sequence[nrtwire.Resource], where: str, guesses: list[Guess]) -> dict[str, Amounts]:
    found: dict[str, Amounts] = {}
    for place, resource in enumerate(wire):
        path = f"{where}[{place}]"
        if not resource.name:
            guesses.append(Guess(GuessCode.RESOURCE_UNNAMED, path))
            continue
        if resource.name in found:
            guesses.append(Guess(GuessCode.RESOURCE_DUPLICATE, path, errors.echo(resource.name), path))
        # All zones of all nodes have the same few names; the same object is compared without being looked at.
        found[sys.intern(resource.name)] = nrtamounts.read(resource, path, guesses)
    return dict(sorted(found.items()))


def _costs(
    wire: tuple[nrtwire.Cost, ...], known: frozenset[int], where: str, guesses: list[Guess]
) -> Mapping[int, int]:
    sound = _sound_costs(wire, known)
    return _read_costs(wire, known, where, guesses) if sound is None else sound


@lru_cache(maxsize=DISTANCES)
def _sound_costs(wire: tuple[nrtwire.Cost, ...], known: frozenset[int]) -> Mapping[int, int] | None:
    """Those about which there is nothing to note."""
    noted: list[Guess] = []
    found = _read_costs(wire, known, "", noted)
    return None if noted else found


def _read_costs(
    wire: Sequence[nrtwire.Cost], known: frozenset[int], where: str, guesses: list[Guess]
) -> dict[int, int]:
    found: dict[int, int] = {}
    for place, cost in enumerate(wire):
        path, target = f"{where}[{place}]", _target(cost)
        if target not in known:
            guesses.append(Guess(GuessCode.COST_ZONE_UNKNOWN, f"{path}.name", errors.echo(cost.name)))
        elif cost.value is None or not 0 <= cost.value <= quantity.INT64_MAX:
            guesses.append(Guess(GuessCode.COST_UNUSABLE, f"{path}.value", errors.echo(cost.value)))
        else:
            if target in found:
                guesses.append(Guess(GuessCode.COST_DUPLICATE, path, str(found[target]), str(cost.value)))
            found[target] = cost.value
    missing = known - found.keys()
    if missing and len(known) > 1:
        names = ", ".join(map(zonename.name_of, sorted(missing)))
        guesses.append(Guess(GuessCode.COST_MISSING, where, errors.clipped(names)))
    return dict(sorted(found.items()))


def _target(cost: nrtwire.Cost) -> int:
    try:
        return zonename.id_of(cost.name)
    except zonename.ZoneNameError:
        return -1


def _note_absent_cpus(zones: Sequence[Zone], guesses: list[Guess]) -> None:
    # The exporter leaves cpu out of a zone whose CPUs are all reserved, as if it had none (exporter spec, D-37).
    without = [zone for zone in zones if CPU not in zone.resources]
    if 0 < len(without) < len(zones):
        guesses.extend(Guess(GuessCode.CPU_ABSENT, zonename.name_of(zone.id), "", "0") for zone in without)


def _written(zone: Zone, vector: nrtwire.Attribute | None) -> nrtwire.Zone:
    own = dict(zone.attributes) | ({vector.name: vector.value} if vector else {})
    return nrtwire.Zone(
        name=zonename.name_of(zone.id),
        type=nrtwire.NUMA_ZONE,
        costs=tuple(nrtwire.Cost(name=zonename.name_of(to), value=cost) for to, cost in sorted(zone.costs.items())),
        attributes=tuple(nrtwire.Attribute(name=name, value=value) for name, value in sorted(own.items())),
        resources=tuple(_resource(name, amounts) for name, amounts in sorted(zone.resources.items())),
    )


def _resource(name: str, amounts: Amounts) -> nrtwire.Resource:
    return nrtwire.Resource(
        name=name,
        capacity=nrtamounts.text(amounts.capacity, name),
        allocatable=nrtamounts.text(amounts.allocatable, name),
        available=nrtamounts.text(amounts.available, name),
    )
