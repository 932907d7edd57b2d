"""What our own reports say: standard amounts for everybody, and every fact that makes predictions exact."""

import pytest
from msgspec import structs

from numalign.api.attributes.deviceclasses import DeviceCount
from numalign.api.attributes.managers import KubeletBuild, ManagerPolicies, MemoryZone
from numalign.api.attributes.podplacements import HeldDevices, Holding, MemoryBlock, PodPlacement
from numalign.api.nrt import fingerprint, placementcodec
from numalign.api.nrt.fingerprint import Method
from numalign.api.nrt.nodetopology import Amounts, Fingerprint, NodeTopology
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.kubelet.machine.machine import Device, DevicePlugin, Machine
from numalign.kubelet.machine.presets import GIB
from numalign.kubelet.report import report
from numalign.kubelet.versions import Minor
from tests.campaigns import holds_for
from tests.nodes import GPU, NIC, Node, burstable, guaranteed, machine, plugin, pod, sidecar, simple
from tests.strategies import reports
from tests.strategies.lives import Life

GATE = {"PodLevelResourceManagers": True}


def with_gap(machine: Machine) -> Machine:
    """The same machine with its last zone called 4."""
    *zones, last = machine.zones
    return structs.replace(machine, zones=(*zones, structs.replace(last, id=4, distances=(20, 0, 0, 0, 10))))


def written(node: Node, method: Method = Method.EXCLUSIVE) -> NodeTopology:
    return report.of("worker-7", node.kubelet, node.state, method)


def amounts(node: Node, resource: str) -> list[Amounts | None]:
    """By zone; None where the report does not list the resource."""
    return [zone.resources.get(resource) for zone in written(node).zones]


def test_cpus_are_counted_without_reserved_and_exclusive_ones() -> None:
    node = Node(machine(), "single-numa-node")
    node.placed(simple("a", cpu=2))
    assert amounts(node, "cpu") == [Amounts(4000, 3000, 1000), Amounts(4000, 4000, 4000)]


def test_without_the_static_policy_no_cpu_is_allocatable() -> None:
    node = Node(machine(), cpu_policy="none")
    assert amounts(node, "cpu") == [Amounts(4000, 0, 0)] * 2


def test_memory_is_what_the_memory_manager_has() -> None:
    node = Node(machine(pages=512), "single-numa-node")
    node.placed(simple("a", memory="3Gi", pages="256Mi"))
    assert amounts(node, "memory")[0] == Amounts(10 * GIB, 8 * GIB, 5 * GIB)
    assert amounts(node, "hugepages-2Mi")[0] == Amounts(GIB, GIB, 3 * GIB // 4)


def test_unmanaged_memory_is_not_listed() -> None:
    assert amounts(Node(machine(), memory_policy="None"), "memory") == [None, None]


def test_a_device_is_listed_under_each_of_its_zones() -> None:
    node = Node(machine(devices={NIC: plugin(0, (0, 1), None)}), "single-numa-node")
    node.placed(simple("a", nic=1))
    assert amounts(node, NIC) == [Amounts(2, 2, 1), Amounts(1, 1, 1)]


def test_an_unhealthy_device_is_there_but_not_to_be_had() -> None:
    sick = DevicePlugin((Device("a", (0,)), Device("b", (0,), healthy=False)))
    assert amounts(Node(machine(devices={NIC: sick})), NIC) == [Amounts(2, 1, 1), None]


def test_what_pods_that_are_gone_still_hold_counts_as_free() -> None:
    node = Node(machine(), "single-numa-node")
    before = written(node)
    node.placed(simple("a", cpu=2))
    node.end("a")
    assert written(node) == before


def test_distances_go_by_zone_id() -> None:
    zones = written(Node(machine())).zones
    assert [set(zone.costs) for zone in zones] == [{0, 1}, {0, 1}]


def test_settings_are_in_the_kubelets_words() -> None:
    options = {"full-pcpus-only": "true"}
    limit = {"max-allowable-numa-nodes": "16"}
    gates = {"PodLevelResources": False, "SomethingElse": True}
    given = {"cpu_options": options, "topology_options": limit, "feature_gates": gates, "minor": Minor(1, 35)}
    topology = written(Node(machine(), "restricted", "pod", **given))
    assert topology.manager == TopologyManager("restricted", "pod", 16)
    assert topology.facts.managers == ManagerPolicies(
        cpu="static", memory="Static", cpu_options=options, topology_options=limit
    )
    assert topology.facts.kubelet == KubeletBuild(version="v1.35", feature_gates={"PodLevelResources": False})


def test_the_managers_checkpoints_are_published() -> None:
    node = Node(machine(cores=2), "restricted")
    node.placed(simple("a", cpu=3, memory="9Gi"))
    facts = written(node).facts
    assert (facts.reserved_cpus, facts.default_cpus) == (0b1, 0b1)
    assert facts.cores is not None
    assert [(core.cpus, core.zone, core.socket) for core in facts.cores[1:3]] == [((1,), 0, 0), ((2,), 1, 1)]
    assert facts.reserved_memory == {0: {"memory": GIB}, 1: {"memory": GIB}}
    assert facts.memory == (
        MemoryZone(zone=0, assignments=1, cells=0b11, free={"memory": 0}),
        MemoryZone(zone=1, assignments=1, cells=0b11, free={"memory": 7 * GIB}),
    )


def test_facts_of_a_manager_that_does_nothing_are_left_out() -> None:
    facts = written(Node(machine(), cpu_policy="none", memory_policy="None")).facts
    assert (facts.reserved_cpus, facts.default_cpus) == (None, None)
    assert (facts.memory, facts.reserved_memory) == (None, None)


def test_devices_are_counted_by_zone_set() -> None:
    node = Node(machine(devices={NIC: plugin(0, 0, (0, 1), None, ()), GPU: plugin()}), "single-numa-node")
    node.placed(simple("a", nic=1))
    assert written(node).facts.devices == (
        DeviceCount(resource=GPU, zones=None, total=0, healthy=0, free=0),
        DeviceCount(resource=NIC, zones=None, total=1, healthy=1, free=1),
        DeviceCount(resource=NIC, zones=0, total=1, healthy=1, free=1),
        DeviceCount(resource=NIC, zones=0b01, total=2, healthy=2, free=1),
        DeviceCount(resource=NIC, zones=0b11, total=1, healthy=1, free=1),
    )


def test_placements_show_what_each_container_holds() -> None:
    node = Node(machine(devices={NIC: plugin(0, 1)}), "single-numa-node")
    node.placed(simple("a", cpu=2, nic=1))
    block, held = (
        MemoryBlock(type="memory", zones=1, size=GIB),
        HeldDevices(resource=NIC, zones=1, count=1, ids=("d0",)),
    )
    holding = Holding(container="app", cpus=0b110, memory=(block,), devices=(held,))
    placed = PodPlacement(namespace="default", name="a", uid="a", holdings=(holding,))
    assert written(node).facts.placements == (placed,)


def test_placements_show_what_init_containers_still_hold() -> None:
    node = Node(machine(), "single-numa-node")
    node.placed(pod("a", guaranteed("app", "500m"), init=[guaranteed("init", 3)]))
    assert held_cpus(node) == {"init": 0b1110}


def test_a_pod_served_as_a_whole_holds_what_its_containers_share() -> None:
    node = Node(machine(), "single-numa-node", "pod", feature_gates=GATE)
    node.placed(pod("a", guaranteed("own", 1), burstable("shared"), whole={"cpu": 3, "memory": "4Gi"}))
    assert held_cpus(node) == {"": 0b1110, "own": 0b10, "shared": 0b1100}


def held_cpus(node: Node) -> dict[str, int]:
    (placed,) = written(node).facts.placements or ()
    return {holding.container: holding.cpus for holding in placed.holdings if holding.cpus}


def test_pods_that_hold_nothing_are_listed_only_if_every_pod_is_signed() -> None:
    node = Node(machine(), "single-numa-node")
    node.placed(simple("a"))
    node.placed(pod("b", burstable("app")))
    listed = {method: [each.name for each in written(node, method).facts.placements or ()] for method in Method}
    assert listed == {Method.ALL: ["a", "b"], Method.EXCLUSIVE: ["a"]}


@pytest.mark.parametrize("method, pods", [(Method.ALL, "abc"), (Method.EXCLUSIVE, "a")])
def test_the_fingerprint_is_over_the_pods_of_its_method(method: Method, pods: str) -> None:
    node = Node(machine(devices={NIC: plugin(None)}), "single-numa-node", memory_policy="None")
    node.placed(simple("a"))
    node.placed(pod("b", burstable("app", nic=1)))
    node.placed(simple("c", cpu="500m"))
    signature = written(node, method).fingerprint
    assert signature == Fingerprint(fingerprint.of(("default", name) for name in pods), method)


def test_upstreams_payload_places_containers_in_one_zone_each() -> None:
    node = Node(machine(), "single-numa-node")
    node.placed(simple("a", cpu=3))
    node.placed(pod("b", guaranteed("app", 2), init=[sidecar(guaranteed("log", "500m")), guaranteed("init", 1)]))
    refs = [ContainerRef("default", *names) for names in (("a", "app"), ("b", "app"), ("b", "log"))]
    payload = written(node).placement
    assert payload is not None
    assert placementcodec.decode(payload, refs) == dict(zip(refs, [0, 1, 0], strict=True))


WITHOUT_PAYLOAD = {
    "other policies": (machine(), "restricted"),
    "gaps between zone ids": (with_gap(machine()), "single-numa-node"),
}


@pytest.mark.parametrize("hardware, policy", WITHOUT_PAYLOAD.values(), ids=WITHOUT_PAYLOAD)
def test_upstreams_payload_is_left_out_where_it_cannot_be_written(hardware: Machine, policy: str) -> None:
    node = Node(hardware, policy)
    node.placed(simple("a", cpu=4))
    assert written(node).placement is None


def test_a_share_that_wrapped_around_is_cut_to_what_text_can_carry() -> None:
    node = Node(machine(), "single-numa-node", "pod", feature_gates=GATE)
    node.placed(pod("a", guaranteed("own", 1, "5Gi"), guaranteed("other", 1), whole={"cpu": 3, "memory": "4Gi"}))
    assert reports.ours(node.kubelet, node.state) == written(node)


@holds_for(reports.reported_lives(), examples=25)
def test_a_report_is_read_as_it_was_written(life: Life) -> None:
    for state in reports.states(life):
        assert reports.ours(life.kubelet, state) == report.of("worker-7", life.kubelet, state)
