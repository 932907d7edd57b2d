"""A pod we place is admitted where publishers report no more than RTE and NFD do, and the kubelet has no options set.

Beside `test_admitted`, where our agent tells everything. Devices that lie in two zones are left out, as a plain report
counts them in both. So is what counts in the kubelet's choice of zones and is in no plain report: sick devices, and the
CPUs of a zone that are all kept for the system."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from numalign.api.decode import cpuset
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kubelet.cpu.static import StaticCPUs
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.report import plainreport
from numalign.kubelet.report.plainreport import Publisher
from numalign.kubelet.start import Kubelet
from tests.placing import KERNELS
from tests.unit.placement import clusters
from tests.unit.placement.clusters import ModelNode
from tests.unit.scheduler.test_admitted import Story

PLAIN: dict[str, Any] = {
    "tm_options": {},
    "cpu_options": {},
    "cpu_policy": "static",
    "gate_pod_level_resource_managers": False,
}
FORMS: tuple[Publisher, ...] = ("rte", "nfd")


class PlainNode(ModelNode):
    form: Publisher

    @property
    def topology(self) -> NodeTopology:
        return plainreport.of(self.name, self.kubelet, self.state, self.form)


def played(form: Publisher, seeds: range, monkeypatch: pytest.MonkeyPatch, *, compiled: bool) -> Counter[str]:
    drawn = clusters.node

    def node(rng: Random, name: str) -> PlainNode:
        while True:
            found = drawn(rng, name, **PLAIN)
            if not _has_odd_devices(found.kubelet.machine) and not _has_hidden_cpus(found.kubelet):
                made = PlainNode(name, found.kubelet, found.wishes)
                made.form = form
                return made

    monkeypatch.setattr(clusters, "node", node)
    total: Counter[str] = Counter()
    for seed in seeds:
        total.update(Story(seed, compiled=compiled).tell(40))
    return total


def _has_odd_devices(machine: Machine) -> bool:
    devices = [device for plugin in machine.devices.values() for device in plugin.devices]
    return any(len(device.zones or ()) > 1 or not device.healthy for device in devices)


def _has_hidden_cpus(kubelet: Kubelet) -> bool:
    zones = [cpuset.of(cpu for core in zone.cores for cpu in core.cpus) for zone in kubelet.machine.zones]
    reserved = kubelet.cpu.reserved if isinstance(kubelet.cpu, StaticCPUs) else 0
    return any(zone and not zone & ~reserved for zone in zones)


@KERNELS
@pytest.mark.parametrize("form", FORMS)
def test_pods_on_nodes_with_plain_reports_are_admitted_where_we_said(
    form: Publisher, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert played(form, range(40), monkeypatch, compiled=compiled)["placed"] > 200


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("part", range(5))
def test_thousands_of_pods_on_nodes_with_plain_reports(
    form: Publisher, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = 1000 * (part + 1)
    assert played(form, range(first, first + 200), monkeypatch, compiled=part % 2 == 1)["placed"] > 1000
