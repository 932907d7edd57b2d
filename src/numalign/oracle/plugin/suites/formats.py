"""Recorded texts: fingerprints and their traces, container placement payloads, LEB89, zone names, attribute lists."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import xxhash

from numalign.api.attributes import grammar
from numalign.api.nrt import attributelist, fingerprint, leb89, placementcodec
from numalign.api.nrt.placementcodec import ContainerRef, Payload, PayloadDefect, PlacementError
from numalign.api.nrt.wire import Attribute
from numalign.oracle.harness import suite
from numalign.oracle.harness.divergence import Case, Difference
from numalign.oracle.harness.suite import DeliberateDifference, Suite
from numalign.oracle.plugin.suites import objects
from numalign.placement.reference import tracing
from numalign.placement.reference.tracing import Trace


def read(raw: Mapping[str, Any]) -> Payload:
    return Payload(
        containers=raw["containers"],
        zones=raw["numaNodes"],
        busiest=raw["busiestNode"],
        encoding=raw["vectorEncoding"],
        vectors={int(zone): vector for zone, vector in (raw.get("vectors") or {}).items()},
    )


def written(payload: Payload) -> dict[str, Any]:
    return {
        "containers": payload.containers,
        "numaNodes": payload.zones,
        "busiestNode": payload.busiest,
        "vectorEncoding": payload.encoding,
        "vectors": {str(zone): vector for zone, vector in payload.vectors.items()},
    }


UPSTREAM = {
    PayloadDefect.MALFORMED_METADATA: "malformed metadata",
    PayloadDefect.MALFORMED_PAIR: "malformed metadata pair",
    PayloadDefect.MISSING_KEY: "missing metadata key",
    PayloadDefect.MISSING_VALUE: "missing metadata value",
    PayloadDefect.UNKNOWN_FIELD: "unknown metadata field",
    PayloadDefect.UNSUPPORTED_ENCODING: "unsupported vector encoding",
    PayloadDefect.UNKNOWN_BUSIEST: "unknown busiest node",
    PayloadDefect.INCONSISTENT_BUSIEST: "inconsistent busiest node data",
    PayloadDefect.INCONSISTENT_VECTORS: "inconsistent NUMA vector data",
    PayloadDefect.INCONSISTENT_CONTAINERS: "inconsistent container set",
    PayloadDefect.INCONSISTENT_ZONES: "inconsistent NUMA node count",
    PayloadDefect.CORRUPTED_VECTOR: "corrupted NUMA vector",
    PayloadDefect.DUPLICATED_DATA: "duplicated data in multiple NUMA vectors",
    PayloadDefect.UNKNOWN_AFFINITY: "unknown NUMA affinity not supported",
    PayloadDefect.WRONG_AFFINITY: "wrong NUMA affinity",
}
"""The messages of the upstream codec; it has none for an unreadable number."""


def _pods(case: Case) -> list[fingerprint.Pod]:
    given = case["input"]
    recorded = given["pods"] if "pods" in given else case["fixtures"][given["podsRef"]]
    return [(namespace, name) for namespace, name in recorded or ()]


def _checked(case: Case) -> object:
    try:
        fingerprint.check(case["input"]["fingerprint"], _pods(case))
    except fingerprint.FingerprintError as refusal:
        return {"error": refusal.reason.replace("-", " ")}
    return {"error": None}


def _compatible(case: Case) -> object:
    version = case["input"]["version"]
    if len(version) != len(fingerprint.VERSION):
        return {"error": "malformed", "compatible": False}
    return {"error": None, "compatible": version == fingerprint.VERSION}


def _shuffled(case: Case) -> object:
    pods, first = _pods(case), [tuple(pod) for pod in case["input"]["shuffleFirst"] or ()]
    return {"fingerprint": fingerprint.of([*first, *(pod for pod in pods if pod not in first)])}


def _trace(case: Case) -> Trace:
    given = case["input"]
    return Trace(given["nodeName"], tuple(_pods(case)), given["expected"])


def _delivered(case: Case) -> object:
    status, got = case["input"]["status"], list[Trace]()
    trace = Trace(status["nodeName"], tuple((namespace, name) for namespace, name in status["pods"] or ()))
    tracing.deliver(trace, got.append if case["input"]["sink"] else None)
    return {"delivered": len(got), "error": None}


def _xxh64(case: Case) -> object:
    data, seed = case["input"]["data"], int(case["input"]["seed"])
    return {"hash": f"{xxhash.xxh64_intdigest(data.encode(), seed=seed):016x}"}


def _refs(raw: Sequence[Mapping[str, Any]] | None) -> list[ContainerRef]:
    return [ContainerRef(each["namespace"], each["pod"], each["container"]) for each in raw or ()]


def refusal(attempt: Callable[[], object]) -> PayloadDefect | None:
    """Why the codec refuses; None if it does not."""
    try:
        attempt()
    except PlacementError as refused:
        return refused.reason
    return None


def _unpacked(case: Case) -> object:
    defect = refusal(lambda: placementcodec.parse_metadata(case["input"]["metadata"]))
    return {"error": defect is not None, "kind": None if defect is None else UPSTREAM.get(defect)}


def _error(attempt: Callable[[], object]) -> object:
    defect = refusal(attempt)
    return {"error": None if defect is None else UPSTREAM.get(defect, defect)}


def _decoded(case: Case) -> object:
    given = case["input"]
    return _error(lambda: placementcodec.decode(read(given["payload"]), _refs(given["containers"])))


def _encoded(case: Case) -> object:
    placed = objects.placement(case["input"]["affinities"]) or {}
    return written(placementcodec.encode(placed, case["input"]["numaNodes"]))


def _there_and_back(case: Case) -> object:
    text = placementcodec.encode_vector(case["input"]["offsets"] or ())
    return {"encoded": text, "offsets": placementcodec.decode_vector(text)}


def _zone_name(case: Case) -> object:
    try:
        return {"error": False, "name": grammar.zone_name(case["input"]["id"])}
    except grammar.ZoneNameError:
        return {"error": True, "name": ""}


def _zone_id(case: Case) -> object:
    try:
        return {"error": False, "id": grammar.zone_id(case["input"]["name"])}
    except grammar.ZoneNameError:
        return {"error": True, "id": -1}


def attributes(raw: Sequence[Mapping[str, str]] | None) -> list[Attribute]:
    return [Attribute(**each) for each in raw or ()]


def _got(case: Case) -> object:
    value = attributelist.get(attributes(case["input"]["attributes"]), case["input"]["name"])
    return {"found": value is not None, "value": value or ""}


def _inserted(case: Case) -> object:
    new = Attribute(**case["input"]["attribute"])
    return _list(attributelist.insert(attributes(case["input"]["attributes"]), new))


def _list(found: Sequence[Attribute]) -> object:
    return {"attributes": msgspec.to_builtins(found)}


def _no_list_is_empty(expected: Any, answered: Any) -> Sequence[Difference]:
    listed = [] if expected["attributes"] is None else expected["attributes"]
    return suite.exactly({**expected, "attributes": listed}, answered)


def _has_no_busiest(given: Mapping[str, Any]) -> bool:
    return not 0 <= given["busiestNode"] < given["numaNodes"]


BUSIEST_FIRST = DeliberateDifference(
    "placement-busiest",
    "the released codec looks at the busiest node first and names it; both refuse",
    _has_no_busiest,
    lambda case: case["expect"]["error"] in UPSTREAM.values(),
)

SUITES: tuple[Suite, ...] = (
    Suite("pfp_check", _checked),
    Suite("pfp_version", _compatible),
    Suite("pfp_order_independent", _shuffled),
    Suite("pfp_vectors", lambda case: {"fingerprint": fingerprint.of(_pods(case))}),
    Suite("pfp_status_json", lambda case: {"json": tracing.plain(_trace(case))}),
    Suite("pfp_status_repr", lambda case: {"text": tracing.text(_trace(case))}),
    Suite("pfp_completion_sink", _delivered),
    Suite("xxh64_vectors", _xxh64),
    Suite("np_container_hash", lambda case: {"hash": str(placementcodec.container_hash(*_refs([case["input"]])))}),
    Suite("np_pack_metadata", lambda case: {"metadata": read(case["input"]).metadata}),
    Suite("np_unpack_metadata_error", _unpacked),
    Suite(
        "np_payload_validate",
        lambda case: _error(lambda: placementcodec.validate(read(case["input"]))),
        deliberate=(BUSIEST_FIRST,),
    ),
    Suite("np_vector_roundtrip", _there_and_back),
    Suite("np_vector_decode", lambda case: {"offsets": placementcodec.decode_vector(case["input"]["encoded"])}),
    Suite("np_encoder_result", _encoded),
    Suite("np_decoder_result", _decoded),
    Suite("np_leb89", lambda case: {"encoded": leb89.encode(case["input"]["value"])}),
    Suite("numa_id_to_name", _zone_name),
    Suite("numa_name_to_id", _zone_id),
    Suite("attribute_get", _got),
    Suite("attribute_insert", _inserted, _no_list_is_empty),
    Suite(
        "attribute_merge",
        lambda case: _list(
            attributelist.merge(attributes(case["input"]["existing"]), attributes(case["input"]["updated"]))
        ),
        _no_list_is_empty,
    ),
    Suite(
        "attribute_delete_all",
        lambda case: _list(attributelist.delete_all(attributes(case["input"]["attributes"]), case["input"]["name"])),
        _no_list_is_empty,
    ),
)
