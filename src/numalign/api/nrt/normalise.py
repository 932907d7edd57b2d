"""Topology reports: from any publisher's object to one NodeTopology, and back to an object.

Intake calls `normalise(nrtwire.decode(raw))`, the agent and the simulator `encode`. Reading never fails on an object
that could be decoded: whatever is odd about it is repaired or left out and listed in `guesses`. Writing is canonical:
equal topologies give equal bytes. Objects of v1alpha1 have no top-level attributes and carry far less.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from numalign.api import errors
from numalign.api.attributes import attributelist, attributes
from numalign.api.nrt import fingerprint, placementcodec, topologymanager, wire
from numalign.api.nrt import zones as nrtzones
from numalign.api.nrt.nodetopology import Fingerprint, NodeTopology, Zone
from numalign.api.nrt.repairs import Guess, GuessCode
from numalign.api.nrt.wire import Attribute, NodeResourceTopology
from numalign.api.objects.meta import ObjectMeta

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
    """The topology that the report describes, with a note of everything that was not as it should be."""
    guesses = list(report.dropped) if isinstance(report, wire.Salvaged) else []
    if report.api_version not in KNOWN_VERSIONS:
        guesses.append(Guess(GuessCode.API_VERSION_UNKNOWN, "apiVersion", errors.echo(report.api_version)))
    zones = nrtzones.read(report.zones or (), guesses)
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
        zones=nrtzones.write(topology.zones, vector_attributes),
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
