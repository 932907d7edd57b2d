"""Why a pod goes nowhere: per node, and in one sentence per cause."""

from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import structs

from numalign.api.attributes import intent
from numalign.api.attributes.intent import Intent
from numalign.api.decode import quantity
from numalign.api.nrt.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeStatus
from numalign.api.objects.pod import Pod
from numalign.placement.columns.intent import Unkept
from numalign.placement.decisions import Code
from numalign.placement.engine import Engine
from numalign.placement.explain import explain, wording
from numalign.placement.explain.reasons import NodeCause
from numalign.placement.facts import NodeSeen, ReportSeen
from numalign.placement.reports.nodefacts import Assumption
from numalign.placement.rowmodel.causes import Cause
from numalign.placement.settings import Settings
from tests.unit.kubelet import made
from tests.unit.placement import choices

GPU = "example.com/gpu"
SINGLE = "single-numa-node"


def node(name: str, gpus: int = 16) -> Node:
    offered = {"cpu": 64, "memory": 1 << 40, GPU: gpus, "pods": 110}
    amounts = {resource: quantity.of(amount) for resource, amount in offered.items()}
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(capacity=amounts, allocatable=amounts))


def report(name: str, gpus: tuple[int, int], policy: Any = SINGLE, scope: Any = "container") -> NodeTopology:
    """Two zones of 32 CPUs and 8 GPUs, of which so many are free."""
    plain = {"cpu": Amounts(32_000, 32_000, 32_000), "memory": Amounts(1 << 39, 1 << 39, 1 << 39)}
    zones = tuple(Zone(id=place, resources=plain | {GPU: Amounts(8, 8, free)}) for place, free in enumerate(gpus))
    return NodeTopology(node=name, manager=TopologyManager(policy=policy, scope=scope), zones=zones)


def engine(*free: tuple[int, int], flavour: Any = "exact", **manager: Any) -> Engine:
    """Nodes n0, n1, ... with so many GPUs free in each zone."""
    known = Engine(Settings(flavour=flavour))
    for place, gpus in enumerate(free):
        known.apply(NodeSeen(node(f"n{place}")))
        known.apply(ReportSeen(report(f"n{place}", gpus, **manager), 0.0))
    return known


def trainer(gpus: int = 8, cpu: int = 8, **wish: Any) -> Pod:
    pod = made.pod("job", made.container("trainer", cpu=cpu, gpu=gpus))
    metadata = structs.replace(pod.metadata, annotations=intent.write(Intent(**wish)))
    return structs.replace(pod, metadata=metadata)


def test_equal_causes_are_one_sentence_with_the_best_number() -> None:
    found = explain.explain(engine((6, 2), (5, 5), (0, 1)), trainer())
    assert found.lines == [
        "0 of 3 nodes can take the pod",
        "3 nodes: container trainer needs 8 example.com/gpu in one zone, best zone has 6",
    ]


def test_the_most_frequent_cause_comes_first() -> None:
    known = engine((8, 0), (4, 4), (3, 3))
    known.apply(NodeSeen(node("bare", gpus=4)))
    found = explain.explain(known, trainer())
    assert found.fitting == ("n0",)
    assert [len(group.nodes) for group in found.groups] == [2, 1]
    assert found.lines[2] == (
        "1 node: the pod requests 8 example.com/gpu, at most 4 left on a node (too small even when empty)"
    )


def test_every_node_has_its_own_numbers() -> None:
    found = explain.explain(engine((6, 2), (5, 5)), trainer())
    (lack,) = found.refused["n0"].told
    assert [(share.zone, share.free, share.short) for share in lack.by_zone] == [(0, 6, 2), (1, 2, 6)]
    assert wording.sentence(found.refused["n1"]).endswith("best zone has 5")


def test_one_node_can_be_asked_alone() -> None:
    known = engine((6, 2), (8, 0))
    reason = explain.on_node(known, trainer(), "n0")
    assert reason is not None
    assert reason.cause is Cause.NO_COMMON_ZONES
    assert explain.on_node(known, trainer(), "n1") is None


def test_nodes_without_a_report_fit_and_are_counted_as_an_assumption() -> None:
    known = Engine()
    known.apply(NodeSeen(node("bare")))
    found = explain.explain(known, trainer())
    assert (found.fitting, found.assumptions) == (("bare",), {Assumption.NO_REPORT: 1})


def test_plain_reports_say_what_was_assumed() -> None:
    found = explain.explain(engine((6, 2), (5, 5)), trainer())
    assert found.assumptions[Assumption.CPU_POLICY_FROM_AMOUNTS] == 2
    assert Assumption.CPU_POLICY_FROM_AMOUNTS in found.refused["n0"].assumptions
    assert "2 nodes: CPU manager options not reported; none assumed" in found.notes


def test_asking_changes_nothing() -> None:
    known = engine((8, 8))
    before = [explain.explain(known, trainer()) for _ in range(2)]
    assert before[0] == before[1]
    assert choices.chosen(known, trainer(), Random(1)).node == "n0"


def test_what_was_placed_counts() -> None:
    known = engine((8, 0))
    choices.chosen(known, trainer(6), Random(1))
    assert explain.explain(known, structs.replace(trainer(), metadata=ObjectMeta(name="next"))).lines[1] == (
        "1 node: container trainer needs 8 example.com/gpu in one zone, best zone has 2"
    )


def test_a_pod_with_words_that_do_not_exist_is_the_problem_itself() -> None:
    pod = trainer()
    odd = structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={intent.SCOPE: "socket"}))
    found = explain.explain(engine((8, 8)), odd)
    assert found.lines == [found.problem]
    assert "numalign.io/scope" in found.problem


def test_a_requirement_that_no_node_keeps_is_named() -> None:
    found = explain.explain(engine((8, 8), policy="best-effort"), trainer(strictness="require"))
    assert (found.refused["n0"].code, found.refused["n0"].cause) == (Code.INTENT, Unkept.POLICY)
    assert found.lines[1].endswith("ask for strictness require, and policy best-effort is too weak for it")


def test_a_preference_that_is_not_kept_is_a_warning() -> None:
    found = explain.explain(engine((8, 8), policy="best-effort"), trainer(strictness="prefer"))
    assert (found.fitting, found.warned["n0"].cause) == (("n0",), Unkept.POLICY)
    assert found.notes[0].startswith("1 node: allowed, but the pod's annotations ask for strictness prefer")


def test_a_preference_sends_the_pod_where_it_is_kept() -> None:
    known = engine(*[(8, 8)] * 5, policy="best-effort")
    known.apply(NodeSeen(node("strict")))
    known.apply(ReportSeen(report("strict", (8, 8), "restricted"), 0.0))
    assert choices.chosen(known, trainer(strictness="prefer"), Random(1)).node == "strict"


def test_a_decision_carries_the_warning() -> None:
    known = engine((8, 8), policy="best-effort")
    assert choices.chosen(known, trainer(strictness="prefer"), Random(1)).warning == Unkept.POLICY


def test_a_report_without_its_node_says_so() -> None:
    known = Engine()
    known.apply(ReportSeen(report("ghost", (8, 8)), 0.0))
    assert explain.explain(known, trainer()).refused["ghost"].cause is NodeCause.NO_NODE


def test_a_row_refused_among_pods_on_their_way_names_them() -> None:
    known = engine((8, 8))
    choices.chosen(known, trainer(2), Random(1))
    other = structs.replace(trainer(), metadata=ObjectMeta(name="other", uid="other"))
    exact: Any = known.flavour
    exact.mirror.refresh()
    exact.verdicts.table(known.shape(other)).codes[0] = Code.NOT_CERTAIN
    reason = explain.on_node(known, other, "n0")
    assert reason is not None
    assert (reason.code, reason.cause, reason.waiting_for) == (
        Code.NOT_CERTAIN,
        Cause.UNSETTLED_PODS,
        ("default/job",),
    )


STATUSES = {"container": "cannot align container", "pod": "cannot align pod"}


@pytest.mark.parametrize("scope, text", STATUSES.items(), ids=STATUSES)
def test_the_reference_flavour_says_what_the_plugin_says(scope: str, text: str) -> None:
    found = explain.explain(engine((6, 2), (8, 8), flavour="reference", scope=scope), trainer())
    assert (found.fitting, wording.reference(found.refused["n0"])) == (("n1",), text)
    assert found.lines[1] == f"1 node: NodeResourceTopologyMatch refuses: {text}"


def test_the_reference_flavour_looks_at_totals_first() -> None:
    found = explain.explain(engine((6, 2), flavour="reference"), trainer(17))
    assert wording.reference(found.refused["n0"]) == "Insufficient example.com/gpu"


def test_equal_rows_share_one_reason() -> None:
    found = explain.explain(engine(*[(6, 2)] * 20, (5, 5)), trainer())
    assert len({id(reason) for reason in found.refused.values()}) == 2


def test_reasons_can_be_written_as_json() -> None:
    found = explain.explain(engine((6, 2)), trainer())
    written = msgspec.json.decode(msgspec.json.encode(found))
    assert written["refused"]["n0"]["cause"] == "no-common-zones"
