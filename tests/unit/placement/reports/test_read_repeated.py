"""Reports that come one after the other, of one node or of several: each is read as if it were the only one."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import pytest
from msgspec import structs

from numalign.api.attributes.coremap import Core
from numalign.api.attributes.managers import KubeletBuild, ManagerPolicies
from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.nrt.fingerprint import Method
from numalign.api.nrt.nodetopology import Amounts, Fingerprint, NodeTopology, Zone
from numalign.api.nrt.topologymanager import Policy, TopologyManager
from numalign.api.objects.node import Node as NodeObject
from numalign.kubelet.report import plainreport, report
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.reports import read
from numalign.placement.reports.read import ReportReader
from tests.campaigns import holds_for
from tests.nodes import GPU, NIC, Node, machine, plugin, simple
from tests.strategies import reports
from tests.strategies.lives import Life
from tests.unit.placement.written import worker, zones

WORKER, LARGE = worker(cpu=16), worker(cpu=32)
Change = Callable[[NodeTopology], NodeTopology]


def read_in_turn(topologies: Sequence[NodeTopology], node: NodeObject | None) -> None:
    reader = ReportReader()
    for topology in topologies:
        assert reader.read(topology, node) == read.read(topology, node)


@holds_for(reports.reported_lives(), examples=25)
def test_any_history_of_a_node_is_read_report_by_report(life: Life) -> None:
    states = list(reports.states(life))
    ours = [reports.ours(life.kubelet, state) for state in states]
    plain = [reports.plain(life.kubelet, state, publisher) for publisher in ("rte", "nfd") for state in states]
    read_in_turn((*ours, *plain, *chain.from_iterable(zip(ours, plain, strict=False))), reports.node(life.kubelet))


# Reports of our agent


def node(policy: str = "restricted", **more: Any) -> Node:
    """GPUs lie in zones, NICs in none of them or in both."""
    devices = {GPU: plugin(0, 0, 1), NIC: plugin(None, None, stem="n", asked=False)}
    made = Node(machine(cores=4, threads=2, devices=devices), policy, **more)
    made.placed(simple("first", cpu=2, gpu=1))
    return made


def reported(node: Node) -> NodeTopology:
    return report.of("worker-7", node.kubelet, node.state)


PODS = {
    "CPUs, memory and a device": simple("a", cpu=3, gpu=1),
    "most of a zone's memory": simple("a", cpu=1, memory="6Gi"),
    "a device in no zone": simple("a", cpu=1, nic=1),
    "nothing of its own": simple("a", cpu="500m"),
}


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
@pytest.mark.parametrize("settings", [{}, {"cpu_policy": "none"}, {"memory_policy": "None"}], ids=str)
def test_a_pod_that_comes_and_goes_is_read(pod: Any, settings: dict[str, Any]) -> None:
    here = node(**settings)
    before = reported(here)
    here.placed(pod)
    read_in_turn((before, reported(here), before), WORKER)


def with_facts(**changed: Any) -> Change:
    return lambda topology: structs.replace(topology, facts=structs.replace(topology.facts, **changed))


def without(what: str) -> Change:
    return with_facts(**{what: None})


def with_first_class(**changed: Any) -> Change:
    def change(topology: NodeTopology) -> NodeTopology:
        first, *others = topology.facts.devices or ()
        return with_facts(devices=(structs.replace(first, **changed), *others))(topology)

    return change


def with_first_zone(**changed: Any) -> Change:
    def change(topology: NodeTopology) -> NodeTopology:
        first, *others = topology.zones
        return structs.replace(topology, zones=(structs.replace(first, **changed), *others))

    return change


def with_amounts(name: str, amount: int) -> Change:
    def change(topology: NodeTopology) -> NodeTopology:
        resources = {**topology.zones[0].resources, name: Amounts(amount, amount, amount)}
        return with_first_zone(resources=resources)(topology)

    return change


def without_last_zone(topology: NodeTopology) -> NodeTopology:
    return structs.replace(topology, zones=topology.zones[:-1])


def with_memory_table(change: Callable[[Sequence[Any]], Sequence[Any]]) -> Change:
    return lambda topology: with_facts(memory=tuple(change(topology.facts.memory or ())))(topology)


def without_memory(topology: NodeTopology) -> NodeTopology:
    def bare(zone: Zone) -> Zone:
        left = {name: each for name, each in zone.resources.items() if name != "memory"}
        return structs.replace(zone, resources=left)

    return structs.replace(topology, zones=tuple(map(bare, topology.zones)))


def without_policy(topology: NodeTopology) -> NodeTopology:
    return structs.replace(topology, guesses=(Guess(GuessCode.POLICY_ASSUMED, "attributes"),))


CHANGED: dict[str, Change] = {
    "a zone vanished": without_last_zone,
    "another zone": with_first_zone(id=7),
    "a resource more": with_amounts("example.com/new", 1),
    "less memory": with_amounts("memory", 1 << 30),
    "no memory": without_memory,
    "an option of the CPU manager": with_facts(
        managers=ManagerPolicies(cpu="static", memory="Static", cpu_options={"full-pcpus-only": "true"})
    ),
    "another kubelet": with_facts(kubelet=KubeletBuild(version="v1.34")),
    "other reserved CPUs": with_facts(reserved_cpus=0b11),
    "another machine": with_facts(cores=tuple(Core((cpu,), zone=cpu // 8, socket=0) for cpu in range(16))),
    "a table of fewer zones": with_memory_table(lambda table: table[:-1]),
    "a table of other zones": with_memory_table(lambda table: [structs.replace(z, zone=z.zone + 2) for z in table]),
    "a table in another order": with_memory_table(lambda table: table[::-1]),
    "a device more": with_first_class(total=9, healthy=9, free=9),
    "devices in both zones": with_first_class(zones=0b11),
    "devices in a zone that is not there": with_first_class(zones=0b1000),
    "cores untold": without("cores"),
    "free CPUs untold": without("default_cpus"),
    "memory untold": without("memory"),
    "devices untold": without("devices"),
    "places untold": without("placements"),
    "another policy": lambda topology: structs.replace(topology, manager=TopologyManager("best-effort")),
    "no policy": without_policy,
    "no zones": lambda topology: structs.replace(topology, zones=()),
    "other distances": with_first_zone(costs={0: 10, 1: 99}),
    "not all distances": with_first_zone(costs={0: 10}),
}


@pytest.mark.parametrize("options", [{}, {"topology_options": {"prefer-closest-numa-nodes": "true"}}], ids=str)
@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_whatever_changes_is_read(change: Change, options: dict[str, Any]) -> None:
    """In whatever order reports come, and however often each of them."""
    here = node(**options)
    first = reported(here)
    here.placed(simple("second", cpu=1, gpu=1))
    second = reported(here)
    read_in_turn((first, second, second, change(second), change(first), first, second, change(first)), WORKER)


# Plain reports

FIRST = zones((8000, 7000, 7000), (8000, 8000, 8000), memory=(4, 4, 4), nic=(2, 2, 2))
PLAIN = {
    "less is free": zones((8000, 7000, 2500), (8000, 8000, 0), memory=(4, 4, 1), nic=(2, 2, 0)),
    "memory counts by what can be had": zones((8000, 7000, 0), (8000, 8000, 0), memory=(9, 4, 4), nic=(2, 2, 2)),
    "other pods": structs.replace(FIRST, fingerprint=Fingerprint("pfp0v001ef46db3751d8e999", Method.EXCLUSIVE)),
    "a zone more": zones(*[(8000, 7000, 7000)] * 3, memory=(4, 4, 4), nic=(2, 2, 2)),
    "a resource more": zones((8000, 7000, 7000), (8000, 8000, 8000), memory=(4, 4, 4), nic=(2, 2, 2), gpu=(1, 1, 1)),
    "more CPUs": zones((9000, 7000, 7000), (8000, 8000, 8000), memory=(4, 4, 4), nic=(2, 2, 2)),
    "no CPUs to be had": zones((8000, 0, 0), (8000, 0, 0), memory=(4, 4, 4), nic=(2, 2, 2)),
    "a part of a CPU to be had": zones((8000, 500, 500), (8000, 0, 0), memory=(4, 4, 4), nic=(2, 2, 2)),
    "no devices": zones((8000, 7000, 7000), (8000, 8000, 8000), memory=(4, 4, 4), nic=(0, 0, 0)),
    "a resource less": zones((8000, 7000, 7000), (8000, 8000, 8000), memory=(4, 4, 4)),
    "another scope": structs.replace(FIRST, manager=structs.replace(FIRST.manager, scope="pod")),
    "no policy": without_policy(FIRST),
    "no zones": structs.replace(FIRST, zones=()),
    "a resource in one zone alone": with_amounts("example.com/new", 1)(FIRST),
}


@pytest.mark.parametrize("policy", ["single-numa-node", "restricted"])
@pytest.mark.parametrize("topology", PLAIN.values(), ids=PLAIN)
def test_whatever_changes_in_a_plain_report_is_read(topology: NodeTopology, policy: Policy) -> None:
    before, after = (structs.replace(each, manager=TopologyManager(policy)) for each in (FIRST, topology))
    read_in_turn((before, after, before), WORKER)


def test_memory_that_comes_into_use_leaves_groups_open_and_back() -> None:
    idle, busy = (
        structs.replace(each, manager=TopologyManager("restricted")) for each in (FIRST, PLAIN["less is free"])
    )
    reader = ReportReader()
    first, second, third = (reader.read(each, WORKER) for each in (idle, busy, idle))
    assert (second.groups, Assumption.GROUPS_UNKNOWN in second.assumptions) == (None, True)
    assert third == first


# Several nodes


def named(name: str, *, plain: bool, cores: int = 4, busy: bool = False) -> NodeTopology:
    node = Node(machine(cores=cores, threads=2, devices={GPU: plugin(0, 1)}), "restricted")
    if busy:
        node.placed(simple("a", cpu=2, gpu=1))
    if plain:
        return plainreport.of(name, node.kubelet, node.state, "rte")
    return report.of(name, node.kubelet, node.state)


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "our agent's"])
def test_every_node_is_read_as_itself(plain: bool) -> None:
    reader = ReportReader()
    cluster = [
        (WORKER, named("first", plain=plain)),
        (WORKER, named("busy", plain=plain, busy=True)),
        (WORKER, named("another machine", plain=plain, cores=8)),
        (LARGE, named("another Node", plain=plain)),
        (WORKER, named("another publisher", plain=not plain)),
        (None, named("no Node", plain=plain)),
        (WORKER, named("last", plain=plain)),
    ]
    for node, topology in cluster + cluster[::-1]:
        assert reader.read(topology, node) == read.read(topology, node)


def test_nodes_of_one_make_share_what_does_not_change() -> None:
    reader = ReportReader()
    first, second = (reader.read(named(name, plain=False, busy=name == "b"), WORKER) for name in ("a", "b"))
    assert first.rules is second.rules
    assert first.supplies.stock is second.supplies.stock
    assert first.supplies.free != second.supplies.free
