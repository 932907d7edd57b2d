"""Hardware that changes under a running kubelet: a report tells of what the kubelet counts on, and never breaks."""

from __future__ import annotations

import pytest
from msgspec import structs

from numalign.agent import inventory, kubeletview
from numalign.agent.checkpoints import MemoryCheckpoint, Sizes
from numalign.agent.inventory import Mode
from numalign.agent.matching import Told
from numalign.kubelet import configuration, report, start
from numalign.kubelet.machine import Core, HugePages, Machine, Zone
from numalign.kubelet.memory.state import MemoryState, Table, ZoneMemory
from tests.unit.agent import kubelet_looks as looks

GIB = 1 << 30
PAGES = HugePages(2048, 1024)
MACHINE = Machine(
    "node", tuple(Zone(zone, (Core(zone, (2 * zone, 2 * zone + 1)),), 8 * GIB, (PAGES,), (10, 20)) for zone in (0, 1))
)
CONFIG = {
    "apiVersion": configuration.API_VERSION,
    "kind": configuration.KIND,
    "memoryManagerPolicy": "Static",
    "evictionHard": {"memory.available": "1Gi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}
KUBELET = start.start(MACHINE, configuration.read(CONFIG, "config.yaml", MACHINE))
STATE = KUBELET.initial()


def changed(**fields: object) -> Machine:
    return Machine("node", tuple(structs.replace(zone, **fields) for zone in MACHINE.zones))


def with_zone_added() -> Machine:
    return Machine("node", (*MACHINE.zones, Zone(2, (), 4 * GIB, (), (20, 20, 10))))


LATER = {
    "fewer pages": changed(hugepages=(HugePages(2048, 512),)),
    "more pages": changed(hugepages=(HugePages(2048, 2048),)),
    "pages of another size": changed(hugepages=(PAGES, HugePages(64, 512))),
    "less memory": changed(memory=4 * GIB),
    "another zone": with_zone_added(),
}


def told(machine: Machine, mode: Mode = "own") -> object:
    read = structs.replace(looks.at(KUBELET, STATE), machine=machine)
    return inventory.of(read, machine, Told()).report("n", mode)


@pytest.mark.parametrize("change", LATER)
def test_what_the_kernel_shows_later_counts_once_the_kubelet_has_started_anew(change: str) -> None:
    assert told(LATER[change]) == report.of("n", KUBELET, STATE)
    for mode in ("rte", "nfd"):
        assert told(LATER[change], mode) == told(MACHINE, mode)


def seen(machine: Machine) -> Machine:
    checkpoint = MemoryCheckpoint("Static", MemoryState({}), looks.sizes(MACHINE))
    return kubeletview.of(machine, checkpoint, KUBELET.settings)


def test_what_the_kubelet_does_not_know_of_is_said() -> None:
    machine = Machine("node", (structs.replace(MACHINE.zones[0], hugepages=()), *with_zone_added().zones[1:]))
    assert list(kubeletview.changes(machine, seen(machine))) == [
        "zone 0 has 0 bytes of hugepages-2Mi by now, and the kubelet counts on 2147483648 until it starts anew",
        "zone 2 came after the kubelet started, which does not know it; left out",
    ]
    assert not list(kubeletview.changes(MACHINE, seen(MACHINE)))


def test_a_checkpoint_of_a_manager_that_is_not_on_says_nothing_of_the_machine() -> None:
    checkpoint = MemoryCheckpoint("Static", MemoryState({}), looks.sizes(MACHINE))
    without = structs.replace(KUBELET.settings, memory_policy="None")
    assert kubeletview.of(LATER["less memory"], checkpoint, without) == LATER["less memory"]
    assert kubeletview.of(LATER["less memory"], None, KUBELET.settings) == LATER["less memory"]


@pytest.mark.parametrize("zones", [(), (5,)])
def test_a_checkpoint_without_any_zone_of_the_machine_leaves_what_others_say(zones: tuple[int, ...]) -> None:
    tables = {zone: ZoneMemory(1 << zone, {"memory": Table(GIB)}) for zone in zones}
    other = MemoryCheckpoint("Static", MemoryState(tables), {zone: {"memory": Sizes(GIB, 0, GIB)} for zone in zones})
    read = structs.replace(looks.at(KUBELET, STATE), memory_checkpoint=other)
    assert inventory.of(read, MACHINE, Told()).report("n") == report.of("n", KUBELET, STATE)


def test_a_size_of_pages_that_no_kubelet_would_name_so_is_passed_by() -> None:
    odd = {kind: Sizes(GIB, 0, GIB) for kind in ("memory", "hugepages-", "hugepages-3", "hugepages-1024Mi")}
    found = kubeletview.of(MACHINE, MemoryCheckpoint("Static", MemoryState({}), {0: odd}), KUBELET.settings)
    assert [(zone.id, zone.memory, zone.hugepages) for zone in found.zones] == [(0, GIB, ())]
