"""Rows that are known between bounds: what is certain, what is possible, what is left open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from numalign.api.decode import cpuset
from numalign.api.objects.pod import Pod
from numalign.kubelet.machine.presets import GIB
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.resources import CPU, MEMORY
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.causes import Cause
from numalign.placement.rowmodel.evaluate import RowVerdict, Verdict
from tests import nodes
from tests.nodes import NIC, Node, guaranteed, pod, simple
from tests.rows import View


def asked(node: Node, newcomer: Pod, entries: Sequence[Entry] = (), **row: Any) -> RowVerdict:
    view = View(node.kubelet)
    changed = structs.replace(view.row(node.state), entries=tuple(entries), **row)
    return evaluate.evaluate(changed, view.program(newcomer))


BY_L3: dict[str, Any] = {
    "cpu_options": {"prefer-align-cpus-by-uncorecache": "true"},
    "memory_policy": "None",
    "reserved_memory": (),
}


def members(cpus: int | None) -> list[int]:
    return list(cpuset.members(cpus or 0))


SOMEWHERE = {
    "room in every case": (simple("p", 1), [Entry(CPU, 2, 3)], Verdict.FITS, ((1,),)),
    "the first zone may have room": (simple("p", 2), [Entry(CPU, 2, 3)], Verdict.FITS, ((1, 2),)),
    "each zone may lack it": (simple("p", 3), [Entry(CPU, 2, 3)], Verdict.NOT_CERTAIN, ()),
    "no zone can have it": (simple("p", 4), [Entry(CPU, 4, 3), Entry(CPU, 1, 2)], Verdict.DOES_NOT_FIT, ()),
    "by size it never fits": (simple("p", 5), [Entry(CPU, 1, 3)], Verdict.DOES_NOT_FIT, ()),
}


@pytest.mark.parametrize("newcomer, entries, code, possible", SOMEWHERE.values(), ids=SOMEWHERE)
def test_charges_that_lie_somewhere(newcomer: Pod, entries: list[Entry], code: Verdict, possible: object) -> None:
    verdict = asked(Node(nodes.machine(), "single-numa-node"), newcomer, entries)
    assert (verdict.code, verdict.possible) == (code, possible)


def test_a_pod_of_several_possible_zones_is_charged_to_all_of_them() -> None:
    verdict = asked(Node(nodes.machine(), "single-numa-node"), simple("p", 2), [Entry(CPU, 2, 3)])
    assert set(verdict.entries) == {Entry(CPU, 2, 3), Entry(MEMORY, GIB, 3, span=1)}


def test_later_containers_reckon_with_every_place_of_earlier_ones() -> None:
    node = Node(nodes.machine(), "single-numa-node")
    fits, too_much = (pod("p", guaranteed("a", 2), guaranteed("b", cpus)) for cpus in (1, 2))
    assert asked(node, fits, [Entry(CPU, 2, 3)]).code is Verdict.NOT_CERTAIN
    assert asked(node, fits, [Entry(CPU, 1, 3)]).possible == ((1,), (1, 2))
    assert asked(node, too_much, [Entry(CPU, 2, 3)]).code is Verdict.NOT_CERTAIN


def test_devices_of_several_zones_leave_a_choice() -> None:
    wide = Node(nodes.machine(devices={NIC: nodes.plugin((0, 1), 0)}), "single-numa-node")
    verdict = asked(wide, simple("p", 1, nic=1))
    assert [entry for entry in verdict.entries if entry.column > MEMORY] == [Entry(2, 1, 0b11)]


def test_an_unknown_choice_of_devices_may_decide() -> None:
    node = Node(nodes.machine(devices={NIC: nodes.plugin((0, 1), 0)}), "single-numa-node")
    verdict = asked(node, pod("p", guaranteed("a", 1, nic=1), guaranteed("b", 4, nic=1)))
    assert verdict.shortfall
    assert (verdict.code, verdict.shortfall.cause) == (Verdict.NOT_CERTAIN, Cause.DEVICE_CHOICE)


def test_devices_of_a_wider_mask_are_exact_only_if_all_are_taken() -> None:
    node = Node(nodes.machine(devices={NIC: nodes.plugin(0, 0, 1, 1)}), "none")
    some, every = (asked(node, simple("p", 1, nic=count)).entries for count in (2, 4))
    assert Entry(2, 2, 0b11) in some
    assert {Entry(2, 2, 0b01), Entry(2, 2, 0b10)} <= set(every)


def test_cpus_of_several_zones_are_split_as_the_picker_would() -> None:
    node = Node(nodes.machine(), "none")
    assert {Entry(CPU, 1, 1), Entry(CPU, 4, 2)} <= set(asked(node, simple("p", 5)).entries)
    unknown = asked(node, simple("p", 5), rules=structs.replace(View(node.kubelet).rules, sockets=(), regular=False))
    assert Entry(CPU, 5, 0b11) in unknown.entries


def test_a_split_that_hangs_on_ids_and_decides_later_is_for_the_kubelet_model() -> None:
    node = Node(
        nodes.machine(cores=4, threads=2), "none", "container", cpu_options={"prefer-align-cpus-by-uncorecache": "true"}
    )
    verdict = asked(node, pod("p", *(guaranteed(f"c{n}", 3) for n in range(5))))
    assert verdict.fits
    assert any(entry.zones == 0b11 and entry.certain for entry in verdict.entries)


def test_an_l3_that_lies_in_two_zones_is_counted_twice_so_that_cpus_come_from_a_third() -> None:
    machine = nodes.with_l3s(nodes.machine(zones=3, cores=6), size=4)
    node = Node(machine, "restricted", **BY_L3, reserved_cpus=1 << 0 | 1 << 11, reserved={"cpu": 2000})
    verdict, placed = asked(node, simple("p", 8)), node.placed(simple("p", 8))["app"]
    assert (placed.affinity.mask, members(placed.cpus)) == (0b011, [1, 2, 4, 5, 6, 7, 16, 17])
    assert verdict.possible == ((0b011,),)
    assert Entry(CPU, 8, 0b111, certain=False) in verdict.entries


def test_an_l3_of_whole_zones_keeps_cpus_together() -> None:
    node = Node(nodes.with_l3s(nodes.machine(zones=4, cores=4), size=8), "restricted", **BY_L3)
    assert Entry(CPU, 6, 0b0011) in asked(node, simple("p", 6)).entries


def test_sizes_that_the_report_leaves_open_leave_restricted_open() -> None:
    machine = nodes.machine()
    large = simple("p", 6, "10Gi")
    assert asked(Node(machine, "restricted"), large, unknown_size={CPU: 2}).code is Verdict.NOT_CERTAIN
    assert asked(Node(machine, "restricted"), large, unknown_size={CPU: 1}).fits
    assert asked(Node(machine, "single-numa-node"), simple("p", 4), unknown_size={CPU: 2}).fits


def test_unknown_groups_leave_every_zone_open_once_memory_is_in_use() -> None:
    node = Node(nodes.machine(), "restricted")
    assert asked(node, simple("p", 1), groups=None).fits
    node.placed(simple("first", 1))
    verdict = asked(node, simple("p", 1), groups=None)
    assert verdict.shortfall
    assert (verdict.code, verdict.shortfall.cause) == (Verdict.NOT_CERTAIN, Cause.GROUPS_UNKNOWN)
    assert asked(Node(nodes.machine(), "single-numa-node"), simple("p", 1), groups=None).possible == ((1,),)


def test_unknown_cores_leave_whole_cores_open() -> None:
    node = Node(
        nodes.machine(threads=2),
        "none",
        cpu_options={"full-pcpus-only": "true"},
        reserved_cpus=0b11,
        reserved={"cpu": 2000, "memory": 2 * GIB},
    )
    verdict = asked(node, simple("p", 2), full_core_cpus=None)
    assert verdict.shortfall
    assert (verdict.code, verdict.shortfall.cause) == (Verdict.NOT_CERTAIN, Cause.CORES_UNKNOWN)


def test_best_effort_with_memory_hangs_on_the_exact_mask() -> None:
    node = Node(nodes.machine(), "best-effort")
    assert asked(node, simple("p", 4, "9Gi"), [Entry(CPU, 1, 3)]).code is Verdict.NOT_CERTAIN
    unmanaged = Node(nodes.machine(), "best-effort", memory_policy="None", reserved_memory=())
    verdict = asked(unmanaged, simple("p", 5, "1Gi"), [Entry(CPU, 1, 3)])
    assert (verdict.code, verdict.possible) == (Verdict.FITS, ((3,),))


@pytest.mark.parametrize("policy", ["restricted", "single-numa-node", "best-effort", "none"])
def test_free_amounts_below_nothing_are_nothing(policy: str) -> None:
    node = Node(nodes.machine(), policy)
    view = View(node.kubelet)
    base = {**view.row(node.state).base, CPU: (-5, 4)}
    assert asked(node, simple("p", 3), base=base).fits
    assert not asked(node, simple("p", 5), base=base).fits
