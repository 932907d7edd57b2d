"""Whatever becomes of Bindings and their answers, no zone of a node is given twice, and no bound pod is moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.kube import binding
from numalign.kube.binding import BindingResult, Outcome
from tests.unit.scheduler import servers
from tests.unit.scheduler.extender.test_extender import Asked
from tests.unit.scheduler.servers import trainer

PODS = 6
ZONES = 2
"""Of a node; a pod of these stories takes more than half of one."""
FATES = ("done", "answer lost", "request lost", "refused")
STEPS = st.one_of(
    st.tuples(st.just("ask"), st.integers(0, PODS - 1), st.sampled_from(FATES)),
    st.tuples(st.just("ask and leave"), st.integers(0, PODS - 1), st.just("")),
    st.tuples(st.just("show"), st.integers(0, PODS - 1), st.just("")),
    st.tuples(st.just("wait"), st.integers(0, 20), st.just("")),
)


class Story:
    """Two nodes, the pods that the API server has bound, and a kube-scheduler whose view may lag behind."""

    def __init__(self) -> None:
        self.asked, self.fate = Asked("a", "b"), ""
        self.pods = [trainer(f"p{number}", gpus=3 + number % 2) for number in range(PODS)]
        for pod in self.pods:
            self.asked.servers.cluster.waits_elsewhere(pod)
        self.bound: dict[str, str] = {}
        """What the API server knows, by uid."""

    async def bind(self, _: Any, pod: Any, node: str, *__: Any, **___: Any) -> BindingResult:
        if pod.uid in self.bound:
            return binding.DONE if self.bound[pod.uid] == node else BindingResult(Outcome.ELSEWHERE, "bound")
        if self.fate in ("done", "answer lost"):
            self.bound[pod.uid] = node
        outcomes: Mapping[str, Outcome] = {"done": Outcome.DONE, "refused": Outcome.REFUSED}
        return BindingResult(outcomes.get(self.fate, Outcome.UNKNOWN), "" if self.fate == "done" else self.fate)

    def play(self, what: str, number: int, fate: str) -> None:
        asked = self.asked
        if what == "wait":
            asked.now += number
            return asked.tick()
        pod, self.fate = self.pods[number], fate
        node = self.bound.get(pod.metadata.uid, "")
        if what == "show":
            return asked.seen(pod, node) if node else None
        chosen = asked.chooses(pod) or ()
        if node:
            assert chosen == (node,), "a bound pod stays where it is"
        if what == "ask" and chosen:
            asked.bind(pod, chosen[0])

    def check(self) -> None:
        most = Counter(self.bound.values())
        assert all(pods <= ZONES for pods in most.values()), f"{most} pods in {ZONES} zones each"


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_no_zone_is_given_twice_whatever_becomes_of_bindings(steps: list[tuple[str, int, str]]) -> None:
    story = Story()
    with mock.patch.object(binding, "bind", story.bind):
        for step in steps:
            story.play(*step)
            story.check()


@settings(max_examples=30, deadline=None)
@given(st.lists(STEPS, max_size=15), st.integers(0, PODS - 1))
def test_an_extender_that_starts_again_gives_no_zone_twice(steps: list[tuple[str, int, str]], later: int) -> None:
    """Its charges are lost. The watch shows it all pods that are bound before it answers."""
    story = Story()
    with mock.patch.object(binding, "bind", story.bind):
        for step in steps:
            story.play(*step)
        again = Story()
        again.bound = story.bound
        for pod in again.pods:
            if node := again.bound.get(pod.metadata.uid):
                again.asked.servers.cluster.pod(servers.on(pod, node), 0.0)
        # kube-scheduler had an answer of the earlier process.
        with mock.patch.object(binding, "bind", again.bind):
            again.fate = "done"
            again.asked.bind(again.pods[later], "a")
            again.check()
            for step in steps:
                again.play(*step)
                again.check()
