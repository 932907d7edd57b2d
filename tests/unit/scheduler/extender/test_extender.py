"""What kube-scheduler is told about its pods: nodes that admit them, the node to prefer, and why none will do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.kube import binding, errors
from numalign.kube.binding import BindingResult, Outcome
from numalign.kube.client import Client
from numalign.kube.resources import Status
from numalign.placement.decisions import Wake
from numalign.placement.explain import wording
from numalign.scheduler import placementannotation
from numalign.scheduler.choose.choose import AttemptContext
from numalign.scheduler.choose.stormguard import StormGuard
from numalign.scheduler.events.podhistory import PodHistories
from numalign.scheduler.events.publish import Publisher
from numalign.scheduler.extender.charges import PREPARING
from numalign.scheduler.extender.extender import (
    HIGHEST,
    HOLD,
    OURS,
    PLACED,
    UNKNOWN_NODE,
    Evicts,
    Extender,
    ExtenderSettings,
)
from numalign.scheduler.extender.protocol import BindingArgs, ExtenderArgs, FilterResult, NodeList
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.preempt.preemptor import Preemptor
from tests.unit.scheduler import servers, waitingpods
from tests.unit.scheduler.preempting import Town
from tests.unit.scheduler.servers import trainer

TOO_LARGE = "cannot align container (container main needs 5 nvidia.com/gpu in one NUMA zone, best zone has 4"


class Asked:
    """An extender of a few servers, a clock to turn, and kube-scheduler's side of the questions."""

    def __init__(
        self, *nodes: str, reports: bool = True, own: tuple[str, ...] = (), evicts: Evicts = Evicts.NONE
    ) -> None:
        self.servers, self.now, self.sent = Town(*nodes, reports=reports), 100.0, list[tuple[str, str, Any]]()
        clock = SimpleNamespace(now=lambda: self.now)
        client = cast(Client, SimpleNamespace(sender=SimpleNamespace(clock=clock), get=self._read))
        cluster = self.servers.cluster
        self.rejections, self.histories = StormGuard(), PodHistories(lambda: self.now)
        self.there = dict[str, Pod]()
        """By name, pods that the API server has."""
        context = AttemptContext(cluster, self.servers.nominations, self.rejections)
        profiles = {"default-scheduler": self.servers.profile}
        self.woken, self.leads, self.evicted = list[Wake](), True, list[tuple[str, str, list[str]]]()
        publisher = cast(Publisher, SimpleNamespace(nominated=self._nominated, unnominated=lambda _: None))
        self.extender = Extender(
            cluster,
            profiles,
            context,
            self.servers.preemption,
            self._preemptor(publisher),
            publisher,
            client,
            rng=Random(1),
            leads=lambda: self.leads,
            own=own,
            woken=self.woken.extend,
            histories=self.histories,
            settings=ExtenderSettings(evicts=evicts),
        )
        self.nodes = nodes
        self.nominated = dict[str, str]()

    def _preemptor(self, publisher: Publisher) -> Preemptor:
        queue = waitingpods.queue()
        queue.nominations = self.servers.nominations
        evictor = SimpleNamespace(start=self._evicted)
        return Preemptor(
            self.servers.preemption, queue, evictor=evictor, publisher=publisher, counts=Metrics(), rng=Random(1)
        )

    def _evicted(self, preemptor: Pod, node: str, victims: Sequence[Pod]) -> None:
        self.evicted.append((preemptor.metadata.name, node, [each.metadata.uid for each in victims]))

    def _nominated(self, pod: Pod, node: str) -> None:
        self.nominated[pod.metadata.name] = node

    async def _read(self, target: Any) -> Pod:
        pod = self.there.get(target.name)
        if pod is None:
            raise errors.NotFound("get", target.words, 404, Status(message=f'pods "{target.name}" not found'))
        return pod

    def tick(self) -> None:
        for _ in self.extender.tick():
            pass

    def history(self, pod: Pod) -> list[str]:
        """What the history of the pod says."""
        return [line.what for story in self.histories.of(pod.metadata.uid) for line in story.lines]

    def filter(self, pod: Pod, *nodes: str) -> FilterResult:
        return self.extender.filter(ExtenderArgs(pod, node_names=nodes or self.nodes))

    def choice(self, pod: Pod, *nodes: str) -> FilterResult:
        return self.extender.choose(ExtenderArgs(pod, node_names=nodes or self.nodes))

    def chooses(self, pod: Pod) -> tuple[str, ...] | None:
        return self.choice(pod).node_names

    def passing(self, pod: Pod, *nodes: str) -> tuple[str, ...]:
        found = self.filter(pod, *nodes)
        assert found.node_names is not None
        return found.node_names

    def scores(self, pod: Pod, *nodes: str) -> dict[str, int]:
        found = self.extender.prioritize(ExtenderArgs(pod, node_names=nodes or self.nodes))
        return dict.fromkeys(nodes or self.nodes, 0) | {each.host: each.score for each in found}

    def chosen(self, pod: Pod) -> str:
        """What kube-scheduler does: filter, then scores unless one node is left. Empty: it is refused."""
        passing = self.passing(pod)
        if len(passing) < 2:
            return passing[0] if passing else ""
        scores = self.scores(pod, *passing)
        return max(scores, key=lambda name: scores[name])

    def seen(self, pod: Pod, node: str) -> None:
        """The watch shows the pod on a node."""
        self.servers.cluster.pod(servers.on(pod, node), self.now)

    def bind(self, pod: Pod, node: str) -> str:
        meta = pod.metadata
        return asyncio.run(self.extender.bind(BindingArgs(meta.name, meta.namespace, meta.uid, node))).error


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The Bindings that the API server got and accepted: node and annotations."""
    got = list[tuple[str, Any]]()

    async def bind(_: Client, pod: object, node: str, annotations: Any, **__: object) -> BindingResult:
        got.append((node, annotations))
        return binding.DONE

    monkeypatch.setattr(binding, "bind", bind)
    return got


def refused(asked: Asked) -> Pod:
    """A pod that waits for a zone of node a, which has four GPUs in use in each."""
    for name in ("p", "q"):
        asked.servers.run(trainer(name, gpus=4))
    pod = trainer("waiting", gpus=4)
    asked.servers.cluster.waits_elsewhere(pod)
    assert asked.passing(pod, "a") == ()
    return pod


def test_a_refused_pod_is_nominated_as_soon_as_a_node_admits_it() -> None:
    """kube-scheduler does not see when a zone is free: it tries the pod when it sees the nomination."""
    asked = Asked("a")
    pod = refused(asked)
    asked.tick()
    assert asked.nominated == {}
    cluster = asked.servers.cluster
    cluster.pod_gone(servers.on(trainer("p", gpus=4), "a"), asked.now)
    asked.tick()
    assert asked.nominated == {}, "containers of a deleted pod may still run"
    asked.extender.improved(cluster.tick(asked.now + 1000))
    asked.tick()
    assert asked.nominated == {"waiting": "a"}
    assert asked.passing(pod) == ("a",)


def test_a_refused_pod_that_is_bound_or_deleted_meanwhile_is_not_nominated() -> None:
    asked = Asked("a")
    asked.servers.cluster.pod_gone(refused(asked), asked.now)
    asked.servers.cluster.pod_gone(servers.on(trainer("p", gpus=4), "a"), asked.now)
    asked.extender.improved(asked.servers.cluster.tick(asked.now + 1000))
    asked.tick()
    assert asked.nominated == {}


def test_of_refused_pods_the_most_important_is_nominated_and_the_room_is_given_once() -> None:
    asked = Asked("a")
    refused(asked)
    urgent = trainer("urgent", gpus=4, priority=7)
    asked.servers.cluster.waits_elsewhere(urgent)
    assert asked.passing(urgent) == ()
    asked.servers.cluster.pod_gone(servers.on(trainer("p", gpus=4), "a"), asked.now)
    asked.extender.improved(asked.servers.cluster.tick(asked.now + 1000))
    asked.tick()
    assert asked.nominated == {"urgent": "a"}


def test_questions_are_answered_between_looks_at_refused_pods() -> None:
    asked = Asked("a")
    for name in ("p", "q"):
        asked.servers.run(trainer(name, gpus=4))
    first, second = trainer("first", gpus=4, priority=9), trainer("second", gpus=4)
    for pod in (first, second):
        asked.servers.cluster.waits_elsewhere(pod)
        assert asked.passing(pod) == ()
    for name in ("p", "q"):
        asked.servers.cluster.pod_gone(servers.on(trainer(name, gpus=4), "a"), asked.now)
    asked.extender.improved(asked.servers.cluster.tick(asked.now + 1000))
    looks = asked.extender.tick()
    next(looks)
    assert asked.nominated == {"first": "a"}
    assert asked.passing(second) == ("a",)
    assert list(looks) == []
    assert asked.nominated == {"first": "a"}, "kube-scheduler has the answer for the other one already"


def test_a_refused_pod_that_becomes_unreadable_stalls_no_other_pod() -> None:
    asked = Asked("a")
    refused(asked)
    odd = trainer("odd", gpus=4, priority=7)
    asked.servers.cluster.waits_elsewhere(odd)
    assert asked.passing(odd) == ()
    meta = structs.replace(odd.metadata, annotations={"numalign.io/strictness": "very"})
    asked.servers.cluster.waits_elsewhere(structs.replace(odd, metadata=meta))
    asked.servers.cluster.pod_gone(servers.on(trainer("p", gpus=4), "a"), asked.now)
    asked.extender.improved(asked.servers.cluster.tick(asked.now + 1000))
    asked.tick()
    assert asked.nominated == {"waiting": "a"}


def test_nodes_that_admit_the_pod_pass_in_the_order_asked() -> None:
    assert Asked("a", "b", "c").passing(trainer("p"), "c", "a") == ("c", "a")


def test_a_pod_that_no_zone_can_take_has_its_sentence_on_every_node_and_evictions_do_not_help() -> None:
    """kube-scheduler's preemption does not know zones: it would evict pods for nothing."""
    found = Asked("a", "b").filter(trainer("p", gpus=5))
    assert (found.node_names, found.failed_nodes, found.error) == ((), {}, "")
    assert list(found.failed_and_unresolvable_nodes) == ["a", "b"]
    assert all(text.startswith(TOO_LARGE) for text in found.failed_and_unresolvable_nodes.values())
    assert len(set(found.failed_and_unresolvable_nodes.values())) == 1, "kube-scheduler counts equal texts together"


def test_pods_that_this_process_schedules_itself_are_refused_by_name() -> None:
    """Two schedulers of the same pods would bind each pod twice."""
    name = trainer("p").spec.scheduler_name
    found = Asked("a", own=(name,)).filter(trainer("p"))
    assert (found.node_names, found.error) == (None, OURS.format(name=name))


def test_the_end_of_a_charge_wakes_pods_that_this_process_schedules_itself() -> None:
    asked = Asked("a")
    asked.chosen(trainer("p", gpus=4))
    assert asked.woken == []
    asked.now += HOLD
    asked.tick()
    assert {each.node for each in asked.woken} == {"a"}


def test_a_pod_that_no_kubelet_aligns_passes_everywhere_and_is_not_charged() -> None:
    asked = Asked("a", "b")
    plain = waitingpods.pod("p", {"containers": [{"name": "main"}]})
    assert asked.passing(plain) == ("a", "b")
    assert asked.scores(plain) == {"a": 0, "b": 0}
    assert asked.extender.held == 0


def test_one_node_has_the_highest_score_and_the_pod_is_charged_to_it() -> None:
    asked = Asked("a", "b", "c")
    pod = trainer("p", gpus=3)
    scores = asked.scores(pod)
    (best,) = [name for name, score in scores.items() if score == HIGHEST]
    assert max(score for name, score in scores.items() if name != best) < HIGHEST
    assert asked.servers.cluster.assumed[pod.metadata.uid].decision.node == best


def test_a_burst_of_pods_that_is_asked_about_before_any_binding_is_seen_fits_together() -> None:
    """Four zones with four GPUs each: four pods of three GPUs, and not one more."""
    asked = Asked("a", "b")
    assert sorted(asked.chosen(trainer(f"p{n}", gpus=3)) for n in range(5)) == ["", "a", "a", "b", "b"]


def test_the_best_node_alone_is_the_answer_where_kube_scheduler_is_not_to_score_and_the_pod_is_charged_to_it() -> None:
    asked = Asked("a", "b", "c")
    pod = trainer("p", gpus=3)
    (best,) = asked.chooses(pod) or ()
    assert asked.servers.cluster.assumed[pod.metadata.uid].decision.node == best
    assert asked.scores(trainer("q", gpus=3))[best] < HIGHEST, "LeastAllocated prefers an empty node"


def test_a_burst_of_pods_for_each_of_which_one_node_is_named_fits_together() -> None:
    asked = Asked("a", "b")
    found = [asked.chooses(trainer(f"p{n}", gpus=3)) for n in range(5)]
    assert sorted(found, key=str) == [("a",), ("a",), ("b",), ("b",), ()]


def test_a_pod_that_is_refused_by_every_node_has_the_same_reasons_for_both_verbs() -> None:
    asked, pod = Asked("a", "b"), trainer("p", gpus=5)
    assert asked.choice(pod) == asked.filter(pod)


def test_a_pod_that_no_kubelet_aligns_keeps_all_nodes_so_that_kube_scheduler_chooses() -> None:
    plain = waitingpods.pod("p", {"containers": [{"name": "main"}]})
    assert Asked("a", "b").chooses(plain) == ("a", "b")


def test_a_single_node_that_is_left_is_charged_at_once_because_no_scores_are_asked_for() -> None:
    asked = Asked("a")
    assert [asked.passing(trainer(f"p{n}", gpus=4)) for n in range(3)] == [("a",), ("a",), ()]


def test_a_pod_that_is_asked_about_again_is_charged_once() -> None:
    asked = Asked("a")
    assert {asked.chosen(trainer("p", gpus=4)) for _ in range(5)} == {"a"}
    assert asked.extender.held == 1


def test_a_charge_ends_after_a_while_when_no_binding_is_seen() -> None:
    asked = Asked("a")
    for name in ("p", "q"):
        asked.chosen(trainer(name, gpus=4))
    asked.now += HOLD - 1
    asked.tick()
    assert asked.chosen(trainer("r", gpus=4)) == ""
    asked.now += 1
    asked.tick()
    assert (asked.chosen(trainer("r", gpus=4)), asked.extender.held) == ("a", 1)


def test_a_binding_that_is_seen_keeps_the_charge() -> None:
    asked = Asked("a")
    for name in ("p", "q"):
        asked.chosen(trainer(name, gpus=4))
        asked.seen(trainer(name, gpus=4), "a")
    asked.now += 10 * HOLD
    asked.tick()
    assert (asked.chosen(trainer("r", gpus=4)), asked.extender.held) == ("", 0)


def test_where_kube_scheduler_chose_another_node_the_charge_moves_there() -> None:
    asked = Asked("a", "b")
    pod = trainer("p", gpus=4)
    chosen = asked.chosen(pod)
    other = "b" if chosen == "a" else "a"
    asked.seen(pod, other)
    assert asked.servers.cluster.pods_on(chosen) == ()
    assert [each.metadata.name for each in asked.servers.cluster.pods_on(other)] == ["p"]


def test_a_node_that_the_watch_has_not_shown_does_not_pass_and_says_so() -> None:
    found = Asked("a").filter(trainer("p", gpus=5), "new")
    assert found.failed_and_unresolvable_nodes == {"new": UNKNOWN_NODE}
    assert Asked("a").passing(trainer("p"), "new", "a") == ("a",)


def test_a_node_without_a_report_is_not_used_blindly() -> None:
    asked = Asked("a", reports=False)
    found = asked.filter(trainer("p"))
    assert found.failed_and_unresolvable_nodes == {"a": "node(s) had no topology report yet"}


def test_a_node_that_rejected_such_a_pod_is_avoided_for_a_while() -> None:
    asked = Asked("a", "b")
    shape = asked.servers.cluster.engine.shape(trainer("p")).number
    asked.rejections.rejected(shape, "a", "TopologyAffinityError", asked.now)
    assert asked.passing(trainer("p")) == ("b",)
    (reason,) = asked.filter(trainer("p"), "a").failed_and_unresolvable_nodes.values()
    assert reason.startswith(wording.REJECTED)


def test_a_pod_with_an_annotation_that_makes_no_sense_is_refused_with_the_reason() -> None:
    pod = trainer("p")
    wrong = structs.replace(pod.metadata, annotations={"numalign.io/strictness": "sideways"})
    found = Asked("a").filter(structs.replace(pod, metadata=wrong))
    assert found.node_names == ()
    assert all("sideways" in each for each in found.failed_and_unresolvable_nodes.values())


def test_whole_nodes_come_back_as_they_were_sent() -> None:
    asked = Asked("a", "b")
    nodes = NodeList(({"metadata": {"name": "b"}, "odd": [1, {}]}, {"metadata": {"name": "zzz"}}, {"metadata": 7}))
    found = asked.extender.filter(ExtenderArgs(trainer("p"), nodes=nodes))
    assert (found.node_names, found.nodes) == (None, NodeList(nodes.items[:1]))


def test_a_bind_writes_the_zones_that_the_pod_will_get(bound: list[tuple[str, Any]]) -> None:
    asked = Asked("a", "b")
    pod = trainer("p", gpus=3)
    node = asked.chosen(pod)
    assert asked.bind(pod, node) == ""
    ((where, annotations),) = bound
    assert where == node
    assert annotations[placementannotation.NAME].startswith("v1;main=")
    asked.now += 10 * HOLD
    asked.tick()
    assert asked.servers.cluster.assumed[pod.metadata.uid].is_bound, "it stays charged until the watch shows it"


def test_a_bind_to_another_node_is_charged_there(bound: list[tuple[str, Any]]) -> None:
    asked = Asked("a", "b")
    pod = trainer("p", gpus=3)
    other = "b" if asked.chosen(pod) == "a" else "a"
    assert (asked.bind(pod, other), [node for node, _ in bound]) == ("", [other])
    assert asked.servers.cluster.assumed[pod.metadata.uid].decision.node == other


def test_a_bind_to_a_node_that_would_reject_the_pod_is_refused(bound: list[tuple[str, Any]]) -> None:
    asked = Asked("a", "b")
    for n in range(2):
        asked.servers.cluster.pod(servers.on(trainer(f"old-{n}", gpus=4), "b"), asked.now)
    pod = trainer("p", gpus=4)
    assert asked.chosen(pod) == "a"
    assert asked.bind(pod, "b").startswith("node b would reject pod default/p: ")
    assert bound == []


def test_a_bind_of_a_pod_that_no_kubelet_aligns_is_passed_on(bound: list[tuple[str, Any]]) -> None:
    asked = Asked("a")
    pod = waitingpods.pod("p", {"containers": [{"name": "main"}]})
    asked.servers.cluster.waits_elsewhere(pod)
    assert asked.bind(pod, "a") == ""
    assert bound == [("a", {})]


@pytest.mark.parametrize("outcome, stays", [(Outcome.REFUSED, False), (Outcome.GONE, False), (Outcome.UNKNOWN, True)])
def test_a_bind_that_fails_frees_the_zones_unless_the_pod_may_be_bound(
    outcome: Outcome, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def bind(*_: object, **__: object) -> BindingResult:
        return BindingResult(outcome, "the reason")

    monkeypatch.setattr(binding, "bind", bind)
    asked = Asked("a")
    pod = trainer("p", gpus=4)
    asked.chosen(pod)
    assert asked.bind(pod, "a") == "the reason"
    asked.now += 10 * HOLD
    asked.tick()
    assert (pod.metadata.uid in asked.servers.cluster.assumed) is stays


@pytest.mark.parametrize("is_watched", [True, False])
def test_a_bind_of_a_pod_that_is_not_charged_any_more_is_judged_anew(
    is_watched: bool, bound: list[tuple[str, Any]]
) -> None:
    """The charge has ended, the extender was started again, or another replica answered the question before."""
    asked = Asked("a", "b")
    for number in range(2):
        asked.seen(trainer(f"old-{number}", gpus=3), "a")
    pod = trainer("p", gpus=2)
    asked.there["p"] = pod
    if is_watched:
        asked.servers.cluster.waits_elsewhere(pod)
    assert asked.bind(pod, "a").startswith("node a would reject pod default/p: ")
    assert asked.bind(pod, "b") == ""
    ((node, annotations),) = bound
    assert (node, placementannotation.NAME in annotations) == ("b", True)


def test_a_bind_to_a_node_without_report_or_unknown_is_refused(bound: list[tuple[str, Any]]) -> None:
    asked = Asked("a", reports=False)
    pod = trainer("p")
    asked.servers.cluster.waits_elsewhere(pod)
    assert "node(s) had no topology report yet" in asked.bind(pod, "a")
    assert UNKNOWN_NODE in asked.bind(pod, "nowhere")
    assert bound == []


def test_a_bind_of_a_pod_that_is_gone_or_another_one_by_now_is_refused(bound: list[tuple[str, Any]]) -> None:
    asked = Asked("a")
    pod = trainer("p")
    assert asked.bind(pod, "a") == 'get Pod default/p: 404: pods "p" not found'
    asked.there["p"] = structs.replace(pod, metadata=structs.replace(pod.metadata, uid="another"))
    assert "it is another pod" in asked.bind(pod, "a")
    assert bound == []


def test_a_bind_of_a_pod_of_our_own_profiles_is_refused(bound: list[tuple[str, Any]]) -> None:
    pod = trainer("p")
    asked = Asked("a", own=(pod.spec.scheduler_name,))
    asked.there["p"] = pod
    assert asked.bind(pod, "a") == OURS.format(name=pod.spec.scheduler_name)
    assert bound == []


def test_a_bind_that_is_repeated_after_the_watch_has_shown_the_pod_is_left_to_the_api_server(
    bound: list[tuple[str, Any]],
) -> None:
    asked = Asked("a")
    pod = trainer("p")
    asked.seen(pod, "a")
    assert (asked.bind(pod, "a"), bound) == ("", [("a", {})])


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_pod_that_is_bound_stays_where_it_is_if_kube_scheduler_asks_again(
    is_seen: bool, bound: list[tuple[str, Any]]
) -> None:
    """The answer to `bind` came too late for kube-scheduler, and its watch lags behind."""
    asked = Asked("a", "b")
    pod = trainer("p", gpus=4)
    (node,) = asked.chooses(pod) or ()
    assert asked.bind(pod, node) == ""
    if is_seen:
        asked.seen(pod, node)
    assert (asked.chooses(pod), asked.passing(pod), asked.scores(pod)[node]) == ((node,), (node,), HIGHEST)
    other = "b" if node == "a" else "a"
    assert asked.choice(pod, other).error == PLACED.format(node=node)
    asked.now += 10 * HOLD
    asked.tick()
    assert asked.servers.cluster.node_of(pod.metadata.uid) == node
    assert [asked.chosen(trainer(f"next-{number}", gpus=4)) for number in range(4)].count("") == 1
    assert [place for place, _ in bound] == [node]


def test_a_pod_whose_binding_has_no_answer_stays_where_it_may_be_unless_kube_scheduler_leaves_the_node_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def bind(*_: object, **__: object) -> BindingResult:
        return BindingResult(Outcome.UNKNOWN, "no answer")

    monkeypatch.setattr(binding, "bind", bind)
    asked = Asked("a", "b")
    pod = trainer("p")
    (node,) = asked.chooses(pod) or ()
    asked.bind(pod, node)
    assert {asked.chooses(pod) for _ in range(5)} == {(node,)}
    other = "b" if node == "a" else "a"
    assert asked.choice(pod, other).node_names == (other,)


def test_while_a_binding_is_under_way_the_pod_goes_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked("a", "b")
    pod = trainer("p")
    (node,) = asked.chooses(pod) or ()
    other = "b" if node == "a" else "a"
    answers = list[str]()

    async def bind(*_: object, **__: object) -> BindingResult:
        answers.append(asked.choice(pod, other).error)
        answers.append((await asked.extender.bind(BindingArgs("p", "default", pod.metadata.uid, other))).error)
        return binding.DONE

    monkeypatch.setattr(binding, "bind", bind)
    assert asked.bind(pod, node) == ""
    assert answers == [PLACED.format(node=node)] * 2


def test_a_pod_stays_charged_for_as_long_as_kube_scheduler_may_prepare_its_volumes() -> None:
    asked = Asked("a")
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = trainer("p", gpus=4, volumes=volumes)
    asked.chosen(pod)
    for later, stays in ((10 * HOLD, True), (PREPARING, False)):
        asked.now += later
        asked.tick()
        assert (pod.metadata.uid in asked.servers.cluster.assumed) is stays


def test_the_history_of_a_pod_says_what_was_answered_about_it(bound: list[tuple[str, Any]]) -> None:
    asked = Asked("a")
    large, small = trainer("large", gpus=5), trainer("small")
    asked.chooses(large)
    asked.bind(small, *(asked.chooses(small) or ()))
    assert asked.history(large) == ["unschedulable"]
    assert asked.history(small) == ["node selected", "bound"]
    (entry,) = asked.histories.of(large.metadata.uid)[0].lines
    assert entry.about["why"] == f"0/1 nodes are available: 1 {TOO_LARGE}, even when empty)."
