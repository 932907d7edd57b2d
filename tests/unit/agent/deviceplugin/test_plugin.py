"""Plugins beside a kubelet's device manager: known to it, heard by it, and back after its restarts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from numalign.agent.deviceplugin import config
from numalign.agent.deviceplugin import plugin as deviceplugin
from numalign.agent.deviceplugin import plugin as messages
from numalign.agent.deviceplugin.server import Plugins
from numalign.api.errors import BadObject
from numalign.process.rpc import CallFailed
from tests.unit.agent.device_kubelet import DeviceManager

NIC = "example.com/nic"
NICS: dict[str, Any] = {"devices": {NIC: {0: 2, 1: 1, "0,1": 1, "noTopology": 1, "each": [{"id": "odd", "zones": []}]}}}
TICK = 0.01


class Offered:
    """What is offered, to be changed by the test; a value that cannot be read raises as the file would."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value

    def read(self) -> config.Offers:
        return config.read(self.value, "devices.yaml")


@contextlib.asynccontextmanager
async def plugins(folder: Path, offered: Offered) -> AsyncIterator[Plugins]:
    running = Plugins(folder, offered.read)
    task = asyncio.create_task(running.run(TICK))
    try:
        yield running
    finally:
        task.cancel()
        await asyncio.wait([task])


Story = Callable[[DeviceManager, Plugins, Offered], Awaitable[None]]


def told(folder: Path, value: dict[str, Any], story: Story) -> DeviceManager:
    """The device manager after the story, which begins when every resource is known."""

    async def whole() -> DeviceManager:
        offered = Offered(value)
        async with DeviceManager(folder).running() as manager, plugins(folder, offered) as running:
            await manager.until(lambda: manager.devices.keys() == value["devices"].keys())
            await story(manager, running, offered)
        return manager

    return asyncio.run(whole())


async def nothing(manager: DeviceManager, running: Plugins, offered: Offered) -> None:
    """A story without events."""


def test_a_plugin_registers_with_name_version_socket_and_options(folder: Path) -> None:
    value = NICS | {"plugins": {NIC: {"prefer": "packed", "preStart": True}}}
    assert told(folder, value, nothing).registrations == [
        {
            "version": "v1beta1",
            "endpoint": "numalign-example.com_nic.sock",
            "resource": NIC,
            "options": {"pre_start": True, "preferred_allocation": True},
        }
    ]


def test_devices_have_their_zones(folder: Path) -> None:
    assert told(folder, NICS, nothing).devices[NIC] == [
        {"id": "nic-0", "health": "Healthy", "topology": {"nodes": [{}]}},
        {"id": "nic-1", "health": "Healthy", "topology": {"nodes": [{}]}},
        {"id": "nic-2", "health": "Healthy", "topology": {"nodes": [{}, {"id": 1}]}},
        {"id": "nic-3", "health": "Healthy", "topology": {"nodes": [{"id": 1}]}},
        {"id": "nic-4", "health": "Healthy"},
        {"id": "odd", "health": "Healthy", "topology": {}},
    ]


def test_several_resources_have_a_socket_each(folder: Path) -> None:
    value = {"devices": {NIC: {0: 1}, "example.com/gpu": {1: 1}}}
    endpoints = {each["endpoint"] for each in told(folder, value, nothing).registrations}
    assert endpoints == {"numalign-example.com_nic.sock", "numalign-example.com_gpu.sock"}


def health(manager: DeviceManager) -> dict[str, str]:
    return {device["id"]: device["health"] for device in manager.devices.get(NIC, [])}


def test_a_change_of_health_goes_out_on_the_open_stream(folder: Path) -> None:
    async def sick(manager: DeviceManager, running: Plugins, offered: Offered) -> None:
        offered.value = {"devices": {NIC: {0: 2, "unhealthy": ["nic-1"]}}}
        running.again.set()
        await manager.until(lambda: health(manager) == {"nic-0": "Healthy", "nic-1": "Unhealthy"})

    assert len(told(folder, {"devices": {NIC: {0: 2}}}, sick).registrations) == 1


def test_resources_come_and_go_with_the_offer(folder: Path) -> None:
    async def other(manager: DeviceManager, running: Plugins, offered: Offered) -> None:
        offered.value = {"devices": {"example.com/gpu": {0: 1}}}
        running.again.set()
        await manager.until(lambda: "example.com/gpu" in manager.devices)
        assert [path.name for path in folder.glob("numalign-*")] == ["numalign-example.com_gpu.sock"]

    told(folder, {"devices": {NIC: {0: 2}}}, other)


def test_changed_options_make_it_register_again(folder: Path) -> None:
    async def changed(manager: DeviceManager, running: Plugins, offered: Offered) -> None:
        offered.value = {"devices": {NIC: {0: 2}}, "plugins": {NIC: {"prefer": "spread"}}}
        running.again.set()
        await manager.until(lambda: len(manager.registrations) == 2)

    assert told(folder, {"devices": {NIC: {0: 2}}}, changed).registrations[1]["options"] == {
        "preferred_allocation": True
    }


def test_an_offer_that_cannot_be_read_changes_nothing(folder: Path) -> None:
    async def broken(manager: DeviceManager, running: Plugins, offered: Offered) -> None:
        offered.value = {"devices": 7}
        running.again.set()
        while running.again.is_set():
            await asyncio.sleep(0)
        offered.value = {"devices": {NIC: {0: 3}}}
        running.again.set()
        await manager.until(lambda: len(health(manager)) == 3)

    assert len(told(folder, {"devices": {NIC: {0: 2}}}, broken).registrations) == 1


def test_the_first_offer_must_be_right(folder: Path) -> None:
    with pytest.raises(BadObject, match="devices"):
        asyncio.run(Plugins(folder, Offered({"devices": 7}).read).run(TICK))


def test_a_missing_kubelet_is_logged_once_per_resource(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def alone() -> None:
        async with plugins(folder, Offered(NICS)):
            await asyncio.sleep(10 * TICK)

    asyncio.run(alone())
    [said] = caplog.messages
    why = f"there is no socket {folder}/kubelet.sock; the kubelet is not running yet, or uses another folder"
    assert said == f"Failed to register device plugin, retrying: {why}"


def test_a_kubelet_that_starts_again_learns_of_the_plugin_again(folder: Path) -> None:
    async def whole() -> tuple[set[str], set[str]]:
        first, second = DeviceManager(folder), DeviceManager(folder)
        async with plugins(folder, Offered(NICS)):
            async with first.running():
                await first.until(lambda: NIC in first.devices)
            async with second.running():
                await second.until(lambda: NIC in second.devices)
        return set(first.devices), set(second.devices)

    # A kubelet may be told twice, where its socket was made while it was looked at.
    assert asyncio.run(whole()) == ({NIC}, {NIC})


def test_a_broken_stream_makes_it_register_again(folder: Path) -> None:
    async def broken(manager: DeviceManager, running: Plugins, offered: Offered) -> None:
        await manager.forget(NIC)
        await manager.until(lambda: len(manager.registrations) == 2)

    told(folder, NICS, broken)


def test_a_refused_registration_is_tried_again(folder: Path) -> None:
    async def whole() -> None:
        async with DeviceManager(folder).running() as manager:
            manager.refusal = CallFailed("UNKNOWN", "not now")
            async with plugins(folder, Offered(NICS)):
                manager.refusal = None
                await manager.until(lambda: NIC in manager.devices)

    asyncio.run(whole())


def test_a_changed_file_is_read_again(folder: Path) -> None:
    file, offered = folder / "offer", Offered({"devices": {NIC: {0: 1}}})
    file.write_text("one")

    async def whole() -> None:
        async with DeviceManager(folder).running() as manager:
            running = asyncio.create_task(Plugins(folder, offered.read, file).run(TICK))
            await manager.until(lambda: len(health(manager)) == 1)
            offered.value = {"devices": {NIC: {0: 2}}}
            file.write_text("two")
            await manager.until(lambda: len(health(manager)) == 2)
            running.cancel()
            await asyncio.wait([running])

    asyncio.run(whole())


def answered(folder: Path, call: str, request: dict[str, Any], forms: tuple[Any, Any], **behaviour: Any) -> Any:
    """What the plugin of NICS, behaving so, answers to one call."""
    answers: list[Any] = []

    async def ask(manager: DeviceManager, running: Plugins, offered: Offered) -> None:
        answers.append(await manager.ask(NIC, call, request, forms))

    told(folder, NICS | {"plugins": {NIC: behaviour}}, ask)
    return answers[0]


def test_options_are_answered_when_asked_for(folder: Path) -> None:
    found = answered(folder, "GetDevicePluginOptions", {}, ({}, messages.OPTIONS), prefer="spread")
    assert found == {"preferred_allocation": True}


def test_preferences_follow_the_policy(folder: Path) -> None:
    asked = {"containers": [{"available": ["nic-0", "nic-1", "nic-3"], "must_include": ["nic-3"], "size": 2}]}
    forms = (messages.PREFERENCES, messages.PREFERRED)
    found = answered(folder, "GetPreferredAllocation", asked, forms, prefer="spread")
    assert found == {"containers": [{"ids": ["nic-0", "nic-3"]}]}


GIFT = {
    "env": {"NICS": "{ids}"},
    "annotations": {"nics": "all of {ids}"},
    "mounts": [{"host": "/opt/nic", "container": "/nic", "readOnly": True}],
    "devices": [{"host": "/dev/nic/{id}", "permissions": "r"}, {"host": "/dev/nic"}],
    "cdi": ["example.com/nic={id}"],
}


def test_a_container_gets_what_the_file_defines(folder: Path) -> None:
    asked = {"containers": [{"ids": ["nic-1", "nic-0"]}]}
    found = answered(folder, "Allocate", asked, (messages.ALLOCATE, messages.ALLOCATED), allocate=GIFT)
    assert found["containers"][0] == {
        "env": [{"key": "NICS", "value": "nic-0,nic-1"}],
        "annotations": [{"key": "nics", "value": "all of nic-0,nic-1"}],
        "mounts": [{"container": "/nic", "host": "/opt/nic", "read_only": True}],
        "files": [
            {"container": "/dev/nic/nic-0", "host": "/dev/nic/nic-0", "permissions": "r"},
            {"container": "/dev/nic/nic-1", "host": "/dev/nic/nic-1", "permissions": "r"},
            {"container": "/dev/nic", "host": "/dev/nic", "permissions": "rw"},
        ],
        "cdi": [{"name": "example.com/nic=nic-0"}, {"name": "example.com/nic=nic-1"}],
    }


REFUSED = {
    "allocation of another device": ("Allocate", {"containers": [{"ids": ["nic-9"]}]}, messages.ALLOCATE),
    "start with another device": ("PreStartContainer", {"ids": ["nic-9"]}, messages.IDS),
}


@pytest.mark.parametrize("call, asked, form", REFUSED.values(), ids=REFUSED)
def test_devices_that_are_not_offered_are_refused(folder: Path, call: str, asked: Any, form: Any) -> None:
    with pytest.raises(CallFailed, match="no device nic-9"):
        answered(folder, call, asked, (form, {}))


def test_a_container_may_start_with_devices_that_are_offered(folder: Path) -> None:
    assert answered(folder, "PreStartContainer", {"ids": ["nic-0"]}, (messages.IDS, {})) == {}


def test_a_request_that_cannot_be_read_is_refused() -> None:
    plugin = deviceplugin.Plugin(NIC, config.read(NICS, "devices.yaml")[NIC])
    with pytest.raises(CallFailed, match="INVALID_ARGUMENT"):
        asyncio.run(plugin.service().calls["Allocate"](b"\xff"))  # type: ignore[arg-type]
