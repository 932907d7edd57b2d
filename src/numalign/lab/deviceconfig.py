"""A node's devices, as `numalign device-plugin` is told of them and as the model knows them.

`node` writes the file that the plugin reads; `known` keeps a machine true to a file that somebody else wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from numalign.agent.deviceplugin import config
from numalign.kubelet import machinedevices
from numalign.kubelet.machine import Machine
from numalign.lab.spec import NodeSpec


def of(spec: NodeSpec) -> Mapping[str, Any]:
    """As the spec says, else those of the machine; nothing where there are none."""
    if spec.devices is not None:
        return spec.devices
    plugins = spec.machine.devices
    if not plugins:
        return {}
    return {"devices": {name: machinedevices.write(name, plugin) for name, plugin in plugins.items()}}


def known(machine: Machine, file: Mapping[str, Any], source: str) -> Machine:
    """The machine with these devices and no others."""
    offers = config.read(file, source, machine.zone_ids)
    return structs.replace(machine, devices={resource: offer.plugin for resource, offer in offers.items()})
