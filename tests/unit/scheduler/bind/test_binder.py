"""Decisions carried out: once, to the end, and only by the leader."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, cast

import pytest

from numalign.api.objects.pod import Pod
from numalign.kube import binding as calls
from numalign.kube.binding import BindingResult, Outcome
from numalign.kube.client import Client
from numalign.placement.decisions import Decision
from numalign.scheduler.bind.binder import TRIES, Binder, PendingBinding, VolumeBinder
from numalign.scheduler.queue.queued import QueuedPod
from numalign.simulator import virtualtime
from tests.unit.scheduler import servers

WORKERS = 2
POD = servers.on(servers.trainer("p"), "a")
BIND = PendingBinding(QueuedPod(pod=POD, added=0.0, since=0.0, number=1), POD, Decision("uid-p", "a"), 0.0)


class RecordedResults:
    """Records the results of bindings."""

    def __init__(self) -> None:
        self.recorded: list[str] = []
        self.open = self.node = True

    def is_open(self, bind: PendingBinding) -> bool:
        return self.open

    def has_node(self, name: str) -> bool:
        return self.node

    def sends(self, bind: PendingBinding) -> None: ...

    def bound(self, bind: PendingBinding) -> None:
        self.recorded.append("bound")

    def failed(self, bind: PendingBinding, why: str) -> None:
        self.recorded.append(f"failed: {why}")

    def over(self, bind: PendingBinding) -> None:
        self.recorded.append("over")


class Story:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Outcome) -> None:
        self.results, self.leads, self.sent, self.prepared = RecordedResults(), True, 0, 0
        self.answers = list(answers)
        self.on_sent: Callable[[], None] = lambda: None
        self.found: Any = POD
        monkeypatch.setattr(calls, "bind", self._bind)

    async def _bind(
        self, client: Client, pod: object, node: str, annotations: object, *, wanted: Callable[[], bool]
    ) -> BindingResult:
        self.sent += 1
        self.wanted = wanted
        await asyncio.sleep(0)
        self.on_sent()
        return BindingResult(self.answers.pop(0), "why")

    def recorded(self) -> list[str]:
        virtualtime.run(self._told())
        return self.results.recorded

    async def _told(self) -> None:
        binder = Binder(
            self._client(), self.results, cast(VolumeBinder, None), leads=lambda: self.leads, workers=WORKERS
        )
        running = asyncio.ensure_future(binder.run())
        binder.start(BIND)
        await asyncio.sleep(600)
        running.cancel()

    def _client(self) -> Client:
        story = self

        class Sender:
            clock = virtualtime.clock(random.Random(1))

            async def prepare(self) -> None:
                story.prepared += 1

        class Asked:
            sender = Sender()

            async def get(self, target: object) -> object:
                return story.found

        return cast(Client, Asked())


@pytest.mark.parametrize(
    "outcome, recorded",
    {Outcome.DONE: "bound", Outcome.GONE: "over", Outcome.ELSEWHERE: "over"}.items(),
)
def test_an_outcome_is_recorded_once(monkeypatch: pytest.MonkeyPatch, outcome: Outcome, recorded: str) -> None:
    assert Story(monkeypatch, outcome).recorded() == [recorded]


def test_every_binding_at_a_time_has_its_connection_before_there_is_something_to_bind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story(monkeypatch, Outcome.DONE)
    story.recorded()
    assert story.prepared == WORKERS


def test_a_binding_whose_outcome_is_not_known_is_sent_again_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(monkeypatch, *[Outcome.UNKNOWN] * 7, Outcome.DONE)
    assert (story.recorded(), story.sent) == (["bound"], 8)


def test_one_that_is_refused_keeps_its_place_for_a_few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(monkeypatch, *[Outcome.REFUSED] * TRIES)
    assert (story.recorded(), story.sent) == (["failed: why"], TRIES)


@pytest.mark.parametrize("found, recorded", [(POD, "bound"), (servers.on(POD, ""), "failed: why")])
def test_refusals_say_nothing_about_an_earlier_try_that_got_no_answer(
    monkeypatch: pytest.MonkeyPatch, found: Pod, recorded: str
) -> None:
    story = Story(monkeypatch, Outcome.UNKNOWN, *[Outcome.REFUSED] * (TRIES - 1))
    story.found = found
    assert story.recorded() == [recorded]


def test_without_the_lease_nothing_is_sent_and_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(monkeypatch)
    story.leads = False
    assert (story.recorded(), story.sent) == ([], 0)


def test_the_lease_is_asked_for_before_every_try(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(monkeypatch, Outcome.UNKNOWN)
    story.on_sent = lambda: setattr(story, "leads", False)
    assert (story.recorded(), story.sent) == ([], 1)


@pytest.mark.parametrize("what", ["leads", "open", "node"])
def test_it_is_not_wanted_any_more_once_lease_decision_or_node_are_gone(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    story = Story(monkeypatch, Outcome.DONE)
    story.recorded()
    before = story.wanted()
    setattr(story if what == "leads" else story.results, what, False)
    assert (before, story.wanted()) == (True, False)


def test_a_node_that_is_gone_gets_no_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(monkeypatch)
    story.results.node = False
    assert (story.recorded(), story.sent) == (["failed: the node is gone"], 0)


def test_a_pod_that_was_bound_or_deleted_meanwhile_gets_no_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(monkeypatch)
    story.results.open = False
    assert (story.recorded(), story.sent) == (["over"], 0)


@pytest.mark.parametrize(
    "found, recorded",
    [
        (POD, ["bound"]),
        (servers.on(POD, "b"), ["over"]),
        (servers.on(POD, ""), ["failed: the node is gone"]),
        (servers.on(servers.trainer("q"), "a"), ["over"]),
    ],
)
def test_where_the_node_went_while_no_answer_came_the_pod_itself_is_asked(
    monkeypatch: pytest.MonkeyPatch, found: object, recorded: list[str]
) -> None:
    story = Story(monkeypatch, Outcome.UNKNOWN)
    story.on_sent, story.found = lambda: setattr(story.results, "node", False), found
    assert (story.recorded(), story.sent) == (recorded, 1)


class Call:
    """Bind calls that are answered when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open: dict[str, asyncio.Future[BindingResult]] = {}
        monkeypatch.setattr(calls, "bind", self._bind)

    async def _bind(self, client: Client, pod: Any, *_: object, **__: object) -> BindingResult:
        self.open[pod.name] = asyncio.get_running_loop().create_future()
        return await self.open[pod.name]

    def answer(self, name: str, outcome: Outcome = Outcome.DONE) -> None:
        self.open.pop(name).set_result(BindingResult(outcome))


def on_its_way(name: str, node: str = "a", *, in_turn: bool = False) -> PendingBinding:
    pod = servers.on(servers.trainer(name), node)
    decision = Decision(pod.metadata.uid, node, in_turn=in_turn)
    return PendingBinding(QueuedPod(pod=pod, added=0.0, since=0.0, number=1), pod, decision, 0.0)


def sent_in_steps(monkeypatch: pytest.MonkeyPatch, *steps: PendingBinding | tuple[str, Outcome]) -> list[list[str]]:
    """The unanswered calls after each step: a binding that is started, or an answer."""
    found, call = list[list[str]](), Call(monkeypatch)

    async def story() -> None:
        client = Story(monkeypatch)._client()
        monkeypatch.setattr(calls, "bind", call._bind)
        binder = Binder(client, RecordedResults(), cast(VolumeBinder, None), leads=lambda: True, workers=4)
        running = asyncio.ensure_future(binder.run())
        for step in steps:
            call.answer(*step) if isinstance(step, tuple) else binder.start(step)
            # Less than the pause before a call is repeated.
            await asyncio.sleep(0.1)
            found.append(sorted(call.open))
        running.cancel()

    virtualtime.run(story())
    return found


def test_a_pod_that_may_take_the_zones_of_earlier_ones_is_bound_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    done = Outcome.DONE
    steps = [on_its_way("p"), on_its_way("q"), on_its_way("r", in_turn=True), on_its_way("s", in_turn=True)]
    assert sent_in_steps(monkeypatch, *steps, ("q", done), ("p", done), ("r", done)) == [
        ["p"], ["p", "q"], ["p", "q"], ["p", "q"], ["p"], ["r"], ["s"],
    ]  # fmt: skip


def test_it_does_not_wait_for_pods_of_other_nodes_nor_for_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [on_its_way("p"), on_its_way("q", "b", in_turn=True), on_its_way("r", in_turn=True), on_its_way("s")]
    assert sent_in_steps(monkeypatch, *steps, ("p", Outcome.DONE))[2:] == [["p", "q"], ["p", "q", "s"], ["q", "r", "s"]]


def test_a_call_without_an_answer_holds_up_no_other_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [on_its_way("p"), on_its_way("q", in_turn=True)]
    assert sent_in_steps(monkeypatch, *steps, ("p", Outcome.UNKNOWN))[-1] == ["q"]
