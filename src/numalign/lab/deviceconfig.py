"""A node's devices, as the file of `numalign device-plugin` and as the model's machine.

`node` writes the file that the plugin reads; `known` applies a given file to a machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from numalign.agent.deviceplugin import config
from numalign.kubelet import machinedevices
from numalign.kubelet.machine import Machine
from numalign.lab.spec import NodeSpec


def of(spec: NodeSpec) -> Mapping[str, Any]:
    """The devices of the spec or else of the machine; empty if there are none."""
    if spec.devices is not None:
        return spec.devices
    plugins = spec.machine.devices
    if not plugins:
        return {}
    return {"devices": {name: machinedevices.write(name, plugin) for name, plugin in plugins.items()}}


def known(machine: Machine, file: Mapping[str, Any], source: str) -> Machine:
    """The machine with the devices of this file only."""
    offers = config.read(file, source, machine.zone_ids)
    return structs.replace(machine, devices={resource: offer.plugin for resource, offer in offers.items()})
