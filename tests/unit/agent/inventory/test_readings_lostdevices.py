"""Devices of an ended plugin are only in the kubelet's checkpoint, and are not allocatable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec import structs

from numalign.agent.inventory import inventory
from numalign.agent.inventory.podidentity import KnownUids
from numalign.agent.inventory.readings import LostDevices, Sources
from numalign.agent.sources.checkpoints import DeviceCheckpoint
from numalign.agent.sources.podresources import Allocatable, DeviceEntry
from numalign.kubelet import start
from numalign.kubelet.device import DeviceState
from numalign.kubelet.machine import presets
from numalign.kubelet.settings import Settings
from tests.unit.agent import kubelet_looks as looks
from tests.unit.kube.clocks import HandClock

GPU = "x/gpu"
WRITTEN = DeviceCheckpoint(DeviceState(), {}, {GPU: frozenset({"a", "b"})})
NONE = Allocatable()


def offer(*ids: str) -> Allocatable:
    return Allocatable(devices=tuple(DeviceEntry(GPU, (each,), (0,)) for each in ids))


STORIES = {
    "both are offered": ([offer("a", "b")], {"a", "b"}),
    "one was never offered: it may have a topology without zones": ([offer("a")], {"a", "b"}),
    "none was ever offered": ([NONE], {"a", "b"}),
    "their plugin has died": ([offer("a", "b"), NONE], set()),
    "one is gone": ([offer("a", "b"), offer("b")], {"b"}),
    "they are back": ([offer("a", "b"), NONE, offer("a", "b")], {"a", "b"}),
    "the kubelet cannot tell": ([offer("a", "b"), None], {"a", "b"}),
}


@pytest.mark.parametrize("offers, there", STORIES.values(), ids=STORIES)
def test_devices_that_are_no_longer_offered_are_not_registered(
    offers: list[Allocatable | None], there: set[str]
) -> None:
    vanished = LostDevices()
    for offered in offers:
        found = vanished.left_out(WRITTEN, offered)
    assert found is not None
    assert found.registered[GPU] == there


STARTS = {
    "no plugin has registered": (NONE, set()),
    "its plugin has registered, and one may have a topology without zones": (offer("a"), {"a", "b"}),
}


@pytest.mark.parametrize("offered, there", STARTS.values(), ids=STARTS)
def test_a_kubelet_that_has_just_started_has_no_device_of_plugins_that_have_not_registered(
    offered: Allocatable, there: set[str]
) -> None:
    """Also for an agent that has just started and knows no earlier offer."""
    found = LostDevices().left_out(WRITTEN, offered, registering=True)
    assert found is not None
    assert found.registered[GPU] == there


@pytest.mark.parametrize("age, registering", [(1.0, True), (60.0, False), (-5.0, False)])
def test_the_age_of_its_socket_shows_when_a_kubelet_has_started(tmp_path: Path, age: float, registering: bool) -> None:
    socket = tmp_path / "kubelet.sock"
    socket.touch()
    clock = HandClock()
    started = clock.wall().timestamp() - age
    os.utime(socket, (started, started))
    assert Sources(host=tmp_path, kubelet_root=tmp_path, socket=socket, clock=clock).registering is registering


def test_a_report_offers_no_device_whose_plugin_has_died() -> None:
    machine = presets.machine("gpu-8")
    kubelet = start.start(machine, Settings())
    before = looks.at(kubelet, kubelet.initial())
    vanished = LostDevices()
    vanished.left_out(before.device_checkpoint, before.allocatable)
    assert before.allocatable is not None
    silent = structs.replace(before.allocatable, devices=())
    kept = vanished.left_out(before.device_checkpoint, silent)
    after = structs.replace(before, allocatable=silent, device_checkpoint=kept)
    found = inventory.of(after, structs.replace(machine, devices={}), KnownUids())
    assert {name: each.healthy for name, each in found.kubelet.devices.inventories.items()} == dict.fromkeys(
        machine.devices, frozenset()
    )
