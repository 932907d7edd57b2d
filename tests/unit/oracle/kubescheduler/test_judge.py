"""Our answers about one pod, in the words of the real scheduler's framework, and where they may differ from it."""

from typing import Any

import pytest

from numalign.oracle.harness.divergence import Difference
from numalign.oracle.kubescheduler import answer as answering
from numalign.oracle.kubescheduler import answer as stages
from numalign.oracle.kubescheduler import judge

UNRESOLVABLE = "UnschedulableAndUnresolvable"


def node(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}], **spec}}


def answer(question: dict[str, Any], **snapshot: Any) -> dict[str, Any]:
    nodes = [node("a"), node("b", unschedulable=True)]
    return answering.answer(stages.build({"snapshot": {"nodes": nodes, **snapshot}}), question)


def named(*names: str) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def test_a_node_reports_its_first_refusal() -> None:
    said = answer({"pod": pod(nodeSelector={"no": "where"})})
    assert set(said["filters"]["b"]) == {"NodeUnschedulable", "NodeAffinity"}
    assert {name: verdict["plugin"] for name, verdict in said["verdicts"].items()} == {
        "a": "NodeAffinity",
        "b": "NodeUnschedulable",
    }


def test_plugins_that_narrow_the_search_meet() -> None:
    merged = answer({"pod": pod(nodeName="a", affinity=named("a"))})["pre_filter"]
    assert (merged["code"], merged["nodes"], merged["plugins"]) == ("Success", ["a"], ["NodeAffinity", "NodeName"])


def test_plugins_that_leave_nothing_together_refuse_the_pod() -> None:
    merged = answer({"pod": pod(nodeName="b", affinity=named("a"))})["pre_filter"]
    assert merged["reasons"] == ["node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] simultaneously"]
    assert merged["code"] == UNRESOLVABLE


def test_a_refused_pod_has_no_verdicts_and_no_scores() -> None:
    said = answer({"pod": pod(affinity=named("a", "b")), "what_if": [{"node": "a"}]})
    assert said["pre_filter"]["plugin"] == "NodeAffinity"
    assert said["verdicts"] == {}
    assert said.keys().isdisjoint({"scores", "what_if"})


def test_scores_are_summed_by_weight() -> None:
    scores = answer({"pod": pod()})["scores"]
    assert scores["normalized"]["TaintToleration"] == {"a": 100}
    others = sum(of["a"] for plugin, of in scores["normalized"].items() if plugin != "TaintToleration")
    assert scores["totals"] == {"a": 300 + others}


def test_a_node_is_looked_at_without_some_pods() -> None:
    other = pod("big", nodeName="a")
    other["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "4"}}
    asks = pod()
    asks["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    said = answer({"pod": asks, "what_if": [{"node": "a"}, {"node": "a", "removed": ["big"]}]}, pods=[other])
    assert [list(each) for each in said["what_if"]] == [["NodeResourcesFit"], []]


def test_a_profile_brings_its_settings() -> None:
    args = {"addedAffinity": named("b")["nodeAffinity"]}
    case = {"snapshot": {"nodes": [node("a")]}, "profile": {"pluginConfig": [{"name": "NodeAffinity", "args": args}]}}
    said = answering.answer(stages.build(case), {"pod": pod()})
    assert said["filters"]["a"]["NodeAffinity"]["reasons"] == ["node(s) didn't match scheduler-enforced node affinity"]


PORT = [{"name": "c", "ports": [{"hostPort": 80}]}]
NOT_OWNED = "PVC a/b was not created for pod a/c (pod is not owner)"
FAILED = {"n": {"NodeVolumeLimits": {"code": "Error", "reasons": [NOT_OWNED]}}}
ENTRIES = {
    "two pods with one port, one goes": ("what_if[0].NodePorts", ["x", "y"], {"removed": ["x"]}, "ports-twice"),
    "two pods with one port, both stay": ("what_if[0].NodePorts", ["x", "y"], {}, None),
    "one pod with a port goes": ("what_if[0].NodePorts", ["x"], {"removed": ["x"]}, None),
    "another plugin": ("what_if[0].NodeResourcesFit", ["x", "y"], {"removed": ["x"]}, None),
}


@pytest.mark.parametrize("path, there, change, entry", ENTRIES.values(), ids=ENTRIES)
def test_a_port_that_two_pods_have(path: str, there: list[str], change: dict[str, Any], entry: str | None) -> None:
    case = {"snapshot": {"pods": [pod(name, nodeName="n", containers=PORT) for name in there]}}
    question = {"pod": pod(), "what_if": [{"node": "n", **change}], "answer": {"filters": {}}}
    assert judge.deliberate_entry(case, question, Difference(path)) == entry


@pytest.mark.parametrize("path", ["filters.n.NodeVolumeLimits.code", "verdicts.n", "scores.totals.n"])
@pytest.mark.parametrize("filters, entry", [(FAILED, "claim-not-owned"), ({}, None)], ids=["failed", "did not"])
def test_volumes_that_cannot_be_counted(path: str, filters: dict[str, Any], entry: str | None) -> None:
    question = {"pod": pod(), "answer": {"filters": filters}}
    assert judge.deliberate_entry({"snapshot": {}}, question, Difference(path)) == entry


GPU = [{"name": "c", "resources": {"requests": {"vendor.com/gpu": "1"}}}]
CLASSES = {"deviceClasses": [{"spec": {"extendedResourceName": "vendor.com/gpu"}}]}
LEFT_ALONE = {
    "claims": ({}, pod(resourceClaims=[{"name": "d"}]), "resource-claims"),
    "a class stands for the resource": (CLASSES, pod(containers=GPU), "device-classes"),
    "nothing stands for the resource": ({}, pod(containers=GPU), None),
    "the pod asks for something else": (CLASSES, pod(), None),
}


@pytest.mark.parametrize("snapshot, asking, entry", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_pods_that_are_left_alone(snapshot: dict[str, Any], asking: dict[str, Any], entry: str | None) -> None:
    question = {"pod": asking, "answer": {"filters": {}}}
    assert judge.deliberate_entry({"snapshot": snapshot}, question, Difference("totals")) == entry


def case_with(*questions: dict[str, Any]) -> dict[str, Any]:
    """Answered as our rules do."""
    case = {"id": "c", "snapshot": {"nodes": [node("a")]}, "questions": list(questions)}
    stage = stages.build(case)
    return {**case, "questions": [{**each, "answer": answering.answer(stage, each)} for each in questions]}


def test_equal_answers_agree() -> None:
    case = case_with({"pod": pod()})
    judged = judge.judge(case, case)
    assert (judged.finding, judged.asked) == ("agreed", 1)


def test_only_the_questions_that_differ_are_asked_again() -> None:
    case = case_with({"pod": pod("p")}, {"pod": pod("q")})
    case["questions"][1]["answer"]["verdicts"] = {"a": {"code": "Unschedulable"}}
    judged = judge.judge(case, case)
    assert judged.finding == "differs"
    assert [question["pod"]["metadata"]["name"] for question in judged.case["questions"]] == ["q"]


@pytest.mark.parametrize("answer", [{"panic": "nil"}, {"init_error": "no such plugin"}, {"error": "not JSON"}])
def test_no_answer_is_a_difference(answer: dict[str, str]) -> None:
    assert judge.judge(case_with({"pod": pod()}), answer).finding == "differs"
