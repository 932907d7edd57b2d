"""The packed picker, step by step (kubelet spec 5.6)."""

import pytest

from numalign.api.decode import cpuset
from numalign.kubelet.cpu import assignment, topology
from numalign.kubelet.cpu.assignment import Picking
from numalign.kubelet.machine.machine import Core, Machine, Zone
from numalign.kubelet.refusals import UNEXPECTED, Refusal
from tests.unit.kubelet import made

PLAIN = made.machine()
SMT = made.machine(threads=2)  # zone 0: 0-3,8-11
QUARTERS = made.machine(zones=4, cores=2, threads=2, sockets=2)  # zone 0: 0-1,8-9, socket 0: 0-3,8-11
HALVES = made.machine(sockets=4)  # two sockets in each zone
ONE_L3_TWO = made.machine(zones=1, cores=8, threads=2, uncores=2)  # L3 0: 0-3,8-11
NO_SMT_L3 = made.machine(zones=1, cores=8, uncores=2)

# Half of the cores have two threads: on average a core has one CPU.
HYBRID = Machine("hybrid", (Zone(0, (Core(0, (0, 1)), Core(0, (2, 3)), Core(0, (4,)), Core(0, (5,)), Core(0, (6,)))),))

# Socket 0 lies in both zones.
CROSSED = Machine(
    "crossed",
    (
        Zone(0, (Core(0, (0,)), Core(0, (1,)), *(Core(1, (cpu,)) for cpu in range(4, 8)))),
        Zone(1, (Core(0, (2,)), Core(0, (3,)), *(Core(2, (cpu,)) for cpu in range(8, 12)))),
    ),
)

BIG_BEFORE_SMALL = made.machine(zones=4, cores=(4, 4, 6, 2), sockets=2)

LARGE_TO_SMALL = {
    "nothing needed": (PLAIN, "0-7", 0, ""),
    "less than nothing": (PLAIN, "0-7", -1, ""),
    "the lower of equal zones": (PLAIN, "0-7", 4, "0-3"),
    "a whole zone before one broken into": (PLAIN, "1-7", 4, "4-7"),
    "too little for a zone: the fuller one first": (PLAIN, "1-7", 3, "1-3"),
    "a whole zone and the rest from the fuller one": (PLAIN, "1-7", 5, "1,4-7"),
    "everything": (PLAIN, "0-7", 8, "0-7"),
    "socket after zone where a zone has several": (HALVES, "0-7", 6, "0-5"),
    "a whole socket before a broken one": (HALVES, "1-7", 2, "2-3"),
    "a whole socket before zones": (QUARTERS, "0-15", 8, "0-3,8-11"),
    "a whole zone in the fuller socket": (QUARTERS, "1-15", 4, "2-3,10-11"),
    "a socket, then a zone of the next": (QUARTERS, "0-15", 12, "0-5,8-13"),
    "what is too large is passed over, what follows is not": (BIG_BEFORE_SMALL, "0-15", 2, "14-15"),
}

CORES_AND_CPUS = {
    "whole cores before broken ones": (SMT, "1-15", 2, "1,9"),
    "a single CPU out of a broken core": (SMT, "1-15", 1, "8"),
    "a core and a single CPU": (SMT, "1-15", 3, "1,8-9"),
    "no broken core: half of the lowest": (SMT, "0-15", 1, "0"),
    "only broken cores left": (SMT, "0-7", 2, "0-1"),
    "single CPUs out of the fuller zone": (SMT, "0-3,5-7", 2, "5-6"),
    "cores of the fuller socket and zone": (QUARTERS, "0-3,5-7,8-15", 2, "5,13"),
}

AVERAGES = {
    "a core above average is never whole": (HYBRID, "0-6", 3, "4-6"),
    "half a core is whole on average and taken with its busy half": (HYBRID, "0,4-6", 2, "0-1"),
    "a socket in two zones counts twice, so half is missing": (CROSSED, "0-6,8-10", 8, "0-3"),
}

SPREAD = {
    "thread by thread": (SMT, "0-15", 3, "0-2"),
    "not even a free core is kept together": (SMT, "1-15", 3, "1-3"),
    "in the fuller socket": (SMT, "0-3,5-15", 2, "5-6"),
    "whole zones still come first": (SMT, "0-15", 9, "0-4,8-11"),
}

L3_GROUPS = {
    "a whole group": (ONE_L3_TWO, "0-15", 8, "0-3,8-11"),
    "the whole group, not the one broken into": (ONE_L3_TWO, "1-15", 8, "4-7,12-15"),
    "part of one, lowest cores first": (ONE_L3_TWO, "0-15", 4, "0-1,8-9"),
    "an odd number leaves out the highest CPU": (ONE_L3_TWO, "0-15", 3, "0-1,8"),
    "an odd number leaves broken cores alone": (ONE_L3_TWO, "0-1,3-9,12-15", 3, "0-1,8"),
    "a group and a part of the next": (ONE_L3_TWO, "0-15", 10, "0-4,8-12"),
    "part of the fuller one only if it fits exactly": (ONE_L3_TWO, "1-15", 4, "4-5,12-13"),
    "an odd number that happens to fit": (ONE_L3_TWO, "1-15", 3, "1,8-9"),
    "fits nowhere exactly: whole cores": (ONE_L3_TWO, "1,4-5,8-9,12", 4, "1,4,9,12"),
    "an odd number without threads": (NO_SMT_L3, "0-7", 3, "0-2"),
    "without threads nothing is left out": (NO_SMT_L3, "1-7", 3, "1-3"),
    "a zone before its groups": (ONE_L3_TWO, "0-15", 16, "0-15"),
}


def picked(machine: Machine, free: str, need: int, picking: Picking) -> str:
    return cpuset.text(
        assignment.take_by_topology_packed(topology.discover(machine), cpuset.parse(free), need, picking)
    )


@pytest.mark.parametrize("machine, free, need, taken", LARGE_TO_SMALL.values(), ids=LARGE_TO_SMALL)
def test_the_largest_free_units_go_first(machine: Machine, free: str, need: int, taken: str) -> None:
    assert picked(machine, free, need, Picking()) == taken


@pytest.mark.parametrize("machine, free, need, taken", CORES_AND_CPUS.values(), ids=CORES_AND_CPUS)
def test_then_whole_cores_then_single_cpus(machine: Machine, free: str, need: int, taken: str) -> None:
    assert picked(machine, free, need, Picking()) == taken


@pytest.mark.parametrize("machine, free, need, taken", AVERAGES.values(), ids=AVERAGES)
def test_uneven_machines_are_measured_by_their_average(machine: Machine, free: str, need: int, taken: str) -> None:
    assert picked(machine, free, need, Picking()) == taken


@pytest.mark.parametrize("machine, free, need, taken", SPREAD.values(), ids=SPREAD)
def test_spreading_goes_through_a_socket_by_cpu_id(machine: Machine, free: str, need: int, taken: str) -> None:
    assert picked(machine, free, need, Picking(spread=True)) == taken


@pytest.mark.parametrize("machine, free, need, taken", L3_GROUPS.values(), ids=L3_GROUPS)
def test_l3_groups_are_kept_together(machine: Machine, free: str, need: int, taken: str) -> None:
    assert picked(machine, free, need, Picking(align_uncore=True)) == taken


def test_l3_groups_mean_nothing_unless_asked_for() -> None:
    assert picked(ONE_L3_TWO, "1-15", 4, Picking()) == "1-2,9-10"


@pytest.mark.parametrize("free, need, available", [("0-3", 5, 4), ("", 1, 0)])
def test_too_few_cpus_are_refused_in_the_kubelets_words(free: str, need: int, available: int) -> None:
    with pytest.raises(Refusal) as refused:
        picked(PLAIN, free, need, Picking())
    assert refused.value.error == (
        f"not enough cpus available to satisfy request: requested={need}, available={available}"
    )
    assert refused.value.reason == UNEXPECTED


def test_cpus_that_the_machine_does_not_have_are_counted_in_the_text_only() -> None:
    with pytest.raises(Refusal, match=r"requested=9, available=9$"):
        picked(PLAIN, "0-8", 9, Picking())
