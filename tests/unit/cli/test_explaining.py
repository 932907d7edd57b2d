"""Why a pod was refused: the cause, its sentence, and the numbers that show it."""

from typing import Any

import pytest

from numalign.api.pod import Pod
from numalign.cli.report import Offer
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
        "exhausted",
        "cpu: needs 2, all zones together have 1 free",
    ),
    "it is free, but in pieces": (
        node("restricted"),
        of(10, 10, 8),
        "fragmented",
        "cpu: 8 are free only in zones 0+1 together, and restricted does not spread what fewer empty zones could hold",
    ),
    "it never fits one zone": (
        node("single-numa-node"),
        of(20),
        "too-large",
        "cpu needs 2 zones even on an empty machine, and single-numa-node accepts one",
    ),
    "two resources fit different zones": (
        node("single-numa-node", NICS_IN_ZONE_1),
        of(2, {**guaranteed(14), NIC: 1}, {**guaranteed(4), NIC: 1}),
        "disagreement",
        "cpu fits only zone 0, a.com/nic fits only zone 1",
    ),
    "two resources need different numbers of zones": (
        node("restricted", NICS_IN_ZONE_1),
        of({**guaranteed(20), NIC: 1}),
        "different-widths",
        "cpu needs 2 zones, a.com/nic needs 1 zone",
    ),
    "zones with memory in use cannot be joined": (
        node("best-effort", **STATIC_MEMORY),
        of(*[guaranteed(2, "40Gi")] * 3),
        "grouped",
        "memory: needs 40Gi, and that is free, but memory in use binds its zones: "
        "they can only be used alone or together as they already are",
    ),
    "the same without a topology manager": (
        kubelet("2x16", **STATIC_MEMORY),
        of(*[guaranteed(2, "40Gi")] * 3),
        "grouped",
        "memory: needs 40Gi, and that is free, but memory in use binds its zones: "
        "they can only be used alone or together as they already are",
    ),
    "no zone has that much memory": (
        node("restricted", **STATIC_MEMORY),
        of(guaranteed(2, "100Gi")),
        "different-widths",
        "cpu needs 1 zone, memory needs 2 zones",
    ),
    "too few devices, nobody aligned": (
        kubelet(NICS_IN_ZONE_1),
        of({NIC: 3}),
        "exhausted",
        "a.com/nic: needs 3, all zones together have 2 free",
    ),
    "the node as a whole has too little": (
        kubelet(),
        of(20, 20),
        "node-exhausted",
        "cpu: needs 20, the node as a whole has 12 free",
    ),
    "the node takes no more pods": (
        kubelet(maxPods=1),
        of(1, 1),
        "node-exhausted",
        "maxPods is 1, and the node has as many pods",
    ),
    "half a core": (
        kubelet("2x32-smt", **STATIC_CPUS, cpuManagerPolicyOptions={"full-pcpus-only": "true"}),
        of(3),
        "manager",
        "",
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
        "too-large",
        "memory needs 2 zones even on an empty machine, and single-numa-node accepts one",
    ),
    "34 zones, and it is free in pieces": (
        node("restricted", "superchip-34", **UNLISTED),
        of(*[guaranteed(2, "300Gi")] * 3),
        "fragmented",
        "memory: 300Gi are free only across more zones, "
        "and restricted does not spread what fewer empty zones could hold",
    ),
    "34 zones, and needs of different widths": (
        node("restricted", "superchip-34", **UNLISTED),
        of(guaranteed(2, "500Gi")),
        "different-widths",
        "cpu needs 1 zone, memory needs 2 zones",
    ),
}


@pytest.mark.parametrize("on, pods, cause, text", CASES.values(), ids=CASES)
def test_the_cause_is_found_and_said(on: Kubelet, pods: list[Pod], cause: str, text: str) -> None:
    explanation = explained(on, *pods)
    assert (explanation.cause, explanation.text) == (cause, text)


def test_a_conflict_names_only_those_who_disagree() -> None:
    on = node("single-numa-node", NICS_IN_ZONE_1, **STATIC_MEMORY)
    explanation = explained(on, *of(2, {**guaranteed(14), NIC: 1}, {**guaranteed(4), NIC: 1}))
    assert [wanted.resource for wanted in explanation.wanted] == ["cpu", "memory", NIC]
    assert "memory" not in explanation.text


def test_every_zone_shows_what_it_has_and_what_it_lacks() -> None:
    (cpu,) = explained(node("single-numa-node"), *of(10, 12, 8)).wanted
    assert (cpu.needed, cpu.node_free) == (8, 9)
    assert [(zone.zones, zone.free, zone.short) for zone in cpu.zones] == [((0,), 5, 3), ((1,), 4, 4)]


def test_offers_come_narrowest_first_with_their_preference() -> None:
    explanation = explained(node("restricted", NICS_IN_ZONE_1), *of({**guaranteed(20), NIC: 1}))
    cpu, nic = explanation.wanted
    assert cpu.offered == (Offer(zones=(0, 1), preferred=True),)
    assert nic.offered == (Offer(zones=(1,), preferred=True),)


def test_a_resource_without_a_say_has_no_offers() -> None:
    (nic,) = explained(kubelet(NICS_IN_ZONE_1), *of({NIC: 3})).wanted
    assert nic.offered is None


def test_node_totals_that_suffice_are_pointed_out() -> None:
    assert explained(node("single-numa-node"), *of(20)).node_has_room
    assert not explained(node("single-numa-node"), *of(15, 15, 2)).node_has_room


def test_the_refused_container_finds_what_those_before_it_left() -> None:
    explanation = explained(node("single-numa-node"), pod("p", *[guaranteed(10)] * 3))
    (cpu,) = explanation.wanted
    assert explanation.container == "c2"
    assert [zone.free for zone in cpu.zones] == [5, 6]


def test_what_init_containers_left_counts_as_free() -> None:
    explanation = explained(node("single-numa-node"), pod("p", guaranteed(12), guaranteed(16), init=(guaranteed(14),)))
    (cpu,) = explanation.wanted
    assert explanation.container == "c1"
    assert [zone.free for zone in cpu.zones] == [3, 16]


def test_pod_scope_explains_the_pod_as_a_whole() -> None:
    on = node("single-numa-node", topologyManagerScope="pod")
    explanation = explained(on, pod("p", guaranteed(10), guaranteed(10)))
    assert explanation.container == ""
    assert explanation.wanted[0].needed == 20


def test_memory_that_is_bound_to_other_zones_says_so() -> None:
    on = node("restricted", **STATIC_MEMORY)
    explanation = explained(on, *of(guaranteed(20, "100Gi"), guaranteed(2, "20Gi")))
    memory = next(wanted for wanted in explanation.wanted if wanted.resource == "memory")
    assert [zone.group for zone in memory.zones] == [(0, 1), (0, 1)]


def test_admitted_pods_need_no_explanation() -> None:
    assert admitted(node("single-numa-node"), *of(2)).pods[0].explanation is None
