"""Upstream's placement of containers (numaplacement, npv0v001): the NUMA node of each container, in a few bytes.

A report carries one metadata text and, per zone, one vector of offsets into the sorted hashes of all placed containers;
the busiest zone needs no vector. Writer and reader must know the same containers. `encode` makes a payload, `decode`
resolves one against the reader's containers, `validate` checks it. The rules are those of upstream v0.1.0 (exporter
spec 8, scheduler plugin spec 15); hostile vectors are refused."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import accumulate
from typing import Final, NamedTuple

import xxhash
from msgspec import Struct, field

from numalign.api import errors
from numalign.api.nrt import leb89

PREFIX: Final = "npv0v001"
SEPARATOR: Final = "::"
ENCODING: Final = "leb89"
UNKNOWN: Final = -1
NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")


class PayloadDefect(StrEnum):
    """What is wrong with a payload, in upstream's terms."""

    MALFORMED_METADATA = "malformed-metadata"
    MALFORMED_PAIR = "malformed-pair"
    MISSING_KEY = "missing-key"
    MISSING_VALUE = "missing-value"
    NUMBER_PARSE_ERROR = "number-parse-error"
    UNKNOWN_FIELD = "unknown-field"
    UNSUPPORTED_ENCODING = "unsupported-vector-encoding"
    UNKNOWN_BUSIEST = "unknown-busiest-node"
    INCONSISTENT_BUSIEST = "inconsistent-busiest-node"
    INCONSISTENT_VECTORS = "inconsistent-vectors"
    INCONSISTENT_CONTAINERS = "inconsistent-container-set"
    INCONSISTENT_ZONES = "inconsistent-numa-nodes"
    CORRUPTED_VECTOR = "corrupted-vector"
    DUPLICATED_DATA = "duplicated-vector-data"
    UNKNOWN_AFFINITY = "unknown-affinity-unsupported"
    WRONG_AFFINITY = "wrong-affinity"


class PlacementError(ValueError):
    """The payload cannot be written or read; `reason` is a code."""

    def __init__(self, reason: PayloadDefect, why: str) -> None:
        super().__init__(f"{reason}: {why}")
        self.reason = reason


class ContainerRef(NamedTuple):
    """A container by the names that identify it in the codec."""

    namespace: str
    pod: str
    container: str


class Payload(Struct, frozen=True, kw_only=True):
    """What a report carries. `vectors` is by zone and holds neither the busiest zone nor empty ones."""

    containers: int = UNKNOWN
    zones: int = UNKNOWN
    busiest: int = UNKNOWN
    encoding: str = ""
    vectors: Mapping[int, str] = field(default_factory=dict)

    @property
    def metadata(self) -> str:
        fields = (PREFIX, f"ve={self.encoding}", f"cc={self.containers}", f"nn={self.zones}", f"bn={self.busiest}")
        return SEPARATOR.join(fields)


def container_hash(ref: ContainerRef) -> int:
    return xxhash.xxh64_intdigest("\0".join(ref).encode("utf-8", "surrogatepass"), seed=0)


def encode(placements: Mapping[ContainerRef, int], zones: int) -> Payload:
    """The payload for containers by the zone each sits on, on a machine with zones 0 to zones - 1."""
    if zones <= 0:
        raise PlacementError(PayloadDefect.INCONSISTENT_ZONES, f"a machine has at least one zone, not {zones}")
    for ref, zone in placements.items():
        _check_affinity(ref, zone, zones)
    by_hash = {container_hash(ref): zone for ref, zone in placements.items()}
    offsets: dict[int, list[int]] = {zone: [] for zone in sorted(set(by_hash.values()))}
    for offset, (_, zone) in enumerate(sorted(by_hash.items())):
        offsets[zone].append(offset)
    busiest = max(offsets, key=lambda zone: len(offsets[zone]), default=0)
    vectors = {zone: encode_vector(found) for zone, found in offsets.items() if zone != busiest}
    return Payload(containers=len(by_hash), zones=zones, busiest=busiest, encoding=ENCODING, vectors=vectors)


def decode(payload: Payload, containers: Iterable[ContainerRef]) -> dict[ContainerRef, int]:
    """The zone of each of the reader's containers, which must be the set that was encoded."""
    zone_of_offset = zones_by_offset(payload)
    by_hash: dict[int, list[ContainerRef]] = {}
    for ref in dict.fromkeys(containers):
        by_hash.setdefault(container_hash(ref), []).append(ref)
    if len(by_hash) != payload.containers:
        why = f"the payload places {payload.containers} containers, the reader knows {len(by_hash)}"
        raise PlacementError(PayloadDefect.INCONSISTENT_CONTAINERS, why)
    placed = ((zone_of_offset.get(offset, payload.busiest), by_hash[key]) for offset, key in enumerate(sorted(by_hash)))
    return {ref: zone for zone, refs in placed for ref in refs}


def parse_metadata(text: str, vectors: Mapping[int, str] | None = None) -> Payload:
    """The payload of the metadata, with these vectors; absent keys stay unknown."""
    head = PREFIX + SEPARATOR
    if not text.startswith(head):
        raise PlacementError(PayloadDefect.MALFORMED_METADATA, f"{errors.echo(text)} does not start with {head}")
    numbers = {"cc": UNKNOWN, "nn": UNKNOWN, "bn": UNKNOWN}
    encoding = ""
    for key, value in map(_pair, text.removeprefix(head).split(SEPARATOR)):
        if key == "ve":
            encoding = value
        elif key in numbers:
            numbers[key] = _number(value)
        else:
            raise PlacementError(PayloadDefect.UNKNOWN_FIELD, f"{errors.echo(key)} is not ve, cc, nn or bn")
    cc, nn, bn = numbers.values()
    return Payload(containers=cc, zones=nn, busiest=bn, encoding=encoding, vectors=vectors or {})


def validate(payload: Payload) -> None:
    """Raises unless the payload can be decoded; the first failing check, in upstream's order, names the reason."""
    vectors, zones, busiest = payload.vectors, payload.zones, payload.busiest
    _checked(
        (payload.encoding == ENCODING, PayloadDefect.UNSUPPORTED_ENCODING, f"ve={errors.echo(payload.encoding)}"),
        (busiest != UNKNOWN, PayloadDefect.UNKNOWN_BUSIEST, "bn is missing or -1"),
        (0 <= busiest < zones, PayloadDefect.INCONSISTENT_BUSIEST, f"bn={busiest} with nn={zones}"),
        (len(vectors) < zones, PayloadDefect.INCONSISTENT_VECTORS, f"{len(vectors)} vectors for nn={zones}"),
        (busiest not in vectors, PayloadDefect.CORRUPTED_VECTOR, f"the busiest zone {busiest} has a vector"),
    )
    validate_numbers(payload)


def validate_numbers(payload: Payload) -> None:
    """The part that holds for every encoding: whether the payload's numbers agree with each other."""
    vectors, zones, busiest = payload.vectors, payload.zones, payload.busiest
    _checked(
        (payload.containers >= 0, PayloadDefect.INCONSISTENT_CONTAINERS, f"cc={payload.containers}"),
        (zones > 0, PayloadDefect.INCONSISTENT_ZONES, f"nn={zones}"),
        (0 <= busiest < zones, PayloadDefect.INCONSISTENT_BUSIEST, f"bn={busiest} with nn={zones}"),
        (payload.containers > 0 or not vectors, PayloadDefect.INCONSISTENT_VECTORS, "vectors, but cc=0"),
        (len(vectors) <= zones, PayloadDefect.INCONSISTENT_VECTORS, f"{len(vectors)} vectors for nn={zones}"),
        (all(0 <= zone < zones for zone in vectors), PayloadDefect.CORRUPTED_VECTOR, f"a vector outside of nn={zones}"),
    )


def _checked(*checks: tuple[bool, PayloadDefect, str]) -> None:
    for holds, reason, why in checks:
        if not holds:
            raise PlacementError(reason, why)


def zones_by_offset(payload: Payload) -> dict[int, int]:
    """The zone of every offset that a vector names, all others being in the busiest one."""
    validate(payload)
    found: dict[int, int] = {}
    for zone, vector in payload.vectors.items():
        for offset in decode_vector(vector):
            if offset >= payload.containers:
                raise PlacementError(PayloadDefect.CORRUPTED_VECTOR, f"offset {offset} with cc={payload.containers}")
            if offset in found:
                raise PlacementError(PayloadDefect.DUPLICATED_DATA, f"offset {offset} is in two places")
            found[offset] = zone
    return found


def encode_vector(offsets: Iterable[int]) -> str:
    """Ascending offsets as their differences, the first as itself."""
    text, last = "", 0
    for offset in offsets:
        text += leb89.encode(offset - last)
        last = offset
    return text


def decode_vector(text: str) -> list[int]:
    try:
        return list(accumulate(leb89.decode_all(text)))
    except leb89.Leb89Error as error:
        raise PlacementError(PayloadDefect.CORRUPTED_VECTOR, str(error)) from error


def _check_affinity(ref: ContainerRef, zone: int, zones: int) -> None:
    if zone == UNKNOWN:
        raise PlacementError(PayloadDefect.UNKNOWN_AFFINITY, f"the zone of {'/'.join(ref)} is not known")
    if not 0 <= zone < zones:
        raise PlacementError(PayloadDefect.WRONG_AFFINITY, f"zone {zone} of {'/'.join(ref)} is not below {zones}")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise PlacementError(PayloadDefect.MALFORMED_PAIR, f"{errors.echo(text)} has no =")
    if not key:
        raise PlacementError(PayloadDefect.MISSING_KEY, f"nothing before the = of {errors.echo(text)}")
    if not value:
        raise PlacementError(PayloadDefect.MISSING_VALUE, f"nothing after the = of {errors.echo(text)}")
    return key, value


def _number(text: str) -> int:
    if NUMBER.fullmatch(text) is None:
        raise PlacementError(PayloadDefect.NUMBER_PARSE_ERROR, f"{errors.echo(text)} is not a whole number")
    return int(text)
