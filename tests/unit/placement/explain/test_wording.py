"""The whole language in one table: a change of one sentence shows beside all others."""

from typing import Any

import pytest

from numalign.api.attributes.directspec import DirectSpec
from numalign.api.attributes.intent import Intent
from numalign.kubelet.demand import Role
from numalign.placement.columns.intent import Unkept
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.decisions import Code
from numalign.placement.explain import wording
from numalign.placement.explain.reasons import AnyCause, Group, Lack, NodeCause, Reason, ZoneShare
from numalign.placement.rowmodel.causes import BY_IDS, Cause

GPU, NIC = "example.com/gpu", "example.com/nic"
GIB = 1 << 30


def reason(cause: AnyCause, *lacks: Lack, **more: Any) -> Reason:
    given: dict[str, Any] = {"container": "trainer", "place": 0, "role": Role.APP, "scope": "container"}
    return Reason(
        **({"code": Code.DOES_NOT_FIT, "cause": cause, "lacks": lacks, "policy": "restricted"} | given | more)
    )


def gpus(need: int = 8, most: int | None = 6, zones: int = 1, **more: Any) -> Lack:
    return Lack(resource=GPU, need=need, zones=zones, most=most, **more)


def cpus(need: int, most: int | None, zones: int = 1) -> Lack:
    return Lack(resource="cpu", need=1000 * need, zones=zones, most=None if most is None else 1000 * most)


def memory(need: int, most: int | None, zones: int = 1) -> Lack:
    return Lack(resource="memory", need=need * GIB, zones=zones, most=None if most is None else most * GIB)


WHOLE: dict[str, Any] = {"container": "", "place": -1, "role": None, "scope": "pod"}
PODS = ("shop/a", "shop/b", "shop/c", "shop/d", "shop/e")

SENTENCES: list[tuple[Reason, str]] = [
    (
        reason(Cause.NO_COMMON_ZONES, gpus()),
        "container trainer needs 8 example.com/gpu in one NUMA zone, best zone has 6",
    ),
    (
        reason(Cause.NO_COMMON_ZONES, gpus(too_large=True), role=Role.INIT),
        "init container trainer needs 8 example.com/gpu in one NUMA zone, best zone has 6, even when empty",
    ),
    (
        reason(Cause.NO_COMMON_ZONES, cpus(20, 18, zones=2), role=Role.SIDECAR),
        "sidecar container trainer needs 20 CPUs in 2 NUMA zones, best 2 zones have 18",
    ),
    (
        reason(Cause.NO_COMMON_ZONES, memory(6, 5), **WHOLE),
        "the pod needs 6Gi memory in one NUMA zone, best zone has 5Gi",
    ),
    (
        reason(Cause.NO_COMMON_ZONES, cpus(8, 8), gpus(2, 4)),
        "container trainer needs 8 CPUs and 2 example.com/gpu in the same NUMA zone, and no zone has room for it",
    ),
    (
        reason(Cause.NO_COMMON_ZONES, cpus(8, 8), gpus(2, 4), memory(1, 2)),
        "container trainer needs 8 CPUs, 2 example.com/gpu and 1Gi memory in the same NUMA zone, and no zone has room "
        "for it",
    ),
    (
        reason(Cause.NO_COMMON_ZONES, cpus(20, 24, zones=2), memory(9, 9, zones=2)),
        "container trainer needs 20 CPUs and 9Gi memory in the same 2 NUMA zones, and no 2 zones have room for it",
    ),
    (
        reason(Cause.NO_COMMON_ZONES, cpus(8, 8), after_init=True),
        "container trainer needs 8 CPUs in one NUMA zone, and the zones of its init containers have no room for it",
    ),
    (
        reason(Cause.DIFFERENT_ZONE_COUNTS, cpus(20, 24, zones=2), Lack(resource=NIC, need=1, zones=1, most=2)),
        "container trainer has to get everything from the same zones, but takes 1 zone for 1 example.com/nic, and "
        "2 zones for 20 CPUs",
    ),
    (
        reason(Cause.DIFFERENT_ZONE_COUNTS, cpus(2, 4), gpus(1, 1), memory(20, 30, zones=2)),
        "container trainer has to get everything from the same zones, but takes 1 zone for 2 CPUs and "
        "1 example.com/gpu, and 2 zones for 20Gi memory",
    ),
    (
        reason(Cause.DIFFERENT_ZONE_COUNTS, cpus(2, 4), memory(6, 8), policy="single-numa-node"),
        "container trainer needs 2 CPUs and 6Gi memory in the same NUMA zone, and no zone has room for it",
    ),
    (
        reason(Cause.DIFFERENT_ZONE_COUNTS, cpus(20, 16), gpus(1, 4), policy="single-numa-node"),
        "container trainer needs 20 CPUs in one NUMA zone, best zone has 16",
    ),
    (reason(Cause.TOO_FEW_CPUS, cpus(20, 16, 0)), "container trainer needs 20 CPUs, at most 16 free on a node"),
    (reason(Cause.TOO_FEW_CPUS, cpus(20, None, 0)), "container trainer needs 20 CPUs, more than are free"),
    (reason(Cause.TOO_FEW_CPUS, **WHOLE), "the pod's own CPUs do not suffice for all of its containers"),
    (
        reason(Cause.TOO_FEW_DEVICES, gpus(8, 6, 0)),
        "container trainer needs 8 example.com/gpu, at most 6 free on a node",
    ),
    (
        reason(Cause.TOO_FEW_DEVICES, gpus(8, None, 0)),
        "container trainer needs 8 example.com/gpu, more than are free",
    ),
    (
        reason(Cause.TOO_LITTLE_MEMORY, memory(6, 4, 0)),
        "container trainer needs 6Gi memory, at most 4Gi free on a node",
    ),
    (
        reason(Cause.TOO_LITTLE_MEMORY, memory(6, None, 0)),
        "container trainer needs 6Gi memory, which the zones that it is aligned to do not have",
    ),
    (reason(Cause.TOO_LITTLE_MEMORY), "the memory manager finds no zones for container trainer"),
    (
        reason(Cause.MEMORY_GROUP, memory(6, 8, 0)),
        "container trainer needs memory of several zones, some of which are bound to other zones by other pods",
    ),
    (
        reason(Cause.MEMORY_GROUP, cpus(2, 4), memory(6, 8)),
        "container trainer needs 2 CPUs and 6Gi memory in the same NUMA zone, and other pods' memory binds zones that "
        "have room to other zones",
    ),
    (
        reason(Cause.NO_HEALTHY_DEVICE, gpus(1, 0, 0)),
        "container trainer needs 1 example.com/gpu, and no such device is healthy",
    ),
    (
        reason(Cause.PARTIAL_CORES, cpus(3, 8, 0), threads_per_core=2),
        "container trainer needs 3 CPUs, but only whole cores of 2 CPUs are given out: ask for 2 or 4",
    ),
    (
        reason(Cause.TOO_FEW_FULL_CORES, cpus(4, None, 0)),
        "container trainer needs 4 CPUs on whole cores, and fewer such cores are free",
    ),
    (
        reason(Cause.BUDGET_USED_UP, **WHOLE),
        "the pod's own resources leave nothing for containers without a share of their own",
    ),
    (reason(Cause.NOT_WHOLE_BYTES), "container trainer asks for a fraction of a byte"),
    (reason(Cause.UNEVEN_SHARES), "container trainer needs CPUs that cannot be divided among its zones"),
    (
        reason(Cause.KEPT_APART, lacks=(Lack(resource="cpu", need=4000),)),
        "container trainer must not share NUMA zones with pods there, and others have no room for 4 CPUs",
    ),
    (
        reason(Cause.NOT_CONNECTED, lacks=(Lack(resource="koordinator.sh/gpu-core", need=200),)),
        "container trainer needs 200 koordinator.sh/gpu-core, and no free devices are connected as the pod asks",
    ),
    (reason(Cause.UNSETTLED_PODS), "container trainer fits or not depending on where other pods settle"),
    (
        reason(Cause.UNSETTLED_PODS, waiting_for=PODS[:2], **WHOLE),
        "the pod fits or not depending on where other pods settle: shop/a and shop/b",
    ),
    (
        reason(Cause.UNSETTLED_PODS, waiting_for=PODS),
        "container trainer fits or not depending on where other pods settle: shop/a, shop/b, shop/c and 2 more",
    ),
    (
        reason(Cause.TERMINATING_PODS, waiting_for=PODS[:1], **WHOLE),
        "the pod fits or not depending on when terminating pods end: shop/a",
    ),
    (
        reason(Cause.SIZE_UNKNOWN, gpus(), cpus(8, 8)),
        "container trainer fits or not depending on the zone of example.com/gpu and cpu that the report leaves out",
    ),
    (
        reason(Cause.GROUPS_UNKNOWN),
        "container trainer fits or not depending on memory groups, which the report does not tell",
    ),
    (
        reason(Cause.CORES_UNKNOWN),
        "container trainer fits or not depending on cores and sockets, which the report does not tell",
    ),
    (
        reason(Cause.DEVICE_CHOICE),
        "container trainer fits or not depending on which devices are chosen for an earlier container",
    ),
    (
        reason(Cause.CPU_IDS),
        "container trainer fits or not depending on which CPUs are free, which amounts do not tell",
    ),
    (
        reason(Cause.MANY_ZONES),
        "container trainer is not decided: the node has too many sets of zones to go through",
    ),
    (
        reason(Cause.MEMORY_TYPE_UNKNOWN),
        "container trainer is not decided: it asks for a type of memory that the node does not report",
    ),
    (
        reason(Cause.NEVER_ENDS),
        "container trainer is not decided: the kubelet would never end looking for its CPUs",
    ),
    (reason(NodeCause.NO_NODE, **WHOLE), "there is a topology report, but no node that takes pods"),
    (reason(NodeCause.TOTALS, cpus(4, 2, 0), **WHOLE), "the pod requests 4 CPUs, at most 2 left on a node"),
    (
        reason(NodeCause.TOTALS, cpus(4, 3, 0), gpus(4, 1, 0), **WHOLE),
        "the pod requests 4 example.com/gpu, at most 1 left on a node",
    ),
    (
        reason(NodeCause.TOTALS, gpus(8, 0, 0, too_large=True), **WHOLE),
        "the pod needs 8 example.com/gpu, a node has none, even when empty",
    ),
    (reason(NodeCause.POD_COUNT, **WHOLE), "no more pods are allowed on a node"),
    (
        reason(NodeCause.NOT_COUNTED, code=Code.NOT_DECIDED),
        "not counted any further: amounts alone do not decide, and too many nodes are like that",
    ),
    (reason(NodeCause.PLUGIN, **WHOLE), "NodeResourceTopologyMatch refuses: cannot align pod"),
    (
        reason(Unkept.NO_REPORT, wish=Intent(strictness="require")),
        "the pod's annotations ask for strictness require, and there is no topology report",
    ),
    (
        reason(Unkept.POLICY, wish=Intent(strictness="require"), policy="best-effort"),
        "the pod's annotations ask for strictness require, and policy best-effort is too weak for it",
    ),
    (
        reason(Unkept.SCOPE, wish=Intent(scope="pod", strictness="prefer")),
        "the pod's annotations ask for scope pod and strictness prefer, and the node has scope container with policy "
        "restricted",
    ),
    (
        reason(Unkept.NOT_DIRECT, wish=Intent(direct=DirectSpec(exclusive=True, required_cpus="FullPCPUs"))),
        "the pod's annotations ask for zones of its own and a choice of CPUs, which needs a node in direct mode",
    ),
    (
        reason(Unkept.NOT_ENFORCED, wish=Intent(direct=DirectSpec(policy="restricted", enforce_memory=True))),
        "the pod's annotations ask for policy restricted and memory limited to its zones, which the node's agent "
        "cannot enforce",
    ),
]


@pytest.mark.parametrize("given, text", SENTENCES, ids=[text for _, text in SENTENCES])
def test_a_reason_reads(given: Reason, text: str) -> None:
    assert wording.sentence(given) == text


def test_zones_that_have_different_resources_are_named() -> None:
    shares = (ZoneShare(0, 8000, 0), ZoneShare(1, 8000, 0), ZoneShare(2, 0, 8000))
    two = Lack(resource="cpu", need=8000, zones=1, most=8000, by_zone=shares)
    one = gpus(2, 4, by_zone=(ZoneShare(0, 0, 2), ZoneShare(1, 0, 2), ZoneShare(2, 4, 0)))
    assert wording.sentence_with_zones(reason(Cause.NO_COMMON_ZONES, two, one)) == (
        "container trainer needs 8 CPUs and 2 example.com/gpu in the same NUMA zone, and no zone has room for it: "
        "only zones 0 and 1 have 8 CPUs and only zone 2 has 2 example.com/gpu"
    )


def test_without_known_zones_the_sentence_stays_as_it_is() -> None:
    given = reason(Cause.NO_COMMON_ZONES, cpus(8, 8), gpus(2, 4))
    assert wording.sentence_with_zones(given) == wording.sentence(given)


def test_every_cause_is_in_the_table_above() -> None:
    assert {given.cause for given, _ in SENTENCES} == {*Cause, *NodeCause, *Unkept}


def test_a_headline_says_how_many_nodes_fit() -> None:
    assert [wording.headline(0, 512), wording.headline(1, 1)] == [
        "0 of 512 nodes can take the pod",
        "1 of 1 node can take the pod",
    ]


def test_a_warning_says_that_the_pod_is_allowed() -> None:
    unkept = Group(reason(Unkept.POLICY, wish=Intent(strictness="prefer"), policy="none"), ("n0", "n1"))
    assert wording.warning(unkept) == (
        "2 nodes: allowed, but the pod's annotations ask for strictness prefer, and policy none is too weak for it"
    )


ASSUMPTIONS = {
    Assumption.POLICY_FROM_KUBELET_DEFAULT: "policy or scope not reported; the kubelet's defaults assumed",
    Assumption.CPU_POLICY_FROM_AMOUNTS: "CPU manager policy not reported; static where CPUs are allocatable",
    Assumption.CPU_OPTIONS_NONE: "CPU manager options not reported; none assumed",
    Assumption.MEMORY_POLICY_FROM_AMOUNTS: "memory manager policy not reported; Static where memory is listed",
    Assumption.SIZE_FROM_ALLOCATABLE: "sizes of zones not reported; what is allocatable counts",
    Assumption.GROUPS_UNKNOWN: "memory groups not reported; those of known pods count, if these explain what is in use",
    Assumption.CORES_UNKNOWN: "cores not reported; only what holds for any cores is certain",
    Assumption.DISTANCES_UNKNOWN: "distances between zones not reported; none are preferred",
    Assumption.CLOSEST_DESPITE_GAPS: (
        "prefer-closest-numa-nodes with gaps in the zones' ids ends kubelets with a panic; one that survives it assumed"
    ),
    Assumption.MINOR_ASSUMED: "kubelet version not reported; the newest known assumed",
    Assumption.PLACEMENTS_UNKNOWN: "zones of running pods not reported; predicted instead",
    Assumption.NO_REPORT: "no usable topology report; alignment not looked at",
    Assumption.REPORT_DELETED: "topology report deleted; the last known zones stay in force",
    Assumption.DIRECT_NOT_POSSIBLE: (
        "the agent offers direct mode, but the kubelet's CPU, memory and topology managers are not all off, or the "
        "report has no cores; predict mode applies"
    ),
    Assumption.KUBELET_AWAY: "the kubelet did not answer the agent; the last known zones stay in force",
}


@pytest.mark.parametrize("what", Assumption)
def test_an_assumption_reads(what: Assumption) -> None:
    assert wording.assumption(what, 2) == f"2 nodes: {ASSUMPTIONS[what]}"


REFERENCE: dict[str, Reason] = {
    "cannot align pod": reason(Cause.NO_COMMON_ZONES, **WHOLE),
    "cannot align container": reason(Cause.NO_COMMON_ZONES, gpus()),
    "cannot align init container": reason(Cause.NO_COMMON_ZONES, gpus(), role=Role.INIT),
    "cannot align sidecar container": reason(Cause.NO_COMMON_ZONES, gpus(), role=Role.SIDECAR),
    "invalid node topology data": reason(Cause.UNSETTLED_PODS, code=Code.NOT_CERTAIN),
    "node not found": reason(NodeCause.NO_NODE),
    "Insufficient example.com/gpu": reason(NodeCause.TOTALS, gpus(8, 6, 0), code=Code.TOTALS),
    "Too many pods": reason(NodeCause.POD_COUNT, code=Code.TOTALS),
}


@pytest.mark.parametrize("text, given", REFERENCE.items(), ids=REFERENCE)
def test_the_reference_words_can_be_had_for_the_same_reason(text: str, given: Reason) -> None:
    assert wording.reference(given) == text


@pytest.mark.parametrize("cause", sorted(BY_IDS))
def test_what_is_not_decided_counts_as_invalid_data_there(cause: Cause) -> None:
    assert wording.reference(reason(cause, code=Code.NOT_DECIDED)) == "invalid node topology data"


def test_under_scope_pod_the_reference_aligns_pods_whichever_container_it_was() -> None:
    assert wording.reference(reason(Cause.TOO_FEW_DEVICES, gpus(), scope="pod")) == "cannot align pod"
