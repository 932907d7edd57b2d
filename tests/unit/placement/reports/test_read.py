"""Reading reports for the engine: what is exact, what is assumed, and that a malformed report never stops it."""

from typing import Any

import pytest
from hypothesis import given, settings
from msgspec import structs

from numalign.api.attributes.deviceclasses import DeviceCount as PublishedClass
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.kubelet.machine.machine import Device, DevicePlugin
from numalign.kubelet.machine.presets import GIB
from numalign.placement.columns.nodefacts import Assumption, DeviceClass, Groups, RowFacts, Supply
from numalign.placement.reports import read
from tests import topology_strategies as some
from tests.nodes import NIC, Node, guaranteed, machine, plugin, pod, simple
from tests.strategies import reports
from tests.unit.placement.written import worker, zones


def ours(node: Node) -> RowFacts:
    return read.read(reports.ours(node.kubelet, node.state), None)


def test_sizes_count_reserved_cpus() -> None:
    node = Node(machine(), "single-numa-node")
    node.placed(simple("a", cpu=2))
    assert ours(node).supplies["cpu"] == Supply(size=(4, 4), allocatable=(3, 4), free=(1, 4))


def test_devices_go_by_zone_set() -> None:
    mixed = DevicePlugin((Device("a", (0,)), Device("b", (0, 1)), Device("c", None), Device("d", (1,), healthy=False)))
    facts = ours(Node(machine(devices={NIC: mixed})))
    single = Supply(size=(1, 1), allocatable=(1, 0), free=(1, 0), homeless=1, homeless_size=1)
    assert facts.supplies[NIC] == single
    assert facts.classes == (DeviceClass(resource=NIC, zones=0b11, size=1, free=1),)


ADRIFT = {
    "beside others": (plugin(0, 9), Supply(size=(1, 0), allocatable=(1, 0), free=(1, 0), homeless=1, homeless_size=1)),
    "half known": (plugin((1, 9)), Supply(size=(0, 1), allocatable=(0, 1), free=(0, 1))),
    "without zones": (plugin(None), Supply(size=(0, 0), allocatable=(0, 0), free=(0, 0), homeless=1, homeless_size=1)),
}


@pytest.mark.parametrize("devices, supply", ADRIFT.values(), ids=ADRIFT)
def test_zones_that_the_machine_does_not_have_count_for_nothing(devices: DevicePlugin, supply: Supply) -> None:
    facts = ours(Node(machine(devices={NIC: devices})))
    assert (facts.supplies[NIC], facts.classes) == (supply, ())


def test_devices_that_name_only_zones_that_are_not_there_are_a_class_without_zones() -> None:
    """Unlike devices that name none: their hints fit nowhere, instead of anywhere (kubelet spec 7.2)."""
    facts = ours(Node(machine(devices={NIC: plugin(9, None)})))
    assert facts.classes == (DeviceClass(resource=NIC, zones=0, size=1, free=1),)
    assert facts.supplies[NIC].homeless_size == 1


def test_a_plugin_without_devices_is_known_all_the_same() -> None:
    facts = ours(Node(machine(devices={NIC: plugin()})))
    assert facts.supplies[NIC] == Supply(size=(0, 0), allocatable=(0, 0), free=(0, 0))


def test_cores_show_how_many_threads_are_free() -> None:
    node = Node(machine(cores=3, threads=2), "single-numa-node")
    node.placed(simple("a", cpu=2))
    facts = ours(node)
    assert facts.cores == ((1, 1), (0, 3))
    assert facts.free_full_core_cpus == 8
    assert (facts.rules.threads_per_core, facts.rules.sockets) == (2, (0b01, 0b10))


def test_groups_go_by_position() -> None:
    node = Node(machine(zones=3), "restricted")
    node.placed(simple("a", cpu=5, memory="12Gi"))
    assert ours(node).groups == Groups((0b011, 0b011, 0b100), 0b011)


def test_placements_cover_their_pods() -> None:
    node = Node(machine(), "single-numa-node")
    node.placed(simple("a"))
    facts = ours(node)
    assert [pod.name for pod in facts.placements or ()] == ["a"]
    assert facts.zone_cpus == (0b00001111, 0b11110000)
    assert facts.exclusive_only


IRREGULAR = {
    "alike": ([[0, 1], [2, 3]], True),
    "one core with fewer threads": ([[0, 1], [2]], False),
}


@pytest.mark.parametrize("threads, regular", IRREGULAR.values(), ids=IRREGULAR)
def test_cores_of_different_sizes_are_irregular(threads: list[list[int]], regular: bool) -> None:
    node = Node(machine(cores=2, threads=2))
    cores = tuple(each for each in reports.ours(node.kubelet, node.state).facts.cores or () if each.zone == 0)
    odd = tuple(structs.replace(core, cpus=tuple(own)) for core, own in zip(cores, threads, strict=True))
    assert read.read(_with_cores(node, odd), None).rules.regular == regular


@pytest.mark.parametrize("count, sockets", [(2, 2), (4, 2), (2, 4), (1, 2), (4, 1)])
def test_sockets_inside_zones_and_zones_inside_sockets_are_regular(count: int, sockets: int) -> None:
    node = Node(machine(zones=count))
    per_socket = 4 * count // sockets
    cores = (structs.replace(core, socket=core.cpus[0] // per_socket) for core in _report(node).facts.cores or ())
    rules = read.read(_with_cores(node, tuple(cores)), None).rules
    assert rules.regular
    assert sum(each.bit_count() for each in rules.sockets) == max(count, sockets)


def test_sockets_across_zones_are_irregular() -> None:
    node = Node(machine(cores=2))
    cores = tuple(structs.replace(core, socket=core.cpus[0] % 2) for core in _report(node).facts.cores or ())
    assert not read.read(_with_cores(node, cores), None).rules.regular


SOCKETS = {
    "of one size in one zone": ((0, 0, 1, 1), True),
    "of different sizes in one zone": ((0, 1, 1, 1), False),
    "of different sizes, one each": ((0, 0, 0, 0), True),
}


@pytest.mark.parametrize("sockets, regular", SOCKETS.values(), ids=SOCKETS)
def test_sockets_that_share_a_zone_are_regular_if_they_are_alike(sockets: tuple[int, ...], regular: bool) -> None:
    """The kubelet finds full sockets by their average size."""
    node = Node(machine(zones=2, cores=4))
    published = [core for core in _report(node).facts.cores or () if core.zone == 0]
    alike = [structs.replace(core, socket=socket) for core, socket in zip(published, sockets, strict=True)]
    others = [structs.replace(core, socket=2) for core in _report(node).facts.cores or () if core.zone == 1]
    # The other zone is its own socket, and smaller where only that one is of another size.
    kept = others[: 2 if 1 in sockets else 1]
    assert read.read(_with_cores(node, (*alike, *kept)), None).rules.regular == regular


def _report(node: Node) -> NodeTopology:
    return reports.ours(node.kubelet, node.state)


def _with_cores(node: Node, cores: Any) -> NodeTopology:
    topology = _report(node)
    return structs.replace(topology, facts=structs.replace(topology.facts, cores=cores))


CLOSEST = {
    "preferred": ("restricted", "true", ((10, 20), (20, 10))),
    "not preferred": ("restricted", "false", None),
    "without a policy": ("none", "true", None),
}


@pytest.mark.parametrize("policy, closest, distances", CLOSEST.values(), ids=CLOSEST)
def test_distances_are_kept_where_they_decide(policy: str, closest: str, distances: Any) -> None:
    node = Node(machine(), policy, topology_options={"prefer-closest-numa-nodes": closest})
    found = ours(node).rules.distances
    assert (found is None) == (distances is None)
    assert found is None or found[0][0] < found[0][1]


def test_distances_that_are_missing_are_noted() -> None:
    node = Node(machine(), "restricted", topology_options={"prefer-closest-numa-nodes": "true"})
    topology = _report(node)
    bare = tuple(structs.replace(zone, costs={}) for zone in topology.zones)
    facts = read.read(structs.replace(topology, zones=bare), None)
    assert facts.rules.distances is None
    assert facts.assumptions == {Assumption.DISTANCES_UNKNOWN}


PANICS = {
    "gaps": ("restricted", 2, {Assumption.CLOSEST_DESPITE_GAPS}),
    "zones in a row": ("restricted", 1, set()),
    "a policy that never compares distances": ("single-numa-node", 2, set()),
}


@pytest.mark.parametrize("policy, step, noted", PANICS.values(), ids=PANICS)
def test_close_zones_preferred_among_ids_with_gaps_are_noted(policy: str, step: int, noted: set[Assumption]) -> None:
    """A kubelet that is asked for that ends with a panic; the engine answers as if it did not."""
    topology = _report(Node(machine(), policy, topology_options={"prefer-closest-numa-nodes": "true"}))
    apart = tuple(
        structs.replace(zone, id=step * zone.id, costs={step * other: cost for other, cost in zone.costs.items()})
        for zone in topology.zones
    )
    found = read.read(structs.replace(topology, zones=apart), None)
    assert found.assumptions & {Assumption.CLOSEST_DESPITE_GAPS} == noted


WITHOUT = {
    "cores": ({"cores": None}, Assumption.CORES_UNKNOWN),
    "managers": ({"managers": None}, Assumption.CPU_POLICY_FROM_AMOUNTS),
    "kubelet": ({"kubelet": None}, Assumption.MINOR_ASSUMED),
    "memory": ({"memory": None}, Assumption.GROUPS_UNKNOWN),
    "placements": ({"placements": None}, Assumption.PLACEMENTS_UNKNOWN),
    "devices": ({"devices": None}, Assumption.SIZE_FROM_ALLOCATABLE),
}


@pytest.mark.parametrize("left_out, assumption", WITHOUT.values(), ids=WITHOUT)
def test_a_fact_that_is_left_out_costs_only_itself(left_out: dict[str, None], assumption: Assumption) -> None:
    node = Node(machine(devices={NIC: plugin(0, 1)}), "restricted")
    node.placed(simple("a", cpu=2, nic=1))
    topology = _report(node)
    facts = read.read(structs.replace(topology, facts=structs.replace(topology.facts, **left_out)), None)
    assert assumption in facts.assumptions
    assert facts.supplies == ours(node).supplies


def test_a_report_without_zones_has_nothing_that_could_refuse_a_pod() -> None:
    facts = read.read(NodeTopology(node="worker-7", manager=TopologyManager("single-numa-node")), worker())
    assert (facts.node, facts.rules.zones, facts.rules.policy) == ("worker-7", (), "none")
    assert not facts.supplies
    assert facts.assumptions == {Assumption.NO_REPORT}
    assert facts.rules.minor == (1, 37)


def test_a_machine_of_two_hundred_zones_is_read() -> None:
    facts = read.read(zones(*[(2000, 1000, 1000)] * 200), worker(cpu=400))
    assert len(facts.rules.zones) == 200
    assert not facts.rules.fits_arrays


@given(some.topologies())
@settings(max_examples=100)
def test_any_mixture_of_facts_is_read(topology: NodeTopology) -> None:
    """Facts that have nothing to do with the zones beside them."""
    facts = read.read(topology, worker(cpu=1, nic=2))
    width = len(topology.zones)
    for each in facts.supplies.values():
        assert {len(each.size), len(each.allocatable), len(each.free)} == {width}
    assert all(each.zones < 1 << width for each in facts.classes)
    assert facts.groups is None or all(cells < 1 << width for cells in facts.groups.cells)


def test_init_containers_are_deducted_in_the_managers_checkpoints() -> None:
    node = Node(machine(), "single-numa-node")
    node.placed(pod("a", guaranteed("app", "500m"), init=[guaranteed("init", 3)]))
    assert ours(node).supplies["cpu"].free == (0, 4)
    assert "cpu" in ours(node).from_checkpoints
    assert read.read(reports.plain(node.kubelet, node.state), worker()).supplies["cpu"].free == (3, 4)


def test_memory_is_counted_in_bytes() -> None:
    facts = ours(Node(machine()))
    assert facts.supplies["memory"] == Supply(size=(8 * GIB,) * 2, allocatable=(8 * GIB,) * 2, free=(8 * GIB,) * 2)


def test_facts_never_promise_more_than_there_is() -> None:
    topology = _report(Node(machine()))
    memory = tuple(structs.replace(zone, free={"memory": 99 * GIB}) for zone in topology.facts.memory or ())
    devices = (PublishedClass(resource="cpu", zones=1, total=99, healthy=99, free=99),)
    facts = structs.replace(topology.facts, memory=memory, devices=devices)
    assert read.read(structs.replace(topology, facts=facts), None).supplies == ours(Node(machine())).supplies
