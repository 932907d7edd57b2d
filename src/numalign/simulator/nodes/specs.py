"""Specifications of simulated nodes, and the kubelet models that nodes of one type share.

Scenarios are read into `NodeSpec`s, from which `fleet` creates nodes. All fields have defaults. Times are in seconds.
`NodeTypes` creates one kubelet model per machine and settings. A model has every CPU of its machine, so sharing it lets
thousands of nodes fit into one process. Nodes differ in their `KubeletState`, which is one shared value until a pod
runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field, structs

from numalign.api.attributes.devicetable import DeviceTable
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.node import Taint
from numalign.kubelet import start
from numalign.kubelet.machine.machine import Device, Machine
from numalign.kubelet.settings import Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState

PublisherKind = Literal["agent", "rte", "nfd", "none"]


class PublisherFaults(Struct, frozen=True, kw_only=True):
    """Faults of a publisher. Numbers are probabilities per report."""

    dropped: float = 0.0
    """The report is not written."""
    stale: float = 0.0
    """The previous report is written instead."""
    duplicated: float = 0.0
    """The report is written again, one lag later."""
    garbage: float = 0.0
    """The report has impossible values that the schema accepts."""
    restarted: float = 0.0
    """The publisher restarts instead of reading the node."""
    overlapping: bool = False
    """The publisher reads the node while its previous report is still being written. No known publisher does."""
    without: tuple[str, ...] = ()
    """Top-level attributes that are omitted from every report."""


class Publishing(Struct, frozen=True, kw_only=True):
    """The node's publisher, its period and its delays. None means the default of that publisher."""

    publisher: PublisherKind = "agent"
    period: float = 60.0
    """Seconds between reports; 0 means only after changes."""
    reactive: bool = True
    window: float | None = None
    """Seconds from a change to the report, so that simultaneous changes are reported once."""
    lag: float = 0.0
    """Seconds from reading the node to writing the report."""
    jitter: float = 0.0
    """Random addition to every lag and period, up to this."""
    faults: PublisherFaults = PublisherFaults()


class NodeSpec(Struct, frozen=True, kw_only=True):
    """One node. Nodes with equal machine and settings share one kubelet model."""

    name: str
    machine: Machine
    settings: Settings = Settings()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    publishing: Publishing = Publishing()
    direct: bool = False
    """Whether the agent offers direct mode and applies decisions; only with our agent's reports."""
    shared_devices: DeviceTable | None = None
    """Devices that are handed out in parts or together, in direct mode."""
    start_seconds: float = 1.0
    """Seconds from admission to the first container start."""
    stop_seconds: float = 0.5
    """Seconds that containers take to terminate; the grace period limits it."""
    boot_seconds: float = 60.0
    static_pods: tuple[Mapping[str, Any], ...] = ()
    """Static pods, as objects. The API server has their mirror pods."""


class NodeType:
    """Machine and settings of nodes. `empty` is the state of a node on which no pod has run."""

    def __init__(self, kubelet: Kubelet) -> None:
        self.kubelet = kubelet
        self.empty: KubeletState = kubelet.initial()
        self.reports: dict[PublisherKind, NodeTopology] = {}
        """Reports of an empty node, by publisher."""


class NodeTypes:
    def __init__(self) -> None:
        self._known: list[NodeType] = []

    def of(self, machine: Machine, settings: Settings) -> NodeType:
        """The type of such a node. Raises StartRefusal if its kubelet would refuse to start."""
        for node_type in self._known:
            if _same(node_type.kubelet.machine, machine) and _same(node_type.kubelet.settings, settings):
                return node_type
        node_type = NodeType(start.start(machine, settings))
        self._known.append(node_type)
        return node_type


def with_health(machine: Machine, resource: str, device: str, *, healthy: bool) -> Machine:
    """The machine with a changed device health. Raises KeyError if there is no such device."""
    plugin = machine.devices[resource]
    if all(each.id != device for each in plugin.devices):
        raise KeyError(device)
    devices = tuple(structs.replace(each, healthy=healthy) if each.id == device else each for each in plugin.devices)
    return structs.replace(machine, devices={**machine.devices, resource: structs.replace(plugin, devices=devices)})


def all_healthy(machine: Machine) -> Machine:
    """The machine with all devices healthy."""
    plugins = {
        resource: structs.replace(plugin, devices=tuple(map(_healthy, plugin.devices)))
        for resource, plugin in machine.devices.items()
    }
    return structs.replace(machine, devices=plugins)


def _healthy(device: Device) -> Device:
    return device if device.healthy else structs.replace(device, healthy=True)


def _same(one: object, other: object) -> bool:
    # Comparing large machines is slow, and nodes mostly share the same object.
    return one is other or one == other
