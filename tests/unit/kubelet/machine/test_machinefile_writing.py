"""A machine that is written reads back as the same machine."""

from collections.abc import Mapping

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from numalign.kubelet.machine import machinefile, presets
from numalign.kubelet.machine.machine import Core, Device, DevicePlugin, HugePages, Machine, Zone
from tests import machinefiles

GIB = 1 << 30


@pytest.mark.parametrize("name", presets.names())
def test_presets_are_written_so_that_they_read_back(name: str) -> None:
    machine = presets.machine(name)
    written = yaml.safe_dump(machinefiles.write(machine), sort_keys=False)
    assert machinefile.read(yaml.safe_load(written), "elsewhere") == machine


def test_the_written_form_is_the_short_one() -> None:
    written = machinefiles.write(
        machinefile.read(
            yaml.safe_load("{extends: gpu-8, name: box, zones: [{id: 0, l3: {}}, {id: 1, l3: {}}]}"), "box"
        )
    )
    assert written["zones"] == yaml.safe_load("""
        - {id: 0, cpus: "0-47,96-143", threadsPerCore: 2, socket: 0, memory: 1Ti, hugepages: {2Mi: 0, 1Gi: 0},
           distances: [10, 32]}
        - {id: 1, cpus: "48-95,144-191", threadsPerCore: 2, socket: 1, memory: 1Ti, hugepages: {2Mi: 0, 1Gi: 0},
           distances: [32, 10]}
    """)


def test_a_count_that_a_tool_moved_in_the_file_keeps_its_devices() -> None:
    machine = presets.machine("dgx-a100")
    resorted = yaml.safe_dump(machinefiles.write(machine)["devices"], sort_keys=True)
    assert machinefile.read({**machinefiles.write(machine), "devices": yaml.safe_load(resorted)}, "box") == machine


zone_ids = st.lists(st.integers(0, 63), min_size=1, max_size=5, unique=True).map(sorted)
labels = st.none() | st.integers(0, 3)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    ids = draw(zone_ids)
    numbers = draw(st.permutations(range(24)))
    zones = []
    for index, zone_id in enumerate(ids):
        sizes = draw(st.lists(st.integers(1, 2), max_size=3))
        own = iter(numbers[index * 4 :][:4])
        threads = [tuple(next(own, -1) for _ in range(size)) for size in sizes]
        cores = tuple(Core(draw(st.integers(0, 2)), cpus, draw(labels)) for cpus in threads if -1 not in cpus)
        zones.append(draw(zones_with(zone_id, cores, ids[-1] + 1)))
    return Machine(draw(st.text("ab-", min_size=1, max_size=4)), tuple(zones), draw(plugins(ids)))


def zones_with(zone_id: int, cores: tuple[Core, ...], row: int) -> st.SearchStrategy[Zone]:
    pages = st.lists(st.sampled_from([64, 2048, 1 << 20]), unique=True).flatmap(
        lambda sizes: st.tuples(*(st.builds(HugePages, st.just(size), st.integers(0, 9)) for size in sizes))
    )
    distances = st.just(()) | st.lists(st.integers(1, 255), min_size=row, max_size=row).map(tuple)
    memory = st.integers(10 * GIB, 1 << 56)
    return st.builds(Zone, st.just(zone_id), st.just(cores), memory, pages, distances)


def plugins(ids: list[int]) -> st.SearchStrategy[Mapping[str, DevicePlugin]]:
    zones = st.none() | st.lists(st.sampled_from(ids), unique=True).map(tuple)
    device = st.builds(Device, st.sampled_from([*"abcdef", "nic-0", "nic-1", "nic-2"]), zones, st.booleans())
    devices = st.lists(device, max_size=6, unique_by=lambda device: device.id).map(tuple)
    names = st.sampled_from(["example.com/nic", "example.com/gpu"])
    return st.dictionaries(names, st.builds(DevicePlugin, devices, st.booleans()))


@given(machines())
def test_whatever_is_written_reads_back_the_same(machine: Machine) -> None:
    assert machinefile.read(machinefiles.write(machine), "elsewhere") == machine
