"""Reads the devices that `numalign device-plugin` offers, from a file or a machine description.

`devices` has the format of a machine file, so that the model and the kubelet can use the same text; `plugins` sets the
behaviour of the plugin by resource. Every error is a BadObject that names the field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from numalign.agent.deviceplugin import offer
from numalign.agent.deviceplugin.offer import EACH, POLICIES, CdiDevice, DeviceFile, Gift, Mount, Offer
from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.kubelet.machine import machinefile
from numalign.kubelet.machine.machine import DevicePlugin

KIND: Final = "DevicePlugins"
KEYS: Final = ("devices", "plugins")
PLUGIN_KEYS: Final = ("prefer", "preStart", "allocate")
GIFT_KEYS: Final = ("env", "annotations", "mounts", "devices", "cdi")
LONGEST_ID: Final = 63
"""The API's limit (device plugin API v1beta1, Device.ID)."""
ANY_ZONE: Final = range(machinefile.MAX_ZONE + 1)
CDI_NAME: Final = re.compile(r"[A-Za-z][\w.-]*/[A-Za-z][\w-]*=\S+")

Offers = Mapping[str, Offer]


def read(value: object, source: str, zones: Sequence[int] = ANY_ZONE) -> Offers:
    """Offers by resource; `zones`: those of the machine, where it is known."""
    file = fields.root(value, KIND, source)
    fields.only(file, KEYS)
    plugins: dict[str, DevicePlugin] = {}
    for resource, section in fields.entries(file.at("devices")):
        left = machinefile.MAX_DEVICES - sum(len(plugin.devices) for plugin in plugins.values())
        plugins[resource] = machinefile.read_devices(resource, section, zones, left)
        _check_ids(section, plugins[resource])
    if not plugins:
        raise file.at("devices").bad('nothing is offered; write something like "devices: {example.com/nic: {0: 2}}"')
    return {resource: _offer(plugin, _behaviour(file, resource)) for resource, plugin in _matched(file, plugins)}


def of_machine(plugins: Mapping[str, DevicePlugin]) -> Offers:
    """The devices of a machine description, with default plugin behaviour."""
    return {resource: Offer(plugin, _policy(plugin)) for resource, plugin in plugins.items()}


def _matched(file: Field, plugins: Mapping[str, DevicePlugin]) -> list[tuple[str, DevicePlugin]]:
    for resource, section in fields.entries(file.at("plugins")):
        if resource not in plugins:
            raise section.bad(f"no devices of this name; {fields.suggestion(resource, plugins)}")
    return list(plugins.items())


def _behaviour(file: Field, resource: str) -> Field:
    return dict(fields.entries(file.at("plugins"))).get(resource, file.at("plugins").inside(resource, {}))


def _check_ids(section: Field, plugin: DevicePlugin) -> None:
    for device in plugin.devices:
        if len(device.id) > LONGEST_ID:
            raise section.bad(f"the id {errors.echo(device.id)} is longer than {LONGEST_ID} characters")


def _offer(plugin: DevicePlugin, section: Field) -> Offer:
    fields.only(section, PLUGIN_KEYS)
    started = section.at("preStart")
    return Offer(
        plugin=plugin,
        prefer=fields.one_of(section.at("prefer"), POLICIES, _policy(plugin)),
        pre_start=started.given and fields.boolean(started),
        gift=_gift(section.at("allocate")),
    )


def _policy(plugin: DevicePlugin) -> offer.Policy:
    return "lowest" if plugin.preferred_allocation else "none"


def _gift(section: Field) -> Gift:
    if not section.given:
        return Gift()
    fields.only(section, GIFT_KEYS)
    return Gift(
        env=_texts(section.at("env")),
        annotations=_texts(section.at("annotations")),
        mounts=tuple(map(_mount, fields.items(section.at("mounts")))),
        files=tuple(map(_file, fields.items(section.at("devices")))),
        cdi=tuple(map(_cdi, fields.items(section.at("cdi")))),
    )


def _texts(section: Field) -> dict[str, str]:
    return {key: _about_all(entry) for key, entry in fields.entries(section)}


def _about_all(entry: Field) -> str:
    if EACH in fields.text(entry):
        raise entry.bad("one text is for all devices of the container; write {ids} instead of {id}")
    return fields.text(entry)


def _mount(entry: Field) -> Mount:
    fields.only(entry, ("host", "container", "readOnly"))
    read_only = entry.at("readOnly")
    return Mount(*_paths(entry), read_only.given and fields.boolean(read_only))


def _file(entry: Field) -> DeviceFile:
    fields.only(entry, ("host", "container", "permissions"))
    permissions = entry.at("permissions")
    granted = fields.text(permissions) if permissions.given else "rw"
    if not granted or set(granted) - set("rwm"):
        raise permissions.bad(f"{errors.echo(granted)} is not made of r, w and m")
    return DeviceFile(*_paths(entry), granted)


def _paths(entry: Field) -> tuple[str, str]:
    """The paths in the container and on the host; equal where only one is given."""
    host = entry.at("host")
    inside = entry.at("container") if entry.at("container").given else host
    for path in (host, inside):
        if not fields.text(path).startswith("/"):
            raise path.bad(f"{errors.echo(path.value)} is not an absolute path")
    return fields.text(inside), fields.text(host)


def _cdi(entry: Field) -> CdiDevice:
    if not CDI_NAME.fullmatch(fields.text(entry)):
        raise entry.bad(
            f'{errors.echo(entry.value)} is not the name of a CDI device; write one like "vendor.com/nic={{id}}"'
        )
    return CdiDevice(fields.text(entry))
