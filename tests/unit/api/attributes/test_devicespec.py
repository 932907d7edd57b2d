"""What a pod asks of devices in parts and together, and what is said about requests that make no sense."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.attributes import devicespec, directspec
from numalign.api.attributes.devicespec import DEVICE_SPEC, DeviceHint, DeviceRequest, DeviceSpec, Selector
from numalign.api.attributes.directspec import DirectSpec
from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from tests.unit.kubelet import made
from tests.unit.placement.direct import devices
from tests.unit.placement.direct.devices import CORE, FPGA, GIB, GPU, MEMORY, RATIO, RDMA, SHARED

AT = f"metadata.annotations[{DEVICE_SPEC}]"
LIMITS = "spec.containers[0].resources.limits"


def read(amounts: Any, annotations: Any = (), **more: Any) -> DirectSpec:
    return directspec.read(annotated(devices.pod(amounts, spec=""), dict(annotations)), **more)


def annotated(pod: Pod, annotations: dict[str, str]) -> Pod:
    return structs.replace(pod, metadata=structs.replace(pod.metadata, annotations=annotations))


def asked(amounts: Any) -> tuple[DeviceRequest, ...]:
    ((found,)) = read(amounts).devices.requests
    return found


def test_a_pod_without_such_limits_asks_for_nothing() -> None:
    assert read({}) == directspec.NOTHING
    assert read({"example.com/gpu": 1}) == directspec.NOTHING


REQUESTS: dict[str, tuple[dict[str, int | str], DeviceRequest]] = {
    "a whole GPU": ({GPU: 100}, DeviceRequest(kind="gpu", parts=100, ratio=100)),
    "half a GPU": ({GPU: 50}, DeviceRequest(kind="gpu", parts=50, ratio=50)),
    "three GPUs": ({GPU: 300}, DeviceRequest(kind="gpu", count=3, parts=100, ratio=100)),
    "memory alone": ({MEMORY: "8Gi"}, DeviceRequest(kind="gpu", memory=8 * GIB)),
    "a ratio of the memory": ({RATIO: 25}, DeviceRequest(kind="gpu", ratio=25)),
    "cores and memory": ({CORE: 30, MEMORY: "8Gi"}, DeviceRequest(kind="gpu", parts=30, memory=8 * GIB)),
    "cores and a ratio": ({CORE: 200, RATIO: 200}, DeviceRequest(kind="gpu", count=2, parts=100, ratio=100)),
    "parts of several GPUs": (
        {SHARED: 2, CORE: 100, MEMORY: "16Gi"},
        DeviceRequest(kind="gpu", count=2, parts=50, memory=8 * GIB),
    ),
    "a part of a NIC": ({RDMA: 1}, DeviceRequest(kind="rdma", parts=1)),
    "two NICs": ({RDMA: 200}, DeviceRequest(kind="rdma", count=2, parts=100)),
    "an FPGA": ({FPGA: 100}, DeviceRequest(kind="fpga", parts=100)),
}


@pytest.mark.parametrize("amounts, request_", REQUESTS.values(), ids=REQUESTS)
def test_limits_become_a_number_of_devices_and_a_part_of_each(
    amounts: dict[str, int | str], request_: DeviceRequest
) -> None:
    assert asked(amounts) == (request_,)
    assert read(amounts).needs_direct


def test_containers_ask_each_for_themselves() -> None:
    found = directspec.read(devices.pod({}, {GPU: 100, RDMA: 100}, init=[made.container("i")], spec="")).devices
    assert [[each.kind for each in requests] for requests in found.requests] == [[], [], ["gpu", "rdma"]]


WRONG_LIMITS: dict[str, tuple[dict[str, int | str], str]] = {
    "half a GPU more": (
        {GPU: 150},
        f"{LIMITS}[{GPU}]: 150 is neither at most 100 nor a multiple of it; write 100",
    ),
    "half a NIC more": ({RDMA: 250}, f"{LIMITS}[{RDMA}]: 250 is neither at most 100 nor a multiple of it; write 200"),
    "cores alone": (
        {CORE: 50},
        f"{LIMITS}[{CORE}]: {CORE} is no way to ask for GPUs; ask for {GPU}, for one of {MEMORY} and {RATIO}, "
        f"with {CORE} or without, and with {SHARED} for several GPUs",
    ),
    "two ways at once": (
        {GPU: 100, RATIO: 100},
        f"{LIMITS}[{GPU}]: {GPU} with {RATIO} is no way to ask for GPUs; ask for {GPU}, for one of {MEMORY} and "
        f"{RATIO}, with {CORE} or without, and with {SHARED} for several GPUs",
    ),
    "uneven parts": (
        {SHARED: 2, RATIO: 75},
        f"{LIMITS}[{RATIO}]: 75 is no multiple of {SHARED} 2, or more than 100 for each GPU; "
        "write what one GPU gives, times 2",
    ),
    "more than each GPU has": (
        {SHARED: 2, RATIO: 300},
        f"{LIMITS}[{RATIO}]: 300 is no multiple of {SHARED} 2, or more than 100 for each GPU; "
        "write what one GPU gives, times 2",
    ),
    "cores that do not match": (
        {CORE: 100, RATIO: 300},
        f"{LIMITS}[{CORE}]: 100 cannot be divided among 3 GPUs; write what one GPU gives, times 3",
    ),
}


@pytest.mark.parametrize("amounts, message", WRONG_LIMITS.values(), ids=WRONG_LIMITS)
def test_a_limit_that_makes_no_sense_is_refused_with_its_name(amounts: dict[str, int | str], message: str) -> None:
    with pytest.raises(BadObject) as raised:
        read(amounts)
    assert str(raised.value) == f"Pod default/p, {message}"


EVERYTHING = """{
  "types": {
    "gpu": {"selector": {"matchLabels": {"tier": "a"}}, "within": "PCIe", "exclusive": "PCIeLevel"},
    "rdma": {
      "functions": {"matchExpressions": [{"key": "type", "operator": "In", "values": ["general"]}]},
      "counting": "ApplyForAll"
    }
  },
  "joint": {"types": ["gpu", "rdma"], "scope": "SamePCIe"},
  "partition": {"policy": "Restricted", "bandwidth": "200Gi"}
}"""
READ = DeviceSpec(
    hints=(
        ("gpu", DeviceHint(selector=Selector((("tier", "a"),)), within="PCIe", exclusion="PCIeLevel")),
        (
            "rdma",
            DeviceHint(functions=Selector(terms=(("type", "In", ("general",)),)), counting="ApplyForAll"),
        ),
    ),
    joint=("gpu", "rdma"),
    same_pcie=True,
    partition="Restricted",
    bandwidth=200 * GIB,
)


def test_every_field_of_the_annotation_is_read() -> None:
    assert read({}, {DEVICE_SPEC: EVERYTHING}.items()).devices == READ


KOORDINATOR = {
    devicespec.KOORDINATOR_HINT: """{
      "gpu": {
        "selector": {"matchLabels": {"tier": "a"}}, "requiredTopologyScope": "PCIe", "exclusivePolicy": "PCIeLevel"
      },
      "rdma": {
        "vfSelector": {"matchExpressions": [{"key": "type", "operator": "In", "values": ["general"]}]},
        "allocateStrategy": "ApplyForAll"
      }
    }""",
    devicespec.KOORDINATOR_JOINT: '{"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}',
    devicespec.KOORDINATOR_PARTITION: '{"allocatePolicy": "Restricted", "ringBusBandwidth": "200Gi"}',
}


def test_koordinators_annotations_say_the_same_where_the_switch_is_on() -> None:
    assert read({}, KOORDINATOR.items(), koordinator=True).devices == READ
    assert read({}, KOORDINATOR.items()) == directspec.NOTHING
    ours = {**KOORDINATOR, DEVICE_SPEC: "{}"}
    assert read({}, ours.items(), koordinator=True) == directspec.NOTHING


def test_the_name_of_the_annotation_alone_asks_for_a_partition() -> None:
    found = read({}, {devicespec.KOORDINATOR_PARTITION: "{}"}.items(), koordinator=True).devices
    assert found.partition == "BestEffort"


WRONG: dict[str, tuple[str, str]] = {
    "no JSON": ("{", ": not JSON that can be read: Input data was truncated; write an object like {}"),
    "no object": ("[]", ": a list is not a mapping of names to values"),
    "a field that does not exist": ('{"type": {}}', ".type: no field of this name; did you mean types?"),
    "an unknown type": ('{"types": {"npu": {}}}', '.types[npu]: "npu" is no type of device; known are gpu, rdma, fpga'),
    "an unknown field of a type": (
        '{"types": {"gpu": {"scope": "PCIe"}}}',
        ".types[gpu].scope: no field of this name; known are selector, functions, counting, within, exclusive",
    ),
    "an unknown scope": (
        '{"types": {"gpu": {"within": "Rack"}}}',
        '.types[gpu].within: "Rack" is not one of Device, PCIe, NUMANode, Node',
    ),
    "an unknown operator": (
        '{"types": {"gpu": {"selector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}}}',
        '.types[gpu].selector.matchExpressions[0].operator: "Gt" is not one of In, NotIn, Exists, DoesNotExist',
    ),
    "a label that is no text": (
        '{"types": {"gpu": {"selector": {"matchLabels": {"a": 1}}}}}',
        ".types[gpu].selector.matchLabels[a]: 1 is not text; put it in quotes",
    ),
    "one type together": (
        '{"joint": {"types": ["gpu"]}}',
        '.joint.types: not two or three different types; name the primary one first, like ["gpu", "rdma"]',
    ),
    "an unknown joint scope": (
        '{"joint": {"types": ["gpu", "rdma"], "scope": "SameNUMA"}}',
        '.joint.scope: "SameNUMA" is not one of SamePCIe',
    ),
    "an unknown partition policy": (
        '{"partition": {"policy": "Honor"}}',
        '.partition.policy: "Honor" is not one of BestEffort, Restricted',
    ),
    "no bandwidth": (
        '{"partition": {"bandwidth": "fast"}}',
        ".partition.bandwidth: ",
    ),
    "too long": ("[" * 20_000, ": 20000 characters; at most 16384 are read"),
}


@pytest.mark.parametrize("text, message", WRONG.values(), ids=WRONG)
def test_a_wrong_annotation_is_refused_with_the_fields_name(text: str, message: str) -> None:
    with pytest.raises(BadObject) as raised:
        read({}, {DEVICE_SPEC: text}.items())
    assert str(raised.value).startswith(f"Pod default/p, {AT}{message}")


FIELDS = st.sampled_from(["types", "gpu", "selector", "matchLabels", "joint", "scope", "partition", "bandwidth"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["gpu", "rdma", "SamePCIe"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from((DEVICE_SPEC, *devicespec.KOORDINATOR_KEYS)))
def test_any_json_is_read_or_refused(value: Any, name: str) -> None:
    with suppress(BadObject):
        hash(read({GPU: 100}, {name: json.dumps(value)}.items(), koordinator=True))


AMOUNTS = st.integers(0, 400)


@given(st.dictionaries(st.sampled_from([GPU, CORE, MEMORY, RATIO, SHARED, RDMA, FPGA]), AMOUNTS))
def test_any_amounts_are_read_or_refused(amounts: dict[str, int]) -> None:
    with suppress(BadObject):
        for each in read(amounts).devices.requests:
            for request in each:
                assert 0 <= request.parts <= 100
                assert 0 <= request.ratio <= 100
                assert request.count > 0
                assert request.parts or request.ratio or request.memory
