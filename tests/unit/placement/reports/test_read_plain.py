"""Reading plain reports: what follows from amounts and the Node object, and what is noted as assumed."""

from typing import Any

import pytest
from msgspec import structs

from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.nrt.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.objects.node import Node
from numalign.kubelet import versions
from numalign.kubelet.versions import Minor
from numalign.placement.columns.nodefacts import Assumption, Groups, Supply
from numalign.placement.reports import nodesettings, read
from tests.nodes import NIC
from tests.unit.placement.written import worker, zones

PLAIN = frozenset({Assumption.CPU_POLICY_FROM_AMOUNTS, Assumption.MEMORY_POLICY_FROM_AMOUNTS})


def test_the_policies_follow_from_amounts() -> None:
    facts = read.read(zones((8000, 7000, 7000), memory=(4, 3, 3)), worker(cpu=8))
    assert (facts.rules.static_cpus, facts.rules.static_memory) == (True, True)
    assert facts.assumptions >= PLAIN | {Assumption.CPU_OPTIONS_NONE, Assumption.CORES_UNKNOWN}


def test_nothing_to_allocate_means_no_static_policy() -> None:
    facts = read.read(zones((8000, 0, 0)), worker(cpu=8))
    assert (facts.rules.static_cpus, facts.rules.static_memory) == (False, False)
    assert facts.assumptions == PLAIN | {Assumption.PLACEMENTS_UNKNOWN}


def test_parts_of_cpus_are_not_exclusive() -> None:
    facts = read.read(zones((8000, 7500, 2999)), worker(cpu=8))
    assert facts.supplies["cpu"] == Supply(size=(8,), allocatable=(7,), free=(2,))


def test_without_a_core_map_it_is_unknown_how_cpus_are_split() -> None:
    rules = read.read(zones((8000, 7000, 7000)), worker()).rules
    assert (rules.sockets, rules.regular) == ((), False)


SIZES = {
    "as the node says": (zones((8000, 7000, 7000), (8000, 8000, 8000)), worker(cpu=16), {}),
    "capacity is only allocatable": (zones((7000, 7000, 7000), (8000, 8000, 8000)), worker(cpu=16), {"cpu": 1}),
    "sick devices": (zones((8000, 7000, 7000), nic=(3, 3, 3)), worker(cpu=8, nic=4), {NIC: 1}),
    "devices on two zones": (
        zones((8000, 7000, 7000), (8000, 8000, 8000), nic=(3, 3, 3)), worker(cpu=16, nic=4), {NIC: 2},
    ),
    "memory counts by allocatable": (zones((8000, 7000, 7000), memory=(3, 3, 3)), worker(cpu=8, memory=9), {}),
    "a node that says nothing": (zones((8000, 7000, 7000)), worker(), {}),
}  # fmt: skip


@pytest.mark.parametrize("topology, node, unknown", SIZES.values(), ids=SIZES)
def test_sizes_are_held_against_the_node(topology: NodeTopology, node: Node, unknown: dict[str, int]) -> None:
    facts = read.read(topology, node)
    assert facts.unknown_size == unknown
    assert (Assumption.SIZE_FROM_ALLOCATABLE in facts.assumptions) == bool(unknown)


def test_sizes_that_cannot_be_held_against_a_node_are_doubted() -> None:
    assert Assumption.SIZE_FROM_ALLOCATABLE in read.read(zones((7000, 7000, 7000)), None).assumptions


GROUPS = {
    "nobody holds memory": ("restricted", [(8, 8, 8), (8, 8, 8)], Groups((1, 2), 0)),
    "somebody does": ("restricted", [(8, 8, 3), (8, 8, 8)], None),
    "in one zone each": ("single-numa-node", [(8, 8, 3), (8, 8, 8)], Groups((1, 2), 0b01)),
    "there is one zone": ("best-effort", [(8, 8, 3)], Groups((1,), 0b1)),
}


@pytest.mark.parametrize("policy, memory, groups", GROUPS.values(), ids=GROUPS)
def test_groups_are_supposed_only_where_there_can_be_none(
    policy: Any, memory: list[Any], groups: Groups | None
) -> None:
    listed = (Zone(id=place, resources={"memory": Amounts(*each)}) for place, each in enumerate(memory))
    facts = read.read(NodeTopology(node="n", manager=TopologyManager(policy), zones=tuple(listed)), worker())
    assert facts.groups == groups
    assert (Assumption.GROUPS_UNKNOWN in facts.assumptions) == (groups is None)


MINORS = {
    "from the node": (worker("v1.34.4-eks-abc"), Minor(1, 34), False),
    "unreadable": (worker("sometime"), versions.NEWEST, True),
    "no node": (None, versions.NEWEST, True),
}


@pytest.mark.parametrize("node, minor, assumed", MINORS.values(), ids=MINORS)
def test_the_minor_comes_from_the_node(node: Node | None, minor: Minor, assumed: bool) -> None:
    facts = read.read(zones((8000, 7000, 7000)), node)
    assert facts.rules.minor == minor
    assert facts.rules.reading.from_status == (minor == (1, 34))
    assert (Assumption.MINOR_ASSUMED in facts.assumptions) == assumed


REPORTS = {
    "sizes are in doubt": zones((7000, 7000, 7000), (8000, 8000, 8000), nic=(3, 3, 3)),
    "nothing is static": zones((8000, 0, 0)),
    "memory is held": zones((8000, 7000, 7000), (8000, 7000, 7000), memory=(4, 3, 2)),
    "no zones": NodeTopology(node="n"),
}
NODES = {
    "none": None,
    "says nothing": worker(),
    "old": worker("v1.27.3", cpu=16, nic=6),
    "has more": worker("v1.35.0", cpu=20, nic=8),
}


@pytest.mark.parametrize("topology", REPORTS.values(), ids=REPORTS)
@pytest.mark.parametrize("before", NODES.values(), ids=NODES)
@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_a_report_read_again_for_another_node_is_as_if_read_anew(
    topology: NodeTopology, before: Node | None, node: Node | None
) -> None:
    assert read.read_again(read.read(topology, before), node) == read.read(topology, node)


@pytest.mark.parametrize("node", [each for each in NODES.values() if each], ids=[name for name in NODES if NODES[name]])
def test_the_essence_of_a_node_is_all_that_reports_are_read_with(node: Node) -> None:
    for topology in REPORTS.values():
        assert read.read(topology, nodesettings.essence(node)) == read.read(topology, node)


def test_nodes_of_one_make_share_what_does_not_change() -> None:
    one, other = (
        read.read(structs.replace(zones((8000, 7000, free)), node=f"n{free}"), nodesettings.essence(worker(cpu=8)))
        for free in (1000, 2000)
    )
    assert one.rules is other.rules
    assert one.supplies.stock is other.supplies.stock
    assert nodesettings.essence(worker(cpu=8)) is nodesettings.essence(worker(cpu=8))


def test_a_policy_that_the_report_does_not_say_is_the_kubelets_default() -> None:
    topology = structs.replace(zones((8000, 7000, 7000)), guesses=(Guess(GuessCode.POLICY_ASSUMED, "attributes"),))
    assert Assumption.POLICY_FROM_KUBELET_DEFAULT in read.read(topology, worker()).assumptions
