"""Hardware that changes under a running kubelet: the report shows what the kubelet uses."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pytest
from msgspec import structs

from numalign.agent.inventory import inventory, startview
from numalign.agent.inventory.inventory import Mode
from numalign.agent.inventory.podidentity import KnownUids
from numalign.agent.inventory.readings import Readings
from numalign.agent.inventory.startview import Evidence
from numalign.agent.sources.checkpoints import CPUCheckpoint, MemoryCheckpoint, Sizes
from numalign.api.decode import cpuset
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kubelet import admission, configuration, start
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.machine.machine import Core, HugePages, Machine, Zone
from numalign.kubelet.memory.state import MemoryState, Table, ZoneMemory
from numalign.kubelet.report import report
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from tests import nodes
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
    return inventory.of(read, machine, KnownUids()).report("n", mode)


@pytest.mark.parametrize("change", LATER)
def test_hardware_changes_count_from_the_next_start_of_the_kubelet(change: str) -> None:
    assert told(LATER[change]) == report.of("n", KUBELET, STATE)
    for mode in ("rte", "nfd"):
        assert told(LATER[change], mode) == told(MACHINE, mode)


FOUND = Evidence(memory=MemoryCheckpoint("Static", MemoryState({}), looks.sizes(MACHINE)))


def test_changes_that_the_kubelet_does_not_know_are_reported() -> None:
    machine = Machine("node", (structs.replace(MACHINE.zones[0], hugepages=()), *with_zone_added().zones[1:]))
    assert list(startview.changes(machine, KUBELET.settings, FOUND)) == [
        "zone 0 has 0 bytes of hugepages-2Mi now; the kubelet uses 2147483648 until it restarts",
        "zone 2 appeared after the kubelet started, which does not know it; ignored",
    ]
    assert not list(startview.changes(MACHINE, KUBELET.settings, FOUND))


def test_a_checkpoint_of_a_disabled_manager_is_ignored() -> None:
    without = structs.replace(KUBELET.settings, memory_policy="None")
    assert startview.of(LATER["less memory"], without, FOUND) == LATER["less memory"]
    assert startview.of(LATER["less memory"], KUBELET.settings, Evidence()) == LATER["less memory"]


@pytest.mark.parametrize("zones", [(), (5,)])
def test_a_checkpoint_without_a_zone_of_the_machine_is_ignored(zones: tuple[int, ...]) -> None:
    tables = {zone: ZoneMemory(1 << zone, {"memory": Table(GIB)}) for zone in zones}
    other = MemoryCheckpoint("Static", MemoryState(tables), {zone: {"memory": Sizes(GIB, 0, GIB)} for zone in zones})
    read = structs.replace(looks.at(KUBELET, STATE), memory_checkpoint=other)
    assert inventory.of(read, MACHINE, KnownUids()).report("n") == report.of("n", KUBELET, STATE)


def test_a_size_of_pages_that_no_kubelet_would_name_so_is_passed_by() -> None:
    odd = {kind: Sizes(GIB, 0, GIB) for kind in ("memory", "hugepages-", "hugepages-3", "hugepages-1024Mi")}
    evidence = Evidence(memory=MemoryCheckpoint("Static", MemoryState({}), {0: odd}))
    found = startview.of(MACHINE, KUBELET.settings, evidence)
    assert [(zone.id, zone.memory, zone.hugepages) for zone in found.zones] == [(0, GIB, ())]


SMT = nodes.machine(threads=2)
"""Of 16 CPUs, siblings neighbours."""
RESERVING: dict[str, dict[str, object]] = {
    "by list": {"reservedSystemCPUs": "0"},
    "by number": {"kubeReserved": {"cpu": "500m"}},
    "by list, strictly": {"reservedSystemCPUs": "0", "cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}},
    "by number, strictly": {
        "kubeReserved": {"cpu": "2"},
        "cpuManagerPolicyOptions": {"strict-cpu-reservation": "1"},
    },
}


def started_before(reserving: str, came: Collection[int]) -> Kubelet:
    """A kubelet with the static policy, on the machine as it was before some CPUs were switched on."""
    head = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND, "cpuManagerPolicy": "static"}
    machine = without(came)
    return start.start(machine, configuration.read(head | RESERVING[reserving], "config.yaml", machine))


def without(off: Collection[int]) -> Machine:
    def on(zone: Zone) -> Iterator[Core]:
        for core in zone.cores:
            if kept := tuple(cpu for cpu in core.cpus if cpu not in off):
                yield structs.replace(core, cpus=kept)

    return structs.replace(SMT, zones=tuple(structs.replace(zone, cores=tuple(on(zone))) for zone in SMT.zones))


def looked_at(kubelet: Kubelet, *, written: bool) -> tuple[KubeletState, Readings]:
    """With a pod on it, after the other CPUs were switched on."""
    state, outcome = admission.admit(kubelet, kubelet.initial(), nodes.simple("web", 2))
    assert outcome.admitted
    read = structs.replace(looks.at(kubelet, state), machine=SMT)
    return state, read if written else structs.replace(read, cpu_checkpoint=None)


CAME = [(7,), (3, 11), tuple(range(4, 8)), tuple(range(8, 16)), ()]
TOLD_APART = [("by list", True), ("by list", False), ("by number", True), ("by list, strictly", True)]


@pytest.mark.parametrize("came", CAME, ids=str)
@pytest.mark.parametrize("reserving, written", TOLD_APART)
def test_new_cpus_count_from_the_next_start_of_the_kubelet(
    reserving: str, written: bool, came: tuple[int, ...]
) -> None:
    kubelet = started_before(reserving, came)
    state, read = looked_at(kubelet, written=written)
    found = inventory.of(read, SMT, looks.told(state))
    assert found.report("n") == report.of("n", kubelet, state)
    assert not found.contradictions
    evidence = Evidence(read.cpu_checkpoint, None, read.allocatable)
    said = [
        f"CPUs {cpuset.text(cpuset.of(came))} came online after the kubelet started, which does not know them; ignored"
    ]
    assert list(startview.changes(SMT, kubelet.settings, evidence)) == (said if came else [])


@pytest.mark.parametrize("came", CAME, ids=str)
@pytest.mark.parametrize("reserving, written", [("by number", False), ("by number, strictly", True)])
def test_those_that_may_be_reserved_as_well_are_not_free_either(
    reserving: str, written: bool, came: tuple[int, ...]
) -> None:
    kubelet = started_before(reserving, came)
    state, read = looked_at(kubelet, written=written)
    found = inventory.of(read, SMT, looks.told(state))
    assert for_pods(found.report("n")) == for_pods(report.of("n", kubelet, state))
    assert bool(found.contradictions) is bool(came)


def for_pods(topology: NodeTopology) -> list[tuple[int, int]]:
    return [(zone.resources["cpu"].allocatable, zone.resources["cpu"].available) for zone in topology.zones]


def test_cpus_that_went_offline_are_reported() -> None:
    kubelet = started_before("by list", ())
    evidence = Evidence(CPUCheckpoint("static", CPUState(SMT.cpus)))
    assert list(startview.changes(without((7, 15)), kubelet.settings, evidence)) == [
        "CPUs 7,15 went offline after the kubelet started, which uses them until it restarts; ignored"
    ]


@pytest.mark.parametrize(
    "evidence",
    [Evidence(), Evidence(CPUCheckpoint("none", CPUState(0))), Evidence(CPUCheckpoint("static", CPUState(1 << 40)))],
    ids=["nothing", "another policy", "another machine"],
)
def test_who_knows_nothing_of_the_cpus_is_not_asked(evidence: Evidence) -> None:
    assert startview.of(SMT, started_before("by list", ()).settings, evidence) == SMT
