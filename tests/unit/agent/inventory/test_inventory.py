"""The agent's inventory equals the node's state; where a source is missing, it reports less free."""

from __future__ import annotations

import pytest
from msgspec import structs

from numalign.agent.inventory import inventory
from numalign.agent.inventory.inventory import Inventory
from numalign.agent.inventory.podidentity import KnownUids
from numalign.agent.inventory.readings import Readings
from numalign.agent.sources.checkpoints import DeviceCheckpoint
from numalign.agent.sources.podresources import Allocatable, ContainerResources, DeviceEntry, MemoryEntry, PodResources
from numalign.api.attributes import managers
from numalign.api.attributes.managers import KubeletBuild
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kubelet import start
from numalign.kubelet.device import DeviceState
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import DevicePlugin, Machine
from numalign.kubelet.report import plainreport, report
from numalign.kubelet.settings import Settings
from tests.campaigns import holds_for
from tests.strategies.lives import Life, lives
from tests.strategies.reports import reported_lives
from tests.unit.agent import kubelet_looks as looks

NOBODY = KnownUids()


def healthy(life: Life) -> Life:
    """Of sick devices that no pod has, nobody outside the kubelet hears."""
    machine = life.kubelet.machine
    plugins = {name: _healthy(plugin) for name, plugin in machine.devices.items()}
    return Life(start.start(structs.replace(machine, devices=plugins), life.kubelet.settings), life.steps)


def _healthy(plugin: DevicePlugin) -> DevicePlugin:
    return DevicePlugin(tuple(structs.replace(each, healthy=True) for each in plugin.devices))


def found(readings: Readings, machine: Machine, told: KnownUids = NOBODY) -> Inventory:
    return inventory.of(readings, structs.replace(machine, devices={}), told)


@holds_for(reported_lives().map(healthy), examples=30)
def test_a_report_made_from_the_kubelets_answers_is_the_one_made_from_its_memory(life: Life) -> None:
    for moment in life.moments():
        kubelet, state = life.kubelet, moment.state
        inventory_ = found(looks.at(kubelet, state), kubelet.machine, looks.told(state))
        assert not inventory_.contradictions
        assert inventory_.report("n") == report.of("n", kubelet, state)


def test_an_unknown_version_is_not_published() -> None:
    kubelet = start.start(presets.machine("2x16"), Settings(feature_gates={"PodLevelResourceManagers": True}))
    readings = structs.replace(looks.at(kubelet, kubelet.initial()), kubelet_version="")
    told = found(readings, kubelet.machine).report("n").facts.kubelet
    assert told == KubeletBuild(version="unknown", feature_gates={"PodLevelResourceManagers": True})
    assert managers.decode_build(managers.encode_build(told)) == told


@holds_for(lives().map(healthy), examples=30)
def test_so_is_what_is_free_in_the_forms_of_others(life: Life) -> None:
    kubelet, state = life.kubelet, life.end
    inventory_ = found(looks.at(kubelet, state), kubelet.machine, looks.told(state))
    own = report.of("n", kubelet, state)
    for mode in ("rte", "nfd"):
        told = inventory_.report("n", mode)
        assert free(told).items() <= free(own).items()
        assert told.fingerprint == plainreport.of("n", kubelet, state, mode).fingerprint


def free(told: NodeTopology) -> dict[tuple[int, str], int]:
    return {(zone.id, name): each.available for zone in told.zones for name, each in zone.resources.items()}


@holds_for(lives(), examples=30)
def test_allocatable_amounts_are_those_of_the_programs(life: Life) -> None:
    kubelet, state = life.kubelet, life.end
    inventory_ = found(looks.at(kubelet, state), kubelet.machine, looks.told(state))
    for mode in ("rte", "nfd"):
        ours, theirs = inventory_.report("n", mode), plainreport.of("n", kubelet, state, mode)
        assert usable(theirs).items() <= usable(ours).items()
        # A zone without a CPU to allocate says so, whatever else it has (exporter spec, D-37).
        assert {name for _, name in usable(ours).keys() - usable(theirs)} <= {"cpu"}


def usable(told: NodeTopology) -> dict[tuple[int, str], int]:
    return {(zone.id, name): each.allocatable for zone in told.zones for name, each in zone.resources.items()}


@holds_for(lives(), examples=20)
def test_a_kubelet_that_does_not_say_what_can_be_allocated_is_taken_at_the_models_word(life: Life) -> None:
    kubelet, state = life.kubelet, life.end
    look, told = looks.at(kubelet, state), looks.told(state)
    silent = found(structs.replace(look, allocatable=None), kubelet.machine, told).report("n", "rte")
    said = usable(found(look, kubelet.machine, told).report("n", "rte"))
    assert {key: usable(silent)[key] for key in said if "/" not in key[1]} == {
        key: amount for key, amount in said.items() if "/" not in key[1]
    }


@holds_for(lives(), examples=30)
def test_without_uids_no_more_is_reported_free_than_is(life: Life) -> None:
    kubelet, state = life.kubelet, life.end
    guessed = found(looks.at(kubelet, state), kubelet.machine).report("n")
    assert not exceeds(guessed, report.of("n", kubelet, state))


def exceeds(guessed: NodeTopology, exact: NodeTopology) -> list[str]:
    free = {(zone.id, name): each.available for zone in exact.zones for name, each in zone.resources.items()}
    return [
        f"{name} in zone {zone.id}"
        for zone in guessed.zones
        for name, each in zone.resources.items()
        if each.available > free.get((zone.id, name), 0)
    ]


@pytest.mark.parametrize("zones", [(-1,), (99,), (10**9,), ()], ids=str)
@pytest.mark.parametrize("mode", ["own", "rte", "nfd"])
def test_zones_that_are_none_are_left_out(zones: tuple[int, ...], mode: inventory.Mode) -> None:
    kubelet = start.start(presets.machine("2x16"), Settings())
    held = DeviceEntry("example.com/nic", ("nic-0",), zones)
    container = ContainerResources("main", (held,), (), (MemoryEntry("memory", 5, zones),))
    pod = PodResources("default", "web", (container,), (), ())
    look = structs.replace(looks.at(kubelet, kubelet.initial()), pods=(pod,), allocatable=Allocatable((held,), (), ()))
    told = found(look, kubelet.machine).report("n", mode)
    assert [zone for zone in told.zones if "example.com/nic" in zone.resources] == []


@pytest.mark.parametrize(
    "told, free, unlisted",
    [
        (NOBODY, 1, False),
        (KnownUids({("default", "web"): "u-1"}), 0, True),
        (KnownUids({("default", "web"): "u-1"}, local=frozenset({"u-1"})), 1, True),
    ],
    ids=["gone", "exists", "its containers have stopped"],
)
def test_a_device_of_a_pod_that_is_not_listed_yet_is_not_free(told: KnownUids, free: int, unlisted: bool) -> None:
    kubelet = start.start(presets.machine("2x16"), Settings())
    offered = Allocatable((DeviceEntry("example.com/gpu", ("gpu-0",), (0,)),))
    state = DeviceState(pods={"u-1": {"main": {"example.com/gpu": frozenset({"gpu-0"})}}})
    books = DeviceCheckpoint(state, {}, {"example.com/gpu": frozenset({"gpu-0"})})
    look = structs.replace(looks.at(kubelet, kubelet.initial()), pods=(), allocatable=offered, device_checkpoint=books)
    inventory_ = found(look, kubelet.machine, told)
    assert inventory_.unlisted is unlisted
    assert inventory_.report("n").zones[0].resources["example.com/gpu"].available == free


RESERVING = start.start(
    presets.machine("2x16"), Settings(cpu_policy="static", reserved_cpus=0b1, reserved={"cpu": 1000})
)


def contradictions(offered: tuple[int, ...], kubelet: start.Kubelet = RESERVING) -> tuple[str, ...]:
    read = structs.replace(looks.at(kubelet, kubelet.initial()), allocatable=Allocatable(cpus=offered))
    return found(read, kubelet.machine).contradictions


def test_allocatable_cpus_that_contradict_the_configuration_are_reported() -> None:
    assert contradictions(tuple(range(4, 32))) == (
        "the kubelet reports CPUs 4-31 as allocatable; with test they would be 1-31",
    )
    without = start.start(presets.machine("2x16"), Settings())
    assert contradictions((1, 2), without) == (
        "the kubelet reports CPUs 1-2 as allocatable; with test they would be none",
    )
    assert not contradictions((), without)


def test_a_cpu_that_went_offline_is_no_contradiction() -> None:
    assert not contradictions(tuple(range(1, 40)))
