"""Pods go where their selector, their affinity and their profile allow, and rather where they prefer."""

from __future__ import annotations

from typing import Any

from numalign.api.decode import decode
from numalign.api.objects.pod import NodeAffinity as Affinity
from numalign.api.objects.pod import Pod
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.rule import Coded, Refusal
from tests.unit.placement.rules import worlds

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CLUSTER = worlds.world(
    [
        worlds.node("a1", labels={"zone": "a", "disk": "ssd"}),
        worlds.node("a2", labels={"zone": "a"}),
        worlds.node("b1", labels={"zone": "b", "disk": "ssd"}),
    ]
)


def expression(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {REQUIRED: {"nodeSelectorTerms": list(terms)}}


def preferring(**weights: int) -> dict[str, Any]:
    terms = [
        {"weight": weight, "preference": {"matchExpressions": [expression("zone", zone)]}}
        for zone, weight in weights.items()
    ]
    return {PREFERRED: terms}


def pod(affinity: dict[str, Any], **spec: Any) -> Pod:
    return worlds.pod(affinity={"nodeAffinity": affinity}, **spec)


def named(*names: str, **more: Any) -> dict[str, Any]:
    return {"matchFields": [expression("metadata.name", name) for name in names]} | more


def profile(affinity: dict[str, Any]) -> NodeAffinity:
    return NodeAffinity(decode.decode(Affinity, affinity))


def test_selector_and_terms_must_both_hold_and_one_term_is_enough() -> None:
    terms = [{"matchExpressions": [expression("zone", zone)]} for zone in "ab"]
    wanted = pod(required(*terms), nodeSelector={"disk": "ssd"})
    assert worlds.fitting(NodeAffinity(), wanted, CLUSTER) == ["a1", "b1"]


def test_a_pod_without_wishes_is_not_looked_at() -> None:
    assert NodeAffinity().prepare(pod(preferring(a=1)), CLUSTER) is None


def test_required_affinity_without_terms_fits_nowhere() -> None:
    refusal = worlds.refusals(NodeAffinity(), pod(required()), CLUSTER)[0]
    assert refusal == Refusal(("node(s) didn't match Pod's node affinity/selector",), unresolvable=True)


def test_the_profiles_affinity_comes_first() -> None:
    rule = profile(required({"matchExpressions": [expression("zone", "a")]}))
    enforced = Refusal(("node(s) didn't match scheduler-enforced node affinity",), unresolvable=True)
    own = Refusal(("node(s) didn't match Pod's node affinity/selector",), unresolvable=True)
    assert worlds.refusals(rule, worlds.pod(nodeSelector={"disk": "nvme"}), CLUSTER) == [own, own, enforced]
    assert worlds.refusals(rule, worlds.pod(), CLUSTER) == [None, None, enforced]


def test_terms_that_all_name_nodes_narrow_the_search() -> None:
    prepared = NodeAffinity().prepare(pod(required(named("a1"), named("b1"))), CLUSTER)
    assert isinstance(prepared, Coded)
    assert prepared.only == frozenset({"a1", "b1"})


def test_one_term_without_a_name_leaves_the_search_open() -> None:
    other = {"matchExpressions": [expression("zone", "b")]}
    wanted = pod(required(named("a1"), other))
    prepared = NodeAffinity().prepare(wanted, CLUSTER)
    assert isinstance(prepared, Coded)
    assert prepared.only is None
    assert worlds.fitting(NodeAffinity(), wanted, CLUSTER) == ["a1", "b1"]


def test_names_that_contradict_each_other_refuse_the_pod_as_a_whole() -> None:
    refused = NodeAffinity().prepare(pod(required(named("a1", "b1"))), CLUSTER)
    assert refused == Refusal(("pod affinity terms conflict",), unresolvable=True)


def test_a_contradiction_in_one_term_leaves_the_others_names() -> None:
    prepared = NodeAffinity().prepare(pod(required(named("a1", "b1"), named("a2"))), CLUSTER)
    assert isinstance(prepared, Coded)
    assert prepared.only == frozenset({"a2"})


def test_weights_of_preferred_terms_add_up_and_the_largest_sum_is_100() -> None:
    rule = profile(preferring(b=3))
    wanted = pod(preferring(a=10, b=1) | {})
    assert worlds.scores(rule, wanted, CLUSTER) == [10, 10, 4]
    assert worlds.normalized(rule, wanted, CLUSTER) == [100, 100, 40]


def test_a_preference_for_nothing_in_particular_adds_nothing() -> None:
    assert worlds.scores(NodeAffinity(), pod({PREFERRED: [{"weight": 5, "preference": {}}]}), CLUSTER) == [0, 0, 0]


def test_without_preferences_there_is_no_score() -> None:
    assert worlds.scores(NodeAffinity(), worlds.pod(nodeSelector={"zone": "a"}), CLUSTER) is None
