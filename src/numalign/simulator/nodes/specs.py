"""What a simulated node is, as data: scenarios are read into these, `fleet` makes nodes of them.

Everything has the default of a plain node, so a story names only what it is about. Times are in seconds.

Nodes of one make: equal machine and settings, hence one kubelet model, shared by all of them.

`fleet` asks `Makes.of` for every node. A model knows its machine down to the single CPU, so sharing it is what lets
thousands of nodes fit into one process; what differs from node to node is its `KubeletState`, and even that is one and
the same value as long as nothing has run there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field, structs

from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.node import Taint
from numalign.kubelet import start
from numalign.kubelet.machine import Device, Machine
from numalign.kubelet.settings import Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState

PublisherKind = Literal["agent", "rte", "nfd", "none"]


class PublisherFaults(Struct, frozen=True, kw_only=True):
    """How a publisher misbehaves. Numbers are chances from 0 to 1, drawn for every report."""

    dropped: float = 0.0
    """The report is made and never written."""
    stale: float = 0.0
    """What is written is the report before this one."""
    duplicated: float = 0.0
    """It is written a second time, a lag later."""
    garbage: float = 0.0
    """It says what no node can be; the schema accepts it all the same."""
    restarted: float = 0.0
    """The publisher dies instead of looking, and is started again."""
    overlapping: bool = False
    """It looks at the node again while its last report is on its way; no publisher that is known does."""
    without: tuple[str, ...] = ()
    """Names of top-level attributes that are left out of every report."""


class Publishing(Struct, frozen=True, kw_only=True):
    """Who publishes the node's topology, how often, and how late. Defaults that are None are the publisher's own."""

    dialect: PublisherKind = "agent"
    period: float = 60.0
    """Between looks at the node; 0: only when something happens."""
    reactive: bool = True
    window: float | None = None
    """How long after something happened the publisher looks, so that what happens together is reported once."""
    lag: float = 0.0
    """From looking at the node until the report is written."""
    jitter: float = 0.0
    """Up to so much is added to every lag and period, by chance."""
    faults: PublisherFaults = PublisherFaults()


class NodeSpec(Struct, frozen=True, kw_only=True):
    """One node. Nodes of equal machine and settings share one kubelet model."""

    name: str
    machine: Machine
    settings: Settings = Settings()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    publishing: Publishing = Publishing()
    start_seconds: float = 1.0
    """From admission until the first container of a pod runs."""
    stop_seconds: float = 0.5
    """What containers take to end when they are told to; the grace period cuts it short."""
    boot_seconds: float = 60.0
    static_pods: tuple[Mapping[str, Any], ...] = ()
    """Pods from files on the node, as objects; the API server sees mirrors of them."""


class NodeType:
    """`empty` is the state of every such node that nothing has happened on."""

    def __init__(self, kubelet: Kubelet) -> None:
        self.kubelet = kubelet
        self.empty: KubeletState = kubelet.initial()
        self.reports: dict[PublisherKind, NodeTopology] = {}
        """What publishers see on such a node."""


class NodeTypes:
    def __init__(self) -> None:
        self._known: list[NodeType] = []

    def of(self, machine: Machine, settings: Settings) -> NodeType:
        """The make of such a node; `StartRefusal` if its kubelet would not start."""
        for make in self._known:
            if _same(make.kubelet.machine, machine) and _same(make.kubelet.settings, settings):
                return make
        make = NodeType(start.start(machine, settings))
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
