"""Reports of drawn nodes, the way they reach the engine: written as objects, sent as JSON, and read again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.decode.structs import encode
from numalign.api.nrt import normalise, wire
from numalign.api.nrt.fingerprint import Method
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeInfo, NodeStatus
from numalign.kubelet import holdings, versions
from numalign.kubelet.machine.machine import Device, DevicePlugin, Machine
from numalign.kubelet.report import plainreport, report
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from tests.strategies.kubelet import machines, uneven_machines
from tests.strategies.lives import Life, lives

SERVED_WHOLE = {"feature_gates": {"PodLevelResourceManagers": True}, "minor": versions.NEWEST}


def sent(topology: NodeTopology) -> NodeTopology:
    """The topology after its way through an API server."""
    return normalise.normalise(wire.decode(encode(normalise.encode(topology))))


def ours(kubelet: Kubelet, state: KubeletState, method: Method = Method.EXCLUSIVE) -> NodeTopology:
    return sent(report.of("worker-7", kubelet, state, method))


def plain(kubelet: Kubelet, state: KubeletState, publisher: plainreport.Publisher = "rte") -> NodeTopology:
    return sent(plainreport.of("worker-7", kubelet, state, publisher))


def node(kubelet: Kubelet) -> Node:
    """The Node object of this kubelet."""
    totals = kubelet.machine.capacity
    capacity = {
        name: quantity.parse(f"{amount}m") if name == "cpu" else quantity.of(amount) for name, amount in totals.items()
    }
    status = NodeStatus(capacity=capacity, node_info=NodeInfo(kubelet_version=f"v{kubelet.settings.minor}.1"))
    return Node(metadata=ObjectMeta(name="worker-7"), status=status)


def told_apart_by_zones(machine: Machine) -> Machine:
    """The machine with device ids that sort by zone set, and plugins that leave the choice to the kubelet.

    Which devices are handed out is then the same by zone, whatever devices of one zone set are called."""
    return structs.replace(machine, devices={name: _sorted(plugin) for name, plugin in machine.devices.items()})


def _sorted(plugin: DevicePlugin) -> DevicePlugin:
    by_zones = holdings.classes(plugin.devices)
    ordered = (each for zones in sorted(by_zones, key=_none_first) for each in by_zones[zones])
    return DevicePlugin(tuple(_renamed(number, device) for number, device in enumerate(ordered)))


def _none_first(zones: int | None) -> int:
    return -1 if zones is None else zones


def _renamed(number: int, device: Device) -> Device:
    return structs.replace(device, id=f"{number:03}")


@st.composite
def reported_lives(draw: st.DrawFn) -> Life:
    """Lives on machines of every kind, with pods of every kind, some of them served as a whole."""
    machine = draw(st.sampled_from((machines(), machines(), uneven_machines())))
    settings: dict[str, Any] = draw(st.sampled_from(({}, {}, SERVED_WHOLE)))
    return draw(lives(on=machine.map(told_apart_by_zones), settings=settings, pod_level=True))


def states(life: Life) -> Iterator[KubeletState]:
    """Every state of the node, from the empty one on."""
    return (moment.state for moment in life.moments())
