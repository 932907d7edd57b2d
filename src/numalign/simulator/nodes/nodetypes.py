"""Nodes of one make: equal machine and settings, hence one kubelet model, shared by all of them.

`fleet` asks `Makes.of` for every node. A model knows its machine down to the single CPU, so sharing it is what lets
thousands of nodes fit into one process; what differs from node to node is its `KubeletState`, and even that is one and
the same value as long as nothing has run there."""

from __future__ import annotations

from msgspec import structs

from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kubelet import start
from numalign.kubelet.machine import Device, Machine
from numalign.kubelet.settings import Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.simulator.nodes.specs import Dialect


class Make:
    """`empty` is the state of every such node that nothing has happened on."""

    def __init__(self, kubelet: Kubelet) -> None:
        self.kubelet = kubelet
        self.empty: KubeletState = kubelet.initial()
        self.reports: dict[Dialect, NodeTopology] = {}
        """What publishers see on such a node."""


class Makes:
    def __init__(self) -> None:
        self._known: list[Make] = []

    def of(self, machine: Machine, settings: Settings) -> Make:
        """The make of such a node; `StartRefusal` if its kubelet would not start."""
        for make in self._known:
            if _same(make.kubelet.machine, machine) and _same(make.kubelet.settings, settings):
                return make
        make = Make(start.start(machine, settings))
        self._known.append(make)
        return make


def with_health(machine: Machine, resource: str, device: str, *, healthy: bool) -> Machine:
    """The machine with one device well or unwell; KeyError if there is no such device."""
    plugin = machine.devices[resource]
    if all(each.id != device for each in plugin.devices):
        raise KeyError(device)
    devices = tuple(structs.replace(each, healthy=healthy) if each.id == device else each for each in plugin.devices)
    return structs.replace(machine, devices={**machine.devices, resource: structs.replace(plugin, devices=devices)})


def all_well(machine: Machine) -> Machine:
    """The machine with every device healthy."""
    plugins = {
        resource: structs.replace(plugin, devices=tuple(map(_well, plugin.devices)))
        for resource, plugin in machine.devices.items()
    }
    return structs.replace(machine, devices=plugins)


def _well(device: Device) -> Device:
    return device if device.healthy else structs.replace(device, healthy=True)


def _same(one: object, other: object) -> bool:
    # Comparing machines of hundreds of cores takes a while, and nodes mostly come with the very same object.
    return one is other or one == other
