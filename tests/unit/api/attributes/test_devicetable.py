"""The table of devices that are handed out in parts or together: its text, and Koordinator's Device object."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.attributes import devicetable
from numalign.api.attributes.devicetable import Device, DeviceTable, Function, Partition
from numalign.api.attributes.grammar import AttributeTextError
from numalign.api.decode import decode
from numalign.api.errors import BadObject
from numalign.api.objects.koordinatordevice import DeviceObject

GIB = 1 << 30
NAMES = st.text(min_size=1, max_size=8)
LABELS = st.dictionaries(NAMES, st.text(max_size=4), max_size=2).map(lambda found: tuple(sorted(found.items())))
DEVICES = st.builds(
    Device,
    type=st.sampled_from(devicetable.KINDS),
    minor=st.integers(0, 1023),
    id=st.text(max_size=8),
    zone=st.integers(-1, 8),
    pcie=st.text(max_size=8),
    parts=st.integers(0, 100),
    memory=st.integers(0, 1 << 40),
    labels=LABELS,
    functions=st.lists(st.builds(Function, NAMES, LABELS), max_size=2).map(tuple),
)
TABLES = st.builds(
    DeviceTable,
    devices=st.lists(DEVICES, max_size=4, unique_by=lambda each: (each.type, each.minor)).map(
        lambda found: tuple(sorted(found, key=lambda each: (devicetable.KINDS.index(each.type), each.minor)))
    ),
    partitions=st.lists(
        st.builds(
            Partition,
            st.lists(st.integers(0, 7), min_size=1, max_size=4).map(tuple),
            st.integers(0, 9),
            st.integers(0, 1 << 40),
        ),
        max_size=3,
    ).map(tuple),
    only_partitions=st.booleans(),
)


@given(TABLES)
def test_a_table_comes_back_as_it_was(table: DeviceTable) -> None:
    assert devicetable.decode(devicetable.encode(table)) == table


BROKEN = {
    "no device": "gpu",
    "an unknown type": "npu/0|0||100|0|||",
    "no minor": "gpu|0||100|0|||",
    "a large minor": "gpu/5000|0||100|0|||",
    "more than a device": "gpu/0|0||101|0|||",
    "no size": "gpu/0|0||100|much|||",
    "a label without a value": "gpu/0|0||100|0||a|",
    "a device twice": "gpu/0|0||100|0|||;gpu/0|1||100|0|||",
    "a partition without bandwidth": "partition|0+1|1",
    "too long": "x" * (1 << 19),
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_broken_table_is_refused(body: str) -> None:
    with pytest.raises(AttributeTextError):
        devicetable.decode(body)


def test_devices_come_in_order_of_type_and_minor() -> None:
    found = devicetable.decode("rdma/0|||100|0|||;gpu/1|||100|0|||;gpu/0|||100|0|||")
    assert [(each.type, each.minor) for each in found.devices] == [("gpu", 0), ("gpu", 1), ("rdma", 0)]


def written(*devices: dict[str, Any], **metadata: Any) -> DeviceObject:
    return decode.decode(DeviceObject, {"metadata": {"name": "n", **metadata}, "spec": {"devices": list(devices)}})


GPU = {
    "type": "gpu",
    "id": "GPU-1",
    "minor": 1,
    "health": True,
    "labels": {"tier": "a"},
    "resources": {
        "koordinator.sh/gpu-core": "100",
        "koordinator.sh/gpu-memory-ratio": "100",
        "koordinator.sh/gpu-memory": "80Gi",
    },
    "topology": {"socketID": -1, "nodeID": 1, "pcieID": "pci0000:80", "busID": "0000:81:00.0"},
}
NIC = {
    "type": "rdma",
    "id": "0000:1f:00.0",
    "minor": 0,
    "health": True,
    "resources": {"koordinator.sh/rdma": "100"},
    "topology": {"nodeID": 0, "pcieID": "pci0000:16"},
    "vfGroups": [
        {
            "labels": {"type": "general"},
            "vfs": [{"minor": 1, "busID": "0000:1f:00.3"}, {"minor": 0, "busID": "0000:1f:00.2"}],
        }
    ],
}


def test_koordinators_object_becomes_a_table() -> None:
    general = (("type", "general"),)
    assert devicetable.of_object(written(NIC, GPU)) == DeviceTable(
        devices=(
            Device(
                type="gpu", minor=1, id="GPU-1", zone=1, pcie="pci0000:80", memory=80 * GIB, labels=(("tier", "a"),)
            ),
            Device(
                type="rdma",
                minor=0,
                id="0000:1f:00.0",
                zone=0,
                pcie="pci0000:16",
                functions=(Function("0000:1f:00.2", general), Function("0000:1f:00.3", general)),
            ),
        )
    )


def test_a_device_that_is_not_healthy_has_nothing_to_give() -> None:
    (found,) = devicetable.of_object(written({**GPU, "health": False})).devices
    assert (found.parts, found.memory) == (0, 0)


def test_devices_of_other_types_and_without_a_number_are_left_out() -> None:
    assert not devicetable.of_object(written({**GPU, "type": "npu"}, {**GPU, "minor": None})).devices


@pytest.mark.parametrize("topology", [None, {}, {"nodeID": -1}])
def test_an_unknown_zone_stays_unknown(topology: Any) -> None:
    (found,) = devicetable.of_object(written({**GPU, "topology": topology})).devices
    assert (found.zone, found.pcie) == (-1, "")


def test_partitions_are_read_from_the_annotation() -> None:
    entry = {"minors": [1, 0], "gpuLinkType": "NVLink", "ringBusBandwidth": "200Gi", "allocationScore": 3}
    text = json.dumps({"2": [entry], "1": [{"minors": [0]}]})
    labels = {"node.koordinator.sh/gpu-partition-policy": "Honor"}
    found = devicetable.of_object(
        written(GPU, annotations={"scheduling.koordinator.sh/gpu-partitions": text}, labels=labels)
    )
    assert found.partitions == (Partition((0, 1), 3, 200 * GIB), Partition((0,)))
    assert found.only_partitions


def test_some_models_have_partitions_of_their_own() -> None:
    assert [
        each.minors for each in devicetable.of_object(written(GPU), "H100").partitions if len(each.minors) == 4
    ] == [
        (0, 1, 2, 3),
        (4, 5, 6, 7),
    ]
    assert not devicetable.of_object(written(GPU), "A100").partitions


@pytest.mark.parametrize("text", ["{", "[]", '{"2": [{"minors": ["a"]}]}', '{"2": [{"ringBusBandwidth": "x"}]}'])
def test_partitions_that_cannot_be_read_are_named(text: str) -> None:
    with pytest.raises(BadObject, match="gpu-partitions"):
        devicetable.of_object(written(GPU, annotations={"scheduling.koordinator.sh/gpu-partitions": text}))


def test_an_object_with_a_device_twice_is_refused() -> None:
    with pytest.raises(BadObject, match=r"spec\.devices: gpu 1 is listed twice"):
        devicetable.of_object(written(GPU, GPU))
