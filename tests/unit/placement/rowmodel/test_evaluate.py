"""One pod on one row: verdicts, zones, charges and shortfalls."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.kubelet.machine.presets import GIB
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.resources import CPU, MEMORY
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.causes import Cause
from numalign.placement.rowmodel.evaluate import RowVerdict, Verdict
from tests import nodes
from tests.nodes import NIC, PAGES, Node, guaranteed, pod, sidecar, simple
from tests.rows import View

DEVICES = {NIC: nodes.plugin(0, 0, 1)}


def asked(node: Node, newcomer: Pod, **row: Any) -> RowVerdict:
    view = View(node.kubelet)
    return evaluate.evaluate(structs.replace(view.row(node.state), **row), view.program(newcomer))


def cause(verdict: RowVerdict) -> Cause | None:
    return verdict.shortfall.cause if verdict.shortfall else None


FITTING = {
    "single-numa-node: the lowest zone with room": ("single-numa-node", simple("p", 4), ((2,),)),
    "restricted: one zone where one would do by size": ("restricted", simple("p", 3), ((1,),)),
    "restricted: two zones where it takes two by size": ("restricted", simple("p", 6, "10Gi"), ((3,),)),
    "best-effort: zones that are not preferred": ("best-effort", simple("p", 6, "2Gi"), ((3,),)),
    "none: no zones at all": ("none", simple("p", 6, "2Gi"), ((),)),
    "a device draws the rest along": ("single-numa-node", simple("p", 2, nic=1), ((1,),)),
    "containers one after the other": (
        "single-numa-node",
        pod("p", guaranteed("a", 2), guaranteed("b", 2), guaranteed("c", 2)),
        ((1,), (2,), (2,)),
    ),
    "a container without wishes": ("single-numa-node", pod("p", nodes.burstable("a")), ((),)),
}


@pytest.mark.parametrize("policy, newcomer, possible", FITTING.values(), ids=FITTING)
def test_a_pod_fits_where_the_kubelet_would_put_it(policy: str, newcomer: Pod, possible: object) -> None:
    node = Node(nodes.machine(devices=DEVICES), policy)
    verdict = asked(node, newcomer)
    assert (verdict.code, verdict.possible) == (Verdict.FITS, possible)
    assert node.admit(newcomer).admitted


REFUSED = {
    "too many CPUs for a zone": ("single-numa-node", simple("p", 5), Cause.DIFFERENT_ZONE_COUNTS),
    "two zones for cpu, one for memory": ("restricted", simple("p", 6), Cause.DIFFERENT_ZONE_COUNTS),
    "a zone has the CPUs, another the devices": ("single-numa-node", simple("p", 4, nic=2), Cause.NO_COMMON_ZONES),
    "more CPUs than there are": ("none", simple("p", 8), Cause.TOO_FEW_CPUS),
    "more memory than there is": ("none", simple("p", 1, "20Gi"), Cause.TOO_LITTLE_MEMORY),
    "more devices than there are": ("none", simple("p", 1, nic=4), Cause.TOO_FEW_DEVICES),
}


@pytest.mark.parametrize("policy, newcomer, why", REFUSED.values(), ids=REFUSED)
def test_a_pod_does_not_fit_for_a_reason(policy: str, newcomer: Pod, why: Cause) -> None:
    node = Node(nodes.machine(devices=DEVICES), policy)
    verdict = asked(node, newcomer)
    assert (verdict.code, cause(verdict)) == (Verdict.DOES_NOT_FIT, why)
    assert not node.admit(newcomer).admitted


GROUPED = {
    "best-effort: the zones together have the memory, but each is used alone": (
        "best-effort",
        [simple("a", 1, "5Gi"), simple("b", 1, "5Gi")],
        simple("p", 1, "4Gi"),
        Cause.MEMORY_GROUP,
    ),
    "restricted: not even a free zone would do": (
        "restricted",
        [simple("a", 1, "5Gi"), simple("b", 1, "5Gi")],
        simple("p", 1, "4Gi"),
        Cause.TOO_LITTLE_MEMORY,
    ),
    "best-effort: all zones together have too little": (
        "best-effort",
        [simple("a", 1, "7Gi"), simple("b", 1, "7Gi")],
        simple("p", 1, "4Gi"),
        Cause.TOO_LITTLE_MEMORY,
    ),
    "restricted: the zone with the memory is bound to another": (
        "restricted",
        [simple("a", "500m", "10Gi")],
        simple("p", 1, "2Gi"),
        Cause.MEMORY_GROUP,
    ),
}


@pytest.mark.parametrize("policy, before, newcomer, why", GROUPED.values(), ids=GROUPED)
def test_memory_groups_are_the_cause_only_where_amounts_suffice(
    policy: str, before: list[Pod], newcomer: Pod, why: Cause
) -> None:
    node = Node(nodes.machine(), policy)
    assert all(node.admit(each).admitted for each in before)
    verdict = asked(node, newcomer)
    assert (verdict.code, cause(verdict)) == (Verdict.DOES_NOT_FIT, why)
    assert not node.admit(newcomer).admitted


def test_a_shortfall_names_the_container_and_what_there_was() -> None:
    node = Node(nodes.machine(devices=DEVICES), "single-numa-node")
    verdict = asked(node, pod("p", guaranteed("a", 1), guaranteed("b", 4, nic=2)))
    assert verdict.shortfall is not None
    assert verdict.shortfall.step == 1
    by_column = {want.column: want for want in verdict.shortfall.wants}
    assert by_column[CPU].need == 4
    assert by_column[CPU].free == (2, 4)


def test_a_pod_is_charged_to_its_zones() -> None:
    verdict = asked(Node(nodes.machine(devices=DEVICES), "single-numa-node"), simple("p", 2, "3Gi", nic=1))
    nic = 2
    assert set(verdict.entries) == {Entry(CPU, 2, 1), Entry(MEMORY, 3 * GIB, 1, span=1), Entry(nic, 1, 1)}


def test_a_common_alignment_holds_for_all_containers() -> None:
    node = Node(nodes.machine(), "single-numa-node", "pod")
    verdict = asked(node, pod("p", guaranteed("a", 2), guaranteed("b", 2)))
    assert verdict.possible == ((2,), (2,))


def test_sidecars_are_containers_that_come_first() -> None:
    node = Node(nodes.machine(), "single-numa-node")
    verdict = asked(node, pod("p", guaranteed("app", 3), init=[sidecar(guaranteed("proxy", 2))]))
    assert verdict.possible == ((1,), (2,))


def test_what_an_init_container_held_can_be_had_again() -> None:
    node = Node(nodes.machine(), "single-numa-node")
    newcomer = pod("p", guaranteed("app", 3, "8Gi"), init=[guaranteed("init", 3, "8Gi")])
    assert asked(node, newcomer).possible == ((1,), (1,))
    assert node.admit(newcomer).admitted


def test_how_many_cpus_an_init_container_leaves_untouched_is_not_known() -> None:
    verdict = asked(
        Node(nodes.machine(cores=8), "single-numa-node"), pod("p", guaranteed("a", 2), init=[guaranteed("i", 3)])
    )
    cpus = [entry for entry in verdict.entries if entry.column == CPU]
    assert cpus == [Entry(CPU, 3, 1), Entry(CPU, 2, 1, certain=False)]


def test_memory_that_only_an_init_container_needs_passes() -> None:
    verdict = asked(
        Node(nodes.machine(), "none"), pod("p", guaranteed("a", 1, "1Gi"), init=[guaranteed("i", 1, "3Gi")])
    )
    assert verdict.passing == (Entry(MEMORY, 2 * GIB, 1, span=1),)


def test_hugepages_are_looked_at_together_with_memory() -> None:
    node = Node(nodes.machine(pages=512), "single-numa-node")
    node.placed(simple("first", 1, "1Gi", pages="1Gi"))
    assert asked(node, simple("p", 1, "1Gi", pages="512Mi")).possible == ((2,),)


def test_a_zone_in_a_group_takes_no_memory_of_its_own() -> None:
    node = Node(nodes.machine(cores=8), "restricted")
    node.placed(simple("wide", 10, "10Gi"))
    assert cause(asked(node, simple("p", 1, "1Gi"))) is Cause.NO_COMMON_ZONES
    assert asked(node, simple("p", 9, "5Gi")).code is Verdict.DOES_NOT_FIT


def test_memory_of_a_type_that_the_node_lacks_is_not_decided() -> None:
    verdict = asked(Node(nodes.machine(), "restricted"), simple("p", 1, "1Gi", pages="2Mi"))
    assert (verdict.code, cause(verdict)) == (Verdict.NOT_DECIDED, Cause.MEMORY_TYPE_UNKNOWN)
    assert PAGES not in nodes.machine().memory_types


def test_devices_that_no_plugin_serves_here_are_ignored() -> None:
    assert asked(Node(nodes.machine(), "single-numa-node"), simple("p", 1, nic=1)).fits


FULL: dict[str, Any] = {"cpu_options": {"full-pcpus-only": "true"}}
WHOLE_CORES = {
    "half a core": (simple("p", 3), Cause.PARTIAL_CORES),
    "cores that are all whole": (simple("p", 4), None),
    "more than there are on whole cores": (simple("p", 8, "2Gi"), Cause.TOO_FEW_FULL_CORES),
}


@pytest.mark.parametrize("newcomer, why", WHOLE_CORES.values(), ids=WHOLE_CORES)
def test_whole_cores_only(newcomer: Pod, why: Cause | None) -> None:
    node = Node(nodes.machine(cores=2, threads=2), "none", reserved_cpus=0b1, **FULL)
    assert cause(asked(node, newcomer)) is why


def test_pod_level_resources_are_one_allocation() -> None:
    gates = {"PodLevelResourceManagers": True}
    node = Node(nodes.machine(), "single-numa-node", "pod", feature_gates=gates)
    newcomer = pod("p", guaranteed("a", 1), nodes.burstable("b"), whole={"cpu": 4, "memory": "4Gi"})
    assert set(asked(node, newcomer).entries) == {Entry(CPU, 4, 2), Entry(MEMORY, 4 * GIB, 2, span=1)}
    used_up = pod("p", guaranteed("a", 4), nodes.burstable("b"), whole={"cpu": 4, "memory": "4Gi"})
    assert cause(asked(node, used_up)) is Cause.BUDGET_USED_UP


def test_a_node_without_zones_has_room_for_everybody() -> None:
    node = Node(nodes.machine(), "none")
    view = View(node.kubelet)
    bare = structs.replace(
        view.row(node.state), rules=structs.replace(view.rules, zones=(), static_cpus=False, static_memory=False)
    )
    program = structs.replace(view.program(simple("p")), steps=())
    assert evaluate.evaluate(bare, program).fits
