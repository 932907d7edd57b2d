"""Options of the static CPU policy: what exists when, what excludes what (kubelet spec 5.8)."""

from collections.abc import Mapping
from typing import Any

import pytest

from numalign.kubelet.cpu import static, topology
from numalign.kubelet.cpu.static import (
    ACROSS_CORES,
    ACROSS_NUMA,
    ALIGN_BY_SOCKET,
    ALIGN_UNCORE,
    FULL_PCPUS_ONLY,
    STRICT_RESERVATION,
    CPUOptions,
)
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.versions import Minor
from tests.unit.kubelet import made

ALPHA_ON = {"CPUManagerPolicyAlphaOptions": True}
BETA_OFF = {"CPUManagerPolicyBetaOptions": False}
ALPHA_MISSING = "CPU Manager Policy Alpha-level Options not enabled, but option "
BETA_MISSING = "CPU Manager Policy Beta-level Options not enabled, but option "

FIELDS = {
    FULL_PCPUS_ONLY: "full_pcpus_only",
    STRICT_RESERVATION: "strict_reservation",
    ALIGN_UNCORE: "align_uncore",
    ACROSS_NUMA: "across_numa",
    ALIGN_BY_SOCKET: "align_by_socket",
    ACROSS_CORES: "across_cores",
}

# (option, minor, feature gates, refusal or nothing)
MATURITY = {
    "alpha without its gate": (ALIGN_BY_SOCKET, Minor(1, 38), {}, f'{ALPHA_MISSING}"align-by-socket" provided'),
    "the other alpha one": (ACROSS_CORES, Minor(1, 38), {}, f'{ALPHA_MISSING}"distribute-cpus-across-cores" provided'),
    "alpha with its gate": (ALIGN_BY_SOCKET, Minor(1, 38), ALPHA_ON, None),
    "beta is on by default": (ACROSS_NUMA, Minor(1, 38), {}, None),
    "beta without its gate": (ACROSS_NUMA, Minor(1, 38), BETA_OFF, f'{BETA_MISSING}"{ACROSS_NUMA}" provided'),
    "beta does not need the alpha gate": (ACROSS_NUMA, Minor(1, 38), ALPHA_ON, None),
    "stable needs no gate": (FULL_PCPUS_ONLY, Minor(1, 34), BETA_OFF, None),
    "strict reservation, beta in 1.34": (
        STRICT_RESERVATION,
        Minor(1, 34),
        BETA_OFF,
        f'{BETA_MISSING}"strict-cpu-reservation" provided',
    ),
    "strict reservation, stable in 1.35": (STRICT_RESERVATION, Minor(1, 35), BETA_OFF, None),
    "L3 groups, beta in 1.35": (ALIGN_UNCORE, Minor(1, 35), BETA_OFF, f'{BETA_MISSING}"{ALIGN_UNCORE}" provided'),
    "L3 groups, stable in 1.36": (ALIGN_UNCORE, Minor(1, 36), BETA_OFF, None),
}

CONFLICTS = {
    "cores and whole cores": (FULL_PCPUS_ONLY, ACROSS_CORES),
    "cores and zones": (ACROSS_NUMA, ACROSS_CORES),
    "cores and L3 groups": (ALIGN_UNCORE, ACROSS_CORES),
    "zones and L3 groups": (ALIGN_UNCORE, ACROSS_NUMA),
}

TEXTS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}

SOCKETS = {
    "a socket per zone": (made.machine(), True),
    "two zones in a socket": (made.machine(sockets=1), True),
    "two sockets in a zone": (made.machine(sockets=4), False),
    "a zone without CPUs is no zone": (made.machine(cores=(4, 0), sockets=2), False),
}


def read(chosen: Mapping[str, str], on: Machine | None = None, **settings: Any) -> CPUOptions:
    configured = made.settings(cpu_options=chosen, **settings)
    return static.read_options(configured, topology.discover(on or made.machine()))


def refusal(chosen: Mapping[str, str], on: Machine | None = None, **settings: Any) -> str:
    with pytest.raises(StartRefusal) as refused:
        read(chosen, on, **settings)
    assert refused.value.manager == "cpumanager"
    return refused.value.error


def test_nothing_is_on_by_itself() -> None:
    assert read({}) == CPUOptions()


@pytest.mark.parametrize("option, field", FIELDS.items(), ids=FIELDS)
def test_an_option_turns_on_what_it_names(option: str, field: str) -> None:
    assert read({option: "true"}, feature_gates=ALPHA_ON) == CPUOptions(**{field: True})


@pytest.mark.parametrize("option, minor, gates, refused", MATURITY.values(), ids=MATURITY)
def test_an_option_needs_the_gate_of_its_maturity(
    option: str, minor: Minor, gates: dict[str, bool], refused: str | None
) -> None:
    chosen = {option: "true"}
    settings: dict[str, Any] = {"minor": minor, "feature_gates": gates}
    if refused is None:
        assert getattr(read(chosen, **settings), FIELDS[option]) is True
    else:
        assert refusal(chosen, **settings) == refused


def test_an_option_without_its_gate_is_refused_even_when_it_is_turned_off() -> None:
    assert refusal({ALIGN_BY_SOCKET: "false"}) == f'{ALPHA_MISSING}"align-by-socket" provided'


@pytest.mark.parametrize("name", ["full-pcpus", "", "prefer-closest-numa-nodes"])
def test_an_unknown_option_is_refused(name: str) -> None:
    assert refusal({name: "true"}) == f'unknown CPU Manager Policy option: "{name}"'


@pytest.mark.parametrize("text, value", TEXTS.items(), ids=TEXTS)
def test_values_are_read_as_go_reads_booleans(text: str, value: bool) -> None:
    assert read({FULL_PCPUS_ONLY: text}).full_pcpus_only is value


@pytest.mark.parametrize("text", ["yes", "", "tRUE", " true", "2"])
def test_other_values_are_refused(text: str) -> None:
    expected = f'bad value for option "full-pcpus-only": strconv.ParseBool: parsing "{text}": invalid syntax'
    assert refusal({FULL_PCPUS_ONLY: text}) == expected


@pytest.mark.parametrize("one, other", CONFLICTS.values(), ids=CONFLICTS)
@pytest.mark.parametrize("order", [1, -1], ids=["in this order", "the other way round"])
def test_options_that_exclude_each_other(one: str, other: str, order: int) -> None:
    chosen = dict.fromkeys((one, other)[::order], "true")
    expected = f"static policy options {one} and {other} can not be used at the same time"
    assert refusal(chosen, feature_gates=ALPHA_ON) == expected


@pytest.mark.parametrize("one, other", CONFLICTS.values(), ids=CONFLICTS)
def test_an_option_that_is_off_excludes_nothing(one: str, other: str) -> None:
    assert read({one: "true", other: "false"}, feature_gates=ALPHA_ON) == CPUOptions(**{FIELDS[one]: True})


def test_options_that_go_together() -> None:
    chosen = dict.fromkeys((FULL_PCPUS_ONLY, STRICT_RESERVATION, ACROSS_NUMA, ALIGN_BY_SOCKET), "true")
    expected = CPUOptions(full_pcpus_only=True, strict_reservation=True, across_numa=True, align_by_socket=True)
    assert read(chosen, feature_gates=ALPHA_ON) == expected


@pytest.mark.parametrize("machine, fits", SOCKETS.values(), ids=SOCKETS)
def test_sockets_can_be_aligned_to_where_they_are_not_more_than_zones(machine: Machine, fits: bool) -> None:
    chosen, settings = {ALIGN_BY_SOCKET: "true"}, {"feature_gates": ALPHA_ON}
    if fits:
        assert read(chosen, machine, **settings).align_by_socket
    else:
        assert refusal(chosen, machine, **settings) == (
            "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA"
        )


@pytest.mark.parametrize(
    "machine", [made.machine(), made.machine(sockets=4)], ids=["fitting", "unfitting hardware too"]
)
def test_sockets_and_a_single_zone_exclude_each_other_on_any_hardware(machine: Machine) -> None:
    settings = {"policy": "single-numa-node", "feature_gates": ALPHA_ON}
    assert refusal({ALIGN_BY_SOCKET: "true"}, machine, **settings) == (
        "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option"
    )
    assert not read({ALIGN_BY_SOCKET: "false"}, machine, **settings).align_by_socket
