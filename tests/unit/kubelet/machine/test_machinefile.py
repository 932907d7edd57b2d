"""What a machine file says becomes a machine."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from numalign.kubelet.machine import machinefile, presets
from numalign.kubelet.machine.machine import Core, Device, DevicePlugin, HugePages, Machine, Zone

DOCS = Path(__file__).parents[4] / "docs/use/machines.md"
EXAMPLES = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)
GIB = 1 << 30


def parsed(text: str) -> Any:
    return yaml.safe_load(text)


def read(text: str) -> Machine:
    return machinefile.read(parsed(text), "box.yaml")


def zone(text: str) -> Zone:
    [only] = read(f"zones: [{{{text}}}]").zones
    return only


def test_a_whole_machine_in_a_few_lines() -> None:
    machine = read("""
        name: box
        zones:
          - {id: 0, cpus: "0-1,4-5", threadsPerCore: 2, memory: 8Gi, hugepages: {1Gi: 2}, distances: [10, 21]}
          - {id: 1, cpus: "2-3,6-7", threadsPerCore: 2, memory: 8Gi, distances: [21, 10]}
        devices:
          example.com/nic: {0: 1, 1: [eth1], preferredAllocation: true}
    """)
    first = Zone(0, (Core(0, (0, 4)), Core(0, (1, 5))), 8 * GIB, (HugePages(1 << 20, 2),), (10, 21))
    second = Zone(1, (Core(1, (2, 6)), Core(1, (3, 7))), 8 * GIB, (), (21, 10))
    nics = DevicePlugin((Device("nic-0", (0,)), Device("eth1", (1,))), preferred_allocation=True)
    assert machine == Machine("box", (first, second), {"example.com/nic": nics})


CORES = {
    "without threadsPerCore every CPU is a core": ("cpus: 0-2", [(0,), (1,), (2,)]),
    "threads of a core are half the list apart": ('cpus: "0-1,8-9", threadsPerCore: 2', [(0, 8), (1, 9)]),
    "or neighbours": ("cpus: 0-3, threadsPerCore: 2, numbering: consecutive", [(0, 1), (2, 3)]),
    "or listed one by one": ("cores: [[0, 9], [4], [2, 1]]", [(0, 9), (4,), (2, 1)]),
    "a single CPU needs no quotes": ("cpus: 7", [(7,)]),
    "a zone may have none": ("memory: 1Gi", []),
}


@pytest.mark.parametrize("text, threads", CORES.values(), ids=CORES)
def test_cpus_become_cores(text: str, threads: list[tuple[int, ...]]) -> None:
    assert [core.cpus for core in zone(text).cores] == threads


LABELS = {
    "a zone is a socket of its own, without an L3": ("id: 3, cpus: 0-3", [3, 3, 3, 3], [None] * 4),
    "one socket": ("cpus: 0-3, socket: 1", [1] * 4, [None] * 4),
    "several sockets in one zone": ("cpus: 0-3, socket: {0: 0-1, 1: 2-3}", [0, 0, 1, 1], [None] * 4),
    "one L3": ("cpus: 0-3, l3: 5", [0] * 4, [5] * 4),
    "an L3 for some": ("cpus: 0-3, l3: {7: 1-2}", [0] * 4, [None, 7, 7, None]),
    "L3 groups of equal size, called by their lowest CPU": ("cpus: 4-8, coresPerL3: 2", [0] * 5, [4, 4, 6, 6, 8]),
}


@pytest.mark.parametrize("text, sockets, uncores", LABELS.values(), ids=LABELS)
def test_cores_know_their_socket_and_l3(text: str, sockets: list[int], uncores: list[int | None]) -> None:
    cores = zone(text).cores
    assert ([core.socket for core in cores], [core.uncore for core in cores]) == (sockets, uncores)


PAGES = {
    "a bare number counts pages": ("{2Mi: 512}", [HugePages(2048, 512)]),
    "a quantity gives bytes": ('{2Mi: "1Gi"}', [HugePages(2048, 512)]),
    "a size without pages is still reported": ("{1Gi: 0, 64Ki: 16}", [HugePages(1 << 20, 0), HugePages(64, 16)]),
}


@pytest.mark.parametrize("text, pages", PAGES.values(), ids=PAGES)
def test_hugepages(text: str, pages: list[HugePages]) -> None:
    assert list(zone(f"memory: 4Gi, hugepages: {text}").hugepages) == pages


DEVICES = {
    "a count makes ids through the zones": ("{1: 1, 0: 2}", [("nic-0", (0,)), ("nic-1", (0,)), ("nic-2", (1,))]),
    "a list names them": ("{1: [b, a]}", [("b", (1,)), ("a", (1,))]),
    "on several zones": ('{"0,1": [x]}', [("x", (0, 1))]),
    "without topology": ("{noTopology: 1, 0: 1}", [("nic-0", (0,)), ("nic-1", None)]),
    "one by one": ("{each: [{id: x, zones: 1}, {id: y}, {id: z, zones: []}]}", [("x", (1,)), ("y", None), ("z", ())]),
    "a plugin without devices": ("{}", []),
}


@pytest.mark.parametrize("text, devices", DEVICES.values(), ids=DEVICES)
def test_devices(text: str, devices: list[tuple[str, tuple[int, ...] | None]]) -> None:
    plugins = read(f"zones: [{{}}, {{}}]\ndevices: {{example.com/nic: {text}}}").devices
    assert [(device.id, device.zones) for device in plugins["example.com/nic"].devices] == devices


def test_unhealthy_devices_are_named() -> None:
    plugins = read("zones: [{}]\ndevices: {example.com/nic: {0: 3, unhealthy: [nic-1]}}").devices
    assert [device.healthy for device in plugins["example.com/nic"].devices] == [True, False, True]


@pytest.mark.parametrize("example", EXAMPLES, ids=["a whole machine", "a changed preset"])
def test_the_examples_of_the_documentation_can_be_read(example: str) -> None:
    assert read(example).capacity["nvidia.com/gpu"] in (4, 8)


def test_zones_ascend_whatever_the_order_of_the_file_and_may_have_gaps() -> None:
    assert read("zones: [{id: 8}, {id: 0}, {id: 3}]").zone_ids == (0, 3, 8)


def test_a_file_without_a_name_goes_by_its_source() -> None:
    assert read("zones: [{}]").name == "box.yaml"


class TestExtends:
    def test_takes_everything_from_the_preset(self) -> None:
        assert read("extends: gpu-8") == presets.machine("gpu-8")

    def test_changes_what_the_file_mentions_and_nothing_else(self) -> None:
        preset = presets.machine("2x16")
        changed = read("{extends: 2x16, name: big, zones: [{id: 1, memory: 96Gi}]}")
        assert changed.zones[0] == preset.zones[0]
        assert (changed.name, changed.zones[1].memory, changed.zones[1].cores) == (
            "big",
            96 * GIB,
            preset.zones[1].cores,
        )

    def test_relabels_the_cores_of_the_preset(self) -> None:
        [first, _] = read("{extends: 2x16, zones: [{id: 0, coresPerL3: 8}]}").zones
        assert [core.uncore for core in first.cores] == [0] * 8 + [8] * 8

    def test_keeps_the_socket_of_a_zone_that_gets_other_cpus(self) -> None:
        zones = read('{extends: 2x16, zones: [{id: 1, cpus: "40-41"}]}').zones
        assert zones[1].cores == (Core(1, (40,)), Core(1, (41,)))

    def test_adds_a_zone(self) -> None:
        added = read("{extends: edge-1, zones: [{id: 0, distances: [10, 20]}, {id: 1, memory: 1Gi}]}")
        assert added.zone_ids == (0, 1)

    def test_replaces_and_removes_devices(self) -> None:
        devices = read("{extends: gpu-8, devices: {nvidia.com/gpu: {0: 1}, vpc.amazonaws.com/efa: null}}").devices
        assert {name: len(plugin.devices) for name, plugin in devices.items()} == {"nvidia.com/gpu": 1}

    def test_frees_the_cpus_that_it_overrides(self) -> None:
        swapped = '{extends: 2x16, zones: [{id: 0, cpus: "16-31"}, {id: 1, cpus: "0-15"}]}'
        assert [zone.cores[0].cpus for zone in read(swapped).zones] == [(16,), (0,)]
