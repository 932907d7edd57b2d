"""A machine from the kernel's files: a missing file costs one value and is reported."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from numalign.agent.sources import sysfs
from numalign.api import errors
from numalign.api.decode import cpuset
from numalign.kubelet.machine import presets, zonecores
from numalign.kubelet.machine.machine import Core, HugePages, Machine, Zone
from tests.campaigns import holds_for
from tests.strategies import kubelet
from tests.unit.agent.machine_trees import as_seen, preset, put, switch_off, written

HOLES = Machine(
    "holes",
    (
        Zone(0, (Core(0, (0, 4)), Core(0, (1, 5))), 8 << 30, (), (10, 0, 0, 20, 40)),
        Zone(3, (Core(1, (2, 6)), Core(1, (3, 7))), 8 << 30, (), (20, 0, 0, 10, 80)),
        Zone(4, (), 16 << 30, (HugePages(2048, 3),), (40, 0, 0, 80, 10)),
    ),
)


@pytest.mark.parametrize("name", presets.names())
def test_public_machines_are_found_as_they_are(name: str, tmp_path: Path) -> None:
    found = sysfs.survey(preset(name, tmp_path))
    assert found == sysfs.Survey(as_seen(presets.machine(name)))


@holds_for(kubelet.machines() | kubelet.uneven_machines(), examples=12)
def test_any_machine_is_read_back_as_it_was_written(machine: Machine) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert sysfs.survey(written(machine, Path(folder))) == sysfs.Survey(as_seen(machine))


def test_zones_go_by_their_ids_and_distances_too(tmp_path: Path) -> None:
    found = sysfs.survey(written(HOLES, tmp_path)).machine
    assert found.zone_ids == (0, 3, 4)
    assert [zone.distances for zone in found.zones] == [
        (10, 255, 255, 20, 40),
        (20, 255, 255, 10, 80),
        (40, 255, 255, 80, 10),
    ]


def test_zones_are_in_the_order_of_numbers_not_of_names(tmp_path: Path) -> None:
    many = Machine("many", tuple(Zone(zone, (Core(0, (zone,)),)) for zone in range(12)))
    assert sysfs.survey(written(many, tmp_path)).machine.zone_ids == tuple(range(12))


def test_cpus_that_are_off_are_left_out_and_known(tmp_path: Path) -> None:
    switch_off(preset("2x32-smt", tmp_path), 1, 33, 40)
    found = sysfs.survey(tmp_path)
    assert found.offline == cpuset.of((1, 33, 40))
    assert found.machine.capacity["cpu"] == 61_000
    # CPU 40 was the second thread of the core of CPU 8.
    assert Core(0, (8,)) in found.machine.zones[0].cores


def test_an_l3_stays_one_group_when_some_of_its_cpus_are_off(tmp_path: Path) -> None:
    switch_off(preset("epyc-nps4", tmp_path), 0, 128)
    zone = sysfs.survey(tmp_path).machine.zones[0]
    assert {core.uncore for core in zone.cores} == {0, 1}


def test_without_hotplug_every_cpu_is_online(tmp_path: Path) -> None:
    (preset("2x16", tmp_path) / sysfs.CPUS / "online").unlink()
    assert sysfs.survey(tmp_path) == sysfs.Survey(as_seen(presets.machine("2x16")))


def test_a_kernel_without_zones_has_one_with_all_memory(tmp_path: Path) -> None:
    shutil.rmtree(preset("edge-1", tmp_path) / sysfs.ZONES)
    found = sysfs.survey(tmp_path)
    [zone] = found.machine.zones
    assert (zone.id, zone.memory, zonecores.mask(zone.cores)) == (0, 32 << 30, (1 << 16) - 1)
    assert "every socket is taken as one" in found.problems[0]


def test_sockets_stand_for_zones_where_the_kernel_has_none(tmp_path: Path) -> None:
    shutil.rmtree(preset("2x16", tmp_path) / sysfs.ZONES)
    found = sysfs.survey(tmp_path)
    assert [(zone.id, len(zone.cores), zone.memory) for zone in found.machine.zones] == [(0, 16, 0), (1, 16, 0)]
    assert any("the memory of each socket is unknown" in problem for problem in found.problems)


def test_arm_without_caches_or_sockets_is_one_thread_per_core(tmp_path: Path) -> None:
    root = preset("2x16", tmp_path)
    for cpu in range(32):
        put(root, f"{sysfs.CPUS}/cpu{cpu}/topology/physical_package_id", "-1")
    found = sysfs.survey(root)
    assert found.problems == ()
    assert {(core.socket, len(core.cpus), core.uncore) for zone in found.machine.zones for core in zone.cores} == {
        (0, 1, None)
    }


def test_a_container_that_hides_topology_costs_cores_and_not_cpus(tmp_path: Path) -> None:
    root = preset("2x32-smt", tmp_path)
    for cpu in range(64):
        shutil.rmtree(root / f"{sysfs.CPUS}/cpu{cpu}/topology")
    found = sysfs.survey(root)
    assert found.machine.capacity["cpu"] == 64_000
    assert len(found.problems) == 2
    assert "of CPUs 0-15,32-47 are unknown" in found.problems[0]


def test_links_name_the_cpus_of_a_zone_that_has_no_list(tmp_path: Path) -> None:
    (preset("2x16", tmp_path) / sysfs.ZONES / "node1/cpulist").unlink()
    assert sysfs.survey(tmp_path) == sysfs.Survey(as_seen(presets.machine("2x16")))


DAMAGE = {
    "no memory file": ("node1/meminfo", None, "has no MemTotal"),
    "no total": ("node1/meminfo", "Node 1 MemFree: 7 kB", "has no MemTotal"),
    "less than nothing": ("node1/meminfo", "Node 1 MemTotal: -5 kB", "has no MemTotal"),
    "too few distances": ("node1/distance", "10", "not one distance for each of 2 zones"),
    "distances of letters": ("node1/distance", "10 x", "not one distance for each of 2 zones"),
    "a list that runs backwards": ("node1/cpulist", "31-16", "runs backwards"),
    "pages that are no number": ("node1/hugepages/hugepages-2048kB/nr_hugepages", "many", "not a whole number"),
    "fewer pages than none": ("node1/hugepages/hugepages-2048kB/nr_hugepages", "-2", "number of pages"),
}


@pytest.mark.parametrize("file, text, why", DAMAGE.values(), ids=DAMAGE)
def test_damage_costs_one_value_of_one_zone(file: str, text: str | None, why: str, tmp_path: Path) -> None:
    path = preset("2x16", tmp_path) / sysfs.ZONES / file
    path.unlink() if text is None else path.write_text(text)
    found = sysfs.survey(tmp_path)
    assert found.machine.zones[0] == as_seen(presets.machine("2x16")).zones[0]
    assert zonecores.mask(found.machine.zones[1].cores) == 0xFFFF0000
    assert str(path.parent) in found.problems[0]
    assert any(why in problem for problem in found.problems)


@pytest.mark.parametrize("total", ["12 kB", "\t12 kB", "12kB", "12", "0012 kB"])
def test_a_total_is_read_however_it_is_spaced(total: str, tmp_path: Path) -> None:
    file = preset("2x16", tmp_path) / sysfs.ZONES / "node1/meminfo"
    file.write_text(f"Node 1 MemTotal:{total}\nNode 1 MemFree: 7 kB\n")
    assert sysfs.survey(tmp_path).machine.zones[1].memory == 12 << 10


def test_a_zone_without_hugepages_keeps_its_memory(tmp_path: Path) -> None:
    shutil.rmtree(preset("2x16", tmp_path) / sysfs.ZONES / "node0/hugepages")
    zone = sysfs.survey(tmp_path).machine.zones[0]
    assert (zone.memory, zone.hugepages) == (64 << 30, ())


def test_the_first_unreadable_cache_ends_the_search_as_in_the_kubelet(tmp_path: Path) -> None:
    root = preset("epyc-nps4", tmp_path)
    (root / sysfs.CPUS / "cpu8/cache/index3/id").unlink()
    assert [core.uncore for core in sysfs.survey(root).machine.zones[0].cores] == [0] * 8 + [None] * 8


def test_a_cpu_is_in_one_zone_only(tmp_path: Path) -> None:
    put(preset("2x16", tmp_path), f"{sysfs.ZONES}/node1/cpulist", "0-31")
    found = sysfs.survey(tmp_path).machine
    assert [len(zone.cores) for zone in found.zones] == [16, 16]


def test_zones_beyond_the_kubelets_masks_are_ignored_and_reported(tmp_path: Path) -> None:
    put(preset("2x16", tmp_path), f"{sysfs.ZONES}/node64/cpulist", "")
    found = sysfs.survey(tmp_path)
    assert found.machine.zone_ids == (0, 1)
    assert "kubelets know zones up to 63 only" in found.problems[0]


def test_a_machine_without_cpus_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(errors.BadObject, match="no CPU is listed there; mount the host's /sys"):
        sysfs.survey(tmp_path)


def test_this_machine_can_be_read() -> None:
    assert sysfs.survey(Path("/")).machine.capacity["cpu"] > 0
