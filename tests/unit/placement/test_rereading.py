"""A plain report after another: whatever is not worked out again comes out as if it had been."""

import pytest
from msgspec import structs

from numalign.api.fingerprint import Method
from numalign.api.guesses import Guess, GuessCode
from numalign.api.nodetopology import Fingerprint, NodeTopology
from numalign.api.topologymanager import Policy, TopologyManager
from numalign.placement import ingest, rereading
from numalign.placement.rowfacts import Assumption
from tests.campaigns import holds_for
from tests.strategies import reports
from tests.strategies.lives import Life
from tests.unit.placement.written import worker, zones

NODE = worker(cpu=16)
FIRST = zones((8000, 7000, 7000), (8000, 8000, 8000), memory=(4, 4, 4), nic=(2, 2, 2))


@holds_for(reports.reported_lives(), examples=25)
def test_reports_of_one_node_are_read_as_ever(life: Life) -> None:
    node = reports.node(life.kubelet)
    for publisher in ("rte", "nfd"):
        before = None
        for state in reports.states(life):
            topology = reports.plain(life.kubelet, state, publisher)
            facts = ingest.read(topology, node)
            assert before is None or rereading.read(topology, before) == facts
            before = facts


AMOUNTS = {
    "less is free": zones((8000, 7000, 2500), (8000, 8000, 0), memory=(4, 4, 1), nic=(2, 2, 0)),
    "memory counts by what can be had": zones((8000, 7000, 0), (8000, 8000, 0), memory=(9, 4, 4), nic=(2, 2, 2)),
    "other pods": structs.replace(FIRST, fingerprint=Fingerprint("pfp0v001ef46db3751d8e999", Method.EXCLUSIVE)),
}


@pytest.mark.parametrize("topology", AMOUNTS.values(), ids=AMOUNTS)
@pytest.mark.parametrize("policy", ["single-numa-node", "restricted"])
def test_only_amounts_are_read(topology: NodeTopology, policy: Policy) -> None:
    before, after = (structs.replace(each, manager=TopologyManager(policy)) for each in (FIRST, topology))
    assert rereading.read(after, ingest.read(before, NODE)) == ingest.read(after, NODE)


def test_memory_that_comes_into_use_leaves_groups_open_and_back() -> None:
    idle = structs.replace(FIRST, manager=TopologyManager("restricted"))
    busy = structs.replace(AMOUNTS["less is free"], manager=TopologyManager("restricted"))
    first = ingest.read(idle, NODE)
    second = rereading.read(busy, first)
    assert second is not None
    assert (second.groups, Assumption.GROUPS_UNKNOWN in second.assumptions) == (None, True)
    assert rereading.read(idle, second) == first


CHANGED = {
    "a zone more": zones(*[(8000, 7000, 7000)] * 3, memory=(4, 4, 4), nic=(2, 2, 2)),
    "other zones": structs.replace(
        FIRST, zones=tuple(structs.replace(zone, id=zone.id + 1) for zone in FIRST.zones),
    ),
    "a resource more": zones((8000, 7000, 7000), (8000, 8000, 8000), memory=(4, 4, 4), nic=(2, 2, 2), gpu=(1, 1, 1)),
    "more CPUs": zones((9000, 7000, 7000), (8000, 8000, 8000), memory=(4, 4, 4), nic=(2, 2, 2)),
    "fewer to be had": zones((8000, 6000, 6000), (8000, 8000, 8000), memory=(4, 4, 4), nic=(2, 2, 2)),
    "more devices": zones((8000, 7000, 7000), (8000, 8000, 8000), memory=(4, 4, 4), nic=(3, 2, 2)),
    "another policy": structs.replace(FIRST, manager=TopologyManager("best-effort")),
    "another scope": structs.replace(FIRST, manager=structs.replace(FIRST.manager, scope="pod")),
    "no policy": structs.replace(FIRST, guesses=(Guess(GuessCode.POLICY_ASSUMED, "attributes"),)),
    "no zones": structs.replace(FIRST, zones=()),
}  # fmt: skip


@pytest.mark.parametrize("topology", CHANGED.values(), ids=CHANGED)
def test_whatever_else_changes_is_left_to_others(topology: NodeTopology) -> None:
    assert rereading.read(topology, ingest.read(FIRST, NODE)) is None


def test_a_part_of_a_cpu_tells_that_cpus_are_given_out() -> None:
    without, some = zones((8000, 0, 0)), zones((8000, 500, 500))
    assert rereading.read(some, ingest.read(without, NODE)) is None


def test_resources_of_which_there_is_nothing_are_told_from_those_that_are_not_there() -> None:
    with_none, without = zones((8000, 7000, 7000), nic=(0, 0, 0)), zones((8000, 7000, 7000))
    assert rereading.read(without, ingest.read(with_none, NODE)) is None
    assert rereading.read(with_none, ingest.read(without, NODE)) is None


def test_a_resource_of_another_zone_alone_is_read() -> None:
    first, second = FIRST.zones
    fewer = structs.replace(second, resources={"cpu": second.resources["cpu"]})
    before = structs.replace(FIRST, zones=(structs.replace(fewer, id=0), structs.replace(first, id=1)))
    assert rereading.read(before, ingest.read(before, NODE)) == ingest.read(before, NODE)


def test_nodes_without_zones_have_nothing_to_read() -> None:
    assert rereading.read(FIRST, ingest.read(structs.replace(FIRST, zones=()), NODE)) is None
