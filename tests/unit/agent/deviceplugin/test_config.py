"""Files of offered devices: what they may contain, and the errors of invalid ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from numalign.agent.deviceplugin import config
from numalign.agent.deviceplugin.offer import DeviceFile, Gift, Mount, Offer
from numalign.api.decode import yamltext
from numalign.api.errors import BadObject
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Device, DevicePlugin

NIC = "example.com/nic"
ONE = DevicePlugin((Device("nic-0", (0,)),))
EXAMPLES = sorted((Path(__file__).parents[4] / "examples" / "devices").glob("*.yaml"))


def offer(behaviour: Any = None, devices: Any = None) -> Offer:
    value = {"devices": {NIC: devices or {0: 1}}, "plugins": {NIC: behaviour or {}}}
    return config.read(value, "devices.yaml")[NIC]


OFFERS: dict[str, tuple[Any, Offer]] = {
    "devices alone": ({}, Offer(ONE)),
    "a preference": ({"prefer": "spread"}, Offer(ONE, prefer="spread")),
    "asked before a start": ({"preStart": True}, Offer(ONE, pre_start=True)),
    "a mount": (
        {"allocate": {"mounts": [{"host": "/a", "container": "/b", "readOnly": True}]}},
        Offer(ONE, gift=Gift(mounts=(Mount("/b", "/a", True),))),
    ),
    "a device file of the same path": (
        {"allocate": {"devices": [{"host": "/dev/a"}]}},
        Offer(ONE, gift=Gift(files=(DeviceFile("/dev/a", "/dev/a"),))),
    ),
}


@pytest.mark.parametrize("behaviour, read", OFFERS.values(), ids=OFFERS)
def test_a_file_is_read(behaviour: Any, read: Offer) -> None:
    assert offer(behaviour) == read


def test_a_plugin_that_wants_to_be_asked_prefers_the_lowest_as_the_model_does() -> None:
    assert offer(devices={0: 1, "preferredAllocation": True}).prefer == "lowest"


def test_a_machine_offers_its_devices() -> None:
    offers = config.of_machine(presets.machine("gpu-8").devices)
    assert {name: each.plugin for name, each in offers.items()} == presets.machine("gpu-8").devices


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_can_be_read(file: Path) -> None:
    (document,) = yamltext.documents(file.read_text(), file.name)
    assert config.read(document.value, document.place)


DEVICE = {"devices": {NIC: {0: 1}}}
BAD: dict[str, tuple[Any, str, str]] = {
    "no mapping": ([], "", "not a mapping"),
    "nothing": ({}, "devices", "nothing is offered"),
    "a misspelt key": (DEVICE | {"plugin": {}}, "plugin", "did you mean plugins"),
    "a name that cannot be registered": ({"devices": {"nic": {0: 1}}}, "devices[nic]", "example.com/nic"),
    "a long id": ({"devices": {NIC: {0: ["x" * 64]}}}, f"devices[{NIC}]", "longer than 63"),
    "behaviour of other devices": (DEVICE | {"plugins": {"a.b/c": {}}}, "plugins[a.b/c]", "no devices of this name"),
}
BEHAVIOUR: dict[str, tuple[Any, str, str]] = {
    "another policy": ({"prefer": "best"}, "prefer", "none, lowest, packed, spread"),
    "a number for a switch": ({"preStart": 1}, "preStart", "neither true nor false"),
    "one device in a text for all": ({"allocate": {"env": {"A": "{id}"}}}, "allocate.env[A]", "write {ids}"),
    "a relative path": ({"allocate": {"mounts": [{"host": "x"}]}}, "allocate.mounts[0].host", "not an absolute path"),
    "no path": ({"allocate": {"mounts": [{}]}}, "allocate.mounts[0].host", "missing; a text is wanted"),
    "another permission": (
        {"allocate": {"devices": [{"host": "/x", "permissions": "rx"}]}},
        "allocate.devices[0].permissions",
        "made of r, w and m",
    ),
    "a CDI name without a class": ({"allocate": {"cdi": ["gpu=0"]}}, "allocate.cdi[0]", "not the name of a CDI device"),
    "an unknown gift": ({"allocate": {"volumes": []}}, "allocate.volumes", "known are"),
}
BAD |= {
    name: (DEVICE | {"plugins": {NIC: behaviour}}, f"plugins[{NIC}].{field}", why)
    for name, (behaviour, field, why) in BEHAVIOUR.items()
}


@pytest.mark.parametrize("value, field, why", BAD.values(), ids=BAD)
def test_what_is_wrong_is_named_by_its_field(value: Any, field: str, why: str) -> None:
    with pytest.raises(BadObject, match=why) as raised:
        config.read(value, "devices.yaml")
    assert raised.value.field == field
