"""Machines as files: what a kubelet, lscpu and an agent would read of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from numalign.kubelet.machine import machinefile, presets
from numalign.lab import machinetree

SMT = presets.machine("2x32-smt")
CPU, NODE = "sys/devices/system/cpu", "sys/devices/system/node"
GAPS = machinefile.read(
    {
        "zones": [
            {"id": 0, "cpus": "0-1", "memory": "1Gi", "distances": [10, 99, 20]},
            {"id": 2, "memory": "2Gi", "distances": [20, 99, 10]},
        ]
    },
    "gaps",
)

LINES = {
    "online CPUs": (f"{CPU}/online", "0-63"),
    "no CPU is offline": (f"{CPU}/offline", ""),
    "siblings as a list": (f"{CPU}/cpu0/topology/thread_siblings_list", "0,32"),
    "siblings as a bitmap": (f"{CPU}/cpu0/topology/thread_siblings", "00000001,00000001"),
    "both threads are one core": (f"{CPU}/cpu33/topology/core_id", "1"),
    "sockets": (f"{CPU}/cpu16/topology/physical_package_id", "1"),
    "zones": (f"{NODE}/online", "0-1"),
    "CPUs of a zone": (f"{NODE}/node1/cpulist", "16-31,48-63"),
    "distances": (f"{NODE}/node1/distance", "21 10"),
    "memory of a zone": (f"{NODE}/node0/meminfo", "Node 0 MemTotal: 134217728 kB\nNode 0 MemFree: 134217728 kB"),
    "pages of a zone": (f"{NODE}/node0/hugepages/hugepages-2048kB/nr_hugepages", "0"),
    "pages of all zones": ("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0"),
}


@pytest.mark.parametrize("path, text", LINES.values(), ids=LINES)
def test_a_file_says_what_the_kernel_would_say(path: str, text: str) -> None:
    assert machinetree.files(SMT)[path] == text


def test_cpus_of_a_zone_are_links_to_those_of_the_machine() -> None:
    assert machinetree.links(SMT)[f"{NODE}/node1/cpu16"] == "../../cpu/cpu16"
    assert len(machinetree.links(SMT)) == 64


def test_cores_that_share_an_l3_are_listed_with_it() -> None:
    place = f"{CPU}/cpu0/cache/index3"
    files = machinetree.files(presets.machine("epyc-nps4"))
    assert files[f"{place}/shared_cpu_list"] == "0-7,128-135"
    assert files[f"{place}/shared_cpu_map"].count("1") + files[f"{place}/shared_cpu_map"].count("f") > 0
    assert not any("cache" in path for path in machinetree.files(SMT))


def test_a_zone_lists_distances_to_zones_that_exist_only() -> None:
    files = machinetree.files(GAPS)
    assert files[f"{NODE}/node2/distance"] == "20 10"
    assert files[f"{NODE}/online"] == "0,2"
    assert (files[f"{NODE}/has_cpu"], files[f"{NODE}/has_memory"]) == ("0", "0,2")


@pytest.mark.parametrize("name", presets.names())
def test_cpuinfo_has_a_block_for_every_cpu(name: str) -> None:
    machine = presets.machine(name)
    told = re.findall(r"^processor\t: ([0-9]+)$", machinetree.files(machine)["proc/cpuinfo"], re.MULTILINE)
    assert len(told) == machine.capacity["cpu"] // 1000
    assert told == sorted(told, key=int)


def test_what_is_written_can_be_walked(tmp_path: Path) -> None:
    machinetree.write(SMT, tmp_path)
    assert (tmp_path / NODE / "node1" / "cpu48" / "topology" / "core_id").read_text() == "0\n"
    assert {path.name for path in (tmp_path / machinetree.HUGEPAGES).iterdir()} == {
        "hugepages-2048kB",
        "hugepages-1048576kB",
    }
