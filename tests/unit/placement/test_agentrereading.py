"""A report of our own agent after another: whatever is not worked out again comes out as if it had been."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from msgspec import structs

from numalign.api.coremap import Core
from numalign.api.guesses import Guess, GuessCode
from numalign.api.managers import KubeletBuild, ManagerPolicies
from numalign.api.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.topologymanager import TopologyManager
from numalign.kubelet import report
from numalign.placement import agentrereading, ingest, nodesettings
from numalign.placement.engine import Engine
from numalign.placement.exactflavour import ExactFlavour
from numalign.placement.facts import NodeSeen, ReportSeen
from numalign.placement.rowfacts import RowFacts
from tests.campaigns import holds_for
from tests.nodes import GPU, NIC, Node, machine, plugin, simple
from tests.strategies import reports
from tests.strategies.lives import Life
from tests.unit.placement.written import worker

WORKER = worker()
Change = Callable[[NodeTopology], NodeTopology]


def node(policy: str = "restricted", **more: Any) -> Node:
    """GPUs lie in zones, NICs in none of them or in both."""
    devices = {GPU: plugin(0, 0, 1), NIC: plugin(None, None, stem="n", asked=False)}
    made = Node(machine(cores=4, threads=2, devices=devices), policy, **more)
    made.placed(simple("first", cpu=2, gpu=1))
    return made


def reported(node: Node) -> NodeTopology:
    return report.of("worker-7", node.kubelet, node.state)


def read(topology: NodeTopology) -> RowFacts:
    return ingest.read(topology, WORKER)


@holds_for(reports.reported_lives(), examples=25)
def test_reports_of_one_node_are_read_as_ever(life: Life) -> None:
    worker = reports.node(life.kubelet)
    told = [reports.ours(life.kubelet, state) for state in reports.states(life)]
    for last, topology in pairwise(told):
        found = agentrereading.read(topology, last, ingest.read(last, worker))
        # Devices that lie in several zones, or in one that the node does not have, are left to others.
        assert found == ingest.read(topology, worker) or (found is None and any(_elsewhere(last, topology)))


def _elsewhere(*topologies: NodeTopology) -> list[bool]:
    known = {1 << zone.id for topology in topologies for zone in topology.zones}
    classes = [each for topology in topologies for each in topology.facts.devices or ()]
    return [each.zones is not None and each.zones not in known for each in classes]


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
    after = reported(here)
    assert agentrereading.read(after, before, read(before)) == read(after)
    assert agentrereading.read(before, after, read(after)) == read(before)


def test_groups_follow_from_the_table_as_soon_as_it_speaks_of_the_zones() -> None:
    first = reported(node())
    bare = structs.replace(first, zones=tuple(_without_memory(zone) for zone in first.zones))
    elsewhere = [structs.replace(zone, zone=zone.zone + 2) for zone in bare.facts.memory or ()]
    before = with_facts(memory=tuple(elsewhere))(bare)
    found = agentrereading.read(bare, before, read(before))
    assert found is None or found == read(bare)


def _without_memory(zone: Zone) -> Zone:
    left = {name: each for name, each in zone.resources.items() if name != "memory"}
    return structs.replace(zone, resources=left)


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


def without_last_memory(topology: NodeTopology) -> NodeTopology:
    return with_facts(memory=(topology.facts.memory or ())[:-1])(topology)


CHANGED: dict[str, Change] = {
    "a zone vanished": without_last_zone,
    "another zone": with_first_zone(id=7),
    "a resource more": with_amounts("example.com/new", 1),
    "less memory": with_amounts("memory", 1 << 30),
    "an option of the CPU manager": with_facts(
        managers=ManagerPolicies(cpu="static", memory="Static", cpu_options={"full-pcpus-only": "true"})
    ),
    "another kubelet": with_facts(kubelet=KubeletBuild(version="v1.34")),
    "other reserved CPUs": with_facts(reserved_cpus=0b11),
    "another machine": with_facts(cores=tuple(Core((cpu,), zone=cpu // 8, socket=0) for cpu in range(16))),
    "a table of other zones": without_last_memory,
    "a device more": with_first_class(total=9, healthy=9, free=9),
    "devices in both zones": with_first_class(zones=0b11),
    "cores untold": without("cores"),
    "free CPUs untold": without("default_cpus"),
    "memory untold": without("memory"),
    "devices untold": without("devices"),
    "places untold": without("placements"),
    "another policy": lambda topology: structs.replace(topology, manager=TopologyManager("best-effort")),
    "no policy": lambda topology: structs.replace(topology, guesses=(Guess(GuessCode.POLICY_ASSUMED, "attributes"),)),
    "no zones": lambda topology: structs.replace(topology, zones=()),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_whatever_else_changes_is_left_to_others(change: Change) -> None:
    first = reported(node())
    assert agentrereading.read(change(first), first, read(first)) is None
    assert agentrereading.read(first, change(first), read(change(first))) is None


OTHER_DISTANCES = {"others": with_first_zone(costs={0: 10, 1: 99}), "not all of them": with_first_zone(costs={0: 10})}


@pytest.mark.parametrize("change", OTHER_DISTANCES.values(), ids=OTHER_DISTANCES)
def test_other_distances_are_left_to_others_where_close_zones_are_preferred(change: Change) -> None:
    first = reported(node(topology_options={"prefer-closest-numa-nodes": "true"}))
    assert agentrereading.read(change(first), first, read(first)) is None
    assert agentrereading.read(first, change(first), read(change(first))) is None


@pytest.mark.parametrize("change", OTHER_DISTANCES.values(), ids=OTHER_DISTANCES)
def test_distances_that_nobody_goes_by_are_nothing_new(change: Change) -> None:
    first = reported(node())
    assert agentrereading.read(change(first), first, read(first)) == read(change(first))


@pytest.mark.parametrize("change", (CHANGED | OTHER_DISTANCES).values(), ids=CHANGED | OTHER_DISTANCES)
def test_the_engine_knows_what_the_last_report_says(change: Change) -> None:
    """In whatever order reports come, and however often each of them."""
    here = node()
    first = reported(here)
    here.placed(simple("second", cpu=1, gpu=1))
    second = reported(here)
    engine = Engine()
    engine.apply(NodeSeen(WORKER))
    assert isinstance(engine.flavour, ExactFlavour)
    for topology in (first, second, second, change(second), change(first), first, second, first):
        engine.apply(ReportSeen(topology, 0.0))
        expected = ingest.read(topology, nodesettings.essence(WORKER))
        assert engine.flavour.mirror.ledger.facts("worker-7") == expected
