"""Why a pod was refused: the cause, its sentence, and the numbers that show it."""

from typing import Any

import pytest

from numalign.api.objects.pod import Pod
from numalign.cli.display.values import Hint
from numalign.kubelet.start import Kubelet
from tests.unit.cli.small import STATIC_CPUS, STATIC_MEMORY, admitted, explained, guaranteed, kubelet, pod

NIC = "a.com/nic"
NICS_IN_ZONE_1 = {"extends": "2x16", "devices": {NIC: {1: 2}}}


def node(policy: str, machine: Any = "2x16", **settings: Any) -> Kubelet:
    return kubelet(machine, policy, **STATIC_CPUS, **settings)


def of(*requests: Any) -> list[Pod]:
    """Pods of one container each: a number of CPUs, or limits."""
    limits = [guaranteed(each) if isinstance(each, int) else each for each in requests]
    return [pod(f"p{place}", each) for place, each in enumerate(limits)]


CASES = {
    "all zones together have too little": (
        node("single-numa-node"),
        of(15, 15, 2),
        "no-common-zones",
        "container c0 needs 2 CPUs in one NUMA zone, best zone has 1",
    ),
    "it is free, but in pieces": (
        node("restricted"),
        of(10, 10, 8),
        "no-common-zones",
        "container c0 needs 8 CPUs in one NUMA zone, best zone has 6",
    ),
    "it never fits one zone": (
        node("single-numa-node"),
        of(20),
        "no-common-zones",
        "container c0 needs 20 CPUs in one NUMA zone, best zone has 16, even when empty",
    ),
    "two resources fit different zones": (
        node("single-numa-node", NICS_IN_ZONE_1),
        of(2, {**guaranteed(14), NIC: 1}, {**guaranteed(4), NIC: 1}),
        "no-common-zones",
        "container c0 needs 1 a.com/nic and 4 CPUs in the same NUMA zone, and no zone has room for it: "
        "only zone 1 has 1 a.com/nic and only zone 0 has 4 CPUs",
    ),
    "two resources need different numbers of zones": (
        node("restricted", NICS_IN_ZONE_1),
        of({**guaranteed(20), NIC: 1}),
        "different-zone-counts",
        "container c0 has to get everything from the same zones, but takes 1 zone for 1 a.com/nic, "
        "and 2 zones for 20 CPUs",
    ),
    "zones with memory in use cannot be joined": (
        node("best-effort", **STATIC_MEMORY),
        of(*[guaranteed(2, "40Gi")] * 3),
        "memory-group",
        "container c0 needs memory of several zones, some of which are bound to other zones by other pods",
    ),
    "the same without a topology manager": (
        kubelet("2x16", **STATIC_MEMORY),
        of(*[guaranteed(2, "40Gi")] * 3),
        "memory-group",
        "container c0 needs memory of several zones, some of which are bound to other zones by other pods",
    ),
    "the memory is free in a zone that is bound to another": (
        node("restricted", **STATIC_MEMORY),
        of({"cpu": "500m", "memory": "100Gi"}, guaranteed(2, "20Gi")),
        "memory-group",
        "container c0 needs 2 CPUs and 20Gi memory in the same NUMA zone, and other pods' memory binds zones that have "
        "room to other zones",
    ),
    "no zone alone has the memory, and restricted accepts one only": (
        node("restricted", **STATIC_MEMORY),
        of(*[guaranteed(2, "40Gi")] * 3),
        "too-little-memory",
        "container c0 needs 40Gi memory, which the zones that it is aligned to do not have",
    ),
    "no zone has that much memory": (
        node("restricted", **STATIC_MEMORY),
        of(guaranteed(2, "100Gi")),
        "different-zone-counts",
        "container c0 has to get everything from the same zones, but takes 1 zone for 2 CPUs, "
        "and 2 zones for 100Gi memory",
    ),
    "too few devices, nobody aligned": (
        kubelet(NICS_IN_ZONE_1),
        of({NIC: 3}),
        "too-few-devices",
        "container c0 needs 3 a.com/nic, a node has at most 2, even when empty",
    ),
    "the node as a whole has too little": (
        kubelet(),
        of(20, 20),
        "node-totals",
        "the pod requests 20 CPUs, at most 12 left on a node",
    ),
    "the node takes no more pods": (
        kubelet(maxPods=1),
        of(1, 1),
        "pod-count",
        "no more pods are allowed on a node",
    ),
    "half a core": (
        kubelet("2x32-smt", **STATIC_CPUS, cpuManagerPolicyOptions={"full-pcpus-only": "true"}),
        of(3),
        "partial-cores",
        "container c0 needs 3 CPUs, but only whole cores of 2 CPUs are given out: ask for 2 or 4",
    ),
}

UNLISTED: dict[str, Any] = {
    **STATIC_MEMORY,
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "2Gi"}}],
    "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "64"},
}
CASES |= {
    "34 zones, and it never fits one": (
        node("single-numa-node", "superchip-34", **UNLISTED),
        of(guaranteed(2, "500Gi")),
        "different-zone-counts",
        "container c0 needs 500Gi memory in one NUMA zone, best zone has 480Gi, even when empty",
    ),
    "34 zones, and it is free in pieces": (
        node("restricted", "superchip-34", **UNLISTED),
        of(*[guaranteed(2, "300Gi")] * 3),
        "no-common-zones",
        "container c0 needs 300Gi memory in one NUMA zone, best zone has 186Gi",
    ),
    "34 zones, and needs of different widths": (
        node("restricted", "superchip-34", **UNLISTED),
        of(guaranteed(2, "500Gi")),
        "different-zone-counts",
        "container c0 has to get everything from the same zones, but takes 1 zone for 2 CPUs, "
        "and 2 zones for 500Gi memory",
    ),
}


@pytest.mark.parametrize("on, pods, cause, text", CASES.values(), ids=CASES)
def test_the_cause_is_found_and_explained(on: Kubelet, pods: list[Pod], cause: str, text: str) -> None:
    explanation = explained(on, *pods)
    assert (explanation.cause, explanation.text) == (cause, text)


def test_every_zone_shows_what_it_has_and_what_it_lacks() -> None:
    explanation = explained(node("single-numa-node"), *of(10, 12, 8))
    (cpu,) = explanation.lacks
    assert (cpu.need, cpu.in_zones, cpu.most, explanation.node_free["cpu"]) == (8, 1, 5, 9)
    assert [(zone.zone, zone.free, zone.short) for zone in cpu.zones] == [(0, 5, 3), (1, 4, 4)]


def test_a_conflict_names_only_the_resources_that_disagree() -> None:
    on = node("single-numa-node", NICS_IN_ZONE_1, **STATIC_MEMORY)
    explanation = explained(on, *of(2, {**guaranteed(14), NIC: 1}, {**guaranteed(4), NIC: 1}))
    assert [lack.resource for lack in explanation.lacks] == [NIC, "cpu", "memory"]
    assert explanation.text.endswith(": only zone 1 has 1 a.com/nic and only zone 0 has 4 CPUs")


def test_offers_come_narrowest_first_with_their_preference() -> None:
    explanation = explained(node("restricted", NICS_IN_ZONE_1), *of({**guaranteed(20), NIC: 1}))
    offered = {each.resource: each.hints for each in explanation.offered}
    assert offered["cpu"] == (Hint(zones=(0, 1), preferred=True),)
    assert offered[NIC] == (Hint(zones=(1,), preferred=True),)


def test_where_nothing_is_aligned_nothing_is_offered() -> None:
    assert explained(kubelet(NICS_IN_ZONE_1), *of({NIC: 3})).offered == ()


def test_node_totals_that_suffice_are_pointed_out() -> None:
    assert explained(node("single-numa-node"), *of(20)).node_has_room
    assert not explained(node("single-numa-node"), *of(15, 15, 2)).node_has_room


def test_what_no_empty_node_has_room_for_is_never_admitted() -> None:
    assert explained(node("single-numa-node"), *of(20)).never
    assert not explained(node("single-numa-node"), *of(10, 12, 8)).never


def test_the_refused_container_finds_what_those_before_it_left() -> None:
    explanation = explained(node("single-numa-node"), pod("p", *[guaranteed(10)] * 3))
    (cpu,) = explanation.lacks
    assert explanation.container == "c2"
    assert [zone.free for zone in cpu.zones] == [5, 6]


def test_what_init_containers_left_counts_as_free() -> None:
    explanation = explained(node("single-numa-node"), pod("p", guaranteed(12), guaranteed(16), init=(guaranteed(14),)))
    (cpu,) = explanation.lacks
    assert explanation.container == "c1"
    assert [zone.free for zone in cpu.zones] == [3, 16]


def test_pod_scope_explains_the_pod_as_a_whole() -> None:
    on = node("single-numa-node", topologyManagerScope="pod")
    explanation = explained(on, pod("p", guaranteed(10), guaranteed(10)))
    assert explanation.container == ""
    assert explanation.lacks[0].need == 20


def test_admitted_pods_need_no_explanation() -> None:
    assert admitted(node("single-numa-node"), *of(2)).pods[0].explanation is None
