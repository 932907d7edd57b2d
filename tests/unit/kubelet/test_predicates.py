"""The node as a whole: what it offers, what is missing for a pod, and how the kubelet says so."""

from typing import Any

import pytest
from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.objects.pod import ContainerPort, Pod
from numalign.kubelet import predicates
from numalign.kubelet.predicates import Lacking
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.versions import Minor
from tests.unit.kubelet import made, runs

GIB = 1 << 30
MIB = 1 << 20


def kubelet(**chosen: Any) -> Kubelet:
    """7 CPUs, 16 GiB and 2 NICs in all, without managers that pin anything."""
    on = made.machine(hugepages={"2Mi": 8}, devices={made.NIC: (0, 1)})
    return made.kubelet(on, **{"cpu": False, "policy": "none", "reserved": {"cpu": 1000}} | chosen)


def lacking(node: Kubelet, pod: Pod, *others: Pod) -> Lacking | None:
    return predicates.lacking(node, node.initial(), pod, others)


def out_of(resource: str, requested: int, used: int, capacity: int) -> Lacking:
    text = f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
    return Lacking(f"OutOf{resource}", text)


def pod(*args: Any, **amounts: Any) -> Pod:
    return made.pod("p", made.container("c", *args, **amounts))


def overhead(of: Pod, cpu: str) -> Pod:
    return structs.replace(of, spec=structs.replace(of.spec, overhead={"cpu": quantity.parse(cpu)}))


MEMORY = 16 * GIB - 32 * MIB
SHORT: dict[str, tuple[Pod, Lacking | None]] = {
    "all that is left": (pod(3, MEMORY - GIB, nic=1), None),
    "cpu, in thousandths": (pod("3001m"), out_of("cpu", 3001, 4000, 7000)),
    "memory": (pod(1, MEMORY), out_of("memory", MEMORY, GIB, MEMORY)),
    "cpu before memory": (pod(4, MEMORY), out_of("cpu", 4000, 4000, 7000)),
    "memory before devices": (pod(1, MEMORY, nic=2), out_of("memory", MEMORY, GIB, MEMORY)),
    "a device": (pod(nic=2), out_of(made.NIC, 2, 1, 2)),
    "hugepages": (pod(**{"hugepages-2Mi": "34Mi"}), out_of("hugepages-2Mi", 34 * MIB, 0, 32 * MIB)),
    "hugepages of a size that the node lacks": (
        pod(**{"hugepages-1Gi": "1Gi"}),
        out_of("hugepages-1Gi", GIB, 0, 0),
    ),
    "an extended resource that the node does not know is passed over": (pod(gpu=9), None),
    "local storage is passed over": (pod(**{"ephemeral-storage": "9Gi"}), None),
    "nothing is asked for": (pod(None, None), None),
    "zero of a resource that is used up": (pod(nic=0), None),
    "requests count for burstable pods": (pod("3001m", burstable=True), out_of("cpu", 3001, 4000, 7000)),
    "overhead counts": (overhead(pod(3), "1m"), out_of("cpu", 3001, 4000, 7000)),
    "init containers count where they ask for more": (
        made.pod("p", made.container(cpu=1), init=[made.container("i", "3001m")]),
        out_of("cpu", 3001, 4000, 7000),
    ),
    "pod-level amounts win over those of containers": (
        made.pod("p", made.container(cpu=9), level={"cpu": 3, "memory": "1Gi"}),
        None,
    ),
}


@pytest.mark.parametrize("asked, expected", SHORT.values(), ids=SHORT)
def test_what_is_missing_beside_another_pod(asked: Pod, expected: Lacking | None) -> None:
    assert lacking(kubelet(), asked, made.pod("q", made.container(cpu=4, nic=1))) == expected


def test_without_the_gate_pod_level_amounts_are_not_counted() -> None:
    node = kubelet(minor=Minor(1, 35), feature_gates={"PodLevelResources": False})
    assert lacking(node, made.pod("p", made.container(cpu=1), level={"cpu": 9, "memory": "1Gi"})) is None


FULL = [made.pod(name, made.container(cpu=4)) for name in "qr"]


@pytest.mark.parametrize("asked, expected", [(pod(1), out_of("cpu", 1000, 8000, 7000)), (pod(None, None), None)])
def test_on_an_overcommitted_node_only_pods_that_ask_for_nothing_fit(asked: Pod, expected: Lacking | None) -> None:
    assert lacking(kubelet(), asked, *FULL) == expected


PODS: dict[str, tuple[int, Lacking | None]] = {"room for one more": (3, None), "full": (2, out_of("pods", 1, 2, 2))}


@pytest.mark.parametrize("most, expected", PODS.values(), ids=PODS)
def test_the_number_of_pods_is_limited(most: int, expected: Lacking | None) -> None:
    assert lacking(kubelet(max_pods=most), pod(None, None), *FULL) == expected


def test_the_number_of_pods_is_checked_first() -> None:
    assert lacking(kubelet(max_pods=2), pod(99), *FULL) == out_of("pods", 1, 2, 2)


# Host ports


def with_ports(of: Pod, *ports: ContainerPort, init: bool = False) -> Pod:
    field = "init_containers" if init else "containers"
    first, *others = getattr(of.spec, field)
    return structs.replace(of, spec=structs.replace(of.spec, **{field: (structs.replace(first, ports=ports), *others)}))


def port(number: int, address: str = "", protocol: str = "TCP") -> ContainerPort:
    return ContainerPort(container_port=80, host_port=number, host_ip=address, protocol=protocol)


TAKEN = Lacking("NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports")
PORTS: dict[str, tuple[ContainerPort, ContainerPort, Lacking | None]] = {
    "the same": (port(8080), port(8080), TAKEN),
    "another number": (port(8080), port(8081), None),
    "another protocol": (port(8080), port(8080, protocol="UDP"), None),
    "another address": (port(8080, "10.0.0.1"), port(8080, "10.0.0.2"), None),
    "the same address": (port(8080, "10.0.0.1"), port(8080, "10.0.0.1"), TAKEN),
    "any address takes every one": (port(8080, "10.0.0.1"), port(8080), TAKEN),
    "any address, written out": (port(8080, "0.0.0.0"), port(8080, "10.0.0.1"), TAKEN),
    "no address is any address": (port(8080, "0.0.0.0"), port(8080), TAKEN),
    "ports of the container alone": (port(0), port(0), None),
}


@pytest.mark.parametrize("wanted, held, expected", PORTS.values(), ids=PORTS)
def test_a_host_port_is_taken_once(wanted: ContainerPort, held: ContainerPort, expected: Lacking | None) -> None:
    assert lacking(kubelet(), with_ports(pod(), wanted), with_ports(made.pod("q"), held)) == expected


@pytest.mark.parametrize("sidecar, expected", [(True, TAKEN), (False, None)], ids=["sidecar", "init container"])
def test_ports_count_of_containers_that_keep_running(sidecar: bool, expected: Lacking | None) -> None:
    holding = made.pod("q", init=[made.container("i", sidecar=sidecar)])
    assert lacking(kubelet(), with_ports(pod(), port(80)), with_ports(holding, port(80), init=True)) == expected


def test_resources_are_checked_before_ports() -> None:
    node, holding = kubelet(), with_ports(made.pod("q"), port(80))
    assert lacking(node, with_ports(pod(9), port(80)), holding) == out_of("cpu", 9000, 2000, 7000)


# What the node offers


def test_allocatable_is_what_reservations_and_eviction_leave() -> None:
    node = kubelet(reserved={"cpu": 1500, "memory": GIB, "hugepages-2Mi": 2 * MIB}, eviction_hard={"memory": GIB // 2})
    assert predicates.allocatable(node, node.initial()) == {
        "cpu": 6500,
        "memory": 16 * GIB - 32 * MIB - GIB - GIB // 2,
        "hugepages-2Mi": 30 * MIB,
        made.NIC: 2,
    }


def test_allocatable_is_never_negative() -> None:
    node = kubelet(reserved={"cpu": 9000, "memory": 99 * GIB})
    offered = predicates.allocatable(node, node.initial())
    assert (offered["cpu"], offered["memory"]) == (0, 0)


def using(node: Kubelet, *nics: str) -> KubeletState:
    state = node.initial()
    return structs.replace(state, devices=state.devices.with_devices("q", "c", made.NIC, frozenset(nics)))


DEVICES = {
    "healthy ones": ((), (), 2),
    "not unhealthy ones": (("nic-0",), (), 1),
    "unhealthy ones in use, for who holds some": (("nic-0", "nic-1"), ("nic-0",), 1),
    "no more for being in use": ((), ("nic-0",), 2),
}


@pytest.mark.parametrize("unhealthy, used, count", DEVICES.values(), ids=DEVICES)
def test_devices_that_count(unhealthy: tuple[str, ...], used: tuple[str, ...], count: int) -> None:
    node = made.kubelet(runs.plugin(made.machine(devices={made.NIC: (0, 1)}), unhealthy=unhealthy))
    assert predicates.allocatable(node, using(node, *used), "q")[made.NIC] == count


def test_unhealthy_devices_in_use_do_not_count_for_others() -> None:
    node = made.kubelet(runs.plugin(made.machine(devices={made.NIC: (0, 1)}), unhealthy=("nic-0", "nic-1")))
    assert predicates.allocatable(node, using(node, "nic-0"), "p")[made.NIC] == 0


ADMITTED: dict[str, tuple[Pod, tuple[str, str]]] = {
    "fits": (pod(1, burstable=True), ("", "")),
    "does not": (
        pod(8, burstable=True),
        ("OutOfcpu", "Node didn't have enough resource: cpu, requested: 8000, used: 0, capacity: 7000"),
    ),
}


@pytest.mark.parametrize("asked, result", ADMITTED.values(), ids=ADMITTED)
def test_admission_reports_what_is_missing(asked: Pod, result: tuple[str, str]) -> None:
    assert runs.refusal(kubelet(), asked) == result
