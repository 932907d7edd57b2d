"""What other publishers make of a node: less than there is, each in its own way (exporter spec 4 and 5)."""

import pytest

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.nrt import fingerprint
from numalign.api.nrt.fingerprint import Method
from numalign.api.nrt.nodetopology import Amounts, Fingerprint
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.kubelet.machine.machine import Device, DevicePlugin
from numalign.kubelet.machine.presets import GIB
from numalign.kubelet.report import plainreport
from numalign.kubelet.report.plainreport import Publisher
from numalign.kubelet.versions import Minor
from tests.nodes import NIC, Node, burstable, guaranteed, machine, plugin, pod, simple

BOTH: tuple[Publisher, ...] = ("rte", "nfd")
GATE = {"PodLevelResourceManagers": True}


def amounts(node: Node, publisher: Publisher, resource: str) -> list[Amounts | None]:
    """By zone; None where the report does not list the resource."""
    topology = plainreport.of("worker-7", node.kubelet, node.state, publisher)
    return [zone.resources.get(resource) for zone in topology.zones]


@pytest.mark.parametrize("publisher", BOTH)
def test_cpus_are_allocatable_less_what_containers_hold(publisher: Publisher) -> None:
    node = Node(machine(), "single-numa-node")
    node.placed(simple("a", cpu=2))
    assert amounts(node, publisher, "cpu") == [Amounts(4000, 3000, 1000), Amounts(4000, 4000, 4000)]


@pytest.mark.parametrize("publisher", BOTH)
def test_what_plain_init_containers_hold_stays_hidden(publisher: Publisher) -> None:
    node = Node(machine(), "single-numa-node")
    node.placed(pod("a", guaranteed("app", "500m"), init=[guaranteed("init", 3)]))
    assert amounts(node, publisher, "cpu") == [Amounts(4000, 3000, 3000), Amounts(4000, 4000, 4000)]


@pytest.mark.parametrize("publisher", BOTH)
def test_a_node_without_static_policies_has_no_cpus_to_allocate(publisher: Publisher) -> None:
    node = Node(machine(), cpu_policy="none", memory_policy="None")
    assert amounts(node, publisher, "cpu") == [Amounts(4000, 0, 0)] * 2
    assert amounts(node, publisher, "memory") == [None, None]


@pytest.mark.parametrize("publisher", BOTH)
def test_a_zone_with_memory_alone_has_no_cpu_entry(publisher: Publisher) -> None:
    assert amounts(Node(machine(), cpu_policy="none"), publisher, "cpu") == [None, None]


def in_both_zones() -> Node:
    """A pod holds 12 of 16 GiB, over both zones, with all CPUs."""
    node = Node(machine(), "restricted")
    node.placed(simple("a", cpu=7, memory="12Gi"))
    return node


MEMORY_LEFT: dict[Publisher, list[int]] = {"rte": [0, 0], "nfd": [0, 4 * GIB]}


@pytest.mark.parametrize("publisher, left", MEMORY_LEFT.items(), ids=MEMORY_LEFT)
def test_memory_over_several_zones_is_taken_as_the_publisher_does(publisher: Publisher, left: list[int]) -> None:
    """RTE takes all of it from each zone, NFD drains one after the other."""
    found = amounts(in_both_zones(), publisher, "memory")
    assert found == [Amounts(9 * GIB, 8 * GIB, free) for free in left]


DEVICES_LEFT: dict[Publisher, list[int]] = {"rte": [1, 0], "nfd": [2, 0]}


@pytest.mark.parametrize("publisher, left", DEVICES_LEFT.items(), ids=DEVICES_LEFT)
def test_a_device_on_several_zones_is_taken_as_the_publisher_does(publisher: Publisher, left: list[int]) -> None:
    """RTE takes it from each zone, NFD from the last one, as often as it has zones."""
    node = Node(machine(devices={NIC: plugin((0, 1), 0)}), "single-numa-node")
    node.placed(simple("a", nic=1))
    assert amounts(node, publisher, NIC) == [Amounts(2, 2, left[0]), Amounts(1, 1, left[1])]


@pytest.mark.parametrize("publisher", BOTH)
def test_unhealthy_devices_and_those_without_a_zone_are_not_there(publisher: Publisher) -> None:
    mixed = DevicePlugin((Device("a", (0,)), Device("b", (0,), healthy=False), Device("c", None), Device("d", ())))
    assert amounts(Node(machine(devices={NIC: mixed})), publisher, NIC) == [Amounts(1, 1, 1), None]


@pytest.mark.parametrize("publisher", BOTH)
def test_a_device_that_broke_in_use_never_leaves_less_than_nothing(publisher: Publisher) -> None:
    before = Node(machine(devices={NIC: DevicePlugin((Device("a", (0,)), Device("b", (0,))))}))
    before.placed(simple("p", nic=2))
    after = Node(machine(devices={NIC: DevicePlugin((Device("a", (0,)), Device("b", (0,), healthy=False)))}))
    after.state = before.state
    assert amounts(after, publisher, NIC) == [Amounts(1, 1, 0), None]


SHARED = {"1.36": (Minor(1, 36), 0), "1.37": (Minor(1, 37), 2)}


@pytest.mark.parametrize("minor, left", SHARED.values(), ids=SHARED)
def test_what_a_pod_holds_as_a_whole_is_not_looked_at(minor: Minor, left: int) -> None:
    """Since 1.37 containers that share have no CPUs listed, and no publisher reads the pod's own (kubelet spec 11)."""
    node = Node(machine(), "single-numa-node", "pod", feature_gates=GATE, minor=minor)
    node.placed(pod("a", guaranteed("own", 1), burstable("shared"), whole={"cpu": 3, "memory": "4Gi"}))
    assert amounts(node, "rte", "cpu")[0] == Amounts(4000, 3000, 1000 * left)


def signed(*names: str, method: Method) -> Fingerprint:
    return Fingerprint(fingerprint.of(("default", name) for name in names), method)


SIGNATURES: dict[Publisher, Fingerprint] = {
    "rte": signed("a", method=Method.EXCLUSIVE),
    "nfd": signed("a", "b", method=Method.ALL),
}


@pytest.mark.parametrize("publisher, signature", SIGNATURES.items(), ids=SIGNATURES)
def test_each_publisher_signs_its_own_choice_of_pods(publisher: Publisher, signature: Fingerprint) -> None:
    node = Node(machine(), "single-numa-node")
    node.placed(simple("a"))
    node.placed(pod("b", burstable("app")))
    assert plainreport.of("worker-7", node.kubelet, node.state, publisher).fingerprint == signature


def test_nfd_signs_nothing_on_an_empty_node() -> None:
    node = Node(machine())
    assert plainreport.of("worker-7", node.kubelet, node.state, "nfd").fingerprint is None


@pytest.mark.parametrize("publisher, placed", [("rte", True), ("nfd", False)])
def test_only_the_exporter_reports_where_containers_are(publisher: Publisher, placed: bool) -> None:
    node = Node(machine(), "single-numa-node")
    assert (plainreport.of("worker-7", node.kubelet, node.state, publisher).placement is not None) == placed


@pytest.mark.parametrize("publisher", BOTH)
def test_nothing_of_ours_is_in_it(publisher: Publisher) -> None:
    node = Node(machine(), "restricted", "pod", topology_options={"max-allowable-numa-nodes": "16"})
    topology = plainreport.of("worker-7", node.kubelet, node.state, publisher)
    assert topology.facts == NodeFacts()
    assert topology.manager == TopologyManager("restricted", "pod", 8)
