"""Coming up or not: the topology manager's options and limits, feature gates, and who objects first."""

from typing import Any

import pytest
from msgspec import structs

from numalign.kubelet import device, start
from numalign.kubelet.device import DeviceState, Ids, Preference
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager.hints import Hint
from numalign.kubelet.versions import Minor
from tests.unit.kubelet import made, runs

CLOSEST, MOST = "prefer-closest-numa-nodes", "max-allowable-numa-nodes"
V34, V35 = Minor(1, 34), Minor(1, 35)
BETA_OFF = {"TopologyManagerPolicyBetaOptions": False}


def apart(*distances: tuple[int, ...], **built: Any) -> Machine:
    """A machine that reports these distances, one row for each zone."""
    on = made.machine(len(distances), **built)
    zones = (structs.replace(zone, distances=row) for zone, row in zip(on.zones, distances, strict=True))
    return structs.replace(on, zones=tuple(zones))


PLAIN, NEAR = made.machine(), apart((10, 21), (21, 10))


def refusal(on: Machine, **chosen: Any) -> str:
    with pytest.raises(StartRefusal) as refused:
        made.kubelet(on, **chosen)
    return str(refused.value)


def options(**written: str) -> dict[str, Any]:
    return {"topology_options": {name.replace("_", "-"): text for name, text in written.items()}}


ATOI = f'unable to convert policy option to integer "{MOST}": strconv.Atoi: parsing "{{}}": invalid syntax'
BOOL = f'bad value for option "{CLOSEST}": strconv.ParseBool: parsing "{{}}": invalid syntax'
SMALL = f'the minimum value of "{MOST}" should not be less than 8'
DISABLED = f'topology manager policy beta-level options not enabled, but option "{MOST}" provided'

TOPOLOGY: dict[str, tuple[Machine, dict[str, Any], str]] = {
    "an unknown option": (PLAIN, options(pack="true"), 'unknown Topology Manager Policy option: "pack"'),
    "an option of the cpu manager": (
        PLAIN,
        options(full_pcpus_only="true"),
        'unknown Topology Manager Policy option: "full-pcpus-only"',
    ),
    "not a boolean": (NEAR, {"topology_options": {CLOSEST: "yes"}}, BOOL.format("yes")),
    "an empty boolean": (NEAR, {"topology_options": {CLOSEST: ""}}, BOOL.format("")),
    "not a number": (PLAIN, {"topology_options": {MOST: "many"}}, ATOI.format("many")),
    "a fraction": (PLAIN, {"topology_options": {MOST: "8.5"}}, ATOI.format("8.5")),
    "an empty number": (PLAIN, {"topology_options": {MOST: ""}}, ATOI.format("")),
    "a limit below the default": (PLAIN, {"topology_options": {MOST: "7"}}, SMALL),
    "a negative limit": (PLAIN, {"topology_options": {MOST: "-9"}}, SMALL),
    "more zones than by default": (made.machine(9), {}, "unsupported on machines with more than 8 NUMA Nodes"),
    "more zones than the limit": (
        made.machine(11),
        {"topology_options": {MOST: "10"}},
        "unsupported on machines with more than 10 NUMA Nodes",
    ),
    "a beta option without its gate": (
        PLAIN,
        {"topology_options": {MOST: "8"}, "minor": V34, "feature_gates": BETA_OFF},
        DISABLED,
    ),
}


@pytest.mark.parametrize("on, chosen, text", TOPOLOGY.values(), ids=TOPOLOGY)
@pytest.mark.parametrize("policy", ["best-effort", "restricted", "single-numa-node"])
def test_the_topology_manager_refuses(on: Machine, chosen: dict[str, Any], text: str, policy: str) -> None:
    assert refusal(on, policy=policy, **chosen) == f"topologymanager: {text}"


@pytest.mark.parametrize("on, chosen, _", TOPOLOGY.values(), ids=TOPOLOGY)
def test_without_a_policy_options_and_limits_are_not_looked_at(on: Machine, chosen: dict[str, Any], _: str) -> None:
    kubelet = made.kubelet(on, policy="none", **chosen)
    assert (kubelet.rules.policy, kubelet.rules.distances) == ("none", None)


def test_closest_zones_cannot_be_preferred_without_distances() -> None:
    text = "topologymanager: cannot discover NUMA topology: error getting NUMA distances from cadvisor"
    assert refusal(PLAIN, topology_options={CLOSEST: "true"}) == text


@pytest.mark.parametrize("rows", [((), ()), ((10, 21), ())], ids=["nowhere", "not everywhere"])
def test_distances_must_be_known_for_every_zone(rows: tuple[tuple[int, ...], ...]) -> None:
    assert "error getting NUMA distances from cadvisor" in refusal(apart(*rows), topology_options={CLOSEST: "true"})


@pytest.mark.parametrize("text", ["--8", "+-9"])
def test_a_number_has_at_most_one_sign(text: str) -> None:
    assert refusal(PLAIN, topology_options={MOST: text}) == "topologymanager: " + ATOI.format(text)


def test_a_number_must_fit_64_bits() -> None:
    text = ATOI.format("9223372036854775808").replace("invalid syntax", "value out of range")
    assert refusal(PLAIN, topology_options={MOST: "9223372036854775808"}) == f"topologymanager: {text}"


@pytest.mark.parametrize("minor", [V34, V35], ids=str)
@pytest.mark.parametrize("policy", ["none", "restricted"])
def test_options_need_their_gate_until_it_is_locked_even_without_a_policy(minor: Minor, policy: str) -> None:
    gates = {"TopologyManagerPolicyOptions": False}
    chosen = {"policy": policy, "feature_gates": gates, "minor": minor}
    result = refusal(NEAR, topology_options={MOST: "9", CLOSEST: "true"}, **chosen)
    given = f"map[{MOST}:9 {CLOSEST}:true]"
    assert result.endswith(f'policy options {given} require feature gates "TopologyManagerPolicyOptions" enabled')
    assert made.kubelet(NEAR, **chosen).rules.distances is None


ACCEPTED: dict[str, tuple[Machine, dict[str, Any]]] = {
    "as many zones as by default": (made.machine(8), {}),
    "as many as the limit": (made.machine(9), {"topology_options": {MOST: "9"}}),
    "a number with a sign": (PLAIN, {"topology_options": {MOST: "+8"}}),
    "a number with leading zeros": (PLAIN, {"topology_options": {MOST: "008"}}),
    "distances that nobody asks for": (PLAIN, {"topology_options": {CLOSEST: "false"}}),
    "a stable option without the beta gate": (
        NEAR,
        {"topology_options": {CLOSEST: "true"}, "minor": V34, "feature_gates": BETA_OFF},
    ),
    "a limit since it is stable": (
        PLAIN,
        {"topology_options": {MOST: "8"}, "minor": V35, "feature_gates": BETA_OFF},
    ),
}


@pytest.mark.parametrize("on, chosen", ACCEPTED.values(), ids=ACCEPTED)
def test_the_topology_manager_comes_up_with(on: Machine, chosen: dict[str, Any]) -> None:
    assert made.kubelet(on, **chosen).rules.zones == on.zone_ids


BOOLEANS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


@pytest.mark.parametrize("text, closest", BOOLEANS.items(), ids=BOOLEANS)
def test_booleans_are_read_as_go_reads_them(text: str, closest: bool) -> None:
    assert (made.kubelet(NEAR, topology_options={CLOSEST: text}).rules.distances is not None) is closest


# Preferring what is close

FAR = apart((10, 31, 31, 12), (31, 10, 21, 31), (31, 21, 10, 31), (12, 31, 31, 10))
CHOSEN = {"by number": ({}, 0b0011), "by distance": ({CLOSEST: "true"}, 0b1001)}


@pytest.mark.parametrize("written, mask", CHOSEN.values(), ids=CHOSEN)
def test_of_equally_many_zones_the_closest_can_be_preferred(written: dict[str, str], mask: int) -> None:
    kubelet = made.kubelet(FAR, topology_options=written)
    assert runs.admitted(kubelet, made.pod("p", made.container("c", 6))).affinity("p", "c") == Hint(mask, True)


def test_distances_are_indexed_by_zone_id_so_ids_with_gaps_crash_the_kubelet() -> None:
    on = apart((10, 21), (21, 10), ids=(0, 5))
    outcome = runs.answer(made.kubelet(on, topology_options={CLOSEST: "true"}), made.pod("p", made.container(cpu=6)))
    assert (outcome.verdict, "crashes on ids with gaps" in outcome.message) == ("undecided", True)


# Feature gates, and the order of objections

GATES: dict[str, tuple[dict[str, bool], Minor, str]] = {
    "unknown": ({"PodLevelResourceManagers": True}, V35, "unrecognized feature gate: PodLevelResourceManagers"),
    "locked": (
        {"InPlacePodVerticalScaling": False},
        V35,
        "cannot set feature gate InPlacePodVerticalScaling to false, feature is locked to true",
    ),
    "on without what it needs": (
        {
            "PodLevelResources": False,
            "PodLevelResourceManagers": True,
            "InPlacePodLevelResourcesVerticalScaling": False,
        },
        Minor(1, 36),
        "PodLevelResourceManagers is enabled, but depends on features that are disabled: [PodLevelResources]",
    ),
}


@pytest.mark.parametrize("gates, minor, text", GATES.values(), ids=GATES)
def test_a_kubelet_does_not_come_up_with_gates_that_are(gates: dict[str, bool], minor: Minor, text: str) -> None:
    assert refusal(PLAIN, feature_gates=gates, minor=minor) == f"featuregates: {text}"


BAD_GATE: dict[str, Any] = {"feature_gates": {"InPlacePodVerticalScaling": False}}
BAD_TOPOLOGY = options(pack="true")
BAD_CPU: dict[str, Any] = {"reserved": {"memory": 1 << 30}}
BAD_MEMORY: dict[str, Any] = {"memory": {7: "1Gi"}}
ORDER = {
    "feature gates": (BAD_GATE | BAD_TOPOLOGY | BAD_CPU | BAD_MEMORY, "featuregates"),
    "then the topology manager": (BAD_TOPOLOGY | BAD_CPU | BAD_MEMORY, "topologymanager"),
    "then the cpu manager": (BAD_CPU | BAD_MEMORY, "cpumanager"),
    "then the memory manager": (BAD_MEMORY, "memorymanager"),
}


@pytest.mark.parametrize("chosen, manager", ORDER.values(), ids=ORDER)
def test_the_first_to_object_is_heard(chosen: dict[str, Any], manager: str) -> None:
    assert refusal(PLAIN, **chosen).partition(":")[0] == manager


# A kubelet that came up


def test_managers_that_do_nothing_are_absent() -> None:
    kubelet = made.kubelet(cpu=False)
    assert (kubelet.cpu, kubelet.memory, kubelet.initial()) == (None, None, KubeletState(devices=DeviceState()))


def test_a_node_without_history_has_no_pods_and_everything_free() -> None:
    state = made.kubelet(memory=True).initial()
    assert state.cpu is not None
    assert state.memory is not None
    assert (state.active, state.affinities, state.cpu.default) == ({}, {}, 0xFF)
    assert not any(zone.assignments for zone in state.memory.zones.values())


def test_the_plugins_choice_is_the_callers() -> None:
    def highest(asked: Preference) -> Ids:
        return frozenset(sorted(asked.available)[-asked.size :])

    on = runs.plugin(made.machine(), asks=True)
    for prefer, expected in ((device.lowest_ids, "nic-0"), (highest, "nic-1")):
        kubelet = start.start(on, made.settings(), prefer)
        assert runs.admitted(kubelet, made.pod("p", made.container(nic=1))).devices.held("p", "c")[made.NIC] == {
            expected
        }
