"""The machines that people know by name have the shape that their name promises."""

from pathlib import Path

import pytest

from numalign.api import errors
from numalign.api.decode import cpuset
from numalign.kubelet.machine import presets, zonecores
from numalign.kubelet.machine.machine import Core, Machine
from numalign.kubelet.machine.presets import Blueprint

DOCS = Path(__file__).parents[4] / "docs/use/machines.md"
GIB = 1 << 30

FIGURES = {
    "2x16": (2, 2, 32, 1, 128),
    "2x32-smt": (2, 2, 64, 2, 256),
    "xeon-2x14-smt": (2, 2, 56, 2, 256),
    "xeon-snc": (4, 2, 224, 2, 512),
    "epyc-nps1": (2, 2, 256, 2, 1024),
    "epyc-nps4": (8, 2, 256, 2, 1024),
    "gpu-8": (2, 2, 192, 2, 2048),
    "dgx-8": (8, 2, 256, 2, 1024),
    "dgx-a100": (8, 2, 256, 2, 1024),
    "superchip-34": (34, 2, 144, 1, 1704),
    "edge-1": (1, 1, 16, 2, 32),
}

ZONE_CPUS = {
    "2x16": {0: "0-15", 1: "16-31"},
    "2x32-smt": {0: "0-15,32-47", 1: "16-31,48-63"},
    "xeon-2x14-smt": {0: "0-13,28-41", 1: "14-27,42-55"},
    "xeon-snc": {0: "0-27,112-139", 3: "84-111,196-223"},
    "epyc-nps1": {0: "0-63,128-191", 1: "64-127,192-255"},
    "epyc-nps4": {0: "0-15,128-143", 7: "112-127,240-255"},
    "gpu-8": {0: "0-47,96-143", 1: "48-95,144-191"},
    "superchip-34": {0: "0-71", 1: "72-143", 2: "", 33: ""},
    "edge-1": {0: "0-15"},
}

DEVICE_ZONES = {
    ("gpu-8", "nvidia.com/gpu"): [0, 0, 0, 0, 1, 1, 1, 1],
    ("gpu-8", "vpc.amazonaws.com/efa"): [0, 0, 0, 0, 1, 1, 1, 1],
    ("dgx-8", "nvidia.com/gpu"): [0, 1, 2, 3, 4, 5, 6, 7],
    ("dgx-8", "nvidia.com/hostdev"): [0, 1, 2, 3, 4, 5, 6, 7],
    ("dgx-a100", "nvidia.com/gpu"): [3, 3, 1, 1, 7, 7, 5, 5],
    ("superchip-34", "nvidia.com/gpu"): [0, 0, 1, 1],
    ("edge-1", "intel.com/sriov_netdevice"): [0] * 8,
}


def cores(machine: Machine) -> list[Core]:
    return [core for zone in machine.zones for core in zone.cores]


def figures(machine: Machine) -> tuple[int, int, int, int, int]:
    sockets = {core.socket for core in cores(machine)}
    threads = {len(core.cpus) for core in cores(machine)}
    capacity = machine.capacity
    return len(machine.zones), len(sockets), capacity["cpu"] // 1000, max(threads), capacity["memory"] // GIB


def test_every_preset_is_listed_with_its_figures() -> None:
    assert presets.names() == tuple(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_a_preset_has_the_zones_sockets_cpus_threads_and_memory_it_stands_for(name: str) -> None:
    machine = presets.machine(name)
    assert (machine.name, figures(machine)) == (name, FIGURES[name])


@pytest.mark.parametrize("name", FIGURES)
def test_every_cpu_number_occurs_once_and_none_is_left_out(name: str) -> None:
    numbers = [cpu for core in cores(presets.machine(name)) for cpu in core.cpus]
    assert sorted(numbers) == list(range(len(numbers)))


@pytest.mark.parametrize("name", FIGURES)
def test_distances_are_symmetric_and_shortest_to_the_zone_itself(name: str) -> None:
    zones = presets.machine(name).zones
    rows = [zone.distances for zone in zones]
    assert rows == [tuple(column) for column in zip(*rows, strict=True)]
    assert all(row[zone.id] == 10 and len(row) == len(zones) for zone, row in zip(zones, rows, strict=True))


@pytest.mark.parametrize("name", ZONE_CPUS)
def test_cpus_are_numbered_as_linux_does(name: str) -> None:
    zones = presets.machine(name).zones
    found = {zone: cpuset.text(zonecores.mask(zones[zone].cores)) for zone in ZONE_CPUS[name]}
    assert found == ZONE_CPUS[name]


@pytest.mark.parametrize("name, resource", DEVICE_ZONES)
def test_devices_sit_in_their_zones(name: str, resource: str) -> None:
    devices = presets.machine(name).devices[resource].devices
    assert [device.zones for device in devices] == [(zone,) for zone in DEVICE_ZONES[name, resource]]


@pytest.mark.parametrize("name, rows", {"epyc-nps1": (10, 32), "epyc-nps4": (10, 12, 12, 12, 32, 32, 32, 32)}.items())
def test_epyc_distances_distinguish_the_own_socket_from_the_other(name: str, rows: tuple[int, ...]) -> None:
    assert presets.machine(name).zones[0].distances == rows


@pytest.mark.parametrize("name, size, groups", [("epyc-nps1", 8, 16), ("epyc-nps4", 8, 16), ("dgx-8", 4, 32)])
def test_an_l3_group_holds_its_number_of_cores(name: str, size: int, groups: int) -> None:
    members = [core.uncore for core in cores(presets.machine(name))]
    assert members == [group for group in range(groups) for _ in range(size)]


def test_an_l3_that_serves_a_whole_zone_is_not_reported() -> None:
    assert {core.uncore for core in cores(presets.machine("2x32-smt"))} == {None}


def test_with_sub_numa_clustering_both_zones_of_a_socket_share_its_l3() -> None:
    zones = presets.machine("xeon-snc").zones
    assert [{core.uncore for core in zone.cores} for zone in zones] == [{0}, {0}, {1}, {1}]


def test_the_superchip_has_gpu_memory_in_the_first_zone_of_each_gpu_only() -> None:
    zones = presets.machine("superchip-34").zones
    assert {zone.id for zone in zones if zone.memory} == {0, 1, 2, 10, 18, 26}
    assert {zone.id for zone in zones if zone.cores} == {0, 1}


def test_the_superchip_is_nearer_to_the_gpus_of_its_own_cpu() -> None:
    distances = presets.machine("superchip-34").zones[1].distances
    assert (distances[0], distances[10], distances[18], distances[26]) == (40, 120, 80, 80)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(errors.BadObject, match=r"2x16, 2x32-smt, .*edge-1") as refusal:
        presets.machine("epyc")
    assert refusal.value.name == '"epyc"'


FOLDS = {
    "split: thread i of a core follows after all cores": ("split", ((0, 2, 4), (1, 3, 5))),
    "consecutive: the threads of a core are neighbours": ("consecutive", ((0, 1, 2), (3, 4, 5))),
}


@pytest.mark.parametrize("numbering, threads", FOLDS.values(), ids=FOLDS)
def test_cpus_fold_into_cores(numbering: presets.Numbering, threads: tuple[tuple[int, ...], ...]) -> None:
    assert presets.fold(range(6), 3, numbering) == threads


def test_consecutive_numbering_runs_through_the_zones() -> None:
    plan = Blueprint(zones=2, sockets=1, cores=2, threads=2, numbering="consecutive", memory=GIB)
    assert [core.cpus for core in cores(presets.build("arm", plan))] == [(0, 1), (2, 3), (4, 5), (6, 7)]


@pytest.mark.parametrize("name", FIGURES)
def test_the_documentation_shows_the_same_figures(name: str) -> None:
    zones, sockets, cpus, threads, memory = FIGURES[name]
    assert f"\n| `{name}` | {zones} | {sockets} | {cpus} | {threads} | {memory} GiB |" in DOCS.read_text()
