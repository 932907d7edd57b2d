"""Recorded texts of the topology publishers: fingerprints, codecs, names and attribute lists.

The same modules answer as in `formats`; the tables have other columns."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import xxhash

from numalign.api.attributes import grammar
from numalign.api.decode import quantity
from numalign.api.nrt import attributelist, fingerprint, leb89, placementcodec, topologymanager
from numalign.api.nrt.placementcodec import ContainerRef, PayloadDefect, PlacementError
from numalign.api.nrt.wire import Attribute
from numalign.kubelet.machine.machine import HugePages
from numalign.oracle.harness import suite
from numalign.oracle.harness.divergence import Case, Difference, Raw
from numalign.oracle.harness.suite import DeliberateDifference, Suite
from numalign.oracle.plugin.suites import formats
from numalign.placement.reference import tracing
from numalign.placement.reference.tracing import Trace


def as_far_as_recorded(expected: Any, answered: Any) -> Sequence[Difference]:
    """Compares recorded columns only: tables omit columns in some rows."""
    return suite.exactly(expected, {name: answered[name] for name in expected if name in answered})


def _pods(row: Raw) -> list[fingerprint.Pod]:
    return [(pod["namespace"], pod["name"]) for pod in row.get("pods") or ()]


def _compatible(row: Raw) -> object:
    version = row["version"]
    malformed = len(version.encode()) != len(fingerprint.VERSION)
    return {"error": "malformed" if malformed else None, "compatible": version == fingerprint.VERSION}


def _checked(row: Raw) -> object:
    try:
        fingerprint.check(row["fingerprint"], _pods(row))
    except fingerprint.FingerprintError as refusal:
        return {"error": refusal.reason}
    return {"error": None}


def _hashes(row: Raw) -> object:
    namespace = xxhash.xxh64_intdigest(row["namespace"].encode())
    return {"ns_hash": f"{namespace:016x}", "pod_hash": f"{fingerprint.pod_hash(row['namespace'], row['name']):016x}"}


def _traced(row: Raw) -> object:
    trace = Trace(row["node"], tuple(_pods(row)), row["check_against"])
    return {"json": tracing.plain(trace), "repr": tracing.text(trace)}


def _list(attributes: Sequence[Attribute]) -> object:
    return {"result": msgspec.to_builtins(attributes)}


def _got(row: Raw) -> object:
    value = attributelist.get(formats.attributes(row.get("attrs")), row["name"])
    return {"found": value is not None, "value": value}


def _inserted(row: Raw) -> object:
    new = row["insert"] if "insert" in row else row["update"]
    return _list(attributelist.insert(formats.attributes(row.get("attrs")), Attribute(**new)))


def _zone_name(row: Raw) -> object:
    try:
        return {"name": grammar.zone_name(row["id"]), "error": False}
    except grammar.ZoneNameError:
        return {"name": None, "error": True}


def _zone_id(row: Raw) -> object:
    try:
        return {"id": grammar.zone_id(row["name"]), "error": False}
    except grammar.ZoneNameError:
        return {"id": None, "error": True}


def _is_quantity(row: Raw) -> object:
    try:
        quantity.parse(row["value"])
    except ValueError:
        return {"valid": False}
    return {"valid": True}


def _streamed(row: Raw) -> object:
    text, place = leb89.encode_all(row["values"]), row.get("second_offset")
    decoded = leb89.decode_all(text)
    second = leb89.decode_all(text[place:]) if place is not None else decoded[1:]
    return {"encoded": text if (decoded, second) == (row["values"], row["values"][1:]) else None}


def _malformed(row: Raw) -> object:
    try:
        return {"value": leb89.decode(row["input"])}
    except leb89.Leb89Error:
        return {}


def refused(expected: Any, answered: Any) -> Sequence[Difference]:
    """The input must be refused."""
    return suite.exactly({}, answered)


def _ref(raw: Sequence[str]) -> ContainerRef:
    return ContainerRef(*raw)


def _unpacked(row: Raw) -> object:
    try:
        found = formats.written(placementcodec.parse_metadata(row["metadata"]))
    except PlacementError as refusal:
        return {"error": str(refusal.reason)}
    del found["vectors"]
    return {"error": None, "result": found}


def _round_trip(row: Raw) -> object:
    text = formats.read(row).metadata
    return {"metadata": text if placementcodec.parse_metadata(text) == formats.read(row) else None}


def _validated(row: Raw) -> dict[str, Any]:
    return {"error": formats.refusal(lambda: placementcodec.validate(formats.read(row["payload"])))}


def _consistent(row: Raw) -> dict[str, Any]:
    return {"error": formats.refusal(lambda: placementcodec.validate_numbers(formats.read(row["payload"])))}


def _counted(row: Raw) -> object:
    return {"count": placementcodec.encode({_ref(each): 0 for each in row.get("containers") or ()}, 1).containers}


def _looked_up(row: Raw) -> object:
    known = {_ref(each["id"]): each["numa"] for each in row.get("known") or ()}
    payload = placementcodec.encode(known, 1 + max(known.values(), default=0))
    found = placementcodec.decode(payload, known).get(_ref(row["query"]))
    return {"numa": found, "error": "unknown-container" if found is None else None}


def _vector(row: Raw) -> object:
    offsets = list(range(*row["offsets_range"])) if "offsets_range" in row else row.get("offsets") or []
    text = placementcodec.encode_vector(offsets)
    same = placementcodec.decode_vector(text) == offsets and text.startswith(row.get("encoded_prefix", ""))
    return {"encoded": text if same else None, "encoded_length": len(text) if same else None}


def _encoded(row: Raw) -> object:
    generated = [(f"ns{i % 7}", f"pod-{i}", f"c{i % 3}") for i in range(200)] if "generator" in row else []
    placed = {_ref(each): place * 5 % 4 for place, each in enumerate(generated)}
    placed |= {_ref(each["id"]): each["numa"] for each in row.get("affinities") or ()}
    try:
        payload = placementcodec.encode(placed, row["numaNodes"])
    except PlacementError as refusal:
        return {"error": str(refusal.reason), "count": None}
    found = {"payload": formats.written(payload), "metadata": payload.metadata}
    return {**found, "error": None, "count": payload.containers}


def _decoded(row: Raw) -> object:
    try:
        known = [_ref(each) for each in row.get("containers") or ()]
        found = placementcodec.decode(formats.read(row["payload"]), known)
    except PlacementError as refusal:
        return {"error": str(refusal.reason), "result": None}
    return {"error": None, "result": sorted(({"id": list(ref), "numa": zone} for ref, zone in found.items()), key=str)}


def _in_any_order(expected: Any, answered: Any) -> Sequence[Difference]:
    listed = None if expected["result"] is None else sorted(expected["result"], key=str)
    return suite.exactly({**expected, "result": listed}, answered)


def _pages(row: Raw) -> object:
    return {"name": HugePages(row["size_kb"], 0).resource}


def _token(row: Raw) -> object:
    guesses: list[Any] = []
    named = (Attribute("topologyManagerPolicy", row["policy"]), Attribute("topologyManagerScope", row["scope"]))
    manager = topologymanager.read((), named, guesses)
    return {"name": "None" if guesses else topologymanager.legacy_token(manager)}


def _made(name: str, answer: Any, compare: Any = as_far_as_recorded, *deliberate: DeliberateDifference) -> Suite:
    def answered(case: Case) -> object:
        return answer(case["input"])

    return Suite(name, answered, compare, deliberate)


def _released_order(check: Callable[[Raw], dict[str, Any]]) -> DeliberateDifference:
    def shows(case: Case) -> bool:
        row, ours = case["input"], check(case["input"])["error"]
        # A separate column has the release's answer, where the table has one.
        as_released = row.get("error_v0_1_0", ours) == ours
        return ours is not None and case["expect"]["error"] in set(PayloadDefect) and as_released

    return DeliberateDifference(
        "placement-checks",
        "checks of a broken payload come in the order of the released codec; both refuse",
        lambda row: not 0 <= row["payload"]["busiestNode"] < row["payload"]["numaNodes"],
        shows,
    )


def _zone_of(row: Raw) -> int:
    """The given id, or the number at the end of the name; -1 without one."""
    named = grammar.ZONE_NAME.fullmatch(row.get("name", ""))
    return int(named["digits"]) if named else row.get("id", -1)


TOO_HIGH = DeliberateDifference(
    "no-zone-above-65535",
    "an id that no kernel gives is none",
    lambda row: _zone_of(row) > grammar.MAX_ZONE,
    lambda case: _zone_of(case["expect"]) == _zone_of(case["input"]) and not case["expect"]["error"],
)

SUITES: tuple[Suite, ...] = (
    _made("fingerprint.version_compat", _compatible),
    _made("fingerprint.check", _checked),
    _made("fingerprint.sign_upstream", lambda row: {"fingerprint": fingerprint.of(_pods(row))}),
    _made("fingerprint.sign_derived", lambda row: {"fingerprint": fingerprint.of(_pods(row))}),
    _made("fingerprint.pod_hash_derived", _hashes),
    _made(
        "fingerprint.xxh64_seeded_derived",
        lambda row: {"hash": f"{xxhash.xxh64_intdigest(row['ascii'].encode(), seed=row['seed']):016x}"},
    ),
    _made("fingerprint.status_upstream", _traced),
    _made("nrt.attribute_get", _got),
    _made("nrt.attribute_insert", _inserted),
    _made("updater.attribute_update", _inserted),
    _made(
        "nrt.attribute_merge",
        lambda row: _list(
            attributelist.merge(formats.attributes(row.get("existing")), formats.attributes(row.get("updated")))
        ),
    ),
    _made(
        "nrt.attribute_delete_all",
        lambda row: _list(attributelist.delete_all(formats.attributes(row.get("attrs")), row["name"])),
    ),
    _made("nrt.numa_id_to_name", _zone_name, as_far_as_recorded, TOO_HIGH),
    _made("nrt.numa_name_to_id", _zone_id, as_far_as_recorded, TOO_HIGH),
    _made("nrt.quantity_pattern_derived", _is_quantity),
    _made(
        "leb89.encode", lambda row: {"encoded": leb89.encode(row["value"]), "chars": len(leb89.encode(row["value"]))}
    ),
    _made("leb89.length_boundaries", lambda row: {"chars": len(leb89.encode(row["value"]))}),
    _made("leb89.stream", _streamed),
    _made("leb89.malformed_derived", _malformed, refused),
    _made("numaplacement.container_string", lambda row: {"string": "/".join(_ref(row["id"]))}),
    _made("numaplacement.container_hash", lambda row: {"hash": str(placementcodec.container_hash(_ref(row["id"])))}),
    _made(
        "numaplacement.container_hash_derived",
        lambda row: {"hash": str(placementcodec.container_hash(_ref(row["id"])))},
    ),
    _made("numaplacement.pack_metadata", lambda row: {"metadata": formats.read(row["payload"]).metadata}),
    _made("numaplacement.metadata_roundtrip", _round_trip),
    _made("numaplacement.unpack_errors", _unpacked),
    _made("numaplacement.unpack_partial", _unpacked),
    _made("numaplacement.validate_for_decoder", _validated, as_far_as_recorded, _released_order(_validated)),
    _made("numaplacement.validate_shared", _consistent, as_far_as_recorded, _released_order(_consistent)),
    _made("numaplacement.decoder_count", _counted),
    _made("numaplacement.affinity_lookup", _looked_up),
    _made("numaplacement.vector_roundtrip", _vector),
    _made("numaplacement.vector_decode", lambda row: {"offsets": placementcodec.decode_vector(row["encoded"])}),
    _made("numaplacement.encode", _encoded),
    _made("numaplacement.encoder_result", _encoded),
    _made("numaplacement.encoder_result_derived", _encoded),
    _made("numaplacement.new_encoder", _encoded),
    _made("numaplacement.decoder_result", _decoded, _in_any_order),
    _made("sysinfo.hugepage_resource_name", _pages),
    _made("sysinfo.hugepage_resource_name_derived", _pages),
    _made("updater.policy_name", _token),
)
