"""Whatever happens in whatever order: no pod is lost, none is in two places, turns and backoffs are kept."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from numalign.api.objects.pod import Pod
from numalign.placement.decisions import Wake, WakeCause
from numalign.scheduler.queue.clusterevents import Action, ClusterEvent, ObjectChange, Resource
from numalign.scheduler.queue.queue import SchedulingQueue
from numalign.scheduler.queue.queued import QueuedPod
from tests.unit.scheduler.waitingpods import asking, node, pod, queue, refused

RARELY = st.sampled_from([False, False, False, True])
NAMES = st.sampled_from("abcd")
NODES = st.sampled_from(["n1", "n2"])
PLUGINS = st.sets(
    st.sampled_from(["NodePorts", "NodeResourcesFit", "NodeResourceTopologyMatch", "Extender"]), max_size=3
)
EVENTS = st.sampled_from(
    [
        ObjectChange(ClusterEvent(Resource.NODE, Action.ADD), new=node("n1")),
        ObjectChange(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), old=pod("gone", {"nodeName": "n1"})),
        ObjectChange(ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT), node("n1"), node("n1")),
        ObjectChange(ClusterEvent(Resource.CSI_NODE, Action.UPDATE)),
    ]
)


HELPED_BY = {
    "NodePorts": {"NodeAdd"},
    "NodeResourcesFit": {"NodeAdd", "AssignedPodDelete"},
    "NodeResourceTopologyMatch": {"NodeAdd"},
}
"""By plugin, the events above that always wake the pods it refused; the one that is not here is woken by all."""


class Shut:
    """A gate that the test opens and shuts for single pods."""

    name = "DefaultPreemption"

    def __init__(self) -> None:
        self.uids: set[str] = set()

    def holds(self, pod: Pod) -> bool:
        return pod.metadata.uid in self.uids


class Laws(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.now = 0.0
        self.gate = Shut()
        self.queue: SchedulingQueue = queue([self.gate])
        self.waiting: dict[str, Pod] = {}
        """Pods without a node, whether in flight or not, by uid."""
        self.flying: dict[str, set[str]] = {}
        """Pods in flight, by uid, with the labels of what happened meanwhile."""
        self.forced: set[str] = set()
        """Pods that were activated, so they need not wait."""
        self.version = 0
        for name in "abc":
            self.comes_or_changes(name, False, "")
            self.now += 0.5

    def made(self, name: str, gated: bool, nominated: str) -> Pod:
        self.version += 1
        spec: dict[str, Any] = {"priority": ord(name) % 2, **asking(cpu=1 + self.version % 4)}
        spec |= {"schedulingGates": [{"name": "x"}]} if gated else {}
        return pod(name, spec, {"nominatedNodeName": nominated}, resourceVersion=str(self.version))

    @rule(name=NAMES, gated=RARELY, nominated=st.sampled_from(["", "", "n1"]))
    def comes_or_changes(self, name: str, gated: bool, nominated: str) -> None:
        # Gates can be taken away from a pod, never added to it.
        known = self.waiting.get(f"uid-{name}")
        new = self.made(name, gated and (known is None or bool(known.spec.scheduling_gates)), nominated)
        if new.metadata.uid in self.flying and known is None:
            return
        self.waiting[new.metadata.uid] = new
        (self.queue.add if known is None else self.queue.update)(new, self.now)

    @rule(name=NAMES, really=RARELY, bound=st.booleans())
    def goes(self, name: str, really: bool, bound: bool) -> None:
        if not really:
            return
        self.waiting.pop(f"uid-{name}", None)
        if bound:
            self.queue.assigned(f"uid-{name}")
        else:
            self.queue.delete(f"uid-{name}", self.now)

    @rule(seconds=st.sampled_from([0.0, 0.3, 1.0, 5.0, 31.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(event=EVENTS)
    def something_happens(self, event: ObjectChange) -> None:
        self.queue.move(event, self.now)
        for seen in self.flying.values():
            seen.add(event.event.label)

    @rule(name=NODES, cause=st.sampled_from(list(WakeCause)))
    def zones_get_better(self, name: str, cause: WakeCause) -> None:
        self.queue.wake([Wake(name, cause)], self.now)

    @rule(name=NAMES)
    def is_activated(self, name: str) -> None:
        self.forced.add(f"uid-{name}")
        self.queue.activate([f"uid-{name}"], self.now)

    @rule(name=NAMES, shut=RARELY)
    def gate_moves(self, name: str, shut: bool) -> None:
        (self.gate.uids.add if shut else self.gate.uids.discard)(f"uid-{name}")

    @rule(name=NAMES, at=NODES)
    def is_nominated(self, name: str, at: str) -> None:
        self.queue.nominate(f"uid-{name}", at, self.now)

    @rule(meanwhile=st.none() | st.lists(EVENTS, max_size=2), plugins=PLUGINS, nodes=st.frozensets(NODES))
    def is_tried(self, meanwhile: list[ObjectChange] | None, plugins: set[str], nodes: frozenset[str]) -> None:
        """A pod is popped, and refused after this and that; or later."""
        uid = self.popped()
        for event in meanwhile or ():
            self.something_happens(event)
        if meanwhile is not None and uid:
            self.returns(uid, plugins, nodes)

    def popped(self) -> str:
        self.queue.flush(self.now)
        before = self.queue.pending()
        popped = self.queue.pop(self.now)
        self.judge_pop(before, popped)
        if popped is None:
            return ""
        self.flying[popped.uid] = set()
        return popped.uid

    def judge_pop(self, before: dict[str, list[QueuedPod]], popped: QueuedPod | None) -> None:
        """The order law, and the backoff law for pods whose last attempt was an error."""
        if before["active"]:
            assert popped is min(before["active"], key=lambda each: (-each.pod.spec.priority, each.since, each.number))
        elif popped is not None:
            assert not popped.rejection.is_error
        if popped is not None:
            assert popped.uid in self.waiting
            assert not self.gate.holds(popped.pod) or popped in before["active"]
            assert not popped.errors or popped.uid in self.forced or _is_over(popped, self.now)

    @rule(plugins=PLUGINS, nodes=st.frozensets(NODES), data=st.data())
    def comes_back(self, plugins: set[str], nodes: frozenset[str], data: st.DataObject) -> None:
        if not self.flying:
            return
        self.returns(data.draw(st.sampled_from(sorted(self.flying))), plugins, nodes)

    def returns(self, uid: str, plugins: set[str], nodes: frozenset[str]) -> None:
        seen = self.flying.pop(uid)
        parked = self.queue.park(uid, refused(*sorted(plugins), zones_of=nodes), self.now)
        assert (parked is not None) == (uid in self.waiting)
        if parked is not None:
            assert parked.pod == self.waiting[uid]
            # Nothing that would have woken it was lost while it was away, and nothing else wakes it.
            helped = any(HELPED_BY.get(plugin, seen) & seen for plugin in plugins)
            assert parked not in self.queue.pending()["unschedulable"] or (plugins and not helped)

    @rule(really=RARELY, data=st.data())
    def is_bound(self, really: bool, data: st.DataObject) -> None:
        if self.flying and really:
            uid = data.draw(st.sampled_from(sorted(self.flying)))
            del self.flying[uid]
            self.waiting.pop(uid, None)
            self.queue.done(uid, bound=True)

    @invariant()
    def no_pod_is_lost_or_in_two_places(self) -> None:
        places = [queued.uid for pool in self.queue.pending().values() for queued in pool]
        assert sorted(places) == sorted(set(self.waiting) - set(self.flying))
        assert list(self.queue.flights.uids()) == list(self.flying)

    @invariant()
    def parked_pods_know_what_they_wait_for(self) -> None:
        pools = self.queue.pending()
        assert all(queued.rejecting for queued in pools["unschedulable"])
        assert all(queued.gate for queued in pools["gated"])
        assert not any(queued.pod.spec.scheduling_gates for queued in (*pools["active"], *pools["backoff"]))

    @invariant()
    def everybody_is_as_last_seen(self) -> None:
        for pool in self.queue.pending().values():
            assert all(queued.pod == self.waiting[queued.uid] for queued in pool)

    @invariant()
    def nominations_are_of_pods_that_wait(self) -> None:
        uids = {
            each.metadata.uid for name in self.queue.nominations.nodes() for each in self.queue.nominations.on(name)
        }
        assert uids <= set(self.waiting)

    @invariant()
    def due_is_never_too_late(self) -> None:
        pools, due = self.queue.pending(), self.queue.due(self.now)
        assert (due is not None) or not any(pools.values())
        assert due is None or self.now <= due <= self.now + 40
        assert due == self.now or not pools["active"]


def _is_over(queued: QueuedPod, now: float) -> bool:
    """The law of backoff, said once more: 1, 2, 4, 8 and then 10 seconds, to the end of the second."""
    return math.floor(queued.since + min(10, 1 << (queued.errors - 1))) < math.floor(now)


TestLaws = Laws.TestCase
TestLaws.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.slow
def test_the_laws_hold_for_long_histories() -> None:
    run_state_machine_as_test(Laws, settings=settings(max_examples=3000, stateful_step_count=100, deadline=None))
