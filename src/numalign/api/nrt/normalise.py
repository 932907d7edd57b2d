"""Topology reports: from any publisher's object to one NodeTopology, and back to an object.

The scheduler's intake calls `normalise`, the agent and the simulator `encode`. Reading never fails on a decoded object:
malformed values are repaired or skipped and listed in `guesses`. Only zones of type Node count, under names with an id
(exporter spec 1.7). Of two entries for one zone, resource or cost the later one counts, of two attributes the first
(scheduler plugin spec 4). Amounts always keep 0 <= available <= allocatable <= capacity; where a number is doubtful,
the smaller promise counts. Writing is canonical: equal topologies give equal bytes."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal

import msgspec

from numalign.api import errors
from numalign.api.attributes import attributes, grammar
from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.decode import quantity
from numalign.api.nrt import attributelist, fingerprint, placementcodec, topologymanager, wire
from numalign.api.nrt.nodetopology import MILLI_RESOURCES, Amounts, Fingerprint, NodeTopology, Zone
from numalign.api.nrt.wire import Attribute, Cost, NodeResourceTopology, PublishedZone, Resource, Written
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.resourcenames import CPU, MEMORY, is_hugepages

PLAIN: Final = re.compile(r"[0-9]{3,60}")
MILLI: Final = quantity.NANO // 1000
ALIKE: Final = 1 << 14
"""Resources that are cached: nodes of one model report the same ones repeatedly."""


def read_amount(resource: Resource, where: str, guesses: list[Guess]) -> Amounts:
    """The amounts in this resource's unit; `where` is its path in the report."""
    return _as_publishers_write(resource) or _repaired(resource, where, guesses)


def amount_text(amount: int, name: str) -> str:
    """As publishers write amounts: plain digits, cpu in whole CPUs where it is whole."""
    if name not in MILLI_RESOURCES:
        return str(amount)
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


@lru_cache(maxsize=ALIKE)
def _as_publishers_write(resource: Resource) -> Amounts | None:
    """Plain digits in a consistent order, which is nearly every resource of every report: nothing to repair."""
    first, second, third = resource.capacity, resource.allocatable, resource.available
    if not (isinstance(first, str) and isinstance(second, str) and isinstance(third, str)):
        return None
    if not (first and second and third and PLAIN.fullmatch(first + second + third) and _has_known_unit(resource.name)):
        return None
    factor = 1000 if resource.name in MILLI_RESOURCES else 1
    capacity, allocatable, available = int(first) * factor, int(second) * factor, int(third) * factor
    if quantity.INT64_MAX >= capacity >= allocatable >= available:
        return Amounts(capacity, allocatable, available)
    return None


def _has_known_unit(name: str) -> bool:
    return "/" in name or name in (CPU, MEMORY) or is_hugepages(name)


def _repaired(resource: Resource, where: str, guesses: list[Guess]) -> Amounts:
    if not _has_known_unit(resource.name):
        guesses.append(Guess(GuessCode.UNIT_ASSUMED, f"{where}.name", errors.echo(resource.name), "units"))
    unit = MILLI if resource.name in MILLI_RESOURCES else quantity.NANO
    capacity = _whole(resource.capacity, unit, f"{where}.capacity", guesses)
    allocatable = _whole(resource.allocatable, unit, f"{where}.allocatable", guesses)
    available = _whole(resource.available, unit, f"{where}.available", guesses)
    return _consistent(capacity, allocatable, available or 0, where, guesses)


def _consistent(
    capacity: int | None, allocatable: int | None, available: int, where: str, guesses: list[Guess]
) -> Amounts:
    # Some writers fill only capacity and available (scheduler plugin spec, appendix); 0 allocatable is then no fact.
    if allocatable is None or available > allocatable == 0:
        allocatable = max(capacity or 0, available)
        guesses.append(Guess(GuessCode.ALLOCATABLE_ASSUMED, f"{where}.allocatable", "", str(allocatable)))
    if available > allocatable:
        guesses.append(Guess(GuessCode.AVAILABLE_LOWERED, f"{where}.available", str(available), str(allocatable)))
        available = allocatable
    if capacity is None or capacity < allocatable:
        found = "" if capacity is None else str(capacity)
        guesses.append(Guess(GuessCode.CAPACITY_RAISED, f"{where}.capacity", found, str(allocatable)))
        capacity = allocatable
    return Amounts(capacity, allocatable, available)


def _whole(written: Written, unit: int, where: str, guesses: list[Guess]) -> int | None:
    """The quantity in units, rounded down; None if it is absent or unreadable."""
    nanos = _nanos(written, where, guesses)
    if nanos is None:
        return None
    amount, rest = divmod(max(nanos, 0), unit)
    if nanos < 0:
        guesses.append(Guess(GuessCode.QUANTITY_NEGATIVE, where, errors.echo(written), "0"))
    if rest:
        guesses.append(Guess(GuessCode.QUANTITY_ROUNDED, where, errors.echo(written), str(amount)))
    if amount > quantity.INT64_MAX:
        guesses.append(Guess(GuessCode.QUANTITY_CLAMPED, where, errors.echo(written), str(quantity.INT64_MAX)))
    return min(amount, quantity.INT64_MAX)


def _nanos(written: Written, where: str, guesses: list[Guess]) -> int | None:
    if written is None:
        guesses.append(Guess(GuessCode.QUANTITY_MISSING, where))
        return None
    if isinstance(written, float):
        guesses.append(Guess(GuessCode.QUANTITY_FLOAT, where, errors.echo(written)))
    try:
        return quantity.parse(written).nanos
    except quantity.QuantityError:
        guesses.append(Guess(GuessCode.QUANTITY_UNREADABLE, where, errors.echo(written)))
        return None


HIGHEST_IN_MASK: Final = 63
"""The kubelet keeps zone sets in 64-bit masks."""
DISTANCES: Final = 1024
"""Lists of distances that are cached: nodes of one model have the same."""


def read_zones(published: Sequence[PublishedZone], guesses: list[Guess]) -> tuple[Zone, ...]:
    """The NUMA zones, ascending by id."""
    chosen: dict[int, tuple[str, PublishedZone]] = {}
    for place, zone in enumerate(published):
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


def write_zones(zones: Iterable[Zone], vectors: Mapping[int, Attribute]) -> tuple[PublishedZone, ...]:
    """The zones with their attributes, and among them the placement vector of each that has one."""
    return tuple(_written(zone, vectors.get(zone.id)) for zone in sorted(zones, key=lambda zone: zone.id))


def _zone_id(zone: PublishedZone, where: str, guesses: list[Guess]) -> int | None:
    if zone.type != wire.NUMA_ZONE:
        guesses.append(Guess(GuessCode.ZONE_TYPE_OTHER, f"{where}.type", errors.echo(zone.type)))
        return None
    try:
        zone_id = grammar.zone_id(zone.name)
    except grammar.ZoneNameError:
        guesses.append(Guess(GuessCode.ZONE_NAME_UNKNOWN, f"{where}.name", errors.echo(zone.name)))
        return None
    name = grammar.zone_name(zone_id)
    if zone.name != name:
        guesses.append(Guess(GuessCode.ZONE_NAME_ODD, f"{where}.name", errors.echo(zone.name), name))
    if zone_id > HIGHEST_IN_MASK:
        guesses.append(Guess(GuessCode.ZONE_BEYOND_MASK, f"{where}.name", zone.name, name))
    if zone.parent:
        guesses.append(Guess(GuessCode.ZONE_PARENT, f"{where}.parent", errors.echo(zone.parent)))
    return zone_id


def _zone(zone_id: int, chosen: Mapping[int, tuple[str, PublishedZone]], guesses: list[Guess]) -> Zone:
    where, published = chosen[zone_id]
    return Zone(
        id=zone_id,
        resources=_resources(published.resources, f"{where}.resources", guesses),
        costs=_costs(published.costs, frozenset(chosen), f"{where}.costs", guesses),
        attributes=attributelist.by_name(published.attributes, f"{where}.attributes", guesses),
    )


def _resources(published: Sequence[Resource], where: str, guesses: list[Guess]) -> dict[str, Amounts]:
    found: dict[str, Amounts] = {}
    for place, resource in enumerate(published):
        path = f"{where}[{place}]"
        if not resource.name:
            guesses.append(Guess(GuessCode.RESOURCE_UNNAMED, path))
            continue
        if resource.name in found:
            guesses.append(Guess(GuessCode.RESOURCE_DUPLICATE, path, errors.echo(resource.name), path))
        # All zones of all nodes have the same few names; identical objects compare fastest.
        found[sys.intern(resource.name)] = read_amount(resource, path, guesses)
    return dict(sorted(found.items()))


def _costs(costs: tuple[Cost, ...], known: frozenset[int], where: str, guesses: list[Guess]) -> Mapping[int, int]:
    sound = _sound_costs(costs, known)
    return _read_costs(costs, known, where, guesses) if sound is None else sound


@lru_cache(maxsize=DISTANCES)
def _sound_costs(costs: tuple[Cost, ...], known: frozenset[int]) -> Mapping[int, int] | None:
    """The costs, if nothing about them has to be noted."""
    noted: list[Guess] = []
    found = _read_costs(costs, known, "", noted)
    return None if noted else found


def _read_costs(costs: Sequence[Cost], known: frozenset[int], where: str, guesses: list[Guess]) -> dict[int, int]:
    found: dict[int, int] = {}
    for place, cost in enumerate(costs):
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
        names = ", ".join(map(grammar.zone_name, sorted(missing)))
        guesses.append(Guess(GuessCode.COST_MISSING, where, errors.clipped(names)))
    return dict(sorted(found.items()))


def _target(cost: Cost) -> int:
    try:
        return grammar.zone_id(cost.name)
    except grammar.ZoneNameError:
        return -1


def _note_absent_cpus(zones: Sequence[Zone], guesses: list[Guess]) -> None:
    # The exporter leaves cpu out of a zone whose CPUs are all reserved, as if it had none (exporter spec, D-37).
    without = [zone for zone in zones if CPU not in zone.resources]
    if 0 < len(without) < len(zones):
        guesses.extend(Guess(GuessCode.CPU_ABSENT, grammar.zone_name(zone.id), "", "0") for zone in without)


def _written(zone: Zone, vector: Attribute | None) -> PublishedZone:
    own = dict(zone.attributes) | ({vector.name: vector.value} if vector else {})
    return PublishedZone(
        name=grammar.zone_name(zone.id),
        type=wire.NUMA_ZONE,
        costs=tuple(Cost(name=grammar.zone_name(to), value=cost) for to, cost in sorted(zone.costs.items())),
        attributes=tuple(Attribute(name=name, value=value) for name, value in sorted(own.items())),
        resources=tuple(_resource(name, amounts) for name, amounts in sorted(zone.resources.items())),
    )


def _resource(name: str, amounts: Amounts) -> Resource:
    return Resource(
        name=name,
        capacity=amount_text(amounts.capacity, name),
        allocatable=amount_text(amounts.allocatable, name),
        available=amount_text(amounts.available, name),
    )


FINGERPRINT: Final = "nodeTopologyPodsFingerprint"
FINGERPRINT_METHOD: Final = "nodeTopologyPodsFingerprintMethod"
FINGERPRINT_ANNOTATION: Final = "topology.node.k8s.io/fingerprint"
ANNOTATION_PATH: Final = f"metadata.annotations[{FINGERPRINT_ANNOTATION}]"
METHODS: Final = {method.value: method for method in fingerprint.Method}
PLACEMENT_METADATA: Final = "topology.node.k8s.io/numaplacement-metadata"
PLACEMENT_VECTOR: Final = "topology.node.k8s.io/numaplacement-vector"

Version = Literal["v1alpha1", "v1alpha2"]
KNOWN_VERSIONS: Final = {f"{wire.GROUP}/{version}" for version in (wire.V1ALPHA1, wire.V1ALPHA2)} | {""}


def normalise(report: NodeResourceTopology) -> NodeTopology:
    """The topology that the report describes, with a note of every repair."""
    guesses = list(report.dropped) if isinstance(report, wire.Salvaged) else []
    if report.api_version not in KNOWN_VERSIONS:
        guesses.append(Guess(GuessCode.API_VERSION_UNKNOWN, "apiVersion", errors.echo(report.api_version)))
    zones = read_zones(report.zones or (), guesses)
    manager = topologymanager.read(report.topology_policies, report.attributes, guesses)
    _note_zones_over_limit(manager, zones, guesses)
    others = attributelist.by_name(report.attributes, "attributes", guesses, apart_from=topologymanager.ATTRIBUTES)
    own = {name: others.pop(name) for name in list(others) if name.startswith(attributes.PREFIX)}
    signature = _fingerprint(others, report.metadata.annotations, guesses)
    placement, zones = _placement(others.pop(PLACEMENT_METADATA, None), zones, guesses)
    return NodeTopology(
        node=report.metadata.name,
        manager=manager,
        zones=zones,
        fingerprint=signature,
        placement=placement,
        facts=attributes.read(report.metadata.name, own, guesses),
        attributes=others,
        guesses=tuple(guesses),
    )


def encode(topology: NodeTopology, version: Version = wire.V1ALPHA2) -> NodeResourceTopology:
    """The object for this topology. v1alpha1 keeps the zones, policy and scope, and a fingerprint of all pods."""
    payload, signature = topology.placement, topology.fingerprint
    vectors = payload.vectors if payload and version == wire.V1ALPHA2 else {}
    vector_attributes = {zone: Attribute(name=PLACEMENT_VECTOR, value=text) for zone, text in vectors.items()}
    top = _top_level(topology) if version == wire.V1ALPHA2 else {}
    # A reader of the annotation alone takes it for the fingerprint of all pods.
    announced = signature and (version == wire.V1ALPHA2 or signature.method is fingerprint.Method.ALL)
    annotations = {FINGERPRINT_ANNOTATION: signature.text} if signature and announced else {}
    return NodeResourceTopology(
        api_version=f"{wire.GROUP}/{version}",
        kind=wire.KIND,
        metadata=ObjectMeta(name=topology.node, annotations=annotations),
        topology_policies=(topologymanager.legacy_token(topology.manager),) if version == wire.V1ALPHA1 else (),
        zones=write_zones(topology.zones, vector_attributes),
        attributes=tuple(Attribute(name=name, value=value) for name, value in sorted(top.items())),
    )


def _top_level(topology: NodeTopology) -> dict[str, str]:
    named = dict(topology.attributes) | topologymanager.write(topology.manager) | attributes.write(topology.facts)
    if topology.fingerprint:
        named |= {FINGERPRINT: topology.fingerprint.text, FINGERPRINT_METHOD: topology.fingerprint.method}
    if topology.placement:
        named[PLACEMENT_METADATA] = topology.placement.metadata
    return named


def _fingerprint(others: dict[str, str], annotations: Mapping[str, str], guesses: list[Guess]) -> Fingerprint | None:
    """The attribute's, else the annotation's, which always means all pods (exporter spec 1.10)."""
    text, word = others.pop(FINGERPRINT, None), others.pop(FINGERPRINT_METHOD, fingerprint.Method.ALL.value)
    announced = annotations.get(FINGERPRINT_ANNOTATION, "")
    if text is None:
        return _from_annotation(announced, guesses)
    if announced not in ("", text):
        guesses.append(
            Guess(GuessCode.FINGERPRINT_DISAGREES, ANNOTATION_PATH, errors.echo(announced), errors.clipped(text))
        )
    if word not in METHODS:
        where = f"attributes[{FINGERPRINT_METHOD}]"
        guesses.append(Guess(GuessCode.FINGERPRINT_METHOD_UNKNOWN, where, errors.echo(word), fingerprint.Method.ALL))
    return _judged(Fingerprint(text, METHODS.get(word, fingerprint.Method.ALL)), f"attributes[{FINGERPRINT}]", guesses)


def _from_annotation(text: str, guesses: list[Guess]) -> Fingerprint | None:
    if not text:
        return None
    guesses.append(
        Guess(GuessCode.FINGERPRINT_FROM_ANNOTATION, ANNOTATION_PATH, errors.echo(text), fingerprint.Method.ALL)
    )
    return _judged(Fingerprint(text), ANNOTATION_PATH, guesses)


def _judged(found: Fingerprint, where: str, guesses: list[Guess]) -> Fingerprint | None:
    try:
        fingerprint.parse(found.text)
    except fingerprint.FingerprintError:
        guesses.append(Guess(GuessCode.FINGERPRINT_MALFORMED, where, errors.echo(found.text)))
    return found if found.text else None


def _placement(
    metadata: str | None, zones: tuple[Zone, ...], guesses: list[Guess]
) -> tuple[placementcodec.Payload | None, tuple[Zone, ...]]:
    """The payload, if it is sound, and the zones without the vectors that belong to it."""
    vectors = {zone.id: zone.attributes[PLACEMENT_VECTOR] for zone in zones if PLACEMENT_VECTOR in zone.attributes}
    bare = tuple(_without_vector(zone) if zone.id in vectors else zone for zone in zones)
    if metadata is None and not vectors:
        return None, zones
    try:
        payload = placementcodec.parse_metadata(metadata or "", vectors)
        placementcodec.zones_by_offset(payload)
    except placementcodec.PlacementError as problem:
        guesses.append(Guess(GuessCode.PLACEMENT_INVALID, f"attributes[{PLACEMENT_METADATA}]", str(problem)))
        return None, bare
    return payload, bare


def _without_vector(zone: Zone) -> Zone:
    kept = {name: value for name, value in zone.attributes.items() if name != PLACEMENT_VECTOR}
    return msgspec.structs.replace(zone, attributes=kept)


def _note_zones_over_limit(
    manager: topologymanager.TopologyManager, zones: Sequence[Zone], guesses: list[Guess]
) -> None:
    # Such a kubelet would not have started, so the limit is higher; publishers leave it out (exporter spec, D-27).
    if manager.policy != "none" and len(zones) > manager.max_zones:
        where = f"attributes[{topologymanager.MAX_ZONES}]"
        guesses.append(Guess(GuessCode.MAX_ZONES_ASSUMED, where, f"{len(zones)} zones", str(manager.max_zones)))
