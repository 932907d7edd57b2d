"""The table adds up: what is free and what pods hold is all there is, zone by zone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode import decode
from numalign.api.objects import requests
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission, configuration, start
from numalign.kubelet.machine import machinefile, presets
from numalign.kubelet.report import zonetable
from numalign.kubelet.report.zonetable import Cell, Total, ZoneTable
from numalign.kubelet.start import Kubelet

GIB = 1 << 30
NIC = "a.com/nic"
NICS = {NIC: {0: 2, 1: 1, "0,1": 1, "noTopology": 1, "unhealthy": ["nic-0"]}}
CONFIGURATION = {
    "apiVersion": configuration.API_VERSION,
    "kind": configuration.KIND,
    "topologyManagerPolicy": "best-effort",
    "cpuManagerPolicy": "static",
    "memoryManagerPolicy": "Static",
    "reservedSystemCPUs": "0",
    "kubeReserved": {"memory": "2Gi"},
    "evictionHard": {"memory.available": "0%"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "2Gi"}}],
}


def kubelet(**settings: Any) -> Kubelet:
    machine = machinefile.read({"extends": "2x16", "devices": NICS}, "test")
    return start.start(machine, configuration.read({**CONFIGURATION, **settings}, "test", machine))


def pod(name: str, *limits: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> Pod:
    def containers(stem: str, each: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
        return [{"name": f"{stem}{place}", "resources": {"limits": amounts}} for place, amounts in enumerate(each)]

    spec = {"containers": containers("c", limits), "initContainers": containers("i", init)}
    return requests.defaulted(decode.decode(Pod, {"metadata": {"name": name, "namespace": "x"}, "spec": spec}))


def after(node: Kubelet, *pods: Pod) -> ZoneTable:
    state = node.initial()
    for each in pods:
        state, _ = admission.admit(node, state, each)
    return zonetable.of(node, admission.collect(node, state))


def test_an_empty_node_has_everything_but_what_is_reserved() -> None:
    table = after(kubelet())
    assert table.rows["cpu"] == {0b01: Cell(15, 15), 0b10: Cell(16, 16)}
    assert table.rows["memory"] == {0b01: Cell(62 * GIB, 62 * GIB), 0b10: Cell(64 * GIB, 64 * GIB)}


def test_devices_are_counted_by_the_zones_they_belong_to_the_healthy_ones_only() -> None:
    row = after(kubelet()).rows[NIC]
    assert row == {0: Cell(1, 1), 0b01: Cell(1, 1), 0b10: Cell(1, 1), 0b11: Cell(1, 1)}


def test_pods_hold_what_they_were_given() -> None:
    table = after(kubelet(), pod("a", {"cpu": 4, "memory": "8Gi", NIC: 1}), pod("b", {"cpu": 14, "memory": "1Gi"}))
    assert table.rows["cpu"][0b01] == Cell(15, 11, {"x/a": 4})
    assert table.rows["cpu"][0b10] == Cell(16, 2, {"x/b": 14})
    assert table.rows["memory"][0b01] == Cell(62 * GIB, 54 * GIB, {"x/a": 8 * GIB})


def test_memory_across_zones_is_read_as_it_is_drained() -> None:
    table = after(kubelet(), pod("a", {"cpu": 20, "memory": "100Gi"}))
    assert [cell.holders for cell in table.rows["memory"].values()] == [{"x/a": 62 * GIB}, {"x/a": 38 * GIB}]


def test_what_init_containers_hand_on_is_held_once() -> None:
    table = after(kubelet(), pod("a", {"cpu": 6, "memory": "1Gi"}, init=({"cpu": 8, "memory": "4Gi"},)))
    assert table.rows["cpu"][0b01].holders == {"x/a": 8}
    assert table.rows["memory"][0b01].holders == {"x/a": 4 * GIB}


def test_resources_that_no_manager_pins_have_totals_only() -> None:
    table = after(kubelet(cpuManagerPolicy="none", memoryManagerPolicy="None", reservedMemory=[]))
    assert table.rows.keys() == {NIC}
    assert table.totals["cpu"] == Total(31_000, 31_000)


def test_totals_are_what_requests_leave_of_allocatable() -> None:
    table = after(kubelet(), pod("a", {"cpu": "1500m", "memory": "1Gi", NIC: 2}))
    assert table.totals["cpu"] == Total(31_000, 29_500)
    assert table.totals["memory"] == Total(126 * GIB, 125 * GIB)
    assert table.totals[NIC] == Total(4, 2)


def test_cpu_and_memory_come_first() -> None:
    assert list(after(kubelet()).rows) == ["cpu", "memory", "hugepages-1Gi", "hugepages-2Mi", NIC]


LIMITS = st.fixed_dictionaries(
    {"cpu": st.integers(0, 20), "memory": st.integers(1, 100).map(lambda size: f"{size}Gi")},
    optional={NIC: st.integers(0, 3)},
)
PODS = st.lists(st.tuples(st.lists(LIMITS, min_size=1, max_size=3), st.lists(LIMITS, max_size=2)), max_size=6)
POLICIES = st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"])


@given(PODS, POLICIES, st.sampled_from(["container", "pod"]))
def test_free_and_held_add_up_to_allocatable(pods: list[Any], policy: str, scope: str) -> None:
    node = kubelet(topologyManagerPolicy=policy, topologyManagerScope=scope)
    named = [pod(f"p{place}", *apps, init=tuple(init)) for place, (apps, init) in enumerate(pods)]
    for row in after(node, *named).rows.values():
        for cell in row.values():
            assert cell.free >= 0
            assert cell.free + sum(cell.holders.values()) == cell.allocatable


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_has_a_table_that_covers_its_zones(name: str) -> None:
    machine = presets.machine(name)
    settings = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND}
    node = start.start(machine, configuration.read(settings, "test", machine))
    table = zonetable.of(node, node.initial())
    assert table.totals.keys() >= {"cpu", "memory", *machine.devices}
