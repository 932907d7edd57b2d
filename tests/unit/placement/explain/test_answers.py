"""Why a pod goes nowhere: per node, and in one sentence per cause."""

from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import structs

from numalign.api.attributes import intent
from numalign.api.decode import quantity
from numalign.api.errors import BadObject
from numalign.api.nrt.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeStatus
from numalign.api.objects.pod import Pod
from numalign.placement.columns.intent import Unkept
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.decisions import Code
from numalign.placement.engine import Engine
from numalign.placement.explain import answers, reasons, wording
from numalign.placement.explain.reasons import NodeCause
from numalign.placement.facts import NodeSeen, ReportSeen
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


ANNOTATIONS = {"scope": intent.SCOPE, "strictness": intent.STRICTNESS}


def trainer(gpus: int = 8, cpu: int = 8, **wish: Any) -> Pod:
    pod = made.pod("job", made.container("trainer", cpu=cpu, gpu=gpus))
    metadata = structs.replace(pod.metadata, annotations={ANNOTATIONS[name]: word for name, word in wish.items()})
    return structs.replace(pod, metadata=metadata)


class Asked:
    """What every node of an engine says to a pod."""

    def __init__(self, known: Engine, pod: Pod) -> None:
        self.answers = answers.of(known, pod)
        self.rows = dict(known.columns.rows)
        found = {node: self.answers.reason(row) for node, row in self.rows.items()}
        self.fitting = tuple(node for node, reason in found.items() if reason is None)
        self.refused = {node: reason for node, reason in found.items() if reason is not None}
        self.groups = reasons.grouped(self.refused, reasons.merged)

    @property
    def lines(self) -> list[str]:
        return [f"{len(group.nodes)}: {wording.sentence(group.answer)}" for group in self.groups]


def test_equal_causes_are_one_sentence_with_the_best_number() -> None:
    found = Asked(engine((6, 2), (5, 5), (0, 1)), trainer())
    assert found.lines == ["3: container trainer needs 8 example.com/gpu in one NUMA zone, best zone has 6"]


def test_the_most_frequent_cause_comes_first() -> None:
    known = engine((8, 0), (4, 4), (3, 3))
    known.apply(NodeSeen(node("bare", gpus=4)))
    found = Asked(known, trainer())
    assert found.fitting == ("n0",)
    assert [len(group.nodes) for group in found.groups] == [2, 1]
    assert found.lines[1] == "1: the pod needs 8 example.com/gpu, a node has at most 4, even when empty"


def test_a_node_that_is_too_full_and_too_small_is_called_too_small() -> None:
    known = engine((6, 2))
    reason = Asked(known, trainer(gpus=20)).refused["n0"]
    assert reason.structural
    assert reason.worst is not None
    assert reason.worst.too_large


def test_every_node_has_its_own_numbers() -> None:
    found = Asked(engine((6, 2), (5, 5)), trainer())
    (lack,) = found.refused["n0"].named_lacks
    assert [(share.zone, share.free, share.short) for share in lack.by_zone] == [(0, 6, 2), (1, 2, 6)]
    assert wording.sentence(found.refused["n1"]).endswith("best zone has 5")


def test_a_node_that_fits_has_no_reason() -> None:
    known = engine((6, 2), (8, 0))
    found = Asked(known, trainer())
    assert found.refused["n0"].cause is Cause.NO_COMMON_ZONES
    assert found.fitting == ("n1",)


def test_nodes_without_a_report_fit_by_an_assumption() -> None:
    known = Engine()
    known.apply(NodeSeen(node("bare")))
    found = Asked(known, trainer())
    assert (found.fitting, found.answers.assumptions(0)) == (("bare",), frozenset({Assumption.NO_REPORT}))


def test_plain_reports_say_what_was_assumed() -> None:
    found = Asked(engine((6, 2), (5, 5)), trainer())
    assert Assumption.CPU_POLICY_FROM_AMOUNTS in found.answers.assumptions(1)
    assert Assumption.CPU_POLICY_FROM_AMOUNTS in found.refused["n0"].assumptions


def test_asking_changes_nothing() -> None:
    known = engine((8, 8))
    assert Asked(known, trainer()).fitting == Asked(known, trainer()).fitting == ("n0",)
    assert choices.chosen(known, trainer(), Random(1)).node == "n0"


def test_what_was_placed_counts() -> None:
    known = engine((8, 0))
    choices.chosen(known, trainer(6), Random(1))
    assert Asked(known, structs.replace(trainer(), metadata=ObjectMeta(name="next"))).lines == [
        "1: container trainer needs 8 example.com/gpu in one NUMA zone, best zone has 2"
    ]


def test_a_pod_with_words_that_do_not_exist_is_the_problem_itself() -> None:
    pod = trainer()
    odd = structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={intent.SCOPE: "socket"}))
    with pytest.raises(BadObject, match=r"numalign\.io/scope"):
        answers.of(engine((8, 8)), odd)


def test_a_requirement_that_no_node_keeps_is_named() -> None:
    found = Asked(engine((8, 8), policy="best-effort"), trainer(strictness="require"))
    assert (found.refused["n0"].code, found.refused["n0"].cause) == (Code.INTENT, Unkept.POLICY)
    assert found.lines[0].endswith("ask for strictness require, and policy best-effort is too weak for it")


def test_a_preference_that_is_not_kept_is_a_warning() -> None:
    found = Asked(engine((8, 8), policy="best-effort"), trainer(strictness="prefer"))
    warning = found.answers.warning(0)
    assert warning is not None
    assert (found.fitting, warning.cause) == (("n0",), Unkept.POLICY)


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
    assert Asked(known, trainer()).refused["ghost"].cause is NodeCause.NO_NODE


def test_a_row_refused_among_pods_on_their_way_names_them() -> None:
    known = engine((8, 8))
    choices.chosen(known, trainer(2), Random(1))
    other = structs.replace(trainer(), metadata=ObjectMeta(name="other", uid="other"))
    exact: Any = known.flavour
    exact.mirror.refresh()
    exact.verdicts.table(known.shape(other)).codes[0] = Code.NOT_CERTAIN
    reason = Asked(known, other).refused["n0"]
    assert (reason.code, reason.cause, reason.waiting_for) == (
        Code.NOT_CERTAIN,
        Cause.UNSETTLED_PODS,
        ("default/job",),
    )


STATUSES = {"container": "cannot align container", "pod": "cannot align pod"}


@pytest.mark.parametrize("scope, text", STATUSES.items(), ids=STATUSES)
def test_the_reference_flavour_says_what_the_plugin_says(scope: str, text: str) -> None:
    found = Asked(engine((6, 2), (8, 8), flavour="reference", scope=scope), trainer())
    assert (found.fitting, wording.reference(found.refused["n0"])) == (("n1",), text)
    assert found.lines[0] == f"1: NodeResourceTopologyMatch refuses: {text}"


def test_the_reference_flavour_looks_at_totals_first() -> None:
    found = Asked(engine((6, 2), flavour="reference"), trainer(17))
    assert wording.reference(found.refused["n0"]) == "Insufficient example.com/gpu"


def test_equal_rows_share_one_reason() -> None:
    found = Asked(engine(*[(6, 2)] * 20, (5, 5)), trainer())
    assert len({id(reason) for reason in found.refused.values()}) == 2


def test_reasons_can_be_written_as_json() -> None:
    found = Asked(engine((6, 2)), trainer())
    written = msgspec.json.decode(msgspec.json.encode(found.refused))
    assert written["n0"]["cause"] == "no-common-zones"
