"""Who gets exclusive CPUs and pinned memory, how much, and what the pod as a whole comes to."""

from typing import Any

import pytest
from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.objects.pod import Container, ContainerStatus, Pod, PodStatus, ResourceRequirements
from numalign.kubelet import demand
from numalign.kubelet.demand import PodDemand, Reading, Role
from numalign.kubelet.versions import Minor
from tests.unit.kubelet import made

GIB = 1 << 30
MIB = 1 << 20
PAGES: dict[str, Any] = {"hugepages-2Mi": "4Mi"}
MANAGED = Reading(pod_level_managers=True)
UNGATED = Reading(pod_level=False, pod_level_needs_gate=False)


def read(pod: Pod, reading: Reading | None = None) -> PodDemand:
    return demand.of(pod, reading or Reading())


def status(pod: Pod, **fields: Any) -> Pod:
    return structs.replace(pod, status=PodStatus(**fields))


def quantities(**amounts: str) -> dict[str, quantity.Quantity]:
    return {name: quantity.parse(amount) for name, amount in amounts.items()}


CONTAINERS = {
    "whole cpus": (made.container(cpu=2), 2, {"memory": GIB}),
    "whole cpus in thousandths": (made.container(cpu="2000m"), 2, {"memory": GIB}),
    "a fraction keeps its memory but shares cpus": (made.container(cpu="1500m"), 0, {"memory": GIB}),
    "less than one cpu": (made.container(cpu="100m"), 0, {"memory": GIB}),
    "burstable": (made.container(burstable=True), 0, {}),
    "limits without requests are not Guaranteed here": (made.container(limits_only=True), 0, {}),
    "best effort": (made.container(cpu=None, memory=None), 0, {}),
    "cpu without memory is burstable": (made.container(memory=None), 0, {}),
    "zero is not Guaranteed": (made.container(cpu=0, memory=0), 0, {}),
    "hugepages beside memory": (made.container(**PAGES), 2, {"hugepages-2Mi": 4 * MIB, "memory": GIB}),
    "devices are no memory": (made.container(nic=1), 2, {"memory": GIB}),
    "memory that is not whole bytes": (made.container(memory="100m"), 2, None),
}


@pytest.mark.parametrize("container, cpus, memory", CONTAINERS.values(), ids=CONTAINERS)
def test_what_a_container_is_given_for_itself(container: Container, cpus: int, memory: dict[str, int] | None) -> None:
    only = read(made.pod("p", container)).container("c")
    assert (only.cpus, only.memory) == (cpus, memory)


def test_one_burstable_container_makes_the_whole_pod_share() -> None:
    pod = read(made.pod("p", made.container("a"), made.container("b", burstable=True)))
    assert [(each.cpus, each.memory) for each in pod.containers] == [(0, {}), (0, {})]
    assert not pod.pinned


def test_a_guaranteed_pod_may_mix_exclusive_and_fractional_containers() -> None:
    pod = read(made.pod("p", made.container("a", cpu=3), made.container("b", cpu="500m")))
    assert ([each.cpus for each in pod.containers], pod.cpus, pod.pinned) == ([3, 0], 3, True)


@pytest.mark.parametrize(
    "written, burstable, pinned",
    [("Guaranteed", True, True), ("Burstable", False, False), ("", False, True), ("", True, False)],
)
def test_the_qos_class_in_the_status_wins_over_the_spec(written: str, burstable: bool, pinned: bool) -> None:
    pod = status(made.pod("p", made.container(burstable=burstable)), qos_class=written)
    assert read(pod).pinned is pinned


def test_containers_come_in_admission_order_with_their_roles() -> None:
    init = [made.container("i"), made.container("s", sidecar=True)]
    pod = read(made.pod("p", made.container("a"), made.container("b", sidecar=True), init=init))
    roles = [(each.name, each.role) for each in pod.containers]
    assert roles == [("i", Role.INIT), ("s", Role.SIDECAR), ("a", Role.APP), ("b", Role.APP)]


def init(name: str, cpu: int) -> Container:
    return made.container(name, cpu=cpu, memory=f"{cpu}Gi", sidecar=name.startswith("s"))


PEAKS = {
    "apps are added up": ([], [3, 4], 7),
    "the largest init container counts where it is larger": ([init("i", 9), init("j", 2)], [3, 4], 9),
    "apps count where they are larger": ([init("i", 6)], [3, 4], 7),
    "sidecars run beside the apps": ([init("s", 2)], [3, 4], 9),
    "an init container runs beside sidecars before it": ([init("s", 2), init("i", 9)], [3], 11),
    "but not beside those after it": ([init("i", 9), init("s", 2)], [3], 9),
    "every sidecar counts for the apps": ([init("s", 2), init("i", 1), init("s2", 4)], [3], 9),
}


@pytest.mark.parametrize("before, apps, total", PEAKS.values(), ids=PEAKS)
def test_a_pod_as_a_whole_comes_to_its_peak(before: list[Container], apps: list[int], total: int) -> None:
    pod = read(made.pod("p", *(init(f"a{place}", cpu) for place, cpu in enumerate(apps)), init=before))
    assert (pod.cpus, pod.memory) == (total, {"memory": total * GIB})


def test_pod_totals_leave_out_memory_types_that_no_app_container_requests() -> None:
    pod = read(made.pod("p", made.container("c"), init=[made.container("i", memory="3Gi", **PAGES)]))
    assert pod.memory == {"memory": 3 * GIB}


def test_pod_totals_are_unknown_where_one_container_is_not_in_whole_bytes() -> None:
    assert read(made.pod("p", made.container("a"), made.container("b", memory="100m"))).memory is None


def test_limits_are_read_for_every_class_and_overhead_is_left_out() -> None:
    pod = made.pod("p", made.container("c", burstable=True, nic=1), init=[made.container("i", None, None, nic=3)])
    pod = structs.replace(pod, spec=structs.replace(pod.spec, overhead=quantities(cpu="1")))
    whole = read(pod)
    assert (whole.limits, whole.container("c").limits) == ({made.NIC: 3}, {made.NIC: 1})


@pytest.mark.parametrize("uid, identity", [("7f", "7f"), ("", "default/p")], ids=["uid", "name without one"])
def test_a_pod_is_known_by_its_uid_or_else_by_its_name(uid: str, identity: str) -> None:
    pod = made.pod("p")
    named = structs.replace(pod, metadata=structs.replace(pod.metadata, uid=uid))
    assert demand.identity(named) == read(named).uid == identity


# Pod-level resources

LEVEL = {"cpu": 4, "memory": "4Gi"}
OWN, SHARING = made.container("own", cpu=2), made.container("sharing", burstable=True)

READINGS = {
    "managers off": (Reading(), [0, 0], False, None),
    "managers on": (MANAGED, [2, 0], True, 4),
    "pod-level resources off": (Reading(pod_level=False), [0, 0], False, None),
    "pod-level resources off until 1.35": (UNGATED, [2, 2], True, None),
}


@pytest.mark.parametrize("reading, cpus, pinned, budget", READINGS.values(), ids=READINGS)
def test_how_a_pod_with_pod_level_resources_is_read(
    reading: Reading, cpus: list[int], pinned: bool, budget: int | None
) -> None:
    other = SHARING if reading.pod_level else made.container("guaranteed")
    pod = read(made.pod("p", OWN, other, level=LEVEL), reading)
    assert ([each.cpus for each in pod.containers], pod.pinned) == (cpus, pinned)
    assert (None if pod.budget is None else pod.budget.cpus) == budget


MEMBERS = {
    "guaranteed by itself": (made.container(cpu=2), 2, {"memory": GIB}),
    "a fraction of a cpu": (made.container(cpu="500m"), 0, {"memory": GIB}),
    "burstable by itself": (made.container(cpu=2, burstable=True), 0, {}),
    "no amounts of its own": (made.container(cpu=None, memory=None), 0, {}),
    "cpu alone": (made.container(cpu=2, memory=None), 0, {}),
}


@pytest.mark.parametrize("container, cpus, memory", MEMBERS.values(), ids=MEMBERS)
def test_in_a_pod_level_pod_only_containers_guaranteed_by_themselves_are_exclusive(
    container: Container, cpus: int, memory: dict[str, int]
) -> None:
    only = read(made.pod("p", container, level=LEVEL), MANAGED).containers[0]
    assert (only.cpus, only.memory) == (cpus, memory)


BUDGETS = {
    "whole cpus": ({"cpu": 4, "memory": "4Gi"}, 4, {"memory": 4 * GIB}),
    "a fraction gets no cpus": ({"cpu": "3500m", "memory": "4Gi"}, 0, {"memory": 4 * GIB}),
    "hugepages": ({"cpu": 4, "memory": "4Gi", **PAGES}, 4, {"hugepages-2Mi": 4 * MIB, "memory": 4 * GIB}),
    "amounts of zero are dropped": ({"cpu": 4, "memory": "4Gi", "hugepages-2Mi": 0}, 4, {"memory": 4 * GIB}),
    "memory that is not whole bytes is none": ({"cpu": 4, "memory": "100m"}, 4, None),
    "not Guaranteed": (ResourceRequirements(requests=quantities(cpu="4", memory="4Gi")), 0, {}),
}


@pytest.mark.parametrize("level, cpus, memory", BUDGETS.values(), ids=BUDGETS)
def test_the_budget_is_what_the_pod_states_for_itself(level: object, cpus: int, memory: dict[str, int] | None) -> None:
    pod = read(made.pod("p", OWN, SHARING, level=level), MANAGED)
    assert (pod.cpus, pod.memory) == (cpus, memory)


def test_pod_level_resources_that_name_neither_cpu_nor_memory_do_not_count() -> None:
    pod = read(made.pod("p", made.container(), level={made.NIC: 1}), MANAGED)
    assert (pod.budget, pod.cpus) == (None, 2)


# Amounts from the status, as 1.34 read them

CREATED, WAITING = quantities(cpu="1", memory="2Gi"), quantities()
STATUSES = {
    "allocated amounts replace the spec's": ("c", made.container("c"), CREATED, 1),
    "a container that waits asks for nothing": ("c", made.container("c"), WAITING, 0),
    "a status of another name does not count": ("d", made.container("c"), CREATED, 2),
    "sidecars too": ("s", made.container("s", sidecar=True), CREATED, 1),
    "plain init containers never": ("i", made.container("i"), CREATED, 2),
}


@pytest.mark.parametrize("named, container, allocated, cpus", STATUSES.values(), ids=STATUSES)
def test_with_amounts_from_the_status(
    named: str, container: Container, allocated: dict[str, quantity.Quantity], cpus: int
) -> None:
    is_app = container.name == "c"
    pod = made.pod("p", container) if is_app else made.pod("p", made.container("a"), init=[container])
    seen = (ContainerStatus(name=named, allocated_resources=allocated),)
    pod = status(pod, **{"container_statuses" if is_app else "init_container_statuses": seen})
    assert read(pod, Reading(from_status=True)).container(container.name).cpus == cpus
    assert read(pod).container(container.name).cpus == 2


OFF = {"InPlacePodVerticalScaling": False}
KUBELETS = {
    "1.34": ((1, 34), {}, Reading(from_status=True, pod_level_needs_gate=False)),
    "1.34 without resize": ((1, 34), OFF, Reading(pod_level_needs_gate=False)),
    "1.35": ((1, 35), {}, Reading(pod_level_needs_gate=False)),
    "1.36": ((1, 36), {}, Reading()),
    "1.36 with managers": ((1, 36), {"PodLevelResourceManagers": True}, MANAGED),
    "1.35 without pod-level": (
        (1, 35),
        {"PodLevelResources": False},
        UNGATED,
    ),
}


@pytest.mark.parametrize("minor, gates, expected", KUBELETS.values(), ids=KUBELETS)
def test_a_kubelet_reads_pods_by_its_gates_and_minor(
    minor: tuple[int, int], gates: dict[str, bool], expected: Reading
) -> None:
    assert Reading.of(made.settings(minor=Minor(*minor), feature_gates=gates)) == expected
