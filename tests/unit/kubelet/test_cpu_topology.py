"""The CPU manager's view of a machine: ids, averages and overlaps (kubelet spec 4)."""

import pytest

from numalign.api.decode import cpuset
from numalign.kubelet.cpu import topology
from numalign.kubelet.cpu.topology import CPUTopology
from numalign.kubelet.machine.machine import Core, Machine, Zone
from tests.unit.kubelet import made

SMT = made.machine(cores=4, threads=2)
QUARTERS = made.machine(zones=4, cores=2, threads=2, sockets=2)
UNEVEN = Machine(
    "uneven",
    (
        Zone(0, (Core(0, (0, 1)), Core(0, (2, 3)), Core(0, (4, 5)))),
        Zone(1, (Core(1, (6,)),)),
    ),
)

UNCORES = {
    "none reported: the socket stands in": (made.machine(), {0: "0-3", 1: "4-7"}),
    "two to a socket": (made.machine(uncores=4), {0: "0-1", 1: "2-3", 2: "4-5", 3: "6-7"}),
    "one across sockets": (made.machine(uncores=1), {0: "0-7"}),
}

ZONES_FIRST = {
    "a socket per zone": (made.machine(), True),
    "two sockets in a zone": (made.machine(zones=1, sockets=2), True),
    "two zones in a socket": (QUARTERS, False),
    "a zone without CPUs is not counted": (made.machine(cores=(4, 0), sockets=1), True),
}

TOUCHING = {
    "one zone, its whole socket": (0b0001, "0-3,8-11"),
    "two zones of one socket": (0b0011, "0-3,8-11"),
    "zones of both sockets": (0b0110, "0-15"),
    "no zone": (0, ""),
    "a zone without CPUs": (0b10000, ""),
}


def named(elements: topology.Elements) -> dict[int, str]:
    return {key: cpuset.text(cpus) for key, cpus in elements.items()}


def test_a_core_is_named_after_its_lowest_cpu() -> None:
    machine = Machine("m", (Zone(0, (Core(0, (9, 1)), Core(0, (8, 0)))),))
    assert named(topology.discover(machine).cores) == {1: "1,9", 0: "0,8"}


@pytest.mark.parametrize("machine, expected", UNCORES.values(), ids=UNCORES)
def test_l3_groups(machine: Machine, expected: dict[int, str]) -> None:
    assert named(topology.discover(machine).uncores) == expected


def test_zones_and_sockets_hold_both_threads_of_their_cores() -> None:
    view = topology.discover(QUARTERS)
    assert named(view.zones) == {0: "0-1,8-9", 1: "2-3,10-11", 2: "4-5,12-13", 3: "6-7,14-15"}
    assert named(view.sockets) == {0: "0-3,8-11", 1: "4-7,12-15"}
    assert cpuset.text(view.cpus) == "0-15"


def test_zones_keep_their_real_ids() -> None:
    assert named(topology.discover(made.machine(ids=(1, 5))).zones) == {1: "0-3", 5: "4-7"}


def test_a_zone_without_cpus_is_unknown() -> None:
    view = topology.discover(made.machine(cores=(4, 0), sockets=1))
    assert named(view.zones) == {0: "0-3"}
    assert view.of_zones(0b11) == cpuset.parse("0-3")


@pytest.mark.parametrize(
    "machine, per_core, per_socket, per_uncore",
    [(SMT, 2, 8, 8), (UNEVEN, 1, 3, 3), (made.machine(cores=3, uncores=4), 1, 3, 1), (Machine("empty", ()), 0, 0, 0)],
    ids=["even", "seven CPUs in four cores and two sockets", "six CPUs in four L3 groups", "no CPUs at all"],
)
def test_sizes_are_averages_of_the_whole_machine(
    machine: Machine, per_core: int, per_socket: int, per_uncore: int
) -> None:
    view = topology.discover(machine)
    assert (view.cpus_per_core, view.cpus_per_socket, view.cpus_per_uncore) == (per_core, per_socket, per_uncore)


@pytest.mark.parametrize("machine, expected", ZONES_FIRST.values(), ids=ZONES_FIRST)
def test_zones_come_first_where_sockets_are_as_many(machine: Machine, expected: bool) -> None:
    assert topology.discover(machine).zones_first is expected


@pytest.mark.parametrize("mask, expected", TOUCHING.values(), ids=TOUCHING)
def test_sockets_that_touch_a_mask_count_whole(mask: int, expected: str) -> None:
    assert cpuset.text(topology.discover(QUARTERS).of_sockets_touching(mask)) == expected


@pytest.mark.parametrize("mask, expected", [(0b1, "0-1,8-9"), (0b101, "0-1,4-5,8-9,12-13"), (0, "")])
def test_zones_of_a_mask(mask: int, expected: str) -> None:
    assert cpuset.text(topology.discover(QUARTERS).of_zones(mask)) == expected


@pytest.mark.parametrize("cpus, expected", [("0", "0,8"), ("8", "0,8"), ("1,15", "1,7,9,15"), ("", "")])
def test_cpus_are_completed_with_their_core_siblings(cpus: str, expected: str) -> None:
    assert cpuset.text(topology.discover(SMT).whole_cores(cpuset.parse(cpus))) == expected


def test_cpus_are_counted_by_the_mask_of_their_zone() -> None:
    view = topology.discover(made.machine(ids=(1, 3)))
    assert view.by_zone(cpuset.parse("0-4")) == {0b10: 4, 0b1000: 1}


def test_what_lies_in_what() -> None:
    view = topology.discover(made.machine(zones=4, cores=2, sockets=2, uncores=4))
    assert view.zones_in_socket == {0: (0, 1), 1: (2, 3)}
    assert view.sockets_in_zone == {0: (0,), 1: (0,), 2: (1,), 3: (1,)}
    assert view.uncores_in_zone == {0: (0,), 1: (1,), 2: (2,), 3: (3,)}
    assert view.cores_in_zone[3] == view.cores_in_uncore[3] == (6, 7)
    assert view.cores_in_socket == {0: (0, 1, 2, 3), 1: (4, 5, 6, 7)}


def test_a_socket_may_lie_in_several_zones() -> None:
    machine = Machine("m", (Zone(0, (Core(0, (0,)), Core(1, (1,)))), Zone(1, (Core(0, (2,)), Core(1, (3,))))))
    view: CPUTopology = topology.discover(machine)
    assert view.zones_in_socket == {0: (0, 1), 1: (0, 1)}
    assert view.of_sockets_touching(0b01) == view.cpus
