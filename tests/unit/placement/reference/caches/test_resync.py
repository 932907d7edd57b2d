"""Which reports a round takes: the fingerprint decides, of all pods or of those with exclusive resources."""

import pytest
from msgspec import structs

from numalign.api.nrt import fingerprint, normalise
from numalign.api.nrt.wire import Attribute, NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.placement.reference.caches import podgroups
from numalign.placement.reference.caches.overreserve import Desynced, OverReserve
from numalign.placement.reference.caches.rules import Rules
from numalign.placement.referenceargs import InformerMode, ResyncMethod
from tests.unit.placement.reference.caches import made

PINNED, SHARED = made.pod("pinned"), made.pod("shared", requests={"cpu": "1"}, guaranteed=False)
PODS = [PINNED, SHARED]
NEW = made.report(zones=[{"cpu": "7"}])
ALL, EXCLUSIVE = fingerprint.Method.ALL.value, fingerprint.Method.EXCLUSIVE.value


def rejected(method: ResyncMethod = ResyncMethod.AUTODETECT) -> OverReserve:
    cache = made.over_reserve(rules=Rules(profiles=(made.OURS,), method=method))
    cache.rejected("n")
    return cache


@pytest.mark.parametrize("method", ResyncMethod)
@pytest.mark.parametrize("announced", [None, ALL, EXCLUSIVE, "another"])
@pytest.mark.parametrize("signs", [ALL, EXCLUSIVE])
def test_the_method_says_which_pods_are_signed(method: ResyncMethod, announced: str | None, signs: str) -> None:
    cache = rejected(method)
    report = made.signed(NEW, PODS if signs == ALL else [PINNED], announced)
    detected = EXCLUSIVE if announced == EXCLUSIVE else ALL
    means = {ResyncMethod.ALL: ALL, ResyncMethod.ONLY_EXCLUSIVE: EXCLUSIVE}.get(method, detected)
    assert made.round_of(cache, [report], PODS) == (("n",) if means == signs else ())


def with_text(text: str) -> NodeResourceTopology:
    return structs.replace(NEW, attributes=(*NEW.attributes, Attribute(name=normalise.FINGERPRINT, value=text)))


def with_annotation(report: NodeResourceTopology, text: str) -> NodeResourceTopology:
    metadata = structs.replace(report.metadata, annotations={normalise.FINGERPRINT_ANNOTATION: text})
    return structs.replace(report, metadata=metadata)


RIGHT = fingerprint.of((pod.metadata.namespace, pod.metadata.name) for pod in PODS)
TEXTS = {
    "right": (with_text(RIGHT), True),
    "of other pods": (made.signed(NEW, [PINNED, SHARED, made.pod("third")]), False),
    "of fewer pods": (made.signed(NEW, [PINNED]), False),
    "too short": (with_text(RIGHT[:8]), False),
    "of another version": (with_text(RIGHT.replace("v001", "v002")), False),
    "upper case": (with_text(RIGHT.upper()), False),
    "none": (NEW, False),
    "in the annotation": (with_annotation(NEW, RIGHT), True),
    "wrong in the annotation": (with_annotation(NEW, RIGHT[::-1]), False),
    "empty attribute before the annotation": (with_annotation(with_text(""), RIGHT), False),
    "wrong attribute before the annotation": (with_annotation(with_text(RIGHT[::-1]), RIGHT), False),
}


@pytest.mark.parametrize("report, taken", TEXTS.values(), ids=TEXTS)
def test_a_report_is_taken_if_it_speaks_of_the_pods_of_the_node(report: NodeResourceTopology, taken: bool) -> None:
    cache = rejected()
    cache.reserve("n", PINNED)
    assert made.round_of(cache, [report], PODS) == (("n",) if taken else ())
    assert made.free(cache) == (["7"] if taken else ["8", "8"])
    assert cache.desynced() == Desynced(() if taken else ("n",), ())
    assert cache.generation == taken


def test_the_annotation_always_means_all_pods() -> None:
    report = with_annotation(NEW, fingerprint.of([("default", "pinned")]))
    assert made.round_of(rejected(ResyncMethod.ONLY_EXCLUSIVE), [report], PODS) == ()


def test_a_node_that_was_not_refused_is_left_alone() -> None:
    cache = made.over_reserve()
    cache.reserve("n", PINNED)
    assert made.round_of(cache, [made.signed(NEW, PODS)], PODS) == ()
    assert made.free(cache) == ["8", "8"]


def test_foreign_pods_close_a_node_until_a_report_speaks_of_them() -> None:
    cache, foreign = made.over_reserve(), made.pod("f", scheduler="another")
    cache.pod_seen(foreign)
    assert made.round_of(cache, [made.signed(NEW, PODS)], [*PODS, foreign]) == ()
    assert not cache.look_up("n").fresh
    assert made.round_of(cache, [made.signed(NEW, [*PODS, foreign])], [*PODS, foreign]) == ("n",)
    assert made.free(cache) == ["7"]


def test_several_nodes_make_one_generation() -> None:
    reports = [made.signed(made.report(node), [made.pod(node, node=node)]) for node in ("n", "m")]
    cache = made.over_reserve(*reports)
    cache.rejected("n")
    cache.rejected("m")
    assert made.round_of(cache, reports, [made.pod("n", node="n"), made.pod("m", node="m")]) == ("m", "n")
    assert {cache.look_up(node).generation for node in ("n", "m", "unheard-of")} == {1}


def test_rounds_are_due_at_once_and_then_a_period_after_each() -> None:
    cache = made.over_reserve(rules=Rules(period=30.0))
    assert cache.due() < -1e9
    cache.resync({}, [], now=1000.0)
    assert cache.due() == 1030.0


PHASES = ("Running", "Pending", "Succeeded", "Failed", "Unknown")
RELEVANT = {InformerMode.DEDICATED: {"Running", "Succeeded", "Failed", "Unknown"}, InformerMode.SHARED: {"Running"}}


@pytest.mark.parametrize("mode", InformerMode)
@pytest.mark.parametrize("phase", PHASES)
def test_the_informer_mode_says_which_phases_are_relevant(mode: InformerMode, phase: str) -> None:
    is_relevant = podgroups.relevance(mode)
    assert is_relevant(made.pod(phase=phase)) == (phase in RELEVANT[mode])


def test_a_dedicated_informer_leaves_out_pods_without_a_node() -> None:
    unbound: Pod = made.pod(node="", phase="Running")
    assert not podgroups.relevance(InformerMode.DEDICATED)(unbound)
