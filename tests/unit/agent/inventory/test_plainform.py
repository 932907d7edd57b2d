"""Zones as others count them, without what they count wrongly."""

from __future__ import annotations

import pytest

from numalign.agent.inventory import plainform
from numalign.agent.inventory.plainform import Form
from numalign.agent.sources.podresources import Allocatable, ContainerResources, DeviceEntry, MemoryEntry, PodResources
from numalign.api.nrt import placementcodec
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.kubelet.machine.machine import Core, HugePages, Machine, Zone
from tests.unit.agent.clusters import NODE, STRICT

GIB = 1 << 30
FORMS: tuple[Form, ...] = ("rte", "nfd")


def zone(number: int, *cpus: int) -> Zone:
    cores = tuple(Core(number, (cpu,)) for cpu in cpus)
    return Zone(number, cores, 8 * GIB, (HugePages(64, 1024),), (10, 255, 21) if number == 0 else (21, 255, 10))


MACHINE = Machine("gaps", (zone(0, 0, 1, 2, 3), zone(2, 4, 5)))
BOTH = (MemoryEntry("memory", 6 * GIB, (0,)), MemoryEntry("memory", 6 * GIB, (2,)))


def pod(*devices: DeviceEntry, cpus: tuple[int, ...] = (), memory: tuple[MemoryEntry, ...] = ()) -> PodResources:
    return PodResources("default", "web", (ContainerResources("main", devices, cpus, memory),))


def free(allocatable: Allocatable, *pods: PodResources, form: Form = "rte") -> dict[int, dict[str, int]]:
    found = plainform.zones(MACHINE, allocatable, pods, form)
    return {zone.id: {name: each.available for name, each in zone.resources.items()} for zone in found}


@pytest.mark.parametrize("form", FORMS)
def test_a_block_fills_its_zones_one_after_the_other(form: Form) -> None:
    found = free(Allocatable(memory=BOTH), pod(memory=(MemoryEntry("memory", 7 * GIB, (0, 2)),)), form=form)
    assert [found[zone]["memory"] for zone in (0, 2)] == [0, 5 * GIB]


def test_blocks_that_have_nowhere_else_to_be_come_first() -> None:
    blocks = (MemoryEntry("memory", 6 * GIB, (0, 2)), MemoryEntry("memory", GIB, (0,)))
    found = free(Allocatable(memory=BOTH), pod(memory=blocks))
    assert [found[zone]["memory"] for zone in (0, 2)] == [0, 5 * GIB]


@pytest.mark.parametrize("form", FORMS)
def test_a_sick_device_in_use_is_not_subtracted_from_those_that_are_well(form: Form) -> None:
    offered = tuple(DeviceEntry("v/gpu", (each,), (0,)) for each in ("g1", "g2"))
    assert free(Allocatable(offered), pod(DeviceEntry("v/gpu", ("g0",), (0,))), form=form)[0]["v/gpu"] == 2


@pytest.mark.parametrize("form", FORMS)
def test_a_reserved_cpu_in_use_is_not_subtracted_from_those_that_can_be_had(form: Form) -> None:
    assert free(Allocatable(cpus=(1, 2, 3)), pod(cpus=(0, 2)), form=form)[0]["cpu"] == 2000


@pytest.mark.parametrize("form", FORMS)
def test_a_kind_of_devices_of_which_none_is_left_is_there_with_none(form: Form) -> None:
    assert free(Allocatable((DeviceEntry("v/gpu", (), (0,)),), (0,)), form=form)[0] == {"cpu": 1000, "v/gpu": 0}


@pytest.mark.parametrize("form, names", [("rte", {"cpu"}), ("nfd", {"memory"})])
def test_a_block_of_nothing_is_a_resource_in_nfds_form_alone(form: Form, names: set[str]) -> None:
    assert free(Allocatable(memory=(MemoryEntry("memory", 0, (0,)),)), form=form)[0].keys() == names


@pytest.mark.parametrize("form", FORMS)
def test_a_device_in_two_zones_is_used_in_both_once(form: Form) -> None:
    entries = tuple(DeviceEntry("v/gpu", ("g0",), (zone,)) for zone in (0, 2))
    found = free(Allocatable(entries), pod(*entries), form=form)
    assert [found[zone]["v/gpu"] for zone in (0, 2)] == [0, 0]


def test_what_a_pod_holds_as_a_whole_counts_once() -> None:
    whole = PodResources(
        "default",
        "web",
        (ContainerResources("main", (), (1,), (MemoryEntry("memory", GIB, (0,)),)),),
        (1, 2),
        (MemoryEntry("memory", 2 * GIB, (0,)),),
    )
    found = free(Allocatable(cpus=(1, 2, 3, 4, 5), memory=BOTH), whole)
    assert (found[0]["cpu"], found[0]["memory"]) == (1000, 4 * GIB)


def test_pages_of_every_size_have_their_capacity() -> None:
    pages = MemoryEntry("hugepages-64Ki", 32 << 20, (0,))
    (first, _) = plainform.zones(MACHINE, Allocatable(memory=(pages,)), (), "rte")
    assert first.resources["hugepages-64Ki"].capacity == 64 << 20


@pytest.mark.parametrize("form, names", [("rte", {"cpu", "memory"}), ("nfd", {"memory"})])
def test_a_zone_without_allocatable_cpus_has_zero_in_rtes_form(form: Form, names: set[str]) -> None:
    assert set(free(Allocatable(memory=BOTH), form=form)[0]) == names


def test_zones_and_costs_go_by_the_kernels_ids() -> None:
    found = plainform.zones(MACHINE, Allocatable(), (), "nfd")
    assert {zone.id: dict(zone.costs) for zone in found} == {0: {0: 10, 2: 21}, 2: {0: 21, 2: 10}}


def test_what_is_excluded_is_not_there_even_if_it_is_used() -> None:
    found = plainform.zones(MACHINE, Allocatable(cpus=(1, 4)), [pod(cpus=(1,))], "nfd", frozenset({"cpu"}))
    assert [dict(zone.resources) for zone in found] == [{}, {}]


def test_a_container_with_cpus_of_two_zones_is_placed_by_the_lowest_in_whatever_order_they_are_listed() -> None:
    ref = ContainerRef("default", "web", "main")
    for cpus in ((3, 20), (20, 3)):
        payload = plainform.of(NODE, STRICT, [pod(cpus=cpus)], "rte").placement
        assert payload is not None
        assert placementcodec.decode(payload, [ref]) == {ref: 0}


def test_without_pods_rtes_form_signs_for_none_and_nfds_for_nothing() -> None:
    signed = plainform.of(NODE, STRICT, [], "rte").fingerprint
    assert signed is not None
    assert signed.text == "pfp0v001ef46db3751d8e999"
    assert plainform.of(NODE, STRICT, [], "nfd").fingerprint is None
