"""Counts of pods by row stay correct through any history, and unused queries are dropped."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.objects.pod import Pod
from numalign.api.objects.selectors import LabelSelector
from numalign.placement.rules.clusterstate import FIRST_ROWS, ClusterState
from numalign.placement.rules.pods import podcounts
from numalign.placement.rules.pods.matchers import EVERYTHING, Matcher
from numalign.placement.rules.pods.podcounts import PodCounts, PodQuery, PodScope
from numalign.placement.rules.pods.podterms import PodTerms
from tests.unit.placement.rules import neighbours
from tests.unit.placement.rules.neighbours import away, pod, term, web

WEB = Matcher(LabelSelector(match_labels={"app": "web"}))
HERE = frozenset({"default"})
QUESTIONS = (
    PodQuery((PodScope(HERE, WEB),)),
    PodQuery((PodScope(HERE, WEB),), staying=True),
    PodQuery((PodScope(None, EVERYTHING),)),
    PodQuery((PodScope(None, Matcher(None)),)),
    PodQuery((PodScope(None, WEB), PodScope(HERE, EVERYTHING))),
)
CROWD = (web(), web(leaving=True), web(namespace="other"), pod({"app": "db"}), pod())

steps = st.tuples(st.sampled_from("uvwx"), st.one_of(st.none(), st.tuples(st.integers(0, 2), st.sampled_from(CROWD))))


def counted(question: PodQuery, pods: dict[str, tuple[int, Pod]]) -> list[int]:
    counts = [0, 0, 0]
    for row, each in pods.values():
        stays = each.metadata.deletion_timestamp is None or not question.staying
        counts[row] += stays and all(scope.has_pod(each) for scope in question.scopes)
    return counts


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=20), st.integers(0, 10))
def test_counts_follow_the_world(history: list[Any], asked_after: int) -> None:
    world, pods = ClusterState(), dict[str, tuple[int, Pod]]()
    counts = PodCounts(world)
    for number, (uid, there) in enumerate(history):
        if number == asked_after:
            [counts.by_row(question) for question in QUESTIONS]
        pods.pop(uid, None)
        world.drop_pod(uid)
        if there is not None:
            pods[uid] = there
            world.put_pod(uid, *there)
    assert [counts.by_row(each)[:3].tolist() for each in QUESTIONS] == [counted(each, pods) for each in QUESTIONS]


def test_counts_grow_with_the_world() -> None:
    world = ClusterState()
    counts = PodCounts(world)
    before = len(counts.by_row(QUESTIONS[0]))
    world.put_pod("far", FIRST_ROWS + 5, web())
    assert (before, counts.by_row(QUESTIONS[0])[FIRST_ROWS + 5]) == (FIRST_ROWS, 1)
    assert len(counts.by_row(QUESTIONS[2])) == world.capacity


def test_the_question_not_asked_for_longest_is_forgotten_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podcounts, "MOST_QUESTIONS", 2)
    world = ClusterState()
    counts = PodCounts(world)
    for question in QUESTIONS[:3]:
        counts.by_row(question)
    world.put_pod("u", 1, web())
    assert [counts.by_row(question)[1] for question in QUESTIONS[:3]] == [1, 1, 1]


def test_terms_are_forgotten_with_the_last_pod_that_holds_them() -> None:
    world = ClusterState()
    terms = PodTerms(world)
    for row in range(2):
        world.put_pod(f"u{row}", row, pod(affinity=away(term())))
    ((held, by_row),) = terms.about(web(), {})
    assert (held.term.key, by_row[:3].tolist()) == (neighbours.ZONE, [1, 1, 0])
    world.drop_pod("u0")
    assert [rows[:3].tolist() for _, rows in terms.about(web(), {})] == [[0, 1, 0]]
    world.drop_pod("u1")
    assert list(terms.about(web(), {})) == []
