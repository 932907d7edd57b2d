"""Bodies that real programs sent, bodies made here by a tiny encoder, and bodies that nobody should send."""

import base64
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.apiserver.http import protobuf
from tests.unit.simulator.apiserver.http import recorded

SENT = recorded.load("kubectl_bodies")
SERVED = recorded.load("served_protobuf")


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    head = bytes([number & 0x7F | (0x80 if number > 0x7F else 0)])
    return head + varint(number >> 7) if number > 0x7F else head


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(version: str, kind: str, *fields: bytes) -> bytes:
    identity = field(1, version) + field(2, kind)
    return protobuf.MAGIC + field(1, identity) + field(2, b"".join(fields)) + field(3, "") + field(4, "")


@pytest.mark.parametrize("encoded, tree", SENT.values(), ids=SENT)
def test_what_kubectl_sends_is_what_it_would_have_sent_as_json(encoded: str, tree: Any) -> None:
    assert recorded.without_nulls(protobuf.decoded(base64.b64decode(encoded))) == recorded.without_nulls(tree)


@pytest.mark.parametrize("encoded, tree", SERVED.values(), ids=SERVED)
def test_an_object_reads_as_the_real_server_writes_it_in_json(encoded: str, tree: Any) -> None:
    assert recorded.without_nulls(protobuf.decoded(base64.b64decode(encoded))) == recorded.without_nulls(tree)


def time(seconds: int, nanos: int = 0) -> bytes:
    return field(1, seconds) + field(2, nanos)


SMALL = {
    "options of a deletion": (
        body(
            "policy/v1", "DeleteOptions", field(1, 0), field(2, field(1, "u")), field(4, "Background"), field(5, "All")
        ),
        {"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}, "propagationPolicy": "Background", "dryRun": ["All"]},
    ),
    "an eviction": (
        body("policy/v1", "Eviction", field(1, field(1, "pod")), field(2, field(1, 30))),
        {"metadata": {"name": "pod"}, "deleteOptions": {"gracePeriodSeconds": 30}},
    ),
    "a binding": (
        body("v1", "Binding", field(1, field(1, "pod")), field(2, field(1, "Node") + field(3, "n1"))),
        {"metadata": {"name": "pod"}, "target": {"kind": "Node", "name": "n1"}},
    ),
    "times with and without a fraction": (
        body(
            "coordination.k8s.io/v1", "Lease", field(2, field(3, time(1794805200)) + field(4, time(1794805200, 5000)))
        ),
        {"spec": {"acquireTime": "2026-11-16T05:00:00.000000Z", "renewTime": "2026-11-16T05:00:00.000005Z"}},
    ),
    "no time at all": (body("v1", "ConfigMap", field(1, field(1, "a") + field(8, b""))), {"metadata": {"name": "a"}}),
    "a negative number": (body("scheduling.k8s.io/v1", "PriorityClass", field(2, -5)), {"value": -5}),
    "a map entry without a value": (body("v1", "ConfigMap", field(2, field(1, "a"))), {"data": {"a": ""}}),
    "fields nobody knows": (body("v1", "ConfigMap", field(99, 1), field(98, b"x"), field(4, 1)), {"immutable": True}),
}


@pytest.mark.parametrize("data, tree", SMALL.values(), ids=SMALL)
def test_a_body_made_by_hand(data: bytes, tree: Any) -> None:
    decoded = protobuf.decoded(data)
    assert {key: value for key, value in decoded.items() if key not in ("apiVersion", "kind")} == tree


CONFIGMAP = body("v1", "ConfigMap", field(1, field(1, "a")), field(2, field(1, "k") + field(2, "v")))
BAD = {
    "nothing": (b"", "does not appear to be a protobuf message"),
    "JSON": (b'{"kind":"Pod"}', "does not appear to be a protobuf message"),
    "cut off": (CONFIGMAP[:-9], "unexpected EOF"),
    "a kind that is not read": (body("v1", "Nothing"), 'no kind "Nothing" is registered for version "v1"'),
    "a number for a message": (body("v1", "ConfigMap", field(1, 5)), "wrong wireType = 0 for field metadata"),
    "text for a number": (body("scheduling.k8s.io/v1", "PriorityClass", field(2, "x")), "wrong wireType = 2"),
    "a wire type of old": (body("v1", "ConfigMap", bytes([3 << 3 | 3])), "illegal wireType 3"),
    "field zero": (body("v1", "ConfigMap", bytes([0])), "illegal tag 0"),
    "a number without end": (body("v1", "ConfigMap", b"\xff" * 11), "integer overflow"),
    "no UTF-8": (body("v1", "ConfigMap", field(1, field(1, b"\xff"))), "not UTF-8"),
    "no JSON": (body("apps/v1", "ControllerRevision", field(2, field(1, b"{"))), "must hold JSON"),
    "no time": (body("v1", "ConfigMap", field(1, field(8, time(10**15)))), "no time that can be written"),
    "an envelope of numbers": (protobuf.MAGIC + field(1, 3), "wrong wireType"),
}


@pytest.mark.parametrize("data, why", BAD.values(), ids=BAD)
def test_a_body_that_cannot_be_read_is_refused_with_a_reason(data: bytes, why: str) -> None:
    with pytest.raises(protobuf.BadProtobuf, match=why):
        protobuf.decoded(data)


def test_a_schema_that_contains_itself_cannot_exhaust_the_stack() -> None:
    inner = b""
    for _ in range(5000):
        inner = field(2, inner)
    with pytest.raises(protobuf.BadProtobuf):
        protobuf.decoded(body("v1", "Pod", inner))


@given(st.binary(max_size=80), st.integers(0, 60))
def test_random_damage_is_read_or_refused_but_never_anything_else(noise: bytes, at: int) -> None:
    damaged = CONFIGMAP[:at] + noise + CONFIGMAP[at + len(noise) :]
    with contextlib.suppress(protobuf.BadProtobuf):
        assert isinstance(protobuf.decoded(damaged), dict)
