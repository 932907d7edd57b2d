"""What a user notices when the kubelet's minor changes: every rule of `Behaviour` that the model asks for."""

from collections.abc import Callable

import pytest
from msgspec import structs

from numalign.api.decode import cpuset, quantity
from numalign.api.objects.pod import ContainerStatus, PodStatus
from numalign.kubelet import admission, start
from numalign.kubelet.admission import Outcome
from numalign.kubelet.topologymanager.hints import HintList
from numalign.kubelet.topologymanager.mask import members
from numalign.kubelet.versions import NEWEST, OLDEST, Behaviour, Minor, behaviour, gate
from tests.unit.kubelet import made, runs

Noticed = object
"""What is noticed: CPUs, zones, or a reason with its message."""

MANAGERS = {"PodLevelResourceManagers": True}
POD_LEVEL = (
    "PodLevelResources",
    "PodLevelResourcesFixDefaulting",
    "PodLevelResourcesFixKubeletQOSClass",
    "InPlacePodLevelResourcesVerticalScaling",
)


def cpus(outcome: Outcome, container: str = "c") -> str:
    return cpuset.text(outcome.placement[container].cpus or 0)


def said(outcome: Outcome) -> tuple[str, str]:
    return outcome.reason, outcome.message


def waiting_container(minor: Minor) -> Noticed:
    """A pod whose container was never created: its status has no allocated resources."""
    seen = PodStatus(container_statuses=(ContainerStatus(name="c"),))
    return cpus(runs.answer(made.kubelet(minor=minor), structs.replace(made.pod("p"), status=seen)))


def resized_container(minor: Minor) -> Noticed:
    """A pod whose status has one CPU while its spec requests two."""
    allocated = {"cpu": quantity.parse("1"), "memory": quantity.parse("1Gi")}
    seen = PodStatus(container_statuses=(ContainerStatus(name="c", allocated_resources=allocated),))
    return cpus(runs.answer(made.kubelet(minor=minor), structs.replace(made.pod("p"), status=seen)))


def pod_level_without_gate(minor: Minor) -> Noticed:
    gates = {name: False for name in POD_LEVEL if gate(name, minor)}
    kubelet = made.kubelet(minor=minor, feature_gates=gates)
    return cpus(runs.answer(kubelet, made.pod("p", made.container("c"), level={"cpu": 2, "memory": "1Gi"})))


def device_in_one_zone_cpus_in_another(minor: Minor) -> Noticed:
    kubelet = made.kubelet(made.machine(devices={made.NIC: [1]}), policy="best-effort", minor=minor)
    state = runs.admitted(kubelet, made.pod("q", made.container(cpu=4)))
    return members(
        runs.admitted(kubelet, made.pod("p", made.container("c", nic=1)), after=state).affinity("p", "c").mask or 0
    )


def offered_for_one_device(minor: Minor) -> Noticed:
    kubelet = made.kubelet(made.machine(3, devices={made.NIC: [1]}), minor=minor)
    asked = made.pod("p", made.container("c", burstable=True, nic=1))
    offered = runs.answer(kubelet, asked).alignments[0].offered[made.NIC]
    return [members(mask) for mask in offered.masks] if isinstance(offered, HintList) else None


def full_node_admitted_again(minor: Minor) -> Noticed:
    on = made.machine(threads=2)
    kubelet = made.kubelet(on, reserved_cpus="0,8", cpu_options={"full-pcpus-only": "true"}, minor=minor)
    pod = made.pod("p", made.container(cpu=10))
    return said(admission.align(kubelet, start.restart(kubelet, runs.admitted(kubelet, pod)), pod)[1])


def spread_by_socket(minor: Minor) -> Noticed:
    kubelet = made.kubelet(
        made.machine(4, cores=2, sockets=2),
        policy="none",
        minor=minor,
        cpu_options={"distribute-cpus-across-numa": "true", "align-by-socket": "true"},
        feature_gates={"CPUManagerPolicyAlphaOptions": True},
    )
    return cpus(runs.answer(kubelet, made.pod("p", made.container("c", 4))))


def spread_over_affinity(minor: Minor) -> Noticed:
    """Twenty CPUs beside one device in each of four zones of eight CPUs. Three zones hold them, the first one with a
    reserved CPU left out."""
    kubelet = made.kubelet(
        made.machine(4, cores=8, devices={made.NIC: [0, 1, 2, 3]}),
        policy="best-effort",
        minor=minor,
        cpu_options={"distribute-cpus-across-numa": "true"},
    )
    taken = runs.answer(kubelet, made.pod("p", made.container("c", 20, nic=4))).placement["c"].cpus or 0
    return tuple((taken >> 8 * zone & 0xFF).bit_count() for zone in range(4))


SHARING = made.pod("p", made.container("c", burstable=True), level={"cpu": 2, "memory": "1Gi"})


def sharing_without_affinity(minor: Minor) -> Noticed:
    return said(runs.answer(made.kubelet(policy="none", memory=True, minor=minor, feature_gates=MANAGERS), SHARING))


def sharing_with_affinity(minor: Minor) -> Noticed:
    """Whether the container is on record with an empty list of blocks."""
    kubelet = made.kubelet(memory=True, minor=minor, feature_gates=MANAGERS)
    state = runs.admitted(kubelet, SHARING)
    return None if state.memory is None else state.memory.held("p", "c")


V35, V36, V37, V38 = (Minor(1, minor) for minor in (35, 36, 37, 38))
FULL = (
    "SMT Alignment Error: not enough free physical CPUs: "
    "available physical CPUs = 4, requested CPUs = 10, CPUs per core = 2"
)
NO_MEMORY = (
    "Allocate failed due to [memorymanager] failed to get the default NUMA affinity, "
    "no NUMA nodes with enough memory is available, which is unexpected"
)

Row = tuple[str, Callable[[Minor], Noticed], Minor, Noticed, Noticed]
CHANGES: dict[str, Row] = {
    "a container that waits asks for nothing": ("amounts_from_allocated_status", waiting_container, V35, "", "1-2"),
    "the status goes before the spec": ("amounts_from_allocated_status", resized_container, V35, "1", "1-2"),
    "a pod-level pod without the gate": ("pod_level_pods_need_gate", pod_level_without_gate, V36, "1-2", ""),
    "zones without devices are offered": (
        "device_hints_over_device_zones",
        offered_for_one_device,
        V36,
        [(1,), (0, 1), (1, 2), (0, 1, 2)],
        [(1,)],
    ),
    "zones without devices are chosen": (
        "device_hints_over_device_zones",
        device_in_one_zone_cpus_in_another,
        V36,
        (0,),
        (1,),
    ),
    "a restart on a full node": (
        "assigned_cpus_skip_smt_check",
        full_node_admitted_again,
        V37,
        ("SMTAlignmentError", FULL),
        ("", ""),
    ),
    "spreading by socket": ("distribution_knows_sockets", spread_by_socket, V37, "2-5", "4-7"),
    "spreading over a wide affinity": (
        "distribution_keeps_affinity",
        spread_over_affinity,
        V38,
        (0, 7, 7, 6),
        (5, 5, 5, 5),
    ),
    "no memory of its own, no affinity": (
        "memory_skips_empty_requests",
        sharing_without_affinity,
        V37,
        ("UnexpectedAdmissionError", NO_MEMORY),
        ("", ""),
    ),
    "no memory of its own, with affinity": ("memory_skips_empty_requests", sharing_with_affinity, V37, (), None),
}


def previous(minor: Minor) -> Minor:
    return Minor(minor.major, minor.minor - 1)


@pytest.mark.parametrize("rule, scenario, since, before, after", CHANGES.values(), ids=CHANGES)
def test_the_minor_before_and_the_minor_after(
    rule: str, scenario: Callable[[Minor], Noticed], since: Minor, before: Noticed, after: Noticed
) -> None:
    assert getattr(behaviour(previous(since)), rule) != getattr(behaviour(since), rule)
    assert (scenario(previous(since)), scenario(since)) == (before, after)


@pytest.mark.parametrize("scenario", [row[1] for row in CHANGES.values()], ids=CHANGES)
def test_kubelets_newer_than_known_answer_like_the_newest(scenario: Callable[[Minor], Noticed]) -> None:
    assert scenario(Minor(1, 99)) == scenario(NEWEST)


@pytest.mark.parametrize("scenario, before", [(row[1], row[3]) for row in CHANGES.values() if row[2] < V36])
def test_kubelets_older_than_known_answer_like_the_oldest(
    scenario: Callable[[Minor], Noticed], before: Noticed
) -> None:
    assert scenario(Minor(1, 20)) == scenario(OLDEST) == before


def test_every_rule_that_the_model_asks_for_is_noticed_here() -> None:
    of_the_report = {"pod_resources_by_isolation"}
    assert {row[0] for row in CHANGES.values()} == set(Behaviour.__struct_fields__) - of_the_report
