"""Bringing a kubelet back from its report: what it takes, and that nonsense yields none instead of a wrong one."""

from typing import Any

import pytest
from hypothesis import given, settings
from msgspec import structs

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.coremap import Core
from numalign.api.attributes.deviceclasses import DeviceCount
from numalign.api.attributes.managers import ManagerPolicies, MemoryZone
from numalign.api.attributes.podplacements import HeldDevices, Holding, MemoryBlock, PodPlacement
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.pod import Pod
from numalign.kubelet import start
from numalign.kubelet.machine.presets import GIB
from numalign.placement.commit import restorekubelet
from numalign.placement.commit.restorekubelet import RestoredKubelet
from tests import topology_strategies as some
from tests.nodes import NIC, Node, burstable, guaranteed, machine, plugin, pod, simple
from tests.strategies import reports


def node() -> Node:
    node = Node(machine(devices={NIC: plugin(0, 1, (0, 1))}), "restricted")
    node.placed(simple("a", cpu=2, nic=1))
    return node


def report(**facts: Any) -> NodeTopology:
    """The report of a node with one pod, with other facts."""
    there = node()
    topology = reports.ours(there.kubelet, there.state)
    return structs.replace(topology, facts=structs.replace(topology.facts, **facts))


def restored(topology: NodeTopology) -> RestoredKubelet:
    model = restorekubelet.restored(topology, {})
    assert model is not None
    return model


def holder(**held: Any) -> tuple[PodPlacement, ...]:
    return (PodPlacement(namespace="d", name="b", uid="b", holdings=(Holding(container="c", **held),)),)


RESIDENTS = {
    "in one zone": simple("b", cpu=2),
    "in several zones": simple("b", cpu=5, memory="12Gi"),
    "with an init container": pod("b", guaranteed("app", 1), init=[guaranteed("init", 2)]),
    "served as a whole": pod("b", guaranteed("own", 1), burstable("shared"), whole={"cpu": 3, "memory": "4Gi"}),
}


@pytest.mark.parametrize("resident", RESIDENTS.values(), ids=RESIDENTS)
def test_the_state_is_the_one_that_was_reported(resident: Pod) -> None:
    """Less what only the process remembers, as after a restart."""
    there = Node(machine(), "restricted", "pod", feature_gates={"PodLevelResourceManagers": True})
    there.placed(resident)
    known = start.restart(there.kubelet, there.state)
    state = restored(reports.ours(there.kubelet, there.state)).state
    assert (state.cpu, state.memory, state.affinities) == (known.cpu, known.memory, known.affinities)


UNRELATED = {"kubelet_away", "mode", "minors", "shares", "applied"}
"""Whether the kubelet answers, and what belongs to direct mode, say nothing about the state of its managers."""


@pytest.mark.parametrize("fact", [name for name in NodeFacts.__struct_fields__ if name not in UNRELATED])
def test_every_fact_is_needed(fact: str) -> None:
    assert restorekubelet.restored(report(**{fact: None}), {}) is None


def test_facts_of_managers_that_do_nothing_are_not_needed() -> None:
    idle = Node(machine(), cpu_policy="none", memory_policy="None")
    model = restored(reports.ours(idle.kubelet, idle.state))
    assert (model.kubelet.cpu, model.kubelet.memory) == (None, None)


def memory(cells: int | None = None, **free: int) -> tuple[MemoryZone, ...]:
    """A table for both zones, each a separate group by default."""
    amounts = {kind.replace("_", "-"): amount for kind, amount in free.items()}
    return tuple(
        MemoryZone(zone=zone, assignments=0, cells=1 << zone if cells is None else cells, free=amounts)
        for zone in (0, 1)
    )


def held_memory(kind: str, zones: int) -> tuple[PodPlacement, ...]:
    return holder(memory=(MemoryBlock(type=kind, zones=zones, size=1),))


def nics(total: int) -> tuple[DeviceCount, ...]:
    return (DeviceCount(resource=NIC, zones=1, total=total, healthy=0, free=0),)


def held_nics(zones: int, count: int, *ids: str) -> tuple[PodPlacement, ...]:
    return holder(devices=(HeldDevices(resource=NIC, zones=zones, count=count, ids=ids),))


ABSURD: dict[str, dict[str, Any]] = {
    "an option nobody knows": {"managers": ManagerPolicies(cpu="static", cpu_options={"fast": "true"})},
    "a core in a zone that is not there": {"cores": (Core((0,), 7, 0),)},
    "a socket beyond all bounds": {"cores": (Core((0,), 0, 999_999_999),)},
    "reserved CPUs that are not there": {"reserved_cpus": 1 << 77},
    "no reserved CPU": {"reserved_cpus": 0},
    "shared CPUs that are not there": {"default_cpus": 1 << 77},
    "memory of another machine": {"memory": memory(memory=0)[1:]},
    "more memory free than there is": {"memory": memory(memory=99 * GIB)},
    "a group without zones": {"memory": memory(cells=0, memory=0)},
    "no ordinary memory": {"memory": memory(hugepages_2Mi=0)},
    "a memory type that no zone lists": {"memory": memory(memory=0, hugepages_x=0)},
    "more devices than fit a node": {"devices": nics(1 << 40)},
    "CPUs held that are not there": {"placements": holder(cpus=1 << 77)},
    "memory held where there is none": {"placements": held_memory("memory", zones=32)},
    "memory held of a type that is not there": {"placements": held_memory("gold", zones=1)},
    "more devices held than are in use": {"placements": held_nics(1, 9)},
    "more devices held by name than are in use": {"placements": held_nics(2, 1, "x")},
}


@pytest.mark.parametrize("facts", ABSURD.values(), ids=ABSURD)
def test_a_report_that_cannot_be_true_yields_no_model(facts: dict[str, Any]) -> None:
    assert restorekubelet.restored(report(**facts), {}) is None


def test_plain_reports_yield_no_model() -> None:
    there = node()
    assert restorekubelet.restored(reports.plain(there.kubelet, there.state), {}) is None


@given(some.topologies())
@settings(max_examples=100)
def test_no_mixture_of_facts_stops_it(topology: NodeTopology) -> None:
    model = restorekubelet.restored(topology, {})
    assert model is None or model.kubelet.machine.zone_ids == tuple(zone.id for zone in topology.zones)


def test_devices_known_by_number_alone_are_found_in_their_zones() -> None:
    model = restored(report(placements=held_nics(0b01, 1)))
    (ids,) = (each for held in model.state.devices.pods["b"].values() for each in held.values())
    assert [model.kubelet.devices.inventories[NIC].by_id[each].zones for each in ids] == [(0,)]


def test_containers_of_a_pod_may_hold_the_same_device() -> None:
    """An init container's device goes on to the app container, and is in use once."""
    there = Node(machine(devices={NIC: plugin(0)}))
    there.placed(pod("a", guaranteed("app", nic=1), init=[guaranteed("init", nic=1)]))
    topology = reports.ours(there.kubelet, there.state)
    for each in (topology, _without_ids(topology)):
        held = restored(each).state.devices.pods["a"]
        assert held["app"] == held["init"]


def _without_ids(topology: NodeTopology) -> NodeTopology:
    (placed,) = topology.facts.placements or ()
    numbered = tuple(
        structs.replace(each, devices=tuple(structs.replace(held, ids=()) for held in each.devices))
        for each in placed.holdings
    )
    facts = structs.replace(topology.facts, placements=(structs.replace(placed, holdings=numbered),))
    return structs.replace(topology, facts=facts)


HEALTHY = {
    "the holder is known": ({}, 3),
    "the holder is not known": ({"placements": ()}, 2),
    "one broke while in use": ({"devices": (DeviceCount(resource=NIC, zones=1, total=2, healthy=1, free=1),)}, 1),
}


@pytest.mark.parametrize("facts, healthy", HEALTHY.values(), ids=HEALTHY)
def test_only_devices_that_can_be_had_or_are_held_are_healthy(facts: dict[str, Any], healthy: int) -> None:
    kubelet, state = restored(report(**facts))
    inventory = kubelet.devices.inventories[NIC]
    assert len(inventory.healthy) == healthy
    assert len(inventory.healthy - state.devices.in_use(NIC)) == sum(each.free for each in _nics(facts))


def _nics(facts: dict[str, Any]) -> tuple[DeviceCount, ...]:
    return report(**facts).facts.devices or ()


def test_a_device_of_a_plugin_that_is_gone_stays_in_use() -> None:
    held = (HeldDevices(resource="example.com/old", zones=0b01, count=2),)
    model = restored(report(placements=holder(devices=held)))
    assert len(model.state.devices.in_use("example.com/old")) == 2


def test_the_spec_of_another_pod_under_the_same_name_is_not_used() -> None:
    newer = structs.replace(simple("a"), metadata=structs.replace(simple("a").metadata, uid="other"))
    model = restorekubelet.restored(report(), {"default/a": newer})
    assert model is not None
    assert model.state.active.keys() == {"a"}


def test_the_spec_that_is_given_is_used() -> None:
    given_pod = simple("a", cpu=2, nic=1)
    model = restorekubelet.restored(report(), {"default/a": given_pod})
    assert model is not None
    assert model.state.active["a"] is given_pod
