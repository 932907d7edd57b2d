"""Devices of an ended plugin are only in the kubelet's checkpoint, and are not allocatable."""

from __future__ import annotations

import pytest
from msgspec import structs

from numalign.agent.inventory import inventory
from numalign.agent.inventory.podidentity import KnownUids
from numalign.agent.inventory.readings import LostDevices
from numalign.agent.sources.checkpoints import DeviceCheckpoint
from numalign.agent.sources.podresources import Allocatable, DeviceEntry
from numalign.kubelet import start
from numalign.kubelet.device import DeviceState
from numalign.kubelet.machine import presets
from numalign.kubelet.settings import Settings
from tests.unit.agent import kubelet_looks as looks

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
