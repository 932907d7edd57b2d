"""Spreading a container over zones with distribute-cpus-across-numa (kubelet spec 5.7)."""

import pytest

from numalign.api.decode import cpuset
from numalign.kubelet.cpu import assignment, topology
from numalign.kubelet.cpu.assignment import Distributing
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import Refusal, Undecided
from tests.unit.kubelet import made

TWO = made.machine()
THREE = made.machine(zones=3)  # 0-3, 4-7, 8-11
FIVE = made.machine(zones=5)
SMT = made.machine(threads=2)  # zone 0: 0-3,8-11
SMT_THREE = made.machine(zones=3, threads=2)  # zone 0: 0-3,12-15
QUARTERS = made.machine(zones=4, cores=2, threads=2, sockets=2)  # zone 0: 0-1,8-9, socket 0: zones 0 and 1
SMALL_AND_LARGE = made.machine(zones=3, cores=(8, 2, 2))
ONE_LARGE = made.machine(zones=8, cores=(2, 10, 2, 2, 2, 2, 2, 2), sockets=2)

# Four zones of four CPUs in socket 0, eight of two in socket 1.
FOUR_AND_EIGHT = made.machine(zones=12, cores=(4,) * 4 + (2,) * 8, sockets=2)

EVENLY = {
    "nothing needed": (TWO, "0-7", 0, ""),
    "fits one zone": (TWO, "0-7", 4, "0-3"),
    "fits the only zone with room": (TWO, "2-7", 3, "4-6"),
    "half from either zone": (TWO, "0-7", 6, "0-2,4-6"),
    "equally good: the remainder starts with the first zone": (TWO, "0-7", 5, "0-2,4-5"),
    "the remainder from where more is left": (TWO, "1-7", 5, "1-2,4-6"),
    "the two zones that leave all alike": (THREE, "3-11", 6, "4-6,8-10"),
    "as few zones as possible": (THREE, "0-11", 8, "0-7"),
    "a remainder that empties a zone": (THREE, "1-3,5-7,9-11", 7, "1-3,5-6,9-10"),
    "no equal shares to be had: packed": (THREE, "3,6-11", 6, "3,6,8-11"),
    "fewer zones with room than the average asks for: packed": (SMALL_AND_LARGE, "0-7", 8, "0-7"),
    "a perfect balance ends the search": (ONE_LARGE, "0,2-5,12,14,16,18,20,22", 3, "2-4"),
}

IN_CORES = {
    "an odd number is packed": (SMT, "0-15", 3, "0-1,8"),
    "whole cores from either zone": (SMT, "0-15", 12, "0-2,4-6,8-10,12-14"),
    "a core more from the first": (SMT, "0-15", 10, "0-2,4-5,8-10,12-13"),
    "zones whose halves of cores do not add up are passed over": (
        SMT_THREE,
        "0-2,4-6,8-11,12-13,16-17,20-23",
        10,
        "0-1,8-10,12-13,20-22",
    ),
}

# Where zones in one socket beat a better balance: plain answer, then with align-by-socket.
SOCKETS = {
    "a better balance across sockets comes later": ("1-3,5-15", 6, "2-3,6-7,10,14", "1-3,8-10"),
    "a better balance across sockets comes first": ("1-3,5-7,10-15", 6, "2-3,6-7,10,14", "5-7,12-14"),
    "one zone is in one socket anyway": ("0-15", 4, "0-1,8-9", "0-1,8-9"),
}


def spread(
    machine: Machine, free: str, need: int, *, group: int = 1, by_socket: bool = False, capped: bool = True
) -> str:
    how = Distributing(group=group, by_socket=by_socket, capped=capped, picking=assignment.Picking())
    return cpuset.text(
        assignment.take_by_topology_distributed(topology.discover(machine), cpuset.parse(free), need, how)
    )


@pytest.mark.parametrize("machine, free, need, taken", EVENLY.values(), ids=EVENLY)
def test_shares_are_equal_and_zones_few(machine: Machine, free: str, need: int, taken: str) -> None:
    assert spread(machine, free, need) == taken


@pytest.mark.parametrize("machine, free, need, taken", IN_CORES.values(), ids=IN_CORES)
def test_whole_cores_are_handed_out_with_full_pcpus_only(machine: Machine, free: str, need: int, taken: str) -> None:
    assert spread(machine, free, need, group=2) == taken


@pytest.mark.parametrize("free, need, plain, aligned", SOCKETS.values(), ids=SOCKETS)
def test_zones_of_one_socket_win_only_when_asked_for(free: str, need: int, plain: str, aligned: str) -> None:
    assert spread(QUARTERS, free, need) == plain
    assert spread(QUARTERS, free, need, by_socket=True) == aligned


def test_a_zone_in_two_sockets_is_listed_twice_and_combined_with_itself() -> None:
    assert spread(made.machine(zones=3, cores=(2, 8, 2), sockets=2), "0-11", 6) == "2-7"


def test_a_zone_that_runs_out_is_passed_over_while_the_remainder_is_handed_out() -> None:
    assert spread(THREE, "2-3,5-11", 9, by_socket=True) == "2-3,5-11"


def test_with_sockets_in_mind_a_small_zone_gives_what_it_has() -> None:
    assert spread(THREE, "3,6-11", 6) == "3,6,8-11"
    assert spread(THREE, "3,6-11", 6, by_socket=True) == "6-11"


@pytest.mark.parametrize("group, need, free, available", [(1, 9, "0-7", 8), (1, 1, "", 0), (2, 6, "0-4", 5)])
def test_too_few_cpus_are_refused(group: int, need: int, free: str, available: int) -> None:
    with pytest.raises(Refusal) as refused:
        spread(TWO, free, need, group=group)
    assert refused.value.error == (
        f"not enough cpus available to satisfy request: requested={need}, available={available}"
    )


@pytest.mark.parametrize(
    "left, score", [((0, 4), 2.0), ((3, 3, 3), 0.0), ((0, 0, 1), 0.471), ((1, 2, 2), 0.471), ((0, 1, 3, 4), 1.581)]
)
def test_balance_is_the_deviation_of_what_is_left_to_three_decimals(left: tuple[int, ...], score: float) -> None:
    assert assignment._deviation(left) == score


@pytest.mark.parametrize(
    "size, overwritten", [(1, False), (2, False), (3, False), (4, True), (5, False), (6, True), (7, True), (8, True)]
)
def test_remembered_combinations_change_where_their_store_had_room(size: int, overwritten: bool) -> None:
    visited: list[tuple[list[int], assignment.Slice]] = []

    def visit(combination: assignment.Slice) -> bool:
        visited.append((combination.values(), combination))
        return True

    assignment.combinations(range(9), size, visit)
    assert any(then != remembered.values() for then, remembered in visited) is overwritten


def test_combinations_end_when_a_visit_says_so() -> None:
    visited: list[list[int]] = []

    def visit(combination: assignment.Slice) -> bool:
        visited.append(combination.values())
        return len(visited) < 2

    assignment.combinations([7, 8, 9], 2, visit)
    assert visited == [[7, 8], [7, 9]]


def test_there_is_no_combination_of_nothing() -> None:
    assignment.combinations([7, 8, 9], 0, lambda _: pytest.fail("visited"))


def test_the_fourth_zone_is_the_last_one_tried_and_not_the_best_one() -> None:
    assert spread(FIVE, "0-19", 16) == "0-11,16-19"


def test_an_overwritten_zone_that_is_too_small_is_an_accounting_error_before_shares_were_capped() -> None:
    with pytest.raises(Refusal) as refused:
        spread(FOUR_AND_EIGHT, "0-31", 12, capped=False)
    assert refused.value.error == "accounting error, not enough CPUs allocated, remaining: 3"


def test_an_overwritten_zone_that_is_too_small_keeps_the_kubelet_busy_for_ever_since() -> None:
    with pytest.raises(Undecided) as undecided:
        spread(FOUR_AND_EIGHT, "0-31", 12)
    assert str(undecided.value) == assignment.HANGS


def test_halves_of_cores_that_add_up_on_paper_keep_the_kubelet_busy_for_ever() -> None:
    machine = made.machine(zones=4, cores=3, threads=2)
    with pytest.raises(Undecided) as undecided:
        spread(machine, "0-1,12,3-4,15-16,6-8,18-19,9-11,21-22", 14, group=2)
    assert str(undecided.value) == assignment.HANGS


def test_too_many_combinations_are_given_up_with_an_estimate() -> None:
    with pytest.raises(Undecided) as undecided:
        spread(made.machine(zones=20), "0-79", 40)
    assert undecided.value.why == "the kubelet would try every combination of zones and every share of the remainder"
    assert undecided.value.count is not None
    assert undecided.value.count > assignment.BUDGET
