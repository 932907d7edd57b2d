"""Starting and restarting the CPU manager: reserved CPUs and checkpoints (kubelet spec 5.1, 5.9, 12)."""

from collections.abc import Mapping
from typing import Any

import pytest

from numalign.api.decode import cpuset
from numalign.kubelet.cpu import static
from numalign.kubelet.cpu.state import CPUState, ReusableCpus
from numalign.kubelet.cpu.static import ACROSS_CORES, ACROSS_NUMA, FULL_PCPUS_ONLY, STRICT_RESERVATION, StaticCPUs
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import StartRefusal
from tests.unit.kubelet import made

PLAIN = made.machine()
SMT = made.machine(threads=2)
ALPHA_ON = {"CPUManagerPolicyAlphaOptions": True}

PICKED = {
    "the lowest core": (SMT, 1000, {}, "0"),
    "both threads of it": (SMT, 2000, {}, "0,8"),
    "a fraction counts whole": (SMT, 1001, {}, "0,8"),
    "less than one as well": (SMT, 1, {}, "0"),
    "a whole zone": (PLAIN, 4000, {}, "0-3"),
    "spread over cores": (SMT, 2000, {ACROSS_CORES: "true"}, "0-1"),
    "spread over zones": (PLAIN, 6000, {ACROSS_NUMA: "true"}, "0-2,4-6"),
}

# (reservedSystemCPUs, reserved milli-CPUs, refusal)
RESERVED = {
    "too few": ("0", 2000, "[cpumanager] unable to reserve the required amount of CPUs (size of 0 did not equal 2)"),
    "too many": (
        "0-2,5",
        1500,
        "[cpumanager] unable to reserve the required amount of CPUs (size of 0-2,5 did not equal 2)",
    ),
    "none can be picked": (
        "",
        9000,
        "[cpumanager] unable to reserve the required amount of CPUs (size of  did not equal 9)",
    ),
    "a CPU that is not there": (
        "0,8",
        2000,
        "[cpumanager] unable to build the reserved physical CPUs from the reserved set: unknown CPU ID: 8",
    ),
}

# (shared set, assignments of pod p, whether reservation is strict, refusal); CPU 0 is reserved on an 8 CPU machine.
CHECKPOINTS = {
    "all shared": ("0-7", {}, False, None),
    "some assigned": ("0-3", {"c": "4-7"}, False, None),
    "strict, all shared": ("1-7", {}, True, None),
    "strict, some assigned": ("1-3", {"c": "4-5", "d": "6-7"}, True, None),
    "containers may overlap each other": ("0-3", {"init": "4-7", "c": "4-5"}, False, None),
    "nothing shared but something assigned": ("", {"c": "0-7"}, False, "default cpuset cannot be empty"),
    "reserved CPUs are not shared": (
        "1-7",
        {},
        False,
        'not all reserved cpus: "0" are present in defaultCpuSet: "1-7"',
    ),
    "reserved CPUs are shared": (
        "0-7",
        {},
        True,
        'some of strictly reserved cpus: "0" are present in defaultCpuSet: "0-7"',
    ),
    "assigned CPUs are shared": (
        "0-4",
        {"c": "4-7"},
        False,
        'pod: p, container: c cpuset: "4-7" overlaps with default cpuset "0-4"',
    ),
    "a CPU went away": (
        "0-8",
        {},
        False,
        'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-8"',
    ),
    "a CPU came": (
        "0-3",
        {"c": "4-6"},
        False,
        'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-6"',
    ),
    "strict, a CPU came": (
        "1-6",
        {},
        True,
        'current set of available CPUs "1-7" doesn\'t match with CPUs in state "1-6"',
    ),
    "reserved CPUs are looked at before overlaps": (
        "1-7",
        {"c": "4-7"},
        False,
        'not all reserved cpus: "0" are present in defaultCpuSet: "1-7"',
    ),
    "overlaps are looked at before what is missing": (
        "0-4",
        {"c": "4"},
        False,
        'pod: p, container: c cpuset: "4" overlaps with default cpuset "0-4"',
    ),
}


def policy(on: Machine = PLAIN, **settings: Any) -> StaticCPUs:
    started = static.start_cpu_manager(on, made.settings(**settings))
    assert started is not None
    return started


def refusal(on: Machine = PLAIN, **settings: Any) -> str:
    with pytest.raises(StartRefusal) as refused:
        static.start_cpu_manager(on, made.settings(**settings))
    assert refused.value.manager == "cpumanager"
    return refused.value.error


def checkpoint(shared: str, assigned: Mapping[str, str]) -> CPUState:
    held = {"p": {name: cpuset.parse(cpus) for name, cpus in assigned.items()}} if assigned else {}
    return CPUState(default=cpuset.parse(shared), assignments=held)


def test_the_none_policy_does_nothing_and_needs_no_reservation() -> None:
    assert static.start_cpu_manager(PLAIN, made.settings(cpu=False)) is None


def test_the_none_policy_refuses_options_whatever_they_say() -> None:
    chosen = {STRICT_RESERVATION: "true", FULL_PCPUS_ONLY: "maybe"}
    assert refusal(cpu=False, cpu_options=chosen) == (
        "new none policy error: None policy: received unsupported "
        "options=map[full-pcpus-only:maybe strict-cpu-reservation:true]"
    )


@pytest.mark.parametrize("machine, milli, chosen, expected", PICKED.values(), ids=PICKED)
def test_without_a_list_the_picker_reserves(
    machine: Machine, milli: int, chosen: dict[str, str], expected: str
) -> None:
    settings = {"reserved": {"cpu": milli}, "cpu_options": chosen, "feature_gates": ALPHA_ON}
    assert cpuset.text(policy(machine, reserved_cpus="", **settings).reserved) == expected


@pytest.mark.parametrize("reserved", ["0", "3,7", "0-7"])
def test_a_list_of_reserved_cpus_is_taken_as_it_is(reserved: str) -> None:
    assert cpuset.text(policy(reserved_cpus=reserved).reserved) == reserved


@pytest.mark.parametrize("listed, milli, expected", RESERVED.values(), ids=RESERVED)
def test_a_reservation_that_cannot_be_made(listed: str, milli: int, expected: str) -> None:
    assert refusal(reserved_cpus=listed, reserved={"cpu": milli}) == f"new static policy error: {expected}"


def test_bad_options_keep_the_kubelet_from_starting() -> None:
    assert refusal(cpu_options={FULL_PCPUS_ONLY: "maybe"}) == (
        'new static policy error: bad value for option "full-pcpus-only": strconv.ParseBool: parsing "maybe": '
        "invalid syntax"
    )


@pytest.mark.parametrize("reserved", [{}, {"cpu": 0}, {"memory": 1}], ids=["nothing", "zero", "something else"])
def test_a_reservation_is_asked_for_before_options_are_looked_at(reserved: dict[str, int]) -> None:
    error = refusal(reserved_cpus="", reserved=reserved, cpu_options={FULL_PCPUS_ONLY: "maybe"})
    assert error.startswith("[cpumanager] ")
    assert "static policy" in error


def test_options_are_looked_at_before_the_reserved_cpus() -> None:
    error = refusal(reserved_cpus="0", reserved={"cpu": 2000}, cpu_options={"no-such-option": "true"})
    assert error == 'new static policy error: unknown CPU Manager Policy option: "no-such-option"'


@pytest.mark.parametrize("shared, assigned, strict, refused", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_checkpoints_that_a_new_process_takes_over_or_refuses(
    shared: str, assigned: dict[str, str], strict: bool, refused: str | None
) -> None:
    kubelet = policy(cpu_options={STRICT_RESERVATION: "true"} if strict else {})
    state = checkpoint(shared, assigned)
    if refused is None:
        assert static.restart_cpu_manager(kubelet, state) == state
        return
    with pytest.raises(StartRefusal) as refusal:
        static.restart_cpu_manager(kubelet, state)
    assert refusal.value.error == refused


@pytest.mark.parametrize("chosen, shared", [({}, "0-7"), ({STRICT_RESERVATION: "true"}, "1-7")])
def test_an_empty_checkpoint_is_a_first_start(chosen: dict[str, str], shared: str) -> None:
    kubelet = policy(cpu_options=chosen)
    assert static.restart_cpu_manager(kubelet, CPUState(default=0)) == CPUState(default=cpuset.parse(shared))


def test_cpus_of_pods_served_whole_are_known_without_their_containers() -> None:
    state = CPUState(default=cpuset.parse("0-3"), pods={"p": cpuset.parse("4-7")})
    assert static.restart_cpu_manager(policy(), state) == state


def test_a_pod_that_was_served_twice_leaks_cpus() -> None:
    state = CPUState(default=cpuset.parse("0-3"), pods={"p": cpuset.parse("6-7")})
    with pytest.raises(StartRefusal, match='CPUs in state "0-3,6-7"'):
        static.restart_cpu_manager(policy(), state)


def test_what_init_containers_left_is_forgotten() -> None:
    left = CPUState(default=cpuset.parse("0-3"), assignments={"p": {"i": 0xF0}}, reuse=ReusableCpus("p", 0xF0))
    assert static.restart_cpu_manager(policy(), left).reuse == ReusableCpus()
