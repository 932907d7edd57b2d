"""Upstream's placement codec: its payloads exactly, both ways, and a reason for every payload that is refused."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.nrt import placementcodec
from numalign.api.nrt.placementcodec import ContainerRef, Payload, PayloadDefect, PlacementError

HASHES = {
    ("", "", ""): 11145182160106660097,
    ("ns", "pod", "cnt"): 9468815510407277218,
    ("ns1", "pod1", "cnt1"): 8726684662359293104,
    ("ns2", "pod4", "cnt1"): 621628174418402249,
}
VECTORS = {
    "": [],
    "#": [1],
    "#$'H": [1, 3, 7, 42],
    "!''$": [0, 4, 8, 10],
    "fI++": [100, 108, 116],
    "gk3+": [2000, 2008],
}


def at(*zones: tuple[str, int]) -> dict[ContainerRef, int]:
    """Containers named "ns1/pod2" with their zones."""
    parts = ((name.split("/"), zone) for name, zone in zones)
    return {ContainerRef(namespace, pod, "cnt1"): zone for (namespace, pod), zone in parts}


ENCODED: dict[str, tuple[dict[ContainerRef, int], int, str, dict[int, str]]] = {
    "no containers": ({}, 2, "cc=0::nn=2::bn=0", {}),
    "one zone": (at(("ns1/pod1", 0), ("ns1/pod2", 0), ("ns1/pod3", 0)), 1, "cc=3::nn=1::bn=0", {}),
    "uneven": (
        at(("ns1/pod1", 0), ("ns1/pod2", 0), ("ns1/pod3", 0), ("ns2/pod1", 1)), 2, "cc=4::nn=2::bn=0", {1: "#"}
    ),
    "a tie goes to the lower zone": (
        at(("ns1/pod1", 0), ("ns1/pod2", 0), ("ns2/pod1", 1), ("ns2/pod2", 1)), 2, "cc=4::nn=2::bn=0", {1: "!%"}
    ),
    "busiest is not zone 0": (
        at(("ns1/pod1", 0), ("ns2/pod1", 1), ("ns2/pod2", 1), ("ns2/pod3", 1)), 2, "cc=4::nn=2::bn=1", {0: "$"}
    ),
    "empty zones have no vector": (
        at(("ns1/pod1", 0), ("ns1/pod2", 0), ("ns1/pod3", 0), ("ns2/pod4", 1), ("ns3/pod5", 2)),
        4, "cc=5::nn=4::bn=0", {1: "!", 2: "'"},
    ),
}  # fmt: skip
MALFORMED = {
    "": PayloadDefect.MALFORMED_METADATA,
    "XXXXv001::cc=1::nn=2::bn=0": PayloadDefect.MALFORMED_METADATA,
    "npv0v999::cc=1::nn=2::bn=0": PayloadDefect.MALFORMED_METADATA,
    "npv0v001cc=1::nn=2::bn=0": PayloadDefect.MALFORMED_METADATA,
    "npv0v001::cc=1::nn=2::xx=0": PayloadDefect.UNKNOWN_FIELD,
    "npv0v001::cc=abc::nn=2::bn=0": PayloadDefect.NUMBER_PARSE_ERROR,
    "npv0v001::cc1::nn=2::bn=0": PayloadDefect.MALFORMED_PAIR,
    "npv0v001::cc=::nn=2::bn=0": PayloadDefect.MISSING_VALUE,
    "npv0v001::nn=2::bn=0::=5": PayloadDefect.MISSING_KEY,
}


def payload(cc: int, nn: int, bn: int, vectors: Mapping[int, str] | None = None, ve: str = "leb89") -> Payload:
    return Payload(containers=cc, zones=nn, busiest=bn, encoding=ve, vectors=vectors or {})


REFUSED = {
    "other encoding": (payload(0, 0, 0, ve="other"), PayloadDefect.UNSUPPORTED_ENCODING),
    "no encoding": (payload(0, 2, 0, ve=""), PayloadDefect.UNSUPPORTED_ENCODING),
    "no zones": (payload(1, 0, 0), PayloadDefect.INCONSISTENT_BUSIEST),
    "busiest unknown": (payload(1, 1, -1), PayloadDefect.UNKNOWN_BUSIEST),
    "busiest too high": (payload(1, 8, 8), PayloadDefect.INCONSISTENT_BUSIEST),
    "negative containers": (payload(-1, 1, 0), PayloadDefect.INCONSISTENT_CONTAINERS),
    "vector for nobody": (payload(0, 2, 0, {1: "!"}), PayloadDefect.INCONSISTENT_VECTORS),
    "as many vectors as zones": (payload(8, 1, 0, {0: "!#", 1: "$%"}), PayloadDefect.INCONSISTENT_VECTORS),
    "vector of a zone too high": (payload(8, 2, 0, {2: "!#"}), PayloadDefect.CORRUPTED_VECTOR),
    "vector of zone -1": (payload(8, 2, 0, {-1: "!#"}), PayloadDefect.CORRUPTED_VECTOR),
    "vector of the busiest": (payload(8, 2, 1, {1: "$%"}), PayloadDefect.CORRUPTED_VECTOR),
}
FIVE = at(("ns1/pod1", 0), ("ns1/pod2", 0), ("ns1/pod3", 0), ("ns2/pod1", 0), ("ns2/pod2", 0))
UNDECODABLE = {
    "too many containers": (payload(0, 1, 0), PayloadDefect.INCONSISTENT_CONTAINERS),
    "too few containers": (payload(6, 2, 0, {1: "!"}), PayloadDefect.INCONSISTENT_CONTAINERS),
    "offset out of range": (payload(5, 2, 0, {1: "("}), PayloadDefect.CORRUPTED_VECTOR),
    "offset twice in a vector": (payload(5, 2, 0, {1: "#!"}), PayloadDefect.DUPLICATED_DATA),
    "offset in two vectors": (payload(5, 4, 0, {1: "#", 2: "#"}), PayloadDefect.DUPLICATED_DATA),
    "vector ends inside a number": (payload(5, 2, 0, {1: "f"}), PayloadDefect.CORRUPTED_VECTOR),
    "foreign byte in a vector": (payload(5, 2, 0, {1: "é"}), PayloadDefect.CORRUPTED_VECTOR),
}


@pytest.mark.parametrize("names, value", HASHES.items(), ids=["/".join(names) for names in HASHES])
def test_a_container_has_the_hash_of_upstream(names: tuple[str, str, str], value: int) -> None:
    assert placementcodec.container_hash(ContainerRef(*names)) == value


@pytest.mark.parametrize("placed, zones, metadata, vectors", ENCODED.values(), ids=ENCODED)
def test_placements_have_the_payloads_of_upstream(
    placed: dict[ContainerRef, int], zones: int, metadata: str, vectors: dict[int, str]
) -> None:
    encoded = placementcodec.encode(placed, zones)
    assert encoded.metadata == f"npv0v001::ve=leb89::{metadata}"
    assert encoded.vectors == vectors
    assert placementcodec.decode(encoded, placed) == placed


def test_two_hundred_containers_have_the_vectors_of_upstream() -> None:
    placed = {ContainerRef(f"ns{i % 7}", f"pod-{i}", f"c{i % 3}"): i * 5 % 4 for i in range(200)}
    encoded = placementcodec.encode(placed, 4)
    assert encoded.vectors[1] == "'%(*#%#%#%$%7)+$(%#,'+#'%#%('#(1$#)$(%-##*$$%%#'#$"
    assert placementcodec.decode(encoded, placed) == placed


REFS = st.builds(ContainerRef, st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))


@given(st.dictionaries(REFS, st.integers(0, 7)), st.integers(8, 70))
def test_decoding_gives_back_what_was_encoded(placed: dict[ContainerRef, int], zones: int) -> None:
    encoded = placementcodec.encode(placed, zones)
    parsed = placementcodec.parse_metadata(encoded.metadata, encoded.vectors)
    assert placementcodec.decode(parsed, placed) == placed


@pytest.mark.parametrize("text, offsets", VECTORS.items())
def test_vectors_hold_differences(text: str, offsets: list[int]) -> None:
    assert placementcodec.encode_vector(offsets) == text
    assert placementcodec.decode_vector(text) == offsets


@pytest.mark.parametrize("text, reason", MALFORMED.items())
def test_malformed_metadata_is_refused_with_the_reason(text: str, reason: PayloadDefect) -> None:
    with pytest.raises(PlacementError) as refusal:
        placementcodec.parse_metadata(text)
    assert refusal.value.reason is reason


def test_missing_keys_stay_unknown_and_later_ones_win() -> None:
    assert placementcodec.parse_metadata("npv0v001::nn=8::bn=3::bn=4") == Payload(zones=8, busiest=4)


@pytest.mark.parametrize("broken, reason", REFUSED.values(), ids=REFUSED)
def test_a_payload_that_makes_no_sense_is_refused_with_the_reason(broken: Payload, reason: PayloadDefect) -> None:
    with pytest.raises(PlacementError) as refusal:
        placementcodec.validate(broken)
    assert refusal.value.reason is reason


@pytest.mark.parametrize("broken, reason", UNDECODABLE.values(), ids=UNDECODABLE)
def test_a_payload_of_other_containers_is_refused_with_the_reason(broken: Payload, reason: PayloadDefect) -> None:
    with pytest.raises(PlacementError) as refusal:
        placementcodec.decode(broken, FIVE)
    assert refusal.value.reason is reason


@pytest.mark.parametrize(
    "zone, zones, reason",
    [
        (-1, 1, PayloadDefect.UNKNOWN_AFFINITY),
        (-3, 1, PayloadDefect.WRONG_AFFINITY),
        (4, 4, PayloadDefect.WRONG_AFFINITY),
    ],
)
def test_a_container_without_a_zone_cannot_be_encoded(zone: int, zones: int, reason: PayloadDefect) -> None:
    with pytest.raises(PlacementError) as refusal:
        placementcodec.encode(at(("ns1/pod1", zone)), zones)
    assert refusal.value.reason is reason


def test_a_machine_has_at_least_one_zone() -> None:
    with pytest.raises(PlacementError, match="at least one zone"):
        placementcodec.encode({}, 0)
